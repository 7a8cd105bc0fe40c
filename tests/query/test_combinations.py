"""Several answers together: exact against brute force, and refused where three give one away."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import LedgerError
from halfmask.query.history.differences import Atom, isolates

COUNTS = "SELECT SUM(salary) AS s FROM t {} GUARANTEE k = 5, l = 2"
THREE = (
    COUNTS.format(""),
    COUNTS.format("WHERE age < 40"),
    COUNTS.format("WHERE age >= 40 AND zip <> 'z19'"),
)


def _people(*, person: bool, change: int = 0) -> hm.Table:
    rows = pa.table(
        {
            "id": list(range(20)),
            "age": [30] * 10 + [50] * 10,
            "zip": [f"z{i}" for i in range(20)],
            "salary": [1000 + i for i in range(19)] + [2000 + change],
        }
    )
    schema: dict[str, object] = {
        "columns": {"id": "identifier", "age": "quasi", "zip": "quasi", "salary": "sensitive"}
    }
    return hm.read(rows, schema | ({"table": {"person": "id"}} if person else {}))


@pytest.mark.parametrize("person", [True, False])
def test_three_answers_that_leave_one_person_are_refused(person: bool) -> None:
    people, ledger = _people(person=person), hm.Ledger()
    for sql in THREE[:2]:
        hm.query(people, sql, ledger=ledger)
    with pytest.raises(LedgerError, match="answer 1, 2 of the ledger"):
        hm.query(people, THREE[2], ledger=ledger)
    assert len(ledger.entries) == 2


def test_any_two_of_them_are_answered() -> None:
    people = _people(person=True)
    for i in range(3):
        ledger = hm.Ledger()
        for sql in THREE[:i] + THREE[i + 1 :]:
            hm.query(people, sql, ledger=ledger)


def test_warning_answers_and_says_so() -> None:
    people, ledger = _people(person=True), hm.Ledger("warn")
    for sql in THREE:
        hm.query(people, sql, ledger=ledger)
    assert len(ledger.entries) == 3
    assert len(ledger.warnings) == 1


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_a_changed_table_is_noticed(engine: str) -> None:
    ledger = hm.Ledger()
    same, other = _people(person=False), _people(person=False, change=1)
    if engine == "reference":
        from halfmask.engines.reference import Reference

        prints = [Reference({"t": t.arrow}).fingerprint("t") for t in (same, same, other)]
        assert prints[0] == prints[1] != prints[2]
        return
    hm.query(same, THREE[0], ledger=ledger)
    again = hm.query(same, THREE[0], ledger=ledger)
    assert not any("changed" in note for note in again.notes)
    changed = hm.query(other, THREE[0], ledger=ledger)
    assert any("has changed since answer 1, 2" in note for note in changed.notes)


@st.composite
def atoms(draw: st.DrawFn) -> list[tuple[tuple[tuple[int, int], ...], int]]:
    """Up to seven atoms in the rows of three answers; each answer has rows 0 and 1, or none."""
    found = {}
    for _ in range(draw(st.integers(1, 7))):
        places = [draw(st.sampled_from([None, 0, 1])) for _ in range(3)]
        rows = tuple((i, p) for i, p in enumerate(places) if p is not None)
        if rows:
            found[rows] = draw(st.integers(1, 6))
    return list(found.items())


@settings(max_examples=150)
@given(atoms(), st.integers(2, 6))
def test_isolation_equals_brute_force(
    found: list[tuple[tuple[tuple[int, int], ...], int]], k: int
) -> None:
    rows = sorted({row for places, _ in found for row in places})
    matrix = np.array([[row in places for places, _ in found] for row in rows], dtype=float)
    sizes = np.array([n for _, n in found])
    expected = False
    for kept in product([False, True], repeat=len(found)):
        chosen = np.array(kept, dtype=bool)
        if chosen.any() and sizes[chosen].sum() < k:
            # Does some combination vanish outside the chosen atoms, but not everywhere?
            outside = matrix[:, ~chosen]
            rank = np.linalg.matrix_rank(outside) if outside.size else 0
            expected |= bool(np.linalg.matrix_rank(matrix) > rank)
    assert isolates(found, k) == expected


def test_what_is_too_large_to_search_is_not_trusted() -> None:
    many = [(((0, i), (1, i)), 9) for i in range(5)]
    assert not isolates(many, 5)
    chained = [(((0, i), (1, i)), 3) for i in range(700)]
    chained += [(((0, i + 1), (1, i)), 3) for i in range(699)]
    assert isolates(chained, 5)
