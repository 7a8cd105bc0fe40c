"""The shifted negative binomial recovers its own populations, also at its border."""

from __future__ import annotations

import numpy as np
import pytest

from halfmask.metrics.risk.uniqueness import snb


def sampled(population, fraction):
    sample = np.random.default_rng(5).binomial(population, fraction)
    truth = (population == 1).sum() / population.sum()
    return snb(np.bincount(sample[sample > 0]), fraction), truth


@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.5])
def test_it_recovers_its_own_model(fraction):
    population = 1 + np.random.default_rng(2).negative_binomial(0.8, 0.3, 80_000)
    found, truth = sampled(population, fraction)
    assert found.value == pytest.approx(truth, rel=0.2)


@pytest.mark.parametrize("fraction", [0.1, 0.2, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_even_classes_are_its_border(fraction, seed):
    population = 1 + np.random.default_rng(seed).poisson(4, 40_000)
    found, truth = sampled(population, fraction)
    assert found.value == pytest.approx(truth, rel=0.6)


def test_nearly_everybody_unique():
    population = np.ones(100_000, dtype=np.int64)
    population[:1000] = 2
    found, truth = sampled(population, 0.2)
    assert found.value == pytest.approx(truth, abs=0.01)


def test_sizes_that_no_solution_fits():
    assert snb(np.array([0, 1, 100]), 0.9).value is None
