"""Zayatz's estimate by hand."""

from __future__ import annotations

import numpy as np
import pytest

from halfmask.metrics.risk.uniqueness import zayatz


def test_by_hand():
    # n = 4, N = 8, f1 = 2, f2 = 1. One drawn of 1 ~ C(7, 3) = 35, of 2 ~ 2 C(6, 3) = 40.
    chance = 2 * 35 / (2 * 35 + 40)
    assert zayatz(np.array([0, 2, 1]), 0.5).value == pytest.approx(2 * chance / 0.5 / 8)


def test_nobody_alone_gives_no_figure():
    assert zayatz(np.array([0, 0, 3]), 0.5).value is None


def test_it_says_too_much_of_small_samples_of_even_classes():
    population = 1 + np.random.default_rng(0).poisson(4, 20_000)
    sample = np.random.default_rng(1).binomial(population, 0.05)
    truth = (population == 1).sum() / population.sum()
    assert zayatz(np.bincount(sample[sample > 0]), 0.05).value > 50 * truth
