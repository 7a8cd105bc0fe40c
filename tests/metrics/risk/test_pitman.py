"""Pitman's model: its likelihood is at its height, and it recovers its own populations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from halfmask.metrics.risk.uniqueness import fit_pitman, pitman


def test_the_fit_has_the_largest_likelihood():
    sizes = np.random.default_rng(1).zipf(1.9, 300)
    sizes = sizes[sizes < 200]
    frequencies = np.bincount(sizes)
    alpha, theta = fit_pitman(frequencies)

    def likelihood(a, t):
        n, u = int(sizes.sum()), len(sizes)
        out = sum(math.log(t + i * a) for i in range(1, u))
        out -= sum(math.log(t + i) for i in range(1, n))
        return out + sum(
            f * sum(math.log(j - a) for j in range(1, r)) for r, f in enumerate(frequencies)
        )

    best = likelihood(alpha, theta)
    for da, dt in ((0.01, 0), (-0.01, 0), (0, 0.5), (0, -0.5)):
        assert likelihood(alpha + da, theta + dt) < best


def test_even_classes_are_beyond_the_model():
    found = pitman(np.bincount(1 + np.random.default_rng(0).poisson(4, 5000)), 0.2)
    assert found.value is None
    assert "even" in found.reason


def test_without_a_pair_there_is_nothing_to_fit():
    assert "two people" in pitman(np.array([0, 7]), 0.1).reason


@pytest.mark.parametrize("fraction", [0.02, 0.1, 0.5])
def test_it_recovers_a_long_tail(fraction):
    random = np.random.default_rng(3)
    # Weights i^-2 give classes whose sizes follow Pitman's formula with alpha = 1/2 in the limit.
    weights = 1 / np.arange(1.0, 200_001) ** 2
    population = random.poisson(2_000_000 * weights / weights.sum())
    population = population[population > 0]
    sample = random.binomial(population, fraction)
    truth = (population == 1).sum() / population.sum()
    found = pitman(np.bincount(sample[sample > 0]), fraction)
    assert found.value == pytest.approx(truth, rel=0.5)
