"""Population estimates: by hand where they can be, and near the truth where it is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from halfmask.errors import ParameterError
from halfmask.metrics.risk.uniqueness import uniqueness


def test_the_whole_population_is_counted():
    found = uniqueness(np.array([1, 1, 2, 4]), 1.0, k=3)
    for name in ("sample", "pitman", "zayatz", "snb", "poisson"):
        assert getattr(found, name).value == pytest.approx(2 / 8)
    assert found.below_k.value == pytest.approx(4 / 8)
    assert found.unique_if_alone.value == 1


def test_poisson_by_hand():
    found = uniqueness(np.array([1, 1, 2, 4]), 0.5, k=3)
    # Alone here and there: p; two unique of 8 in the sample: 2 * 0.5 / 8 of the population.
    assert found.unique_if_alone.value == 0.5
    assert found.poisson.value == pytest.approx(2 * 0.5 / 8)
    # P(F < 3 | 1) = p + p (1 - p) = 3/4; P(F < 3 | 2) = p^2 = 1/4: (2 * 3/4 + 2 * 1/4) / 8.
    assert found.below_k.value == pytest.approx(2 / 8)


def test_zayatz_by_hand():
    # n = 4, N = 8, f1 = 2, f2 = 1. P(SU | 1) ~ C(7, 3) = 35, P(SU | 2) ~ 2 C(6, 3) = 40.
    found = uniqueness(np.array([1, 1, 2]), 0.5)
    chance = 2 * 35 / (2 * 35 + 40)
    assert found.zayatz.value == pytest.approx(2 * chance / 0.5 / 8)


def test_pitman_maximizes_its_likelihood():
    from halfmask.metrics.risk.uniqueness import _pitman_fit

    sizes = np.random.default_rng(1).zipf(1.9, 300)
    sizes = sizes[sizes < 200]
    frequencies = np.bincount(sizes)
    alpha, theta = _pitman_fit(frequencies)

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


def test_estimates_come_near_a_known_population():
    random = np.random.default_rng(0)
    population = random.zipf(1.6, 20000)
    population = population[population < 2000]
    sample = random.binomial(population, 0.1)
    truth = (population == 1).sum() / population.sum()
    found = uniqueness(sample, 0.1)
    assert found.pitman.value == pytest.approx(truth, rel=0.3)
    assert found.zayatz.value == pytest.approx(truth, rel=0.3)
    assert found.pitman.low <= found.pitman.value <= found.pitman.high


def test_snb_recovers_its_own_model():
    random = np.random.default_rng(2)
    population = 1 + random.negative_binomial(0.8, 0.3, 40000)
    sample = random.binomial(population, 0.3)
    truth = (population == 1).sum() / population.sum()
    assert uniqueness(sample, 0.3).snb.value == pytest.approx(truth, rel=0.1)


def test_an_estimator_that_fails_says_so_and_gives_no_zero():
    found = uniqueness(np.array([1, 1, 1]), 0.1)
    assert found.pitman.value is None
    assert not found.pitman.trusted
    assert "two people" in found.pitman.reason
    nobody = uniqueness(np.array([5, 7]), 0.1)
    for name in ("pitman", "zayatz", "snb", "poisson", "unique_if_alone"):
        assert getattr(nobody, name).value is None
        assert getattr(nobody, name).reason


def test_a_fraction_is_a_share():
    with pytest.raises(ParameterError):
        uniqueness(np.array([1]), 0.0)
