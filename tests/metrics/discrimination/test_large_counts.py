"""Rates of tables that stand for very many rows: memory stays small, figures stay the same."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.metrics.discrimination import rate
from halfmask.metrics.discrimination.column_sets import rank_tuples
from halfmask.metrics.discrimination.rate import discriminate_tuples, inflation
from halfmask.metrics.risk.column_sets import column_sets
from halfmask.table.tuples import Tuples


def table(**columns):
    return hm.read(pa.table(columns), schema={})


@pytest.mark.parametrize("times", [10**3, 10**8], ids=["thousands", "above 2 ** 31"])
@given(data=st.data())
@settings(max_examples=examples(25), deadline=None)
def test_a_rate_does_not_change_where_every_row_counts_as_often(times, data):
    n = data.draw(st.integers(2, 30))
    column = st.lists(st.integers(0, 2), min_size=n, max_size=n)
    rows = table(**{name: data.draw(column) for name in "xabc"})
    counts = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)), np.int64)
    small = rank_tuples(Tuples(rows, counts), "x", list("abc"))
    large = rank_tuples(Tuples(rows, counts * times), "x", list("abc"))
    for one in large:
        (same,) = [two for two in small if two.columns == one.columns]
        assert one.rate == pytest.approx(same.rate, abs=1e-9, nan_ok=True)
        assert one.kind == same.kind
        assert one.identified_rows == same.identified_rows * times
        alone = discriminate_tuples(Tuples(rows, counts * times), "x", one.columns)
        assert one.rate == pytest.approx(alone.rate, abs=1e-9, nan_ok=True)
        assert one.kind == alone.kind


def test_many_rows_take_no_more_memory_than_few():
    rows = table(x=[0, 1, 0, 1], a=[0, 0, 1, 1], b=[0, 1, 1, 0])
    rank_tuples(Tuples(rows, np.full(4, 2, np.int64)), "x", ["a", "b"])  # compiles
    tracemalloc.start()
    found = rank_tuples(Tuples(rows, np.full(4, 2 * 10**9, np.int64)), "x", ["a", "b"])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64 << 20
    assert (found[0].columns, found[0].rate, found[0].identified_rows) == (("a", "b"), 1, 8 * 10**9)
    assert {one.kind for one in found[1:]} == {"zero"}


def test_pairs_of_billions_of_rows_are_counted_exactly():
    rows = hm.read(pa.table({"a": [0, 0, 1], "b": [0, 1, 1]}), schema={"a": "quasi", "b": "quasi"})
    counts = np.array([4, 3, 1], np.int64) * 10**9
    single = {one.columns: one for one in column_sets(Tuples(rows, counts), ["a", "b"])}
    total = 8 * 10**9
    same = (7 * 10**9) ** 2 + (10**9) ** 2 - total
    assert single["a",].separation == pytest.approx(1 - same / (total * (total - 1)), rel=1e-12)
    same = (4**2 + 3**2 + 1) * 10**18 - total
    assert single["a", "b"].separation == pytest.approx(1 - same / (total * (total - 1)), rel=1e-12)
    assert all(one.unique_rows == 0 for one in single.values())


def test_independent_columns_are_zero_at_any_size():
    """Every combination of 200 x 50 x 20 values once, and as often as it likes."""
    x, a, b = (grid.ravel() for grid in np.meshgrid(range(20), range(200), range(50)))
    rows = table(x=x, a=a, b=b)
    for tuples in (Tuples.of(rows), Tuples(rows, np.full(len(x), 12_345, np.int64))):
        assert {one.kind for one in rank_tuples(tuples, "x", ["a", "b"])} == {"zero"}


def test_one_row_off_is_not_zero():
    rows = table(x=[0, 0, 1, 1], a=[0, 1, 0, 1])
    (one,) = rank_tuples(Tuples(rows, np.array([1001, 1000, 1000, 1000], np.int64)), "x", ["a"])
    assert one.kind == "sketchy"
    assert 0 < one.rate < 1e-6


def test_tables_of_counts_are_drawn_as_rows_are_shuffled(monkeypatch):
    random = np.random.default_rng(3)
    rows = table(x=random.integers(0, 4, 3000), y=random.integers(0, 150, 3000))
    shuffled = inflation(Tuples.of(rows), "x", "y", permutations=60)
    monkeypatch.setattr(rate, "_SHUFFLED", 0)
    drawn = inflation(Tuples.of(rows), "x", "y", permutations=60)
    assert drawn.rate == shuffled.rate
    assert drawn.chance.value == pytest.approx(shuffled.chance.value, rel=0.02)
    assert drawn.chance.high - drawn.chance.low == pytest.approx(
        shuffled.chance.high - shuffled.chance.low, rel=0.5
    )


def test_chance_is_known_for_a_billion_rows_and_said_to_be_unknown_where_it_is_not(monkeypatch):
    rows = table(x=[0, 1, 0, 1], y=[0, 0, 1, 1])
    found = inflation(Tuples(rows, np.array([300, 200, 200, 300], np.int64) * 10**6), "x", "y")
    assert found.rate == pytest.approx(1 - 0.970951, abs=1e-6)  # H(0.6)
    assert found.chance.value < 1e-8
    assert found.adjusted.trusted
    monkeypatch.setattr(rate, "_CELLS", 0)
    found = inflation(Tuples(rows, np.full(4, 10**8, np.int64)), "x", "y")
    assert found.chance.value is None
    assert "rows" in found.chance.reason


def test_counted_tuples_are_shuffled_as_the_rows_they_stand_for():
    random = np.random.default_rng(0)
    x, y, counts = (random.integers(low, high, 40) for low, high in ((0, 3), (0, 8), (1, 9)))
    rows = table(x=np.repeat(x, counts), y=np.repeat(y, counts))
    assert inflation(Tuples(table(x=x, y=y), counts), "x", "y") == inflation(
        Tuples.of(rows), "x", "y"
    )
