"""The same answer as ``hm.query`` on the pooled rows, for every merge and semantics."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import THOROUGH, examples, turn
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocol.town import COMMONS, GUARANTEES, Town, row, sql

import halfmask as hm
from halfmask.protocol import answering
from halfmask.protocol.cell_plan import plan_for_cells
from halfmask.protocol.common_schema import MERGES, Policy, Terms, commons_from
from halfmask.protocol.contribution import contribution
from halfmask.protocol.crypto import FrameKey
from halfmask.protocol.parties.worker import seal_contribution
from halfmask.protocol.records import layout
from halfmask.protocol.simulate import UnprovenCell, close, contributions

Person = dict[str, Any]
PERSON = st.fixed_dictionaries(
    {
        "a": st.one_of(st.none(), st.integers(-3, 6)),
        "b": st.sampled_from(["x", "y", None]),
        "s": st.one_of(st.none(), st.integers(0, 4)),
        "k": st.one_of(st.none(), st.integers(1, 7)),
        "l": st.integers(1, 3),
    }
)
PEOPLE = st.lists(PERSON, min_size=1, max_size=30)
TYPES = {"a": pa.int64(), "b": pa.string(), "s": pa.int64(), "k": pa.int64(), "l": pa.int64()}


def pooled(people: list[Person]) -> hm.Table:
    rows = pa.table({n: pa.array([p[n] for p in people], t) for n, t in TYPES.items()})
    return hm.read(rows, {"columns": {"a": "quasi", "b": "quasi", "s": "sensitive"}})


def same(people: list[Person], text: str, terms: Terms) -> None:
    found = Town(people, terms=terms).ask(text)
    assert found is not None
    # A cell whose person states no k contributes nothing; a center would give them its floor.
    asked = [person for person in people if person["k"] is not None]
    if not asked:
        assert found[0].rows.num_rows == 0
        return
    expected = hm.query(pooled(asked), text, {"k": "k", "l": "l"})
    ours = sorted(found[0].rows.to_pylist(), key=str)
    assert ours == sorted(expected.to_arrow().to_pylist(), key=str)
    assert found[0].document["people"] in (None, expected.people)  # None where nobody is counted
    assert found[0].contributions == len(people)


@settings(max_examples=examples(12), deadline=None)
@given(
    PEOPLE,
    st.sampled_from(MERGES),
    st.sampled_from(["selective", "complete", "complete-greedy"]),
    st.integers(1, 9),
    st.integers(2, 9),
)
def test_cells_answer_what_a_trusted_center_would(
    people: list[Person], merge: Any, semantics: str, partition: int, frame: int
) -> None:
    same(people, sql(semantics), Terms(merge, partition, frame, 40))


POPULATIONS = 700 if THOROUGH else 150
SEMANTICS = ("selective", "complete", "complete-greedy")
NUMBERED = commons_from(
    {
        "tables": {
            "people": {
                "columns": {
                    "town": {"type": "integer", "role": "quasi"},
                    "a": {"type": "integer", "role": "quasi"},
                    "b": {"type": "text", "role": "quasi", "values": ["x", "y", "z"]},
                    "s": {"type": "integer", "role": "sensitive"},
                }
            }
        }
    }
)


def many_people(random: np.random.Generator) -> pa.Table:
    """So many towns, numbered, of one to twenty people each."""
    sizes = random.integers(1, 21, POPULATIONS)
    n = int(sizes.sum())

    def drawn(low: int, high: int, missing: float = 0.1) -> pa.Array:
        return pa.array(random.integers(low, high, n), mask=random.random(n) < missing)

    return pa.table(
        {
            "town": np.repeat(np.arange(POPULATIONS), sizes),
            "a": drawn(-1, 3),
            "b": pa.array(["x", "y"]).take(drawn(0, 2)),
            "s": drawn(0, 5),
            "k": drawn(1, 6),
            "l": drawn(1, 4, 0.0),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("semantics", SEMANTICS)
def test_thousands_of_populations(semantics: str) -> None:
    """Each town is collected, closed and merged on its own; all answers are compared at once.

    The number of the town is a grouping column that is never generalized, so that one answer over
    all towns is the answers of each.
    """
    random = np.random.default_rng(SEMANTICS.index(semantics))
    people = many_people(random)
    text = sql(semantics).replace("SELECT a,", "SELECT town, a,").replace("BY a,", "BY town, a,")
    made = plan_for_cells(NUMBERED, text)
    query = bytes(32)
    key = FrameKey(bytes(32), query)
    towns = people["town"].to_numpy()
    records_of = np.concatenate(list(contributions(made, people, "people")))
    found = []
    for town in range(POPULATIONS):
        low, high = np.searchsorted(towns, [town, town + 1])
        given = [
            seal_contribution(
                key, query, i.to_bytes(16), record.tobytes(), UnprovenCell(i.to_bytes(16))
            )
            for i, record in enumerate(records_of[low:high])
        ]
        terms = Terms(MERGES[town % 3], int(random.integers(1, 7)), int(random.integers(2, 9)), 22)
        run = close(made, terms, key, query, given, UnprovenCell(), UnprovenCell())
        run.aggregate()
        found.append(run.merge_all()[0])
    ours = answering.answer_cells(made, np.concatenate(found))
    roles = {"town": "quasi", "a": "quasi", "b": "quasi", "s": "sensitive"}
    # A cell whose person states no k contributes nothing; a center would give them its floor.
    asked = people.filter(people["k"].is_valid())
    expected = hm.query(hm.read(asked, {"columns": roles}), text, {"k": "k", "l": "l"})
    assert len(ours) > POPULATIONS / 2
    assert ours.people == expected.people
    order = [(name, "ascending") for name in ours.to_arrow().column_names]
    assert (
        ours.to_arrow()
        .sort_by(order)
        .equals(expected.to_arrow().cast(ours.to_arrow().schema).sort_by(order))
    )


def test_simulated_contributions_are_those_of_single_cells() -> None:
    people = many_people(np.random.default_rng(9)).slice(0, 150)
    made = plan_for_cells(NUMBERED, sql())
    together = np.concatenate(list(contributions(made, people, "people")))
    arrow = NUMBERED.tables["people"].arrow
    for i, person in enumerate(people.to_pylist()):
        policy = None if person["k"] is None else Policy(person["k"], person["l"])
        alone = contribution(made, {"people": people.select(arrow.names).slice(i, 1)}, policy)
        assert alone.record == together[i].tobytes()


@pytest.mark.parametrize(
    ("merge", "semantics"), [(m, s) for i, m in enumerate(MERGES) for s in turn(SEMANTICS, i)]
)
def test_every_merge_with_every_semantics(merge: Any, semantics: str) -> None:
    people = [
        {"a": i % 7, "b": "xyz"[i % 3], "s": i % 5, "k": 1 + i % 6, "l": 1 + i % 3}
        for i in range(53)
    ]
    same(people, sql(semantics), Terms(merge, 5, 4, 60))


def by_hand(people: list[Person]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """(level, a, b) to (people, sum, values, largest demands)."""
    groups: dict[tuple[Any, ...], list[Person]] = {}
    for p in people:
        level = (
            None
            if p["k"] is None
            else next(
                (i for i, (k, m) in enumerate(GUARANTEES) if p["k"] <= k and p["l"] <= m), None
            )
        )
        if level is None:
            continue
        width = [1, 2, 4, 4][level]
        a = None if p["a"] is None else p["a"] // width * width
        groups.setdefault((level, a, None if level == 3 else p["b"]), []).append(p)
    found = {}
    for key, members in groups.items():
        values = [p["s"] for p in members if p["s"] is not None]
        found[key] = (
            len(members),
            Decimal(sum(values)) if values else None,
            sorted(set(values))[:3],
            max(p["k"] for p in members),
            max(p["l"] for p in members),
        )
    return found


@settings(max_examples=examples(120), deadline=None)
@given(st.lists(PERSON, max_size=40), st.integers(1, 8), st.randoms())
def test_groups_are_what_a_person_with_a_pencil_finds(
    people: list[Person], size: int, chance: Any
) -> None:
    made = plan_for_cells(COMMONS, sql())
    given = [
        contribution(
            made, {"people": row(COMMONS, p)}, None if p["k"] is None else Policy(p["k"], p["l"])
        ).record
        for p in people
    ]
    chance.shuffle(given)
    nodes = [
        layout.fold_contributions(made.layout, made.layout.read(b"".join(given[i : i + size])))
        for i in range(0, len(given), size)
    ]
    while len(nodes) > 1:
        left, right = nodes.pop(chance.randrange(len(nodes))), nodes.pop()
        nodes.append(layout.combine_records(made.layout, np.concatenate((left, right))))
    if not nodes:
        return
    found, tally = layout.groups(made.layout, nodes[0])
    assert (tally.contributions, tally.void) == (len(people), 0)
    table = made.layout.decode(found, made.plan.request.tests, made.plan.request.states).to_pylist()
    expected = by_hand(people)
    assert tally.real == sum(e[0] for e in expected.values())
    assert {
        (r["level"], r["g0"], r["g1"]): (r["rows"], r["s0"], r["t0_values"], r["k"], r["l"])
        for r in table
    } == expected


AGGREGATES = (
    "COUNT(*) AS n, COUNT(i) AS c, SUM(i) AS si, AVG(i) AS ai, MIN(i) AS mi, MAX(i) AS xi, "
    "SUM(d) AS sd, SUM(f) AS sf, MIN(t) AS mt, MAX(t) AS xt, MIN(w) AS mw, "
    "VAR_SAMP(f) AS vf"
)
MIXED = commons_from(
    {
        "tables": {
            "people": {
                "columns": {
                    "g": {"role": "quasi"},
                    "i": {"type": "integer", "role": "sensitive"},
                    "d": {"type": "decimal(9,2)", "role": "sensitive"},
                    "f": {"type": "float", "role": "sensitive"},
                    "t": {"role": "sensitive"},
                    "w": {"type": "date", "role": "sensitive"},
                }
            }
        }
    }
)


@settings(max_examples=examples(8), deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "g": st.sampled_from(["p", "q", "é", None]),
                "i": st.one_of(st.none(), st.integers(-(2**60), 2**60)),
                "d": st.one_of(st.none(), st.decimals(-9999999, 9999999, places=2)),
                "f": st.one_of(st.none(), st.floats(-1e6, 1e6)),
                "t": st.one_of(st.none(), st.text("abcé", max_size=6)),
                "w": st.one_of(st.none(), st.dates()),
            }
        ),
        min_size=1,
        max_size=20,
    )
)
def test_all_aggregates_on_all_types(people: list[Person]) -> None:
    text = f"SELECT g, {AGGREGATES} FROM people GROUP BY g GUARANTEE k = 1"  # noqa: S608
    town = Town([{**p, "k": 1} for p in people], MIXED)
    found = town.ask(text)
    assert found is not None
    arrow = MIXED.tables["people"].arrow
    table = pa.table({f.name: pa.array([p[f.name] for p in people], f.type) for f in arrow})
    expected = hm.query(table, text, {"k": 1})
    ours = sorted(found[0].rows.to_pylist(), key=lambda r: str(r["g"]))
    theirs = sorted(expected.to_arrow().to_pylist(), key=lambda r: str(r["g"]))
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        for name, value in other.items():
            if isinstance(value, float):
                assert mine[name] == pytest.approx(value, rel=1e-9, abs=1e-6), name
            else:
                assert mine[name] == value, name


def test_local_joins_stay_inside_a_cell() -> None:
    commons = commons_from(
        {
            "tables": {
                "people": {
                    "columns": {
                        "home": {"type": "integer", "role": "quasi"},
                        "s": {"type": "integer", "role": "sensitive"},
                    }
                },
                "homes": {
                    "columns": {
                        "id": {"type": "integer", "role": "quasi"},
                        "city": {"role": "quasi"},
                    }
                },
            }
        }
    )
    text = (
        "SELECT homes.city, COUNT(*) AS n, SUM(s) AS total FROM people JOIN homes "
        "ON people.home = homes.id WHERE s < 90 GROUP BY homes.city GUARANTEE k = 3"
    )
    town = Town([{"home": i % 2, "s": i * 10, "k": 1} for i in range(12)], commons)
    for cell in town.cells:
        homes = pa.table({"id": [0, 1], "city": ["Bourges", "Vierzon"]})
        cell.home.rows = {**cell.home.rows, "homes": homes}  # type: ignore[union-attr]
    found = town.ask(text)
    assert found is not None
    assert sorted((r["city"], r["n"], r["total"]) for r in found[0].rows.to_pylist()) == [
        ("Bourges", 5, 200),
        ("Vierzon", 4, 160),
    ]
