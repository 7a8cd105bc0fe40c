"""Labels of sets of values, read again by whoever holds the original."""

from __future__ import annotations

import pyarrow as pa
import pytest

from halfmask.table.sets import Members

WORDS = Members(["a", "b", "a | b", None], pa.array(["a", "b", "a | b", None]))
NUMBERS = Members(["1", "2", "5", "7.5", None], pa.array([1.0, 2.0, 5.0, 7.5, None]))
DAYS = Members(["2024-01-02", "2024-03-01"], pa.array([19724, 19783], pa.int32()).cast(pa.date32()))

TRUTHS = Members(["false", "true"], pa.array([False, True]))


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
