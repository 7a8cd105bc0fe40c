"""Cutting and melting: the bounds and counts that the thesis prints for Iris."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.coclustering.prepare import (
    IntervalCuts,
    as_numbers,
    best_cuts,
    column_parts,
    cut_column,
    equal_frequency,
    equal_width,
    melt,
    recut,
)
from halfmask.errors import InputError, ParameterError

COLUMNS = ("sepal_length", "sepal_width", "petal_length", "petal_width", "species")
EXPECTED = {
    "sepal_length": ("]4.299,5.4]", "]5.4,6.3]", "]6.3,7.9]", 52, 56, 42),
    "sepal_width": ("]1.999,2.9]", "]2.9,3.2]", "]3.2,4.4]", 57, 51, 42),
    "petal_length": ("]0.999,2.633]", "]2.633,4.9]", "]4.9,6.9]", 50, 54, 46),
    "petal_width": ("]0.099,0.867]", "]0.867,1.6]", "]1.6,2.5]", 50, 52, 48),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_iris_is_cut_as_printed(melted, name):
    (column,) = [c for c in melted.columns if c.name == name]
    labels, counts = EXPECTED[name][:3], EXPECTED[name][3:]
    assert tuple(column.cuts.labels()) == labels
    assert tuple(np.bincount(column.codes)) == counts


def test_iris_melts_to_750_observations(melted):
    observed = melted.observations
    assert observed.total == 750
    assert observed.sizes == (150, 15)
    assert set(observed.marginal(0).tolist()) == {5}
    owner = melted.owner
    for place in range(5):
        assert observed.marginal(1)[owner == place].sum() == 150
    first = [melted.columns[i].labels[melted.columns[i].codes[0]] for i in range(5)]
    assert first == ["<=5.4", ">3.2", "<=2.633", "<=0.867", "setosa"]


def test_published_labels_do_not_tell_the_least_and_the_largest(melted):
    for label in melted.columns[0].labels:
        assert "4.3" not in label
        assert "4.299" not in label
        assert "7.9" not in label


def test_cuts_apply_to_other_rows():
    cuts = equal_frequency(np.array([1.0, 2, 3, 4, 5, 6]), 3)
    assert cuts.apply(np.array([-9.0, 1, 2.6, 2.7, 9])).tolist() == [0, 0, 0, 1, 2]


def test_equal_width_has_equal_widths():
    assert equal_width(np.array([0.0, 1, 10]), 5).bounds == (0, 2, 4, 6, 8, 10)


def test_a_value_that_many_share_is_a_part_of_its_own():
    rows = {"gain": [0] * 95 + [7, 11, 13, 17, 19], "c": ["a", "b"] * 50}
    table = hm.read(pa.table(rows), {"gain": "quasi", "c": "quasi"})
    column = melt(table, ("gain", "c"), bins=4).columns[0]
    assert column.labels[0] == "<=0"
    assert (column.codes == 0).sum() == 95
    assert len(column.labels) == 4
    # The least and the largest stay unsaid, as everywhere.
    assert column.labels[-1].startswith(">")


def test_hours_that_half_of_the_people_work_stand_alone():
    hours = np.concatenate([np.full(50, 40.0), np.arange(20, 40), np.arange(45, 75)])
    cuts = equal_frequency(hours, 5)
    part = cuts.apply(hours)
    assert (part == cuts.apply(np.array([40.0]))[0]).sum() == 50
    assert np.bincount(part).min() > 0


def test_a_value_that_many_share_stands_alone_among_intervals_of_equal_width():
    gain = np.array([0.0] * 95 + [7, 11, 13, 17, 40])
    cuts = equal_width(gain, 4)
    assert cuts.bounds == (0, 0, 10, 20, 30, 40)
    assert (cuts.apply(gain) == 0).sum() == 95


def test_no_column_is_one_interval_because_it_goes_with_no_other():
    random = np.random.default_rng(0)
    group = random.integers(0, 3, 600)
    rows = {
        "gain": np.where(random.random(600) < 0.95, 0, random.integers(1, 900, 600)),
        "height": random.permutation(600),
        "age": group * 20 + random.integers(0, 15, 600),
        "job": np.array(["a", "b", "c"])[group],
    }
    table = hm.read(pa.table(rows), dict.fromkeys(rows, "quasi"))
    first = melt(table, tuple(rows), bins=6)
    again = recut(table, first, group.astype(np.int32), tuple(rows))
    assert again.columns[0].labels == ("<=0", ">0")
    assert again.columns[1].labels == first.columns[1].labels
    assert len(again.columns[2].labels) == 3


def test_infinite_numbers_are_refused_by_column():
    rows = {"gain": [float(i) for i in range(49)] + [float("inf")], "c": ["a", "b"] * 25}
    table = hm.read(pa.table(rows), {"gain": "quasi", "c": "quasi"})
    with pytest.raises(InputError, match="'gain' holds numbers that are infinite"):
        melt(table, ("gain", "c"))
    with pytest.raises(InputError, match="Unknown columns: 'x'"):
        melt(table, ("x",))


def test_equal_quantiles_are_joined():
    assert len(equal_frequency(np.array([1.0] * 95 + [2.0] * 5), 10)) == 2
    assert len(equal_frequency(np.ones(9), 10)) == 1


def test_best_cuts_lie_between_the_values_where_the_target_changes():
    numbers = np.arange(100.0)
    assert best_cuts(numbers, (numbers > 41).astype(np.int32)).bounds == (0, 41.5, 99)
    random = np.random.default_rng(0).integers(0, 2, 100).astype(np.int32)
    assert len(best_cuts(numbers, random)) == 1


def test_numbers_are_cut_anew_against_groups_of_rows(iris, melted, grid):
    again = recut(iris, melted, grid.partition[0], ["petal_length"])
    petals = next(c for c in again.columns if c.name == "petal_length")
    assert petals.labels == ("<=2.45", "]2.45,4.75]", ">4.75")
    assert again.columns[0].cuts == melted.columns[0].cuts  # not named: as it was


def test_best_intervals_explain_more_than_quantiles(iris):
    from halfmask.coclustering.prepare import cocluster_columns

    found, grid = cocluster_columns(iris, COLUMNS, intervals="modl")
    assert grid.level > cocluster_columns(iris, COLUMNS)[1].level
    petals = next(c for c in found.columns if c.name == "petal_width")
    assert petals.labels[0] == "<=0.8"


def test_the_missing_value_is_a_part_of_its_own():
    table = hm.read(
        pa.table({"x": [1.5, None, 2.5, 3.5, 4.5], "c": ["a", "b", None, "a", "b"]}),
        {"x": "quasi", "c": "quasi"},
    )
    melted = melt(table, ("x", "c"), bins=2)
    assert melted.columns[0].labels == ("<=3", ">3", "missing")
    assert melted.columns[1].labels == ("a", "b", "missing")
    assert melted.columns[0].codes.tolist() == [0, 2, 0, 1, 1]
    assert melted.observations.total == 10


def test_more_parts_than_can_be_worked_with_are_refused():
    table = hm.read(pa.table({"x": [f"v{i}" for i in range(50_001)]}), {"x": "quasi"})
    with pytest.raises(InputError, match="50,001 parts"):
        melt(table, ("x",))


@pytest.mark.parametrize("wrong", [{"bins": 1}, {"bins": 2.5}, {"intervals": "width"}])
def test_parameters_out_of_range_are_refused(iris, wrong):
    with pytest.raises(ParameterError):
        melt(iris, COLUMNS, **wrong)
    with pytest.raises(InputError, match="no column"):
        melt(iris, ())


def test_labels_stay_distinct():
    assert IntervalCuts((0.0, 1e-6, 2e-6, 3e-6)).labels()[1:] == [
        "]0.000001,0.000002]",
        "]0.000002,0.000003]",
    ]


@pytest.mark.parametrize(
    ("numbers", "bounds", "labels"),
    [
        # the median of the values is 0.12345: three decimals would put 0.1234 on the wrong side
        ([0.1, 0.1234, 0.1235, 0.2], (0.12345,), ("<=0.12345", ">0.12345")),
        ([0.1, 0.123, 0.124, 0.2], (0.1234,), ("<=0.123", ">0.123")),
        ([17.0, 37.0, 38.0, 90.0], (37.7,), ("<=37", ">37")),
        ([17, 37, 38, 90], (37.7,), ("<=37", ">37")),
        ([-9, -4, -3, 0], (-3.5,), ("<=-4", ">-4")),
        ([2**60 + 1, 2**60 + 2**12 + 1, 2**61], (2.0**60 + 2**12,), None),
        ([1e-9, 2e-9, 3e-9], (1.5e-9,), ("<=0.000000001", ">0.000000001")),
    ],
)
def test_labels_are_true_of_every_value(numbers, bounds, labels):
    table = hm.read(pa.table({"x": numbers}), {"x": "quasi"})
    told = as_numbers(table.encode("x").values)
    column = cut_column(table, "x", IntervalCuts((told[0], *bounds, told[-1])).short(told))
    if labels is not None:
        assert column.labels == labels
    _true_of_every_value(table, column)


def _true_of_every_value(table, column):
    for value, part in zip(table.encode("x").values.to_pylist(), column.of_value, strict=True):
        label = column.labels[part].strip("]")
        if label.startswith("<="):
            assert Fraction(repr(value)) <= Fraction(label[2:])
        elif label.startswith(">"):
            assert Fraction(repr(value)) > Fraction(label[1:])
        elif label != "any":
            low, high = map(Fraction, label.split(","))
            assert low < Fraction(repr(value)) <= high


@given(
    numbers=st.lists(
        st.floats(-1e6, 1e6) | st.floats(-1e-3, 1e-3) | st.integers(0, 30).map(lambda n: n / 10),
        min_size=12,
        max_size=60,
        unique=True,
    ),
    intervals=st.sampled_from(["equal-frequency", "equal-width"]),
)
def test_labels_of_learnt_intervals_are_true_of_every_value(numbers, intervals):
    table = hm.read(pa.table({"x": numbers}), {"x": "quasi"})
    _true_of_every_value(table, column_parts(table, "x", bins=4, intervals=intervals))


def test_moments_finer_than_a_float_are_covered():
    moments = [1_700_000_000_000_000_000 + 300 * i + 1 for i in range(12)]
    table = hm.read(pa.table({"t": pa.array(moments, pa.timestamp("ns"))}), {"t": "quasi"})
    column = column_parts(table, "t", bins=3)
    end = column.labels[0].removeprefix("<=")
    inside = table.encode("t").values.filter(pa.array(column.of_value == 0))
    assert inside.cast(pa.string()).to_pylist()[-1] <= end


def test_nothing_that_is_printed_holds_a_value(melted, grid):
    from halfmask.coclustering.trees import ordered_tree

    things = (
        melted,
        melted.columns[0],
        melted.columns[0].cuts,
        melted.observations,
        melted.observations.variables[1],
        grid,
        ordered_tree(melted.columns[0], grid.partition[0]),
    )
    for thing in things:
        assert "setosa" not in repr(thing)
        assert "5.4" not in repr(thing)
