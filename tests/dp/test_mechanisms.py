"""Every mechanism: stated variance and cost, the right scale, and an audit that can fail."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from math import exp, expm1, log

import numpy as np
import pytest
from noise import least_epsilon, repeatable

from halfmask.dp.budget import Approximate, Concentrated, Pure
from halfmask.dp.mechanisms import (
    CountTree,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    RandomizedResponse,
    StableGroups,
    quantile,
)
from halfmask.errors import ParameterError

COUNTERS = [
    DiscreteLaplace(Fraction(1)),
    DiscreteLaplace(Fraction(1, 10), sensitivity=3),
    DiscreteGaussian(Fraction(1, 50)),
    DiscreteGaussian(Fraction(1, 8), sensitivity=4),
]


@pytest.mark.parametrize("mechanism", COUNTERS, ids=repr)
def test_variance_and_bias_are_as_stated(mechanism: DiscreteLaplace | DiscreteGaussian) -> None:
    noise = mechanism.apply(np.zeros(200_000, np.int64), repeatable(1))
    assert noise.var() == pytest.approx(mechanism.variance, rel=0.03)
    assert abs(noise.mean()) < 5 * (mechanism.variance / 200_000) ** 0.5
    assert noise.var() != pytest.approx(mechanism.variance * 1.69, rel=0.03)
    assert noise.var() != pytest.approx(mechanism.variance / 1.69, rel=0.03)


@pytest.mark.parametrize("mechanism", COUNTERS, ids=repr)
def test_half_width_covers(mechanism: DiscreteLaplace | DiscreteGaussian) -> None:
    noise = mechanism.apply(np.zeros(100_000, np.int64), repeatable(2))
    covered = (np.abs(noise) <= mechanism.half_width(0.9)).mean()
    assert 0.895 <= covered <= 0.96


def test_costs() -> None:
    assert DiscreteLaplace(Fraction(1, 3)).cost == Pure("1/3")
    assert DiscreteGaussian(Fraction(1, 3)).cost == Concentrated("1/3")
    assert Exponential(Fraction(2)).concentrated == Concentrated("1/2")
    assert StableGroups(Fraction(1), Fraction(1, 10**6)).cost == Approximate(1, "1e-6")
    assert CountTree(Fraction(1), 4).cost == Pure(1)


def _counted(mechanism: DiscreteLaplace | DiscreteGaussian):
    def run(with_person: bool, times: int) -> np.ndarray:
        sampler = repeatable(3 + with_person)
        return mechanism.apply(np.full(times, 10 + with_person), sampler).astype(float)

    return run


def test_audit_of_discrete_laplace() -> None:
    assert least_epsilon(_counted(DiscreteLaplace(Fraction(1))), 200_000) <= 1
    # It must be able to see: a broken scale, and nearly the whole of epsilon.
    assert least_epsilon(_counted(DiscreteLaplace(Fraction(1))), 200_000) > 0.8
    assert least_epsilon(_counted(DiscreteLaplace(Fraction(2))), 200_000) > 1.3


def test_audit_of_discrete_gaussian() -> None:
    """rho = 1/8 is (epsilon, delta) = (1.94, 1e-3); a doubled budget is not."""
    from halfmask.dp.budget import epsilon_of

    promised = epsilon_of(Concentrated("1/8"), "1e-3")
    assert least_epsilon(_counted(DiscreteGaussian(Fraction(1, 8))), 200_000, 1e-3) <= promised
    assert least_epsilon(_counted(DiscreteGaussian(Fraction(1))), 200_000, 1e-3) > promised


def test_audit_of_choices() -> None:
    def run_at(epsilon: Fraction):
        def run(with_person: bool, times: int) -> np.ndarray:
            sampler = repeatable(5 + with_person)
            scores = np.array([1, 0]) if with_person else np.array([0, 1])
            return np.array(
                [Exponential(epsilon).choose(scores, sampler) for _ in range(times)], float
            )

        return run

    assert least_epsilon(run_at(Fraction(1)), 1200) <= 1
    assert least_epsilon(run_at(Fraction(3)), 1200) > 1


def test_exponential_shortfall_holds() -> None:
    mechanism, scores, sampler = Exponential(Fraction(1)), np.arange(50), repeatable(9)
    reach = mechanism.shortfall(50, 0.9)
    picks = [mechanism.choose(scores, sampler) for _ in range(500)]
    assert np.mean([49 - p <= reach for p in picks]) >= 0.9


def test_nationality_example() -> None:
    # coclustering.md 4: weight exp(epsilon K / 2) with counts K
    counts, epsilon = np.array([5, 3, 2, 0]), Fraction(1)
    sampler = repeatable(10)
    picks = [Exponential(epsilon).choose(counts, sampler) for _ in range(1500)]
    weights = np.exp(counts / 2)
    assert np.bincount(picks) / 1500 == pytest.approx(weights / weights.sum(), abs=0.03)


def test_stable_groups_hide_a_lonely_person() -> None:
    mechanism = StableGroups(Fraction(1), Fraction(1, 100))
    # The chance that a group of one passes is at most delta, and close to it.
    a = exp(-1)
    chance = a ** (mechanism.threshold - 1) / (1 + a)
    assert chance <= 0.01 < a ** (mechanism.threshold - 2) / (1 + a)
    _, shown = mechanism.apply(np.ones(200_000, np.int64), repeatable(11))
    assert shown.mean() == pytest.approx(chance, rel=0.1)
    _, shown = mechanism.apply(np.zeros(1000, np.int64), repeatable(12))
    assert not shown.any()


def test_stable_groups_count_several_rows_per_person() -> None:
    one = StableGroups(Fraction(1), Fraction(1, 10**6))
    three = StableGroups(Fraction(1), Fraction(1, 10**6), sensitivity=3)
    assert three.threshold > 3 * (one.threshold - 1)


def test_count_tree_finds_quantiles() -> None:
    counts = np.full(64, 100, np.int64)
    edges = np.linspace(0, 64, 65)
    tree = CountTree(Fraction(1), levels=3, branching=4)
    below = tree.apply(counts, repeatable(13))
    assert below.tolist() == pytest.approx((np.arange(65) * 100).tolist(), abs=400)
    value, low, high = quantile(below, edges, 0.5, tree.half_width(0.95))
    assert low <= 32 <= high
    assert value == pytest.approx(32, abs=3)
    assert high - low < 20


def test_count_tree_variance_is_stated() -> None:
    tree = CountTree(Fraction(1), levels=2, branching=4)
    runs = tree.apply(np.zeros((1000, 16), np.int64), repeatable(0))
    # Least squares: an upper node has 4/5 of its own variance, l of its four children
    # l (5 - l) / 5. Edge 6 is one upper node and two children of the next; edge 16 is four nodes.
    assert runs[:, 6].var() == pytest.approx((0.8 + 1.2) * tree.noise.variance, rel=0.2)
    assert runs[:, 16].var() == pytest.approx(3.2 * tree.noise.variance, rel=0.2)
    assert tree.variances(0.0)[[6, 16]] == pytest.approx(np.array([2, 3.2]) * tree.noise.variance)
    # Half of all rows: three upper nodes and the two children that are not below count against it.
    assert tree.variances(0.5)[6] == pytest.approx(
        (0.25 * 0.8 * 3 + 1.2 - 0.4 + 0.25 * 0.8) * tree.noise.variance
    )


def test_count_tree_adds_up_without_noise(monkeypatch) -> None:
    monkeypatch.setattr(DiscreteLaplace, "apply", lambda self, counts, sampler: counts)
    counts = np.random.default_rng(1).integers(0, 9, (3, 64))
    below = CountTree(Fraction(1), levels=3, branching=4).apply(counts, repeatable(1))
    assert (below[:, 1:] == counts.cumsum(axis=1)).all()
    assert (below[:, 0] == 0).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: DiscreteLaplace(Fraction(0)),
        lambda: DiscreteLaplace(Fraction(1), sensitivity=0),
        lambda: DiscreteGaussian(Fraction(0)),
        lambda: DiscreteGaussian(Fraction(1), sensitivity=0),
        lambda: Exponential(Fraction(0)),
        lambda: Exponential(Fraction(1), sensitivity=0),
        lambda: RandomizedResponse(Fraction(0)),
        lambda: RandomizedResponse(Fraction(1, 10**13), 1 << 20),
        lambda: RandomizedResponse(Fraction(1), 1),
        lambda: StableGroups(Fraction(1), Fraction(0)),
        lambda: CountTree(Fraction(1), 0),
        lambda: CountTree(Fraction(1), 2).apply(np.zeros(3, np.int64), repeatable(1)),
    ],
)
def test_impossible_parameters_are_refused(make) -> None:
    with pytest.raises(ParameterError):
        make()


def test_awkward_rates_are_rounded_down_only() -> None:
    tiny = Fraction(1, 2**40)
    picks = [Exponential(tiny).choose(np.array([0, 9]), repeatable(i)) for i in range(200)]
    assert 60 < sum(picks) < 140


@pytest.mark.parametrize("values", [2, 5])
def test_response_tells_the_truth_as_often_as_stated(values: int) -> None:
    response = RandomizedResponse(Fraction(1), values)
    told = response.tell(np.zeros(100_000, np.int64), repeatable(2))
    shares = np.bincount(told, minlength=values) / 100_000
    assert shares[0] == pytest.approx(float(response.truth), abs=0.006)
    assert shares[1:] == pytest.approx([float(response.other)] * (values - 1), abs=0.006)


@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 10**9), Fraction(1, 10), Fraction(1), Fraction(20)]
)
@pytest.mark.parametrize("values", [2, 4, 1000, 1 << 20])
def test_response_is_e_to_the_epsilon_times_as_likely_and_never_more(
    epsilon: Fraction, values: int
) -> None:
    response = RandomizedResponse(epsilon, values)
    with localcontext(prec=60):
        bound = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
    ratio = response.truth / response.other
    assert 1 < ratio <= Fraction(bound)
    assert float(ratio) == pytest.approx(float(bound), rel=1e-9)
    expected = (float(bound) + values - 1) / expm1(float(epsilon))
    assert response.weight == pytest.approx(expected, rel=1e-3)


def test_two_fair_coins_are_ln_3() -> None:
    # tabular-models, example 9: heads, tell the truth; tails, tell what the second coin shows.
    coins = RandomizedResponse(Fraction(log(3)))
    assert float(coins.truth) == pytest.approx(3 / 4)
    assert coins.weight == pytest.approx(2)
    # x = 2 seen - n / 2 = 2 * 60 - 50 = 70 of 100
    assert coins.weight * 60 - (coins.weight * 100 - 100) / 2 == pytest.approx(70)
