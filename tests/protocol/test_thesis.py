"""The thesis' examples and claims, run by cells."""

from __future__ import annotations

from typing import Any

import pytest
from tests.protocol.town import Town, row

from halfmask.protocol import simulate
from halfmask.protocol.cell_plan import plan_for_cells
from halfmask.protocol.common_schema import MERGES, Policy, Terms, commons_from
from halfmask.protocol.contribution import contribution
from halfmask.protocol.crypto import FrameKey, seat
from halfmask.protocol.parties.worker import seal_contribution
from halfmask.protocol.simulate import UnprovenCell

STREETS = commons_from(
    {
        "tables": {
            "people": {
                "columns": {
                    "city": {"role": "quasi"},
                    "street": {"role": "quasi"},
                    "salary": {"type": "integer", "role": "sensitive"},
                }
            }
        }
    }
)
CHAIN = "GUARANTEE k = 5, l = 3 THEN street -> del GUARANTEE k = 10, l = 3"
TEXT = f"SELECT city, street, AVG(salary) AS mean FROM people GROUP BY city, street {CHAIN}"  # noqa: S608


@pytest.mark.parametrize(
    ("k", "level"), [(5, 0), (8, 1), (20, None)], ids=["Alice", "Bob", "Charlie"]
)
def test_figure_4_4_each_enters_at_the_finest_level_they_accept(k: int, level: int | None) -> None:
    made = plan_for_cells(STREETS, TEXT)
    person = row(STREETS, {"city": "Bourges", "street": "Lahitolle", "salary": 1500})
    assert contribution(made, {"people": person}, Policy(k, 3)).level == level


@pytest.mark.parametrize(
    ("k", "least", "level"), [(10, 4, 5), (9, 5, 6), (18, 3, None), (5, 3, 0), (17, 8, 9)]
)
def test_figure_4_5_entry_levels(k: int, least: int, level: int | None) -> None:
    commons = simulate.commons()
    person = (
        simulate.population(1, 1)
        .select(commons.tables["census"].arrow.names)
        .cast(commons.tables["census"].arrow)
    )
    made = plan_for_cells(commons, simulate.QUERY)
    assert contribution(made, {"census": person}, Policy(k, least)).level == level


def table_4_1() -> list[dict[str, Any]]:
    """29 people who make up Table 4.1: averages 1500, 1700, 1600, 1400; 6, 9, 3 and 11 people."""
    groups = [
        ("Le Chesnay", "Dom. Voluceau", (5, 3), [1200, 1400, 1500, 1500, 1600, 1800]),
        (
            "Le Chesnay",
            "elsewhere",
            (10, 3),
            [1500, 1600, 1600, 1700, 1700, 1750, 1750, 1800, 1900],
        ),
        ("Bourges", "Bv. Lahitolle", (5, 3), [1500, 1600, 1700]),
        (
            "Bourges",
            "elsewhere",
            (10, 3),
            [1100, 1200, 1300, 1300, 1400, 1400, 1400, 1500, 1500, 1600, 1700],
        ),
    ]
    return [
        {"city": c, "street": s, "salary": w, "k": k, "l": m}
        for c, s, (k, m), wages in groups
        for w in wages
    ]


@pytest.mark.parametrize("merge", MERGES)
def test_table_4_1_from_29_cells(merge: Any) -> None:
    found = Town(table_4_1(), STREETS, Terms(merge, 6, 4, 16)).ask(TEXT)
    assert found is not None
    rows = {(r["city"], r["street"]): r["mean"] for r in found[0].rows.to_pylist()}
    assert rows == {
        ("Le Chesnay", "Dom. Voluceau"): 1500.0,
        ("Bourges", "*"): pytest.approx(1442.857, abs=1e-3),
    }


def test_table_4_1_complete_publishes_everybody() -> None:
    found = Town(table_4_1(), STREETS).ask(TEXT + " SEMANTICS complete")
    assert found is not None
    rows = {(r["city"], r["street"]): r["mean"] for r in found[0].rows.to_pylist()}
    assert rows == {
        ("Le Chesnay", "*"): 1620.0,
        ("Bourges", "*"): pytest.approx(1442.857, abs=1e-3),
    }
    assert found[0].document["people"] is None  # an average counts nobody


def test_real_coarse_and_dummy_contributions_have_one_length() -> None:
    made = plan_for_cells(STREETS, TEXT + "")
    people = [
        ({"city": "Bourges", "street": "a", "salary": 1}, Policy(5, 3)),
        ({"city": "Le Chesnay", "street": "b" * 30, "salary": 10**15}, Policy(10, 3)),
        ({"city": "x", "street": "y", "salary": 2}, Policy(20, 3)),
        ({"city": "x" * 40, "street": "y", "salary": 2}, Policy(5, 3)),
        ({"city": None, "street": None, "salary": None}, Policy(5, 3)),
        ({"city": "x", "street": "y", "salary": 2}, None),
    ]
    given = [contribution(made, {"people": row(STREETS, p)}, policy) for p, policy in people]
    assert [g.level for g in given] == [0, 1, None, None, 0, None]
    key = FrameKey(bytes(32), bytes(32))
    sealed = [
        seal_contribution(key, bytes(32), bytes([i] * 16), g.record, UnprovenCell())[1]
        for i, g in enumerate(given)
    ]
    # The nonce and tag of AES-GCM, and the proof: a credential with its two signatures.
    assert {len(s) for s in sealed} == {made.layout.size + 12 + 16 + (16 + 32 + 2 + 8 + 64 + 64)}


def test_a_thousand_encryptions_of_one_tuple_are_all_different() -> None:
    key = FrameKey(bytes(32), bytes(32))
    where = seat(bytes(32), bytes(32))
    assert len({key.seal(where, b"the same tuple") for _ in range(1000)}) == 1000


def test_where_and_refusal_look_alike() -> None:
    town = Town(
        [{"city": "x", "street": "y", "salary": i, "k": 5, "l": 1} for i in range(6)], STREETS
    )
    found = town.ask(
        "SELECT city, COUNT(*) AS n FROM people WHERE salary > 100 GROUP BY city GUARANTEE k = 5"
    )
    assert found is not None
    assert found[0].rows.num_rows == 0
    assert found[0].contributions == 6
    assert {e.outcome for c in town.cells for e in c.home.log()} == {  # type: ignore[union-attr]
        "the condition is not met"
    }
