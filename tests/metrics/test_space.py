"""The distance between rows, on tables small enough to add up by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.kernels import distance
from halfmask.metrics import space
from halfmask.metrics.space import space_of

WORKCLASS = hm.hierarchies.Tree(
    {
        "Employed": {
            "Private": ["Private"],
            "Self": ["Self-emp-inc", "Self-emp-not-inc"],
            "gov": ["Federal-gov", "State-gov", "Local-gov"],
        },
        "Unpaid": {"Unpaid": ["Without-pay", "Never-worked"]},
    }
)


def far(table: hm.Table) -> np.ndarray:
    return np.asarray(distance.matrix(space_of(table).points, np.arange(len(table))))


def one(values: list, column: hm.Column) -> np.ndarray:
    return far(hm.Table(pa.table({"x": values}), hm.Schema({"x": column})))


def test_the_height_of_the_lowest_common_label_counts():
    values = ["State-gov", "Local-gov", "State-gov", "Without-pay", "Private"]
    found = one(values, hm.Column("quasi", hierarchy=WORKCLASS))
    assert found[0].tolist() == pytest.approx([0, 1 / 3, 0, 1, 2 / 3])


UNEVEN = hm.hierarchies.Tree(
    {
        "Employed": [
            "Private",
            {"Self": ["Self-emp-inc", "Self-emp-not-inc"]},
            {"gov": ["Federal-gov", "State-gov", "Local-gov"]},
        ],
        "Unpaid": ["Without-pay", "Never-worked"],
    }
)


@pytest.mark.parametrize("more", [[], ["Federal-gov", "Self-emp-inc"]], ids=["few", "most"])
def test_values_that_stand_less_deep_are_as_near_as_their_own_tree_is_high(more):
    # * is 3 high, Employed 2, gov, Self and Unpaid 1; leaves that the table lacks count too.
    values = ["Without-pay", "Never-worked", "Private", "State-gov", "Local-gov", *more]
    found = one(values, hm.Column("quasi", hierarchy=UNEVEN))
    assert found[0, :4].tolist() == pytest.approx([0, 1 / 3, 1, 1])
    assert found[2, 3:5].tolist() == pytest.approx([2 / 3, 2 / 3])
    assert found[3, 4] == pytest.approx(1 / 3)


def test_trees_that_the_table_holds_in_part_keep_their_height():
    found = one(["Private", "Without-pay"], hm.Column("quasi", hierarchy=UNEVEN))
    assert found[0].tolist() == [0, 1]
    found = one(["Self-emp-inc", "Private"], hm.Column("quasi", hierarchy=UNEVEN))
    assert found[0].tolist() == pytest.approx([0, 2 / 3])


def test_a_large_uneven_tree_measures_as_a_small_one():
    deep = {f"g{i}": [f"v{i}-{j}" for j in range(40)] for i in range(30)}
    tree = hm.hierarchies.Tree({"deep": deep, "shallow": ["a", "b"]})
    every = [*tree.leaves()]
    found = one([every[0], every[1], every[40], "a", "b", *every[41:]],
                hm.Column("quasi", hierarchy=tree))  # fmt: skip
    assert found[0, :4].tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert found[3, 4] == pytest.approx(1 / 3)


def test_numbers_are_divided_by_their_range():
    assert one([17, 90, 53.5], hm.Column("quasi"))[0].tolist() == pytest.approx([0, 1, 0.5])


def test_a_constant_column_adds_nothing():
    assert one([5, 5], hm.Column("quasi")).max() == 0


def test_a_missing_value_is_far_from_all_others_and_equal_to_itself():
    assert one([1, None, 3, None], hm.Column("quasi"))[1].tolist() == [1, 0, 1, 0]
    found = one(["a", None, "b", None], hm.Column("quasi", hierarchy=hm.hierarchies.Flat()))
    assert found[1].tolist() == [1, 0, 1, 0]


def test_dates_and_declared_orders_stand_on_a_line():
    import datetime

    days = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 11), datetime.date(2024, 1, 6)]
    assert one(days, hm.Column("quasi"))[0].tolist() == pytest.approx([0, 1, 0.5])
    ordinal = hm.Column("quasi", "ordinal", order=("low", "middle", "high"))
    assert one(["low", "high", "middle"], ordinal)[0].tolist() == pytest.approx([0, 1, 0.5])


def test_columns_add_up_and_a_weight_multiplies_its_column():
    rows = pa.table({"a": [0, 10], "b": ["x", "y"]})
    assert far(hm.Table(rows, hm.Schema({"a": "quasi", "b": "quasi"})))[0, 1] == 2
    heavy = hm.Schema({"a": hm.Column("quasi", weight=2.0), "b": "quasi"})
    assert far(hm.Table(rows, heavy))[0, 1] == 3


def test_a_top_with_several_labels_has_a_root_above_it():
    tree = hm.hierarchies.Tree({"A": ["a", "b"], "B": ["c"]}, top=False)
    assert one(["a", "b", "c"], hm.Column("quasi", hierarchy=tree))[0].tolist() == [0, 0.5, 1]


def test_large_hierarchies_give_the_same_distances(monkeypatch):
    values = ["State-gov", "Local-gov", "Self-emp-inc", "Without-pay", "Private"]
    column = hm.Column("quasi", hierarchy=WORKCLASS)
    small = one(values, column)
    monkeypatch.setattr(space, "_TABLE_LIMIT", 0)
    assert one(values, column) == pytest.approx(small)
