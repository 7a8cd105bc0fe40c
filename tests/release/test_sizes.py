from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from halfmask.release.partition import ClassSizes, SizeBin


def test_few_sizes_get_a_bin_each():
    sizes = ClassSizes.of(np.array([2, 2, 4]))
    assert sizes.bins == (SizeBin(2, 2, 2, 4), SizeBin(3, 3, 0, 0), SizeBin(4, 4, 1, 4))
    assert (sizes.count, sizes.smallest, sizes.largest, sizes.mean) == (3, 2, 4, 8 / 3)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=50))
def test_bins_are_few_adjacent_and_complete(numbers):
    sizes = ClassSizes.of(np.array(numbers, dtype=np.int64))
    assert len(sizes.bins) <= 21
    assert sum(one.classes for one in sizes.bins) == len(numbers)
    assert sum(one.rows for one in sizes.bins) == sum(numbers)
    assert sizes.bins[0].smallest == min(numbers)
    assert sizes.bins[-1].largest == max(numbers)
    for left, right in zip(sizes.bins, sizes.bins[1:], strict=False):
        assert left.smallest <= left.largest == right.smallest - 1
