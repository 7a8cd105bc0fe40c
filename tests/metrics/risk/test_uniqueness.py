"""Population estimates: near the truth where it is known, and honest where they are not."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from effort import examples, turn
from hypothesis import given, settings
from hypothesis import strategies as st

from halfmask.errors import ParameterError
from halfmask.metrics.estimate import Estimate, exact_estimate, failed_estimate
from halfmask.metrics.risk.uniqueness import ModelChoice, _estimate, _if_alone, uniqueness

FIGURES = ("unique", "pitman", "zayatz", "snb", "poisson", "unique_if_alone")


def test_the_whole_population_is_counted():
    found = uniqueness(np.array([1, 1, 2, 4]), 1.0, k=3)
    for name in ("unique", "sample", "pitman", "zayatz", "snb", "poisson"):
        assert getattr(found, name).value == pytest.approx(2 / 8)
    assert found.below_k.value == pytest.approx(4 / 8)
    assert uniqueness(np.array([1, 1, 2, 4]), 1.0, k=2).below_k.value == pytest.approx(2 / 8)
    assert uniqueness(np.array([1, 1, 2, 4]), 1.0, k=4).below_k.value == pytest.approx(4 / 8)
    assert found.unique_if_alone.value == 1
    assert (found.model, found.bounds) == ("counted", (0.25, 0.25))


@cache
def populations():
    random = np.random.default_rng(0)
    tail = random.zipf(1.6, 20_000)
    weights = 1 / np.arange(1.0, 100_001) ** 2
    pitman = random.poisson(1_000_000 * weights / weights.sum())
    nearly = np.ones(40_000, dtype=np.int64)
    nearly[:800] = 2
    return {
        "a long tail": tail[tail < 2000],
        "negative binomial": 1 + random.negative_binomial(0.8, 0.3, 40_000),
        "even classes": 1 + random.poisson(4, 40_000),
        "nearly everybody unique": nearly,
        "alpha a half": pitman[pitman > 0],
    }


# From a tenth on the figure relied on is near in all these shapes; below, only in long tails.
SOUND = [
    (name, fraction)
    for i, name in enumerate(populations())
    for fraction in turn((0.2, 0.3, 0.5), i)
]
SOUND += [(name, fraction) for name in ("a long tail", "alpha a half") for fraction in (0.02, 0.1)]


@pytest.mark.parametrize(("name", "fraction"), SOUND)
def test_the_figure_relied_on_is_near_a_known_population(name, fraction):
    population = populations()[name]
    sample = np.random.default_rng(1).binomial(population, fraction)
    truth = (population == 1).sum() / population.sum()
    found = uniqueness(sample, fraction)
    assert found.unique.value == pytest.approx(truth, rel=0.5, abs=0.002)
    assert found.bounds[0] <= truth <= found.bounds[1]
    alone_here = sample == 1
    alone_there = (population[alone_here] == 1).mean()
    assert found.unique_if_alone.value == pytest.approx(alone_there, rel=0.5, abs=0.01)


def test_cells_that_no_model_describes_are_overstated():
    random = np.random.default_rng(0)
    population = random.poisson(np.exp(random.normal(-1.0, 2.0, 60_000)))
    truth = (population == 1).sum() / population.sum()
    sample = random.binomial(population, 0.02)
    assert uniqueness(sample, 0.02).unique.value > 2 * truth


def test_everybody_alone_is_not_said_to_be_a_tenth():
    found = uniqueness(np.ones(2000, dtype=np.int64), 0.1)
    assert found.unique.value == 1
    assert found.bounds[0] > 0.95
    assert found.agree
    assert found.unique_if_alone.value == 1
    for name in ("poisson", "below_k"):
        assert not getattr(found, name).trusted


def test_an_interval_lies_around_its_figure():
    found = uniqueness(np.random.default_rng(0).binomial(populations()["a long tail"], 0.1), 0.1)
    assert found.model == "pitman"
    assert found.unique.low <= found.unique.value <= found.unique.high


def test_an_estimator_that_fails_says_so_and_gives_no_zero():
    found = uniqueness(np.array([1, 1, 1]), 0.1)
    assert found.pitman.value is None
    assert not found.pitman.trusted
    assert "two people" in found.pitman.reason
    nobody = uniqueness(np.array([5, 7]), 0.1)
    for name in FIGURES:
        assert getattr(nobody, name).value is None
        assert getattr(nobody, name).reason
    assert nobody.model is None


@given(st.lists(st.integers(1, 400), min_size=1, max_size=40), st.floats(1e-6, 1.0))
@settings(max_examples=examples(60))
def test_any_table_has_an_answer_or_a_reason(sizes, fraction):
    found = uniqueness(np.array(sizes), fraction)
    for name in FIGURES:
        one = getattr(found, name)
        assert one.reason if one.value is None else 0 <= one.value <= 1
    assert 0 <= found.bounds[0] <= found.bounds[1] <= 1


def test_plain_values():
    values = uniqueness(np.array([1, 1, 1, 2, 2, 3]), 0.5).to_dict()
    assert {"model", "why", "agree", "span", "bounds", *FIGURES} <= values.keys()


def test_a_fraction_is_a_share():
    with pytest.raises(ParameterError):
        uniqueness(np.array([1]), 0.0)


def test_an_estimator_that_fails_on_most_resampled_tables_is_not_trusted():
    own = np.array([0, 50, 50])

    def once(frequencies, fraction):
        return (
            exact_estimate(0.5, 150)
            if (frequencies == own).all()
            else failed_estimate("no solution")
        )

    found = _estimate(own, 0.1, once)
    assert (found.value, found.trusted) == (0.5, False)
    assert "resampled" in found.reason
    assert _estimate(own, 0.1, lambda *_: exact_estimate(0.5, 150)).trusted


def test_a_chance_is_at_most_one():
    unique = Estimate(0.5, 0.2, 0.6, 90)
    found = _if_alone(
        ModelChoice("pitman", unique, "why", (0.5, 0.5), agree=True), exact_estimate(0.4, 90), 36
    )
    assert (found.value, found.low, found.high, found.n) == (1, pytest.approx(0.5), 1, 36)
