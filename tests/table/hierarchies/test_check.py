"""Hierarchies checked as a whole; properties that hold for every builder and any values."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import HierarchyError
from halfmask.table.hierarchies import Dates, Intervals, Mask, Ordered, check_hierarchies
from halfmask.table.hierarchies.tree import hierarchy_faults
from halfmask.table.hierarchy import Hierarchy, HierarchyBuilder


def assert_sound(builder: HierarchyBuilder, values: pa.Array) -> Hierarchy:
    """Covered, nested, rooted, and the leaves of each level add up."""
    hierarchy = builder.build("c", values)
    assert hierarchy_faults("c", hierarchy, len(values), opened=False) == []
    assert hierarchy.maps[0].tolist() == list(range(len(values)))
    assert hierarchy.labels[-1] == ["*"]
    for level in range(hierarchy.height):
        parents: dict[object, set[object]] = {}
        for fine, coarse in zip(hierarchy.maps[level], hierarchy.maps[level + 1], strict=True):
            parents.setdefault(fine, set()).add(coarse)
        assert all(len(above) == 1 for above in parents.values())
        assert hierarchy.leaves[level].sum() <= hierarchy.size
    assert hierarchy.leaves[-1].tolist() == [hierarchy.size]
    return hierarchy


def encoded(values: list[object], kind: pa.DataType) -> pa.Array:
    return hm.read(pa.table({"c": pa.array(values, kind)})).encode("c").values


WIDTHS = st.sampled_from([[5, 10, 20], [1], [0.1, 0.5, 1], [0.25], [7, 7 * 13], [2.5, 10]])


@given(st.lists(st.none() | st.integers(-(2**40), 2**40), min_size=1), WIDTHS, st.integers(-9, 9))
def test_whole_intervals_nest_and_hold_their_values(
    values: list[object], widths: list[float], origin: int
) -> None:
    assert_sound(Intervals(widths, origin=origin), encoded(values, pa.int64()))


@given(st.lists(st.none() | st.floats(-1e9, 1e9), min_size=1), WIDTHS)
def test_decimal_intervals_nest_and_hold_their_values(
    values: list[object], widths: list[float]
) -> None:
    hierarchy = assert_sound(Intervals(widths), encoded(values, pa.float64()))
    assert hierarchy.leaves[1].sum() == hierarchy.size == len(hierarchy.labels[0])
    for value, code in zip(hierarchy.labels[0], hierarchy.maps[1], strict=True):
        if value is not None:
            low, high = str(hierarchy.labels[1][code]).strip("[)").split(", ")
            assert float(low) <= value < float(high)


@given(
    st.lists(st.none() | st.text(max_size=6), min_size=1),
    st.sampled_from(["right", "left"]),
    st.sampled_from(["*", "#", "a"]),
)
def test_masks_nest(values: list[object], side: str, char: str) -> None:
    assert_sound(Mask(6, char, side), encoded(values, pa.string()))  # type: ignore[arg-type]


DATES = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
LEVELS = st.lists(
    st.sampled_from(["day", "month", "quarter", "year", "decade"]), min_size=1, unique=True
)


@given(st.lists(st.none() | DATES, min_size=1), LEVELS)
def test_dates_nest(values: list[object], names: list[str]) -> None:
    order = ["day", "month", "quarter", "year", "decade"]
    assert_sound(Dates(sorted(names, key=order.index)), encoded(values, pa.date32()))


@given(st.lists(DATES, min_size=1))
def test_weeks_are_those_of_the_calendar(values: list[datetime.date]) -> None:
    hierarchy = assert_sound(Dates(["week"]), encoded(list(values), pa.date32()))
    for value, code in zip(hierarchy.labels[0], hierarchy.maps[1], strict=True):
        year, week, _ = value.isocalendar()  # type: ignore[attr-defined]
        assert hierarchy.labels[1][code] == f"{year:04d}-W{week:02d}"


@given(st.lists(st.integers(0, 40), min_size=1), st.sampled_from([[2], [2, 4], [3, 6, 30]]))
def test_ordered_groups_nest(values: list[object], sizes: list[int]) -> None:
    assert_sound(Ordered(range(41), sizes), encoded(values, pa.int64()))


def test_faults_of_all_columns_come_together() -> None:
    rows = pa.table({"a": ["1", "x"], "b": ["long", "s"], "c": [1, 2]})
    table = hm.read(
        rows,
        {
            "a": {"role": "quasi", "hierarchy": Intervals([5])},
            "b": {"role": "sensitive", "hierarchy": {"mask": 2}},
            "c": {"role": "quasi", "hierarchy": {"tree": {"low": [1]}}},
        },
    )
    with pytest.raises(HierarchyError) as caught:
        check_hierarchies(table)
    assert [fault.split(":")[0] for fault in caught.value.faults] == [
        "Column 'a'",
        "Column 'b'",
        "Column 'c'",
    ]


def test_hierarchies_of_others_making_are_checked_too() -> None:
    maps = np.array([[0, 1, 2], [0, 0, 1], [0, 1, 1]], dtype=np.int32)
    leaves = tuple(np.ones(n, dtype=np.int64) for n in (3, 2, 2))
    beneath = tuple(np.zeros(n, dtype=np.int64) for n in (3, 2, 2))
    bad = Hierarchy(maps, ([1, 2, 3], ["a", "b"], ["x", "y"]), leaves, 3, beneath)
    faults = hierarchy_faults("c", bad, 3, opened=False)
    assert "share a label at level 1 but not at level 2" in faults[0]
    assert "the coarsest level has 2 labels" in faults[1]
    assert len(hierarchy_faults("c", bad, 3, opened=True)) == 1
    assert "covers 3 of 4" in hierarchy_faults("c", bad, 4, opened=True)[0]
    maps[2, 0] = 7
    assert "1 value(s) have no label at level 2" in hierarchy_faults("c", bad, 3, opened=True)[0]


def test_adult_hierarchies_are_sound(adult_table: hm.Table) -> None:
    check_hierarchies(adult_table)
    heights = [adult_table.hierarchy(name).height for name in adult_table.schema.quasi]
    assert heights == [1, 4, 1, 2, 3, 2, 2, 2, 1]
    assert adult_table.hierarchy("age").size == 100
    assert adult_table.hierarchy("workclass").size == 8


@pytest.mark.parametrize("builder", [Intervals([5, 10, 100, 1000, 10_000]), Mask(6)], ids=str)
def test_a_hundred_thousand_values_are_built(builder: HierarchyBuilder) -> None:
    values = pa.array(np.arange(100_000))
    assert builder.build("c", values).size == 100_000
