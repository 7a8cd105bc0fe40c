"""The different ones of some numbers, counted or sorted."""

from __future__ import annotations

import numpy as np
import pytest

from halfmask.table.tuples import distinct_numbers


@pytest.mark.parametrize(
    "numbers",
    [[], [0], [3, 1, 3, 0], [2_000, 5, 2_000], [10**12, 7, 10**12, 0]],
    ids=["none", "one", "few", "sparse", "huge"],
)
def test_each_number_is_given_once_in_ascending_order(numbers):
    found = distinct_numbers(np.array(numbers, dtype=np.int64))
    assert found.dtype == np.int64
    assert found.tolist() == sorted(set(numbers))
