"""Distances of distributions agree with SciPy and with counting by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

import halfmask as hm
from halfmask.metrics.sides import sides
from halfmask.metrics.utility.distributions import (
    divergence,
    hellinger,
    joint_distances,
    variation,
)

shares = st.lists(st.integers(1, 50), min_size=2, max_size=6)


@given(shares, st.randoms(use_true_random=False))
def test_distances_are_those_of_scipy(counts, random):
    p = np.array(counts) / sum(counts)
    other = list(counts)
    random.shuffle(other)
    q = np.array(other) / sum(other)
    assert divergence(p, q, 10**9) == pytest.approx(entropy(p, q, base=2), abs=1e-9)
    assert variation(p, q) == pytest.approx(np.maximum(p - q, 0).sum())
    assert hellinger(p, q) == pytest.approx(
        np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum() / 2), abs=1e-6
    )
    # Total variation lies between the squared Hellinger distance and its root of two.
    assert hellinger(p, q) ** 2 <= variation(p, q) + 1e-9
    assert variation(p, q) <= np.sqrt(2) * hellinger(p, q) + 1e-6
    assert jensenshannon(p, q, base=2) <= 1


def test_a_value_that_the_release_lacks_counts_as_half_a_row():
    p, q = np.array([0.75, 0.25]), np.array([1.0, 0.0])
    expected = 0.75 * np.log2(0.75) + 0.25 * np.log2(0.25 / (0.5 / 100))
    assert divergence(p, q, 100) == pytest.approx(expected)


def test_joint_distributions_of_two_to_six_columns_by_counting():
    random = np.random.default_rng(3)
    names = list("abcdef")
    before = {name: random.choice(["u", "v"], 200) for name in names}
    after = {name: random.permutation(values) for name, values in before.items()}
    schema = dict.fromkeys(names, "quasi")
    both = sides(hm.read(pa.table(before), schema), hm.read(pa.table(after), schema))
    found = joint_distances(both)
    assert {len(one.columns) for one in found} == {2, 3, 4, 5, 6}
    assert sum(len(one.columns) == 2 for one in found) == 15
    for one in found:
        left = Counter(zip(*(before[name] for name in one.columns), strict=True))
        right = Counter(zip(*(after[name] for name in one.columns), strict=True))
        overlap = sum(np.sqrt(left[key] * right[key]) / 200 for key in left)
        assert one.hellinger == pytest.approx(np.sqrt(max(0, 1 - overlap)), abs=1e-6)
        gone = sum(count for key, count in left.items() if not right[key]) / 200
        assert one.ruled_out == pytest.approx(gone)
        bits = sum(
            count / 200 * np.log2(count / max(right[key], 0.5)) for key, count in left.items()
        )
        assert one.kl == pytest.approx(max(0, bits))
