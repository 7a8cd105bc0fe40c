"""Associations of two columns agree with SciPy and with figures by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats.contingency import association

import halfmask as hm
from halfmask.metrics.sides import sides
from halfmask.metrics.utility.association import pairs_of


def table(**columns):
    return hm.read(pa.table(columns), schema=dict.fromkeys(columns, "quasi"))


def only(original, release):
    (found,) = pairs_of(sides(original, release))
    return found


def test_cramers_v_is_that_of_scipy():
    random = np.random.default_rng(0)
    one = random.choice(["a", "b", "c"], 400)
    two = np.where(random.random(400) < 0.5, one, random.choice(["a", "b", "d", "e"], 400))
    original = table(one=one, two=two)
    other = table(one=random.permutation(one), two=two)
    found = only(original, other)
    assert found.kind == "Cramer's V"
    for rows, value in ((original, found.before), (other, found.after)):
        codes = [rows.encode(name).codes for name in ("one", "two")]
        counts = np.zeros([len(np.unique(c)) for c in codes], dtype=int)
        np.add.at(counts, tuple(codes), 1)
        assert value == pytest.approx(association(counts, method="cramer"))


def test_a_correlation_keeps_its_sign():
    x = [1, 2, 3, 4, 5, 6]
    found = only(table(x=x, y=[2, 1, 4, 3, 6, 5]), table(x=x, y=[6, 5, 4, 3, 1, 2]))
    assert found.kind == "correlation"
    assert found.before == pytest.approx(np.corrcoef(x, [2, 1, 4, 3, 6, 5])[0, 1])
    assert found.after == pytest.approx(np.corrcoef(x, [6, 5, 4, 3, 1, 2])[0, 1])
    assert found.after < 0 < found.before


def test_a_correlation_ratio_by_hand():
    # Means 1 and 5 around 3: between 4; inside 1 and 1: total 5.
    groups = ["a", "a", "b", "b"]
    found = only(table(g=groups, x=[0, 2, 4, 6]), table(g=["a", "b", "a", "b"], x=[0, 2, 4, 6]))
    assert found.kind == "correlation ratio"
    assert found.before == pytest.approx(np.sqrt(4 / 5))
    assert found.after == pytest.approx(np.sqrt(1 / 5))
    # The two-way tables share none of a-2, b-4: half of the mass differs.
    assert found.contingency == pytest.approx(0.5)
