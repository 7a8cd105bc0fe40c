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
