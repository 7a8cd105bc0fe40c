"""Labels of sets of values, read again by whoever holds the original."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from halfmask.table.labels import LabelReader

WORDS = LabelReader(["a", "b", "a | b", None], pa.array(["a", "b", "a | b", None]))
NUMBERS = LabelReader(["1", "2", "5", "7.5", None], pa.array([1.0, 2.0, 5.0, 7.5, None]))
DAYS = LabelReader(
    ["2024-01-02", "2024-03-01"], pa.array([19724, 19783], pa.int32()).cast(pa.date32())
)

PRICES = LabelReader(
    ["1.50", "2.00", "3310.70"],
    pa.array([Decimal("1.50"), Decimal("2.00"), Decimal("3310.70")], pa.decimal128(12, 2)),
)
CODES = LabelReader(["34999", "35510", "35520", None], pa.array(["34999", "35510", "35520", None]))
TRUTHS = LabelReader(["false", "true"], pa.array([False, True]))


@pytest.mark.parametrize(
    ("members", "label", "places"),
    [
        (WORDS, "a", [0]),
        (WORDS, "b | missing", [1, 3]),
        (WORDS, "a | c", None),
        (WORDS, "any", None),
        (NUMBERS, "<=2", [0, 1]),
        (NUMBERS, "]1,5]", [1, 2]),
        (NUMBERS, "]1,5] | >7", [1, 2, 3]),
        (NUMBERS, "any", [0, 1, 2, 3]),
        (NUMBERS, "2.0 | missing", [1, 4]),
        (NUMBERS, "3", None),
        (NUMBERS, "<=many", None),
        (DAYS, "<=2024-01-31", [0]),
        (DAYS, ">2024-01-31", [1]),
        (DAYS, "[2024-01-01, 2024-03-01[", [0]),
        (NUMBERS, "[2, 5[", [1]),
        (NUMBERS, "[2, 5)", [1]),
        (NUMBERS, "[2,5]", [1, 2]),
        (NUMBERS, "(2,7.5]", [2, 3]),
        (NUMBERS, "0-4", [0, 1]),
        (NUMBERS, "-3-1", [0]),
        (NUMBERS, "0 - x", None),
        (NUMBERS, ">=5", [2, 3]),
        (NUMBERS, "<5", [0, 1]),
        (NUMBERS, "{1, 5}", [0, 2]),
        (WORDS, "{a, b}", [0, 1]),
        (WORDS, "{a,b}", [0, 1]),
        (WORDS, "{a, c}", None),
        (WORDS, "[a, b]", None),
        (NUMBERS, "0\u20134", [0, 1]),
        (NUMBERS, "0 to 4", [0, 1]),
        (PRICES, "1.5", [0]),
        (PRICES, "3310.7", [2]),
        (PRICES, "[1, 2]", [0, 1]),
        (CODES, "355**", [1, 2]),
        (CODES, "3****", [0, 1, 2]),
        (CODES, "35*", None),
        (CODES, "*****", None),
        (CODES, "9****", None),
        (DAYS, "2024", [0, 1]),
        (DAYS, "2024-03", [1]),
        (DAYS, "2023", []),
        (WORDS, "2024", None),
        (TRUTHS, "True", [1]),
        (TRUTHS, "FALSE", [0]),
        (TRUTHS, "yes", None),
    ],
)
def test_labels_are_read_as_the_values_they_stand_for(members, label, places):
    found = members.of(label)
    assert places == (None if found is None else found.nonzero()[0].tolist())


def test_values_do_not_show():
    assert "7.5" not in repr(NUMBERS)
