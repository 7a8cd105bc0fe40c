from __future__ import annotations

import math
from fractions import Fraction

import pyarrow as pa
import pytest

from halfmask.release import Recoding
from halfmask.release.partition import column_loss, table_loss
from halfmask.table.columns import Column
from halfmask.table.schema import Schema
from halfmask.table.table import Table


def test_column_loss_by_hand(lab):
    table = lab.people()
    recoding = Recoding.of(table, [{"age": 1, "zip": 0}, {"age": 4, "zip": 6}])
    step = lab.steps(0, 0, 0, 1, -1)
    # Three rows cover 2 of 5 leaves, a suppressed cell and a suppressed row cover 5 each.
    assert column_loss(recoding, table, step, "age") == Fraction(3 * 2 + 5 + 5 - 5, 5 * 4)
    assert column_loss(recoding, table, step, "zip") == Fraction(3 * 1 + 3 + 3 - 5, 5 * 2)


def test_a_column_with_one_value_has_nothing_to_lose(lab):
    table = Table(pa.table({"a": ["x", "x"]}), Schema({"a": Column("quasi")}))
    recoding = Recoding.of(table, [{"a": 1}])
    assert column_loss(recoding, table, lab.steps(0, -1), "a") == 0


def test_table_loss_by_hand():
    losses = {"a": Fraction(1, 2), "b": Fraction(0)}
    even = {"a": 1.0, "b": 1.0}
    assert table_loss(losses, even) == pytest.approx(math.sqrt(1.5) - 1)
    assert table_loss(losses, even, aggregate="arithmetic") == 0.25
    assert table_loss(losses, {"a": 3.0, "b": 1.0}) == pytest.approx(1.5**0.75 - 1)
    assert table_loss(losses, {"a": 0.0, "b": 0.0}) == 0.0
