"""People with several rows: one contribution, in which the person counts once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.protocol.town import COMMONS, Town, sql

import halfmask as hm
from halfmask.protocol.cell_plan import plan_for_cells
from halfmask.protocol.common_schema import MERGES, Policy, Terms
from halfmask.protocol.contribution import contribution

SELECT = (
    "COUNT(*) AS n, COUNT(s) AS c, SUM(s) AS total, AVG(s) AS mean, MIN(s) AS low, MAX(s) AS high, "
    "COUNT(DISTINCT s) AS d, VAR_POP(s) AS v"
)
PERSON = st.fixed_dictionaries(
    {
        "a": st.integers(-3, 6),
        "b": st.sampled_from(["x", "y", None]),
        "k": st.integers(1, 7),
        "l": st.integers(1, 3),
        "s": st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=1, max_size=4),
    }
)

# Some people have no value at all; more have a row without one beside others.
PARTLY_MISSING = [
    {"a": -2, "b": "x", "k": 4, "l": 1, "s": [None, None, None, None]},
    {"a": 0, "b": "x", "k": 5, "l": 3, "s": [None, None, 0, None]},
    {"a": 3, "b": "x", "k": 2, "l": 2, "s": [0, None, None]},
    {"a": -1, "b": "y", "k": 6, "l": 1, "s": [4, 3]},
    {"a": 3, "b": None, "k": 3, "l": 1, "s": [None]},
    {"a": -2, "b": "x", "k": 7, "l": 3, "s": [None]},
    {"a": 6, "b": None, "k": 1, "l": 1, "s": [4, None]},
    {"a": 3, "b": None, "k": 2, "l": 2, "s": [None, None, 4, 1]},
    {"a": 1, "b": "x", "k": 2, "l": 1, "s": [None]},
    {"a": -1, "b": None, "k": 5, "l": 2, "s": [None, None, 0]},
    {"a": 3, "b": "y", "k": 7, "l": 2, "s": [3, None, 4, 3]},
    {"a": 1, "b": None, "k": 6, "l": 2, "s": [None, None, 0, 3]},
    {"a": 2, "b": "y", "k": 2, "l": 3, "s": [None, 0, 3, 1]},
    {"a": 0, "b": "x", "k": 6, "l": 1, "s": [None, None, None, None]},
    {"a": -3, "b": "x", "k": 1, "l": 2, "s": [3, 0]},
    {"a": 6, "b": None, "k": 1, "l": 2, "s": [None]},
    {"a": 1, "b": None, "k": 5, "l": 1, "s": [None]},
    {"a": 4, "b": "y", "k": 5, "l": 2, "s": [0, None, None, 0]},
    {"a": 0, "b": "x", "k": 6, "l": 2, "s": [2]},
    {"a": 4, "b": "x", "k": 5, "l": 2, "s": [3, None, None, 0]},
]


def rows(columns: dict[str, list[Any]]) -> pa.Table:
    return pa.table(columns, schema=COMMONS.tables["people"].arrow)


def town(people: list[dict[str, Any]], terms: Terms) -> Town:
    made = Town([{**p, "s": None} for p in people], terms=terms)
    for cell, p in zip(made.cells, people, strict=True):
        n = len(p["s"])
        own = rows({"a": [p["a"]] * n, "b": [p["b"]] * n, "s": p["s"]})
        cell.home.rows = {"people": own}  # type: ignore[union-attr]
    return made


@settings(max_examples=examples(20), deadline=None)
@given(
    st.lists(PERSON, min_size=1, max_size=20),
    st.sampled_from(MERGES),
    st.sampled_from(["selective", "complete", "complete-greedy"]),
)
@example(PARTLY_MISSING, "tree", "complete-greedy")
def test_people_with_several_rows_get_the_answer_of_a_trusted_center(
    people: list[dict[str, Any]], merge: Any, semantics: str
) -> None:
    text = sql(semantics, SELECT)
    found = town(people, Terms(merge, 4, 4, 40)).ask(text)
    assert found is not None
    names = {"a": pa.int64(), "b": pa.string(), "k": pa.int64(), "l": pa.int64()}
    each = [(i, p, s) for i, p in enumerate(people) for s in p["s"]]
    pooled = pa.table(
        {
            "id": pa.array([i for i, _, _ in each]),
            "s": pa.array([s for _, _, s in each], pa.int64()),
        }
        | {n: pa.array([p[n] for _, p, _ in each], t) for n, t in names.items()}
    )
    roles = {"id": "identifier", "a": "quasi", "b": "quasi", "s": "sensitive"}
    table = hm.read(pooled, {"table": {"person": "id"}, "columns": roles})
    expected = hm.query(table, text, {"k": "k", "l": "l"})
    ours = sorted(found[0].rows.to_pylist(), key=str)
    theirs = sorted(expected.to_arrow().to_pylist(), key=str)
    assert [list(r) for r in ours] == [list(r) for r in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(other)
    assert found[0].document["people"] == expected.people


def test_k_counts_people_and_not_their_rows() -> None:
    text = "SELECT b, COUNT(*) AS n, SUM(s) AS total FROM people GROUP BY b GUARANTEE k = 3"
    one = {"a": 1, "b": "x", "k": 1, "s": [1, 2, 3, 4]}
    found = town([one, one], Terms(partition=4, frame=4, room=8)).ask(text)
    assert found is not None
    assert found[0].rows.num_rows == 0
    found = town([one, one, one], Terms(partition=4, frame=4, room=8)).ask(text)
    assert found is not None
    assert found[0].rows.to_pylist()[0]["n"] == 12


def given_by(text: str, columns: dict[str, list[Any]], policy: Policy) -> tuple[int | None, str]:
    done = contribution(plan_for_cells(COMMONS, text), {"people": rows(columns)}, policy)
    return done.level, done.reason


def test_rows_of_several_groups_move_up_until_they_are_one() -> None:
    same = {"a": [4, 5], "b": ["x", "x"], "s": [1, 2]}
    assert given_by(sql(), same, Policy(2)) == (1, "contributed")  # [4, 6) holds both
    assert given_by(sql(), {**same, "a": [1, 2]}, Policy(2)) == (2, "contributed")  # [0, 4)
    assert given_by(sql(), {**same, "b": ["x", "y"]}, Policy(2)) == (3, "contributed")
    assert given_by(sql(), {**same, "a": [1, 9]}, Policy(2)) == (
        None,
        "the rows fall into several groups",
    )


def test_a_query_may_bound_the_rows_of_a_person() -> None:
    text = "SELECT b, SUM(s) AS t FROM people GROUP BY b GUARANTEE k = 2 AT MOST 2 ROWS PER PERSON"
    two = {"a": [1, 1], "b": ["x", "x"], "s": [1, 2]}
    three = {"a": [1, 1, 1], "b": ["x", "x", "x"], "s": [1, 2, 3]}
    assert given_by(text, two, Policy(2)) == (0, "contributed")
    assert given_by(text, three, Policy(2)) == (None, "more rows match than the query allows")


def test_a_row_that_does_not_fit_keeps_the_whole_person_out() -> None:
    text = "SELECT b, SUM(s) AS total FROM people GROUP BY b GUARANTEE k = 2"
    level, reason = given_by(text, {"a": [1, 1], "b": ["x", "unheard-of"], "s": [1, 2]}, Policy(2))
    assert level is None
    assert "outside the common values" in reason


def test_the_part_without_a_value_counts_whoever_has_such_a_row() -> None:
    """By rows, as in a table: a person with a value and a missing one stands in both parts."""
    text = "SELECT COUNT(*) AS n, SUM(s) AS total, COUNT(s) AS c FROM people GUARANTEE k = 3"
    both, none, one = ({"a": 1, "b": "x", "k": 1, "s": s} for s in ([1, None], [None], [2]))

    def shown(people: list[dict[str, Any]]) -> list[Any]:
        found = town(people, Terms(partition=4, frame=4, room=16)).ask(text)
        assert found is not None
        return [(r["n"], r["c"]) for r in found[0].rows.to_pylist()]

    # One person has no value at all, three have a row without one.
    assert shown([both, both, none, one, one]) == [(7, 4)]
    # Everybody has a value, but only one person a row without: 4 of 5 rows would tell of this one.
    assert shown([both, one, one, one]) == [(5, None)]
    assert shown([none, one, one, one]) == [(4, None)]
