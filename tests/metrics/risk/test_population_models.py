"""Population estimates against recursions, sums and draws that share no formula with them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfmask.metrics.risk import uniqueness as module
from halfmask.metrics.risk.individual import poisson_below
from halfmask.metrics.risk.uniqueness import snb, uniqueness, zayatz

SIZES = st.lists(st.integers(1, 6), min_size=2, max_size=12).filter(lambda s: 1 in s)


@given(SIZES, st.integers(2, 5))
def test_zayatz_in_fractions(sizes, times):
    n = sum(sizes)
    population = n * times
    chances = {
        r: Fraction(r * math.comb(population - r, n - 1), math.comb(population, n)) for r in sizes
    }
    alone = sizes.count(1)
    joint = sum(sizes.count(r) * chances[r] for r in set(sizes))
    unique = alone * (alone * chances[1] / joint) * times
    found = zayatz(np.bincount(sizes), 1 / times).value
    assert found == pytest.approx(float(unique / population))


@given(SIZES, st.floats(0.05, 0.9), st.integers(1, 7))
def test_poisson_by_its_probabilities(sizes, fraction, k):
    def chance(f):
        # The size of a class in the population is f and the failures before the f-th success.
        total, term = 0.0, fraction**f
        for extra in range(max(0, k - f)):
            total += term
            term *= (f + extra) / (extra + 1) * (1 - fraction)
        return total

    found = poisson_below(np.bincount(sizes), fraction, k)
    assert found.value == pytest.approx(sum(s * chance(s) for s in sizes) / sum(sizes))


def test_poisson_of_a_few_classes():
    found = uniqueness(np.array([1, 1, 1, 2, 2, 5]), 0.2, k=3)
    assert found.sample.value == 3 / 12
    assert found.poisson.value == pytest.approx(3 / 60)


def test_k_map_of_classes_whose_sizes_have_the_prior():
    # Class sizes with weight 1 / F, each person drawn with chance p: the posterior of the module.
    random = np.random.default_rng(3)
    sizes = np.arange(1, 400)
    population = random.choice(sizes, 400_000, p=1 / sizes / (1 / sizes).sum())
    sample = random.binomial(population, 0.3)
    held = sample > 0
    truth = sample[held & (population < 5)].sum() / sample.sum()
    found = poisson_below(np.bincount(sample[held]), 0.3, 5)
    assert found.value == pytest.approx(truth, rel=0.03)
    alone = (population == 1)[sample == 1].mean()
    assert alone == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize(("alpha", "theta"), [(0.3, 5.0), (0.6, 20.0), (0.1, 40.0)])
def test_pitman_is_the_expectation_of_its_process(alpha, theta, monkeypatch):
    # A newcomer opens a class with chance (theta + alpha K) / (theta + n), else joins one of r
    # people with chance (r - alpha) / (theta + n): the expected classes and singles, step by step.
    classes = singles = 1.0
    for n in range(1, 3000):
        fresh = (theta + alpha * classes) / (theta + n)
        singles += fresh - singles * (1 - alpha) / (theta + n)
        classes += fresh
    monkeypatch.setattr(module, "fit_pitman", lambda _: (alpha, theta))
    found = module.pitman(np.array([0, 298, 1]), 0.1).value  # 300 people of 3000
    assert found == pytest.approx(singles / 3000)


@pytest.mark.parametrize(
    ("a", "q", "fraction"), [(0.8, 0.7, 0.3), (2.0, 0.4, 0.1), (0.5, 0.9, 0.5)]
)
def test_snb_solves_its_own_expectations(a, q, fraction):
    # Sizes 1 + negative binomial: expected sample frequencies by adding up every size.
    frequencies = np.zeros(200)
    chance, people = (1 - q) ** a, 0.0
    unique = chance
    for extra in range(4000):
        size = extra + 1
        people += chance * size
        for r in range(1, min(size, 199) + 1):
            drawn = math.comb(size, r) * fraction**r * (1 - fraction) ** (size - r)
            frequencies[r] += chance * drawn
            if r > size * fraction + 60:
                break
        chance *= (a + extra) / (extra + 1) * q
        if chance < 1e-14:
            break
    found = snb(1e4 * frequencies, fraction).value
    assert found == pytest.approx(unique / people, rel=1e-4)
