"""An asker with personal epsilons: nothing but noise tells whether a cautious person is there.

The attacker knows everybody else, all demands, the schema and the code, and sees one answer.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from effort import turn

import halfmask as hm
from halfmask.errors import PrivacyError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {
    "columns": {"pay": {"role": "sensitive", "domain": {"low": 0, "high": 100}}},
    "policy": {"epsilon": "own"},
}
TRIALS = 40


def table(*, there: bool) -> hm.Table:
    """400 people who allow 1 and 200 who allow 0.01; the victim is one more of these."""
    own = [1.0] * 400 + [0.01] * (200 + there)
    pay = np.random.default_rng(1).integers(0, 100, len(own))
    return hm.read(pa.table({"pay": pay, "own": own}), SCHEMA)


def grid_of(share: float) -> float:
    """What one whole step of noise is worth in a published sum that was divided by a share."""
    return 0.1 / share


def share_of(cautious: int, threshold: float) -> float:
    chance = np.expm1(0.01) / np.expm1(threshold)
    return (400 + min(1.0, chance) * cautious) / (400 + cautious)


def guess(answer: hm.PrivateRelease) -> bool:
    """Whether the published sum lies on the grid that the table with the victim would give."""
    found = answer.to_arrow()["s"][0].as_py()
    stated = answer.parameters["personal"]
    if "kept_share" in stated:  # no need to compute anything
        return abs(stated["kept_share"] - share_of(201, stated["threshold"])) < 1e-12
    apart = []
    for cautious in (200, 201):
        fits = []
        for threshold in (0.01, 1.0):
            step = grid_of(share_of(cautious, threshold))
            fits.append(abs(found / step - round(found / step)))
        apart.append(min(fits))
    return apart[1] < apart[0]


def test_one_published_sum_does_not_tell_membership() -> None:
    """Each world is asked as often as the other; a coin is right half the time."""
    right = 0
    for trial in range(TRIALS):
        there = trial % 2 == 0
        answer = hm.query(table(there=there), "SELECT SUM(pay) AS s FROM t WITH PERSONAL EPSILON")
        right += guess(answer) == there
    # Forty coins are right 33 times or more once in some 20,000 runs.
    assert right < 33


def test_an_answer_tells_nothing_of_levels_but_what_is_declared() -> None:
    """Two tables that differ by the victim tell the same, but for the noisy figures."""
    told = []
    for there in (False, True):
        answer = hm.query(table(there=there), "SELECT SUM(pay) AS s FROM t WITH PERSONAL EPSILON")
        told.append(answer.to_dict())
    assert told[0] == told[1]


def test_no_epsilon_of_the_asker_goes_beyond_what_a_person_allows() -> None:
    """200 cautious people with the highest pay: an asker at epsilon 1 must not find them."""
    own = [1.0] * 400 + [0.01] * 200
    rows = pa.table({"pay": [0] * 400 + [100] * 200, "own": own})
    for sql in (
        "SELECT COUNT(*) AS n FROM t WHERE pay = 100 WITH EPSILON 1",
        "SELECT COUNT(*) FILTER (WHERE pay = 100) AS n FROM t WITH EPSILON 1",
    ):
        found = [hm.query(hm.read(rows, SCHEMA), sql).to_arrow()["n"][0].as_py() for _ in range(5)]
        assert np.median(found) < 20


def test_asking_again_and_again_does_not_add_up_beyond_the_demand(tmp_path) -> None:
    """The average of many answers would take the noise away; the ledger stops before."""
    ledger = hm.BudgetLedger.create(tmp_path / "x", hm.dp.Pure(20))
    people = hm.read(pa.table({"pay": [50] * 300, "own": [0.5] * 300}), SCHEMA)
    told = []
    for _ in range(12):
        answer = hm.query(people, "SELECT COUNT(*) AS n FROM t WITH EPSILON 0.1", ledger=ledger)
        told.append(answer.to_arrow()["n"][0].as_py())
    assert np.median(told[:5]) > 200  # five times 0.1 is what they allow
    assert np.median(told[5:]) < 100
    spent = Fraction(1, 2) - hm.Accountant.of(ledger).left([Fraction(1, 2)])[0]
    assert spent == Fraction(1, 2)


ASKED = "SELECT COUNT(*) AS n, MEDIAN(pay) AS m FROM people WITH "
ODD = {
    "none": None,
    "negative": -1.0,
    "zero": 0.0,
    "no number": float("nan"),
    "infinite": float("inf"),
    "tiny": 1e-300,
    "huge": 1e300,
}


def test_whether_a_noisy_query_fails_depends_on_no_demand() -> None:
    """A database holds whatever people wrote; rows of one person may say different things."""
    from halfmask.engines.duckdb.engine import DuckDB

    schema = hm.Schema.from_dict(
        {**SCHEMA, "table": {"person": "id"}, "columns": {"id": "identifier", **SCHEMA["columns"]}}
    )
    for place, own in enumerate(ODD.values()):
        for other in turn((0.5, own), place):
            rows = pa.table(
                {
                    "id": [1, 1, *range(2, 60)],
                    "pay": [50] * 60,
                    "own": pa.array([own, other] + [1.0] * 58, pa.float64()),
                }
            )
            for promise in ("EPSILON 0.5", "PERSONAL EPSILON"):
                engine = DuckDB({"people": rows})
                answer = hm.query(
                    "people",
                    ASKED + promise,
                    engine=engine,
                    schema={"people": schema},
                )
                assert len(answer) == 1
                engine.close()


def test_whether_people_repeat_shows_in_no_plan() -> None:
    """The plan of a table whose people have one row each is that of any other."""
    schema = {
        "table": {"person": "id"},
        "columns": {"id": "identifier", **SCHEMA["columns"]},
        "policy": {"epsilon": "own"},
    }
    plans = [
        hm.explain(
            hm.read(pa.table({"id": people, "pay": [1, 2], "own": [1.0, 1.0]}), schema),
            "SELECT SUM(pay) AS s FROM t WITH EPSILON 0.5",
        ).to_dict()
        for people in ([1, 2], [1, 1])
    ]
    assert plans[0] == plans[1]


@pytest.mark.parametrize(
    "policies", [{"epsilon": 0.01}, {"columns": {"ill": {"epsilon": 0.01}}}], ids=["all", "column"]
)
def test_an_epsilon_from_any_source_is_kept_by_synthesis(policies: dict[str, object]) -> None:
    people = hm.read({"sex": ["f", "m"] * 50, "ill": ["no"] * 90 + ["yes"] * 10})
    domains = {"sex": ["f", "m"], "ill": ["no", "yes"]}
    with pytest.raises(PrivacyError, match="everybody who states one would be left out"):
        hm.synthesize(people, epsilon=5, domains=domains, policies=policies)
    made = hm.synthesize(people, epsilon=5, domains=domains, policies=policies, demands="ignore")
    assert made.to_dict()["parameters"]["demands"] == "ignore"


ILL = {"ill": ["no", "yes"]}


def keyed_people(rows: int = 1) -> hm.Table:
    """400 people, each with so many rows; the last 200 are ill."""
    ids = [f"{i:03}" for i in range(400)] * rows
    return hm.read(
        pa.table({"id": ids, "ill": (["no"] * 200 + ["yes"] * 200) * rows}),
        schema={"table": {"person": "id"}, "columns": {"ill": {"role": "sensitive"}}},
    )


def cautious(folder: Path) -> Path:
    """A policy file by which the ill allow 0.01 and one of the others 20."""
    lines = ["person,epsilon", *(f"{i:03},0.01" for i in range(200, 400)), "000,20"]
    path = folder / "policies.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize("rows", [1, 3])
def test_an_epsilon_keyed_by_person_is_kept_by_queries(
    tmp_path: Path, rows: int, engine: str
) -> None:
    """Who allows 0.01 is in no figure at epsilon 1: a count of the ill is noise around 0."""
    sql = "SELECT ill, COUNT(*) AS n FROM t GROUP BY ill WITH EPSILON 1"
    asked = {"domains": ILL, "engine": engine, "policies": cautious(tmp_path)}
    found = hm.query(keyed_people(rows), sql, **asked).to_arrow().to_pylist()
    counted = {row["ill"]: row["n"] for row in found}
    assert abs(counted["no"] - 200) < 40
    assert abs(counted["yes"]) < 40
    ignored = hm.query(keyed_people(rows), sql, demands="ignore", **asked)
    assert ignored.to_dict()["demands"]["kept"] is False
    assert abs(ignored.to_arrow()["n"].to_pylist()[1] - 200) < 40


def test_an_epsilon_keyed_by_person_is_kept_by_private_tables(tmp_path: Path) -> None:
    given = {"domains": ILL, "policies": cautious(tmp_path), "epsilon": 1}
    made = hm.synthesize(keyed_people(), **given).to_arrow()["ill"].to_pylist()
    assert made.count("yes") < 40 < 160 < made.count("no")
    rows = hm.tabulate(keyed_people(), "ill", method="dp", **given).to_arrow().to_pylist()
    counted = {row["ill"]: row["count"] for row in rows}
    assert abs(counted["no"] - 200) < 40
    assert abs(counted["yes"]) < 40


def test_everybody_pays_the_epsilon_that_a_policy_file_says(tmp_path: Path) -> None:
    """Only those who state one are read: one at 20, and 200 at 0.01."""
    sql = "SELECT COUNT(*) AS n FROM t WITH PERSONAL EPSILON"
    found = hm.query(keyed_people(), sql, policies=cautious(tmp_path))
    personal = found.to_dict()["parameters"]["personal"]
    assert personal["costs"][0] == pytest.approx(0.01)
    assert found.receipt.promise.epsilon == 20


def test_an_epsilon_keyed_by_person_is_refused_for_rows_in_a_database(tmp_path: Path) -> None:
    path = str(tmp_path / "people.duckdb")
    with duckdb.connect(path) as made:
        made.execute("CREATE TABLE t AS SELECT printf('%03d', i) AS id FROM range(400) x(i)")
    asked = {"schema": {"table": {"person": "id"}}, "tables": ["t"], "epsilon": 1}
    with pytest.raises(PrivacyError, match="keyed by person, which noise cannot look up"):
        hm.query(path, "SELECT COUNT(*) AS n FROM t", policies=cautious(tmp_path), **asked)


def test_who_states_k_alone_is_read_by_quiet_noise_only() -> None:
    people = hm.read(
        pa.table({"pay": [50] * 400, "own": [20.0] * 200 + [None] * 200, "k_i": [2] * 400}),
        {**SCHEMA, "policy": {"epsilon": "own", "k": "k_i"}},
    )
    counted = [
        hm.query(people, f"SELECT COUNT(*) AS n FROM t WITH EPSILON {e}").to_arrow()["n"][0].as_py()
        for e in (1, 20)
    ]
    assert abs(counted[0] - 400) < 60
    assert abs(counted[1] - 200) < 60


def test_what_was_set_aside_under_noise_is_said_by_its_kinds_and_never_by_people() -> None:
    rows = pa.table({"pay": list(range(100)), "own": [3] * 60 + [None] * 40})
    schema = {**SCHEMA, "policy": {"k": "own", "l": 2}}
    answer = hm.query(
        hm.read(rows, schema),
        "SELECT COUNT(*) AS n FROM people WITH EPSILON 5",
        demands="ignore",
    )
    assert answer.notes[0].startswith("People's own demands of k and l were set aside")
    assert answer.to_dict()["demands"] == {"kept": False, "of": ["k", "l"]}
