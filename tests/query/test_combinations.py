"""Several answers together: exact against brute force, and refused where three give one away."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

import halfmask as hm
from halfmask.errors import LedgerError
from halfmask.query.groups import collect
from halfmask.query.history.differences import Atom, isolates
from halfmask.query.history.support import support_of
from halfmask.query.run import Session
from halfmask.query.semantics import choose_levels, publish_groups

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
    with pytest.raises(LedgerError):  # what changed is one person's
        hm.query(other, THREE[0], ledger=ledger)
    changed = hm.query(other, THREE[1], ledger=ledger)
    assert any("has changed since answer 1, 2" in note for note in changed.notes)


@pytest.mark.parametrize("split", [True, False])
def test_each_part_that_a_condition_tells_apart_is_compared(split: bool) -> None:
    """A figure of those above forty in the first answer, less the same without one of them."""
    ledger = hm.Ledger()
    with Session(_people(person=True)) as session:
        for sql in (THREE[0], THREE[2]):
            work = session.prepare(sql)
            groups = collect(work.plan, session.engine)
            published = publish_groups(groups, choose_levels(groups, work.plan.semantics))
            age = exp.column("age", table=work.plan.scope.main, quoted=True)
            splits = (age >= 40,) if split and sql == THREE[0] else ()
            new = support_of(work.plan, groups, published, {}, splits)
            with pytest.raises(LedgerError) if split and ledger.entries else nullcontext():
                ledger.note(session, work, new)


@st.composite
def atoms(draw: st.DrawFn) -> tuple[list[Atom], int, int]:
    """Up to seven atoms in the rows of two to four answers, k, and how many answers.

    Somebody may stand in several atoms; a row of a table in several rows of an answer, or twice.
    """
    answers, k, plain = draw(st.integers(2, 4)), draw(st.integers(2, 5)), draw(st.booleans())
    found: dict[tuple[tuple[tuple[int, int], int], ...], set[int]] = {}
    for _ in range(draw(st.integers(1, 7))):
        rows: list[tuple[tuple[int, int], int]] = []
        for i in range(answers):
            if plain:
                place = draw(st.sampled_from([None, 0, 1]))
                rows += [((i, place), 1)] if place is not None else []
            else:
                times = [draw(st.sampled_from([0, 0, 1, 2])) for _ in range(2)]
                rows += [((i, p), n) for p, n in enumerate(times) if n]
        people = draw(st.sets(st.integers(0, 11), min_size=1, max_size=6))
        if rows:
            found.setdefault(tuple(rows), set()).update(people)
    few = [Atom(r, None if len(p) >= k else frozenset(p)) for r, p in found.items()]
    return few, k, answers


def _leaks(given: list[Atom], answers: set[int], k: int) -> list[np.ndarray]:
    """Combinations of the rows of some answers that are not zero on fewer than k people only."""
    rows = sorted({row for atom in given for row, _ in atom.rows if row[0] in answers})
    times = [dict(atom.rows) for atom in given]
    matrix = np.array([[n.get(row, 0) for n in times] for row in rows], dtype=float)
    found: list[np.ndarray] = []
    for kept in product([False, True], repeat=len(given)):
        inside = [atom.people for atom, chosen in zip(given, kept, strict=True) if chosen]
        if not rows or None in inside or not 0 < len(set().union(*inside)) < k:  # type: ignore[arg-type]
            continue
        outside = matrix[:, ~np.array(kept)]
        _, sizes, turned = np.linalg.svd(outside.T, full_matrices=True)
        left = turned[int((sizes > 1e-9).sum()) :] @ matrix
        found += [vector for vector in left if np.abs(vector).max() > 1e-9]
    return found


def _rank(vectors: list[np.ndarray]) -> int:
    return int(np.linalg.matrix_rank(np.array(vectors), tol=1e-7)) if vectors else 0


@settings(max_examples=examples(250))
@given(atoms())
def test_isolation_equals_brute_force(drawn: tuple[list[Atom], int, int]) -> None:
    given, k, answers = drawn
    if not given:
        return
    every, new = set(range(answers)), {answers - 1}
    known = _leaks(given, every - new, k) + _leaks(given, new, k)
    expected = _rank(known + _leaks(given, every, k)) > _rank(known)
    found = isolates(given, k, answers - 1)
    assert found or not expected
    behind: dict[tuple[int, int], set[int]] = {}
    for i, atom in enumerate(given):
        for row, _ in atom.rows:
            behind.setdefault(row, set()).update(atom.people or range(100 * i + 100, 100 * i + 120))
    if all(len(people) >= k for people in behind.values()):  # as in every answer
        assert found == expected


def test_what_is_too_large_to_search_is_not_trusted() -> None:
    many = [Atom((((0, i), 1), ((1, i), 1)), None) for i in range(5)]
    assert isolates(many, 5, 1) is False
    chained = [Atom((((0, i), 1), ((1, i), 1)), frozenset([i])) for i in range(700)]
    chained += [Atom((((0, i + 1), 1), ((1, i), 1)), frozenset([700 + i])) for i in range(699)]
    assert isolates(chained, 5, 1)
    three = [Atom((*a.rows, ((2, i % 7), 1)), a.people) for i, a in enumerate(chained)]
    assert isolates(three, 5, 2) is None
