"""Every mechanism has the scale that it states (and not one 30% off), and keeps its epsilon.

The chances are written down from the definitions; each audit must also fail on a broken variant.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, sqrt

import numpy as np
import pytest
from effort import THOROUGH
from noise import gaussian_pmf, laplace_pmf, least_epsilon, misfit, repeatable

from halfmask.dp import figures, personal
from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import Approximate, Pure
from halfmask.dp.figures import answer
from halfmask.dp.mechanisms import (
    CountTree,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    RandomizedResponse,
    StableGroups,
)
from halfmask.dp.views import ExactCounts, Question, Scale

OFF = (1.3, 1 / 1.3)
TIMES = 60_000


def _tree_node(sampler) -> np.ndarray:
    """One node of the lower level of a tree of two levels."""
    tree = CountTree(Fraction(1), levels=2, branching=2)
    return tree.nodes(np.zeros((TIMES, 4), np.int64), sampler)[0][:, 1]


# Per mechanism: draws of its noise, and the distribution that a scale factor would give.
NOISES = {
    "discrete Laplace, epsilon 1/2": (
        lambda s: DiscreteLaplace(Fraction(1, 2)).apply(np.zeros(TIMES, np.int64), s),
        lambda f: laplace_pmf(2 * f, 60),
    ),
    "discrete Laplace, three rows a person": (
        lambda s: DiscreteLaplace(Fraction(1), 3).apply(np.zeros(TIMES, np.int64), s),
        lambda f: laplace_pmf(3 * f, 90),
    ),
    "discrete Gaussian, rho 1/32": (
        lambda s: DiscreteGaussian(Fraction(1, 32)).apply(np.zeros(TIMES, np.int64), s),
        lambda f: gaussian_pmf(16 * f * f, 60),
    ),
    "tree of counts, two levels": (_tree_node, lambda f: laplace_pmf(2 * f, 60)),
    "groups that show themselves": (
        lambda s: StableGroups(Fraction(1), Fraction(1, 100)).apply(np.full(TIMES, 50), s)[0] - 50,
        lambda f: laplace_pmf(f, 30),
    ),
}


@pytest.mark.parametrize("name", NOISES)
def test_noise_has_the_stated_scale_and_none_thirty_percent_off(name: str) -> None:
    draw, pmf = NOISES[name]
    draws = draw(repeatable(41))
    assert misfit(draws, pmf(1.0)) < 6
    for factor in OFF:
        assert misfit(draws, pmf(factor)) > 6


# Of 5,000 choices an epsilon 30% off is told from the stated one 997 times in 1,000.
def _chosen(kind, sampler, times: int = 12_000 if THOROUGH else 5_000) -> np.ndarray:
    mechanism = kind(Fraction(1))
    return np.array([mechanism.choose(np.array([2, 0]), sampler) == 0 for _ in range(times)])


def _odds(e: float) -> float:
    return exp(e) / (exp(e) + 1)


# Per mechanism: truth values of an event, and its chance at epsilon.
EVENTS = {
    "exponential": (lambda s: _chosen(Exponential, s), lambda e: _odds(2 * e / 2)),
    "randomized response, three answers": (
        lambda s: RandomizedResponse(Fraction(1), 3).tell(np.zeros(TIMES, np.int64), s) == 0,
        lambda e: exp(e) / (exp(e) + 2),
    ),
    "sampling for personal epsilon": (
        lambda s: personal.draw_sample(np.full(TIMES, 500_000), Fraction(2), s),
        lambda e: (exp(0.5 * e) - 1) / (exp(2) - 1),
    ),
}


@pytest.mark.parametrize("name", EVENTS)
def test_chances_are_as_stated_and_not_those_of_another_epsilon(name: str) -> None:
    draw, chance = EVENTS[name]
    seen = draw(repeatable(42))

    def apart(expected: float) -> float:
        return abs(seen.mean() - expected) / sqrt(expected * (1 - expected) / len(seen))

    assert apart(chance(1.0)) < 4.5
    for factor in OFF:
        assert apart(chance(factor)) > 4.5


def test_audit_of_the_count_tree() -> None:
    """One person moves one node per level; noise for one level only is caught."""

    def run_at(levels: int, epsilon: Fraction):
        def run(with_person: bool, times: int) -> np.ndarray:
            tree = CountTree(epsilon, levels, branching=2)
            counts = np.zeros((times, tree.size), np.int64)
            counts[:, 0] = 5 + with_person
            below = tree.apply(counts, repeatable(6 + with_person))
            # The lower node alone, and the upper node as told by the edge beyond it.
            return (below[:, 1] + below[:, 2]).astype(float)

        return run

    assert least_epsilon(run_at(2, Fraction(1)), 80_000) <= 1
    assert least_epsilon(run_at(2, Fraction(4)), 80_000) > 1


def test_audit_of_the_count_tree_fails_where_levels_are_not_counted(monkeypatch) -> None:
    """Every level at the whole of epsilon is twice the budget."""
    broken = property(lambda self: DiscreteLaplace(self.epsilon * 2, self.sensitivity))
    monkeypatch.setattr(CountTree, "noise", broken)

    def run(with_person: bool, times: int) -> np.ndarray:
        counts = np.zeros((times, 4), np.int64)
        counts[:, 0] = 5 + with_person
        below = CountTree(Fraction(1), 2, branching=2).apply(counts, repeatable(8 + with_person))
        return (below[:, 1] + below[:, 2]).astype(float)

    assert least_epsilon(run, 200_000) > 1


def test_audit_of_groups_that_show_themselves() -> None:
    """A group of one person alone appears at most as often as delta allows."""

    def run_at(epsilon: Fraction, lower: int = 0):
        def run(with_person: bool, times: int) -> np.ndarray:
            mechanism = StableGroups(epsilon, Fraction(1, 1000))
            noisy, shown = mechanism.apply(
                np.full(times, int(with_person)), repeatable(3 + with_person)
            )
            if lower:
                shown = (noisy >= mechanism.threshold - lower) & with_person
            return np.where(shown, noisy, -1).astype(float)

        return run

    assert least_epsilon(run_at(Fraction(1)), 200_000, 1e-3) <= 1
    assert least_epsilon(run_at(Fraction(1), lower=6), 200_000, 1e-3) > 1


def test_audit_of_one_answer() -> None:
    def run_at(epsilon: Fraction):
        def run(with_person: bool, times: int) -> np.ndarray:
            response = RandomizedResponse(epsilon, 3)
            return response.tell(np.full(times, int(with_person)), repeatable(4)).astype(float)

        return run

    assert least_epsilon(run_at(Fraction(1)), 60_000) <= 1
    assert least_epsilon(run_at(Fraction(2)), 60_000) > 1


def test_audit_of_answers_and_of_answers_that_pay_once_for_two_vectors(monkeypatch) -> None:
    """Count and sum together keep epsilon; at the whole of epsilon each they do not."""
    scale = Scale.of("x", 0, 10)
    questions = [Question("n", "count"), Question("m", "mean", "x", scale)]
    for points in ("_POINTS", "_FEWEST"):  # the values are audited, not their intervals
        monkeypatch.setattr(figures, points, 8)

    def run(with_person: bool, times: int) -> np.ndarray:
        rows, sums = 5 + with_person, 1000 * with_person
        exact = ExactCounts(np.full(times, rows), {"x": np.full(times, sums)}, {})
        allowance = Accountant(Pure(1)).allow(Pure(1), "audit")
        found = answer(questions, exact, allowance, sampler=repeatable(11 + with_person))
        count, mean = found.figures
        total = (mean.values - 5) * np.maximum(count.values, 1) / 5
        return count.values + np.clip(total, -50, 50)

    assert least_epsilon(run, 200_000) <= 1
    honest = DiscreteLaplace.apply
    monkeypatch.setattr(
        DiscreteLaplace,
        "apply",
        lambda self, counts, sampler: honest(
            DiscreteLaplace(self.epsilon * 4, self.sensitivity), counts, sampler
        ),
    )
    assert least_epsilon(run, 200_000) > 1


def test_test_noise_never_leaves_by_an_answer() -> None:
    """A sampler that is not the system's own marks the receipt, and the door refuses it."""
    allowance = Accountant(Approximate(1, "1e-6")).allow(Approximate(1, "1e-6"), "test")
    exact = ExactCounts(np.array([5]), {}, {})
    found = answer([Question("n", "count")], exact, allowance, sampler=repeatable(1))
    assert not found.receipt.secure
