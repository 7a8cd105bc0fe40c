"""Features of generalized rows are expectations, by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.sides import sides
from halfmask.metrics.utility.prediction import features

TREE = {"tree": {"v": ["a", "b", "c"], "w": ["d", "e"]}}
SCHEMA = {
    "columns": {
        "t": {"role": "quasi", "hierarchy": TREE},
        "n": {"role": "quasi", "hierarchy": {"intervals": [10]}},
    }
}


def shared():
    original = hm.read(pa.table({"t": list("aaabbcde"), "n": [0, 4] * 3 + [10, 14]}), schema=SCHEMA)
    labels = pa.table({"t": ["a", "v", "w", "*"], "n": ["0-9", "10-19", "0", "*"]})
    return sides(original, hm.read(labels, schema={}))


def test_labels_enter_as_shares_and_middles():
    both = shared()
    left, right = features(both.quasi, np.arange(8), np.arange(4))
    # The values by frequency: a, b, then c, d, e; the last place is for rare values.
    assert left[:, :5].sum(axis=1) == pytest.approx([1] * 8)
    third = 1 / 3
    assert right[:, :6] == pytest.approx(
        np.array(
            [
                [1, 0, 0, 0, 0, 0],
                [third, third, third, 0, 0, 0],
                [0, 0, 0, 0.5, 0.5, 0],
                [0.2, 0.2, 0.2, 0.2, 0.2, 0],
            ]
        )
    )
    numbers = np.array([0, 4] * 3 + [10, 14])
    assert left[:, 6] == pytest.approx((numbers - numbers.mean()) / numbers.std())
    middles = np.array([2, 12, 0, 7])
    assert right[:, 6] == pytest.approx((middles - numbers.mean()) / numbers.std())


def test_drawn_values_lie_under_their_labels():
    both = shared()
    seen = np.zeros((4, 6))
    for seed in range(200):
        random = np.random.default_rng(seed)
        _, right = features(both.quasi, np.arange(8), np.arange(4), drawn=random)
        assert set(right[:, :6].sum(axis=1)) == {1.0}
        seen += right[:, :6] / 200
    _, expected = features(both.quasi, np.arange(8), np.arange(4))
    assert seen == pytest.approx(expected[:, :6], abs=0.12)
