"""Entropy and information agree with SciPy and scikit-learn."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

import halfmask as hm
from halfmask.metrics.discrimination.rate import discriminate_tuples
from halfmask.metrics.weighted import entropy_of

metrics = pytest.importorskip("sklearn.metrics")


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8).filter(any))
def test_entropy_is_that_of_scipy(counts):
    assert entropy_of(np.array(counts)) == pytest.approx(entropy(counts, base=2), abs=1e-12)


@given(st.data())
def test_information_is_that_of_scikit_learn(data):
    n = data.draw(st.integers(2, 30))
    column = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    x, y, z = (data.draw(column) for _ in "xyz")
    rows = hm.read(pa.table({"x": x, "y": y, "z": z}), schema={})
    both = [f"{a} {b}" for a, b in zip(y, z, strict=True)]
    for keys, labels in ((["y"], y), (["y", "z"], both)):
        found = discriminate_tuples(rows, "x", keys)
        told = (found.entropy - found.residual) * math.log(2)
        assert told == pytest.approx(metrics.mutual_info_score(x, labels), abs=1e-9)
        inside = {
            key: entropy(
                list(Counter(a for a, b in zip(x, labels, strict=True) if b == key).values()),
                base=2,
            )
            for key in labels
        }
        left = sum(inside[key] for key in labels) / n
        assert found.residual == pytest.approx(left, abs=1e-9)
        if not found.degenerate and keys == ["y"]:
            for value in set(y):
                one = found.of(value)
                assert one.unweighted == pytest.approx(1 - inside[value] / found.entropy)
                assert one.share == pytest.approx(y.count(value) / n)
                mine = Counter(a for a, b in zip(x, y, strict=True) if b == value)
                assert one.top == pytest.approx(max(mine.values()) / y.count(value))
