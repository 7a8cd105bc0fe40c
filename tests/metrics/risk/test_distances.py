"""Distances of original rows to released labels, by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.risk.distances import row_distances
from halfmask.metrics.sides import sides

TREE = {"tree": {"v": ["a", "b", "c"], "w": ["d", "e"]}}
SCHEMA = {
    "columns": {
        "t": {"role": "quasi", "hierarchy": TREE},
        "n": {"role": "quasi", "hierarchy": {"intervals": [10]}},
    }
}


def test_a_wider_label_is_farther_and_a_number_stands_in_its_middle():
    original = hm.read(pa.table({"t": list("abcde"), "n": [0, 4, 10, 14, 20]}), schema=SCHEMA)
    labels = {"t": ["a", "v", "w", "*"], "n": ["0-9", "10-19", "20-29", "*"]}
    both = sides(original, hm.read(pa.table(labels), schema={}))
    every = np.arange(5), np.arange(4)
    text, number = (row_distances([column]) for column in both.quasi)
    # a: itself 0, one of three 2/3, none of two 1, one of five 4/5.
    assert text.matrix(*every)[0] == pytest.approx([0, 2 / 3, 1, 4 / 5])
    assert text.matrix(*every)[3] == pytest.approx([1, 1, 1 / 2, 4 / 5])
    # Middles 2, 12, 20 and 9.6 over the range 20.
    assert number.matrix(*every)[0] == pytest.approx([2 / 20, 12 / 20, 20 / 20, 9.6 / 20])
    together = row_distances(both.quasi)
    sums = text.matrix(*every) + number.matrix(*every)
    assert together.matrix(*every) == pytest.approx(sums)
    found, far = together.nearest(np.arange(5), k=4)
    assert far == pytest.approx(np.sort(sums, axis=1))
    assert np.take_along_axis(sums, found, axis=1) == pytest.approx(far)
