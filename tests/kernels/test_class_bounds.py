"""Bounds of what classes can lose, against the same in NumPy and against every way to fill them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.kernels.distance import matrix
from halfmask.kernels.lattice import Fits, bit_range, entropies, radii
from halfmask.metrics.space import space_of


@pytest.mark.parametrize(
    ("counts", "size", "least", "most"),
    [
        ([4, 1], 4, 0, 4 * 0.8112781244591328),  # four alike; or three and one
        ([2, 2, 2], 3, 3 * 0.9182958340544896, 3 * np.log2(3)),  # two and one; one each
        ([3, 2], 5, 5 * 0.9709505944546686, 5 * 0.9709505944546686),  # all of them
        ([5], 3, 0, 0),
    ],
)
def test_entropies_by_hand(counts, size, least, most):
    assert bit_range(np.sort(counts), size) == pytest.approx([least, most])


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_entropies_are_those_of_the_best_and_the_worst_rows(counts, data):
    values = np.repeat(np.arange(len(counts)), counts)
    size = data.draw(st.integers(1, len(values)))
    bits = []
    for rows in combinations(values.tolist(), size):
        share = np.bincount(rows)[np.unique(rows)] / size
        bits.append(-size * float(share @ np.log2(share)))
    assert bit_range(np.sort(counts), size) == pytest.approx((min(bits), max(bits)))


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 4))
def test_sums_over_classes_agree_with_numpy(seed, distinct, classes):
    random = np.random.default_rng(seed)
    codes = random.integers(0, 6, (2, distinct)).astype(np.int32)
    table = hm.Table(
        pa.table({"x": codes[0] * 2, "c": [f"v{code}" for code in codes[1]]}),
        hm.Schema({"x": "quasi", "c": "quasi"}),
    )
    points = space_of(table, ["x", "c"]).points
    rows = random.integers(1, 4, distinct)
    each = [
        np.flatnonzero(random.random(distinct) < 0.7) if distinct > 1 else np.array([0])
        for _ in range(classes)
    ]
    each = [one if len(one) else np.array([0]) for one in each]
    sizes = np.array([random.integers(1, rows[one].sum() + 1) for one in each])
    starts = np.cumsum([0] + [len(one) for one in each])
    classes = Fits(sizes, starts, np.concatenate(each), rows, np.arange(distinct), codes)
    expected, bits = np.zeros(2), np.zeros(2)
    for one, size in zip(each, sizes.tolist(), strict=True):
        far = matrix(points, one)
        around = [np.repeat(far[i], rows[one]) for i in range(len(one))]
        least = min(float(np.sort(all_rows)[size - 1]) for all_rows in around)
        expected += size * np.array([least, far.max()])
        for column in codes:
            held = np.bincount(column[one], weights=rows[one]).astype(np.int64)
            bits += bit_range(np.sort(held[held > 0]), size)
    assert radii(points, classes) == pytest.approx(tuple(expected))
    assert entropies(classes, 6) == pytest.approx(tuple(bits))
