"""Minimal quasi-identifiers: the footballers, and brute force."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfmask.table import classes
from halfmask.table.classes import (
    QuasiIdentifiers,
    codes_of,
    collapse_tuples,
    search_quasi_identifiers,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Table T1 of Nguyen and Castelluccia, 2020.
T1 = pa.table(
    {
        "age": [35, 32, 20, 27, 32, 32],
        "club": ["PSG", "PSG", "PSG", "PSG", "OM", "OM"],
        "salary": [1160, 1500, 1730, 3060, 500, 500],
    }
)


def search(
    columns: dict[str, tuple[NDArray[np.int32], int]], limit: int, work: float = np.inf
) -> QuasiIdentifiers:
    """The search over codes of rows."""
    return search_quasi_identifiers(
        list(columns),
        min(len(codes) for codes, _ in columns.values()),
        lambda name: 1 in Counter(columns[name][0].tolist()).values(),
        lambda names, _: collapse_tuples({name: columns[name] for name in names}),
        (limit, work),
    )


def minimal(rows: pa.Table, limit: int = 3) -> tuple[tuple[str, ...], ...]:
    """The minimal quasi-identifiers of at most ``limit`` columns, smallest first."""
    return search({name: codes_of(rows[name]) for name in rows.column_names}, limit).sets


def test_footballers_are_singled_out_by_age_and_by_salary() -> None:
    assert minimal(T1) == (("age",), ("salary",))


def test_age_and_club_single_out_where_age_alone_does_not() -> None:
    rows = pa.table(
        {"age": [32, 32, 32, 32, 27, 27], "club": ["PSG", "PSG", "PSG", "OM", "OM", "OM"]}
    )
    assert minimal(rows) == (("age", "club"),)
    assert minimal(rows, limit=1) == ()
    assert minimal(rows.select(["club"])) == ()


def brute_force(rows: list[tuple[object, ...]], names: str, limit: int) -> set[tuple[str, ...]]:
    """All sets with a value combination that occurs once, then those without a smaller one."""
    places = range(len(names))
    single = [
        chosen
        for size in range(1, limit + 1)
        for chosen in combinations(places, size)
        if 1 in Counter(tuple(row[p] for p in chosen) for row in rows).values()
    ]
    return {
        tuple(names[p] for p in chosen)
        for chosen in single
        if not any(set(other) < set(chosen) for other in single)
    }


VALUE = st.sampled_from([None, 1, 2, 3])
REPEATED = st.tuples(st.tuples(VALUE, VALUE, VALUE, VALUE), st.integers(1, 4))


@given(st.lists(st.tuples(VALUE, VALUE, VALUE, VALUE), min_size=2, max_size=14), st.integers(1, 4))
def test_the_search_equals_brute_force(rows: list[tuple[object, ...]], limit: int) -> None:
    columns = [pa.array([row[i] for row in rows], pa.int64()) for i in range(4)]
    found = minimal(pa.table(columns, names=list("abcd")), limit)
    assert set(found) == brute_force(rows, "abcd", limit)
    assert [len(names) for names in found] == sorted(len(names) for names in found)


@given(st.lists(REPEATED, min_size=2, max_size=8))
def test_rows_that_repeat_are_counted_as_often(pairs: list[tuple[tuple[object, ...], int]]) -> None:
    rows = [row for row, count in pairs for _ in range(count)]
    columns = [pa.array([row[i] for row in rows], pa.int64()) for i in range(4)]
    found = minimal(pa.table(columns, names=list("abcd")))
    assert set(found) == brute_force(rows, "abcd", 3)


@given(st.lists(st.tuples(VALUE, VALUE), min_size=2, max_size=14))
def test_hashed_counters_decide_the_same(rows: list[tuple[object, ...]]) -> None:
    columns = {
        name: codes_of(pa.chunked_array([pa.array([row[i] for row in rows], pa.int64())]))
        for i, name in enumerate("ab")
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classes, "COUNTERS", 0)
        assert set(search(columns, 2).sets) == brute_force(rows, "ab", 2)


def test_a_search_without_time_says_how_far_it_came() -> None:
    columns = {
        "club": codes_of(T1["club"]),
        "pair": codes_of(pa.chunked_array([[1, 1, 2, 2, 2, 3]])),
        "trio": codes_of(pa.chunked_array([[1, 2, 1, 2, 1, 2]])),
    }
    assert search(columns, 3).sets == (("pair",), ("club", "trio"))
    assert search(columns, 3, work=3 * 4006).sets == (("pair",),)
    assert search(columns, 3, work=3 * 4006).size == 1
    assert search(columns, 3, work=17).size == 0
