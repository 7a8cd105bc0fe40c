"""The worked risks of Nguyen and Castelluccia, section 2."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.estimate import Estimate, exact_estimate, excess, mean_estimate, proportion
from halfmask.metrics.risk.disclosure import minimality
from halfmask.metrics.risk.reidentification import reidentification
from halfmask.metrics.sides import sides


def test_two_classes_of_two():
    sizes = np.array([2, 2])
    found = reidentification(sizes, sizes)
    assert found.journalist_any_hit == pytest.approx(0.75)
    assert found.prosecutor == 0.5
    assert found.marketer == 0.5
    assert found.journalist_population is None


def test_thresholds_and_distribution():
    sizes = np.array([1, 2, 5, 20])
    found = reidentification(sizes, sizes)
    above = {t.limit: t.rows for t in found.thresholds}
    assert above == {0.05: 8, 0.09: 8, 0.2: 3, 0.33: 3, 0.5: 1}
    assert sum(one.rows for one in found.distribution) == 28


def test_wilson_matches_scipy():
    stats = pytest.importorskip("scipy.stats")
    for hits, n in ((0, 10), (3, 10), (10, 10), (47, 500)):
        interval = stats.binomtest(hits, n).proportion_ci(method="wilson")
        found = proportion(hits, n)
        assert found.low == pytest.approx(interval.low, abs=1e-9)
        assert found.high == pytest.approx(interval.high, abs=1e-9)


def test_estimates_of_nothing_are_not_zero():
    assert proportion(0, 0).value is None
    assert mean_estimate([]).value is None
    assert excess(proportion(1, 2), exact_estimate(1.0, 5)).value is None
    assert excess(exact_estimate(0.5, 10), exact_estimate(0.0, 10)).value == 0.5
    assert isinstance(excess(exact_estimate(0.2, 10), exact_estimate(0.4, 10)), Estimate)


def test_a_class_that_could_be_finer_tells_why_it_is_not():
    tree = {"tree": {"young": ["21", "22"], "old": ["71", "72"]}}
    rows = {"age": ["21", "21", "22", "22", "71", "71"]}
    original = hm.read(pa.table(rows), schema={"age": {"role": "quasi", "hierarchy": tree}})
    release = hm.read(pa.table({"age": ["young"] * 4 + ["old"] * 2}), schema={})
    # The young class holds 2 + 2 and could be split into classes as large as the smallest, 2.
    assert minimality(sides(original, release)).value == pytest.approx(4 / 6)
