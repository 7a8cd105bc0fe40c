from __future__ import annotations

from fractions import Fraction
from math import exp, expm1

import numpy as np
import pytest
from noise import least_epsilon, repeatable

from halfmask.dp.mechanisms.discrete_laplace import DiscreteLaplace
from halfmask.dp.personal import partitioning, sampling
from halfmask.dp.personal.demands import Demands
from halfmask.errors import ParameterError

# Few cautious people, some in between, most liberal (Jorgensen's 54 / 37 / 9 percent, turned).
EPSILONS = [0.01] * 100 + [0.2] * 900 + [1.0] * 4000


@pytest.fixture(scope="module")
def demands() -> Demands:
    return Demands.of(EPSILONS)


def test_demands_are_rounded_down(demands: Demands) -> None:
    assert Demands.of([0.0129]).steps.tolist() == [12]
    assert demands.smallest == Fraction(1, 100)
    levels, people = demands.histogram()
    assert levels == [Fraction(1, 100), Fraction(1, 5), Fraction(1)]
    assert people.tolist() == [100, 900, 4000]
    with pytest.raises(ParameterError):
        Demands.of([0.0001])


def test_people_are_kept_as_often_as_stated() -> None:
    demands = Demands.of([0.1] * 100_000 + [0.5] * 100_000 + [1.0] * 10)
    stays = sampling.kept(demands, Fraction(1), repeatable(1))
    for part, epsilon in ((stays[:100_000], 0.1), (stays[100_000:200_000], 0.5)):
        assert part.mean() == pytest.approx(expm1(epsilon) / (exp(1) - 1), abs=0.006)
    assert stays[200_000:].all()


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_audit_every_person_has_the_own_epsilon(epsilon: float) -> None:
    """One person with this demand joins a count; the mechanism runs at epsilon 1."""

    def run(with_person: bool, times: int) -> np.ndarray:
        sampler = repeatable(2 + with_person)
        noise = DiscreteLaplace(Fraction(1)).apply(np.zeros(times, np.int64), sampler)
        stays = sampling.kept(Demands.of([epsilon] * times), Fraction(1), sampler)
        return (noise + (stays if with_person else 0)).astype(float)

    assert least_epsilon(run, 400_000) <= epsilon


def test_audit_fails_where_everybody_is_kept() -> None:
    def run(with_person: bool, times: int) -> np.ndarray:
        noise = DiscreteLaplace(Fraction(1)).apply(np.zeros(times, np.int64), repeatable(9))
        return (noise + with_person).astype(float)

    assert least_epsilon(run, 400_000) > 0.2


def _errors(count, demands: Demands, flags: np.ndarray) -> float:
    truth = flags.sum()
    runs = [count(flags, demands, sampler=repeatable(i)).value - truth for i in range(60)]
    return float(np.sqrt(np.mean(np.square(runs))))


@pytest.mark.parametrize("mechanism", [sampling, partitioning], ids=["sampling", "partitioning"])
def test_better_than_the_smallest_epsilon_for_all(mechanism, demands: Demands) -> None:
    flags = np.random.default_rng(1).random(len(EPSILONS)) < 0.3
    smallest = DiscreteLaplace(demands.smallest).variance ** 0.5
    assert smallest == pytest.approx(141, abs=1)
    error = _errors(mechanism.count, demands, flags)
    assert error < smallest / 2


def test_threshold_is_the_best_of_the_candidates(demands: Demands) -> None:
    chosen = sampling.best_threshold(demands)
    flags = np.random.default_rng(2).random(len(EPSILONS)) < 0.3
    errors = {
        level: _errors(
            lambda f, d, sampler, level=level: sampling.count(
                f, d, threshold=level, sampler=sampler
            ),
            demands,
            flags,
        )
        for level in demands.histogram()[0]
    }
    assert errors[chosen] == min(errors.values())


def test_one_demand_is_the_ordinary_count() -> None:
    same = Demands.of([0.5] * 1000)
    assert sampling.best_threshold(same) == Fraction(1, 2)
    assert sampling.kept(same, Fraction(1, 2), repeatable(1)).all()
    assert partitioning.best_cuts(same) == [Fraction(1, 2)]


def test_cuts_follow_the_demands(demands: Demands) -> None:
    assert partitioning.best_cuts(demands) == [Fraction(1, 100), Fraction(1, 5), Fraction(1)]
    # With two groups, joining the 100 cautious to the 900 wastes less than giving up 4000 liberal.
    assert partitioning.best_cuts(demands, groups=2) == [Fraction(1, 100), Fraction(1)]


def test_stated_error_is_about_right(demands: Demands) -> None:
    flags = np.random.default_rng(3).random(len(EPSILONS)) < 0.3
    found = sampling.count(flags, demands, sampler=repeatable(1))
    assert _errors(sampling.count, demands, flags) <= found.variance**0.5
