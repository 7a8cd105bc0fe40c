"""The Poisson model by hand."""

from __future__ import annotations

import numpy as np
import pytest

from halfmask.metrics.risk.individual import poisson, poisson_below

SIZES = np.array([0, 2, 1, 0, 1])  # two alone, a pair, a class of four


def test_unique_by_hand():
    # Alone here and there: p; two unique of 8 in the sample: 2 * 0.5 / 8 of the population.
    found = poisson(SIZES, 0.5)
    assert found.value == pytest.approx(2 * 0.5 / 8)
    assert not found.trusted
    # Each of the two is unique or not with a half: a variance of 1/4 each, over 8 people.
    spread = 1.96 * (2 * 0.25) ** 0.5 / 8
    assert (found.low, found.high) == pytest.approx((max(0, 1 / 8 - spread), 1 / 8 + spread))


def test_where_nobody_is_alone_nothing_is_said():
    found = poisson(np.array([0, 0, 3]), 0.5)
    assert found.value is None
    assert "Nobody is alone" in found.reason


def test_below_k_by_hand():
    # P(F < 3 | 1) = p + p (1 - p) = 3/4; P(F < 3 | 2) = p^2 = 1/4: (2 * 3/4 + 2 * 1/4) / 8.
    found = poisson_below(SIZES, 0.5, 3)
    assert found.value == pytest.approx(2 / 8)
    # One person with 3/16 twice, two people together with 3/16: 2 * 1 + 4.
    spread = 1.96 * (6 * 3 / 16) ** 0.5 / 8
    assert (found.low, found.high) == pytest.approx((max(0, 2 / 8 - spread), 2 / 8 + spread))


def test_large_classes_stay_large():
    found = poisson_below(np.array([0, 0, 0, 0, 0, 4]), 0.1, 5)
    assert (found.value, found.low, found.high) == (0, 0, 0)
    assert found.reason == "Every class of the table holds 5 people already."


def test_a_figure_below_those_surely_unique_is_not_trusted():
    found = poisson_below(np.array([0, 2000]), 0.1, 5, unique=0.97)
    assert found.value == pytest.approx(1 - 0.9**4)
    assert not found.trusted
    assert "97.0%" in found.reason
