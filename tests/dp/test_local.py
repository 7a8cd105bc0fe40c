from __future__ import annotations

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from noise import least_epsilon, repeatable

from halfmask.dp.local.randomized_response import CoinResponse, RandomizedResponse
from halfmask.dp.local.rappor import Rappor
from halfmask.dp.local.unary_encoding import UnaryEncoding
from halfmask.errors import InputError, ParameterError


def test_fair_coins_are_ln_3() -> None:
    # tabular-models, example 9
    coins = CoinResponse(Fraction(1, 2))
    assert coins.truth == Fraction(3, 4)
    assert coins.epsilon == pytest.approx(log(3))
    told = np.array([True] * 60 + [False] * 40)
    # x = 2 seen - n / 2 = 2 * 60 - 50 = 70 of 100
    assert coins.estimate(told).values[1] == pytest.approx(0.70)


def test_fair_coins_are_unbiased() -> None:
    coins, sampler = CoinResponse(Fraction(1, 2)), repeatable(1)
    truth = np.arange(20_000) < 6000
    runs = [coins.estimate(coins.tell(truth, sampler)).values[1] for _ in range(60)]
    assert np.mean(runs) == pytest.approx(0.3, abs=0.004)


@pytest.mark.parametrize("values", [2, 5])
def test_response_tells_the_truth_as_often_as_stated(values: int) -> None:
    response = RandomizedResponse(Fraction(1), values)
    told = response.tell(np.zeros(100_000, np.int64), repeatable(2))
    shares = np.bincount(told, minlength=values) / 100_000
    assert shares[0] == pytest.approx(response.truth, abs=0.006)
    assert shares[1:] == pytest.approx([response.other] * (values - 1), abs=0.006)
    assert response.truth / response.other == pytest.approx(exp(1))


@pytest.mark.parametrize(
    "mechanism",
    [
        RandomizedResponse(Fraction(1), 4),
        UnaryEncoding(Fraction(1), 4),
        UnaryEncoding(Fraction(1), 4, "symmetric"),
    ],
    ids=["response", "optimized", "symmetric"],
)
def test_estimates_hit_and_intervals_cover(mechanism) -> None:
    truth = np.repeat(np.arange(4), [500, 1000, 1500, 7000])
    shares = np.array([0.05, 0.1, 0.15, 0.7])
    sampler = repeatable(3)
    found = [mechanism.estimate(mechanism.tell(truth, sampler), 0.9) for _ in range(150)]
    values = np.array([one.values for one in found])
    assert values.mean(axis=0) == pytest.approx(shares, abs=0.012)
    stated = np.array([mechanism.variance(10_000, s) for s in shares])
    assert values.var(axis=0) == pytest.approx(stated, rel=0.45)
    covered = np.mean([(one.low <= shares) & (shares <= one.high) for one in found])
    assert covered > 0.86


@pytest.mark.parametrize("make", [RandomizedResponse, UnaryEncoding])
def test_audit_of_one_person(make) -> None:
    def run_at(epsilon: Fraction):
        def run(with_person: bool, times: int) -> np.ndarray:
            told = make(epsilon, 3).tell(np.full(times, int(with_person)), repeatable(4))
            return told.astype(float) if told.ndim == 1 else told[:, 1] * 2.0 + ~told[:, 0]

        return run

    assert least_epsilon(run_at(Fraction(1)), 60_000) <= 1
    assert least_epsilon(run_at(Fraction(2)), 60_000) > 1


def test_rappor_finds_the_values() -> None:
    rappor, sampler = Rappor(Fraction(4), bits=64), repeatable(5)
    values = ["flu"] * 3000 + ["cold"] * 6000 + ["none"] * 1000
    kept = rappor.remember(values, sampler)
    shares = rappor.estimate(rappor.report(kept, sampler), ["flu", "cold", "none", "gout"])
    assert shares.values == pytest.approx([0.3, 0.6, 0.1, 0.0], abs=0.12)
    truth = np.array([0.3, 0.6, 0.1, 0.0])
    assert ((shares.low - 0.05 <= truth) & (truth <= shares.high + 0.05)).all()


def test_rappor_bits_differ_by_the_stated_exponent() -> None:
    rappor = Rappor(Fraction(2), bits=16, hashes=1, flip=Fraction(0))
    kept = rappor.remember(["x"] * 50_000, repeatable(6))
    own = rappor.positions("x")[0]
    share = kept[:, own].mean()
    assert share / (1 - share) == pytest.approx(exp(1), rel=0.03)


def test_impossible_parameters_are_refused() -> None:
    for make in (
        lambda: RandomizedResponse(Fraction(0)),
        lambda: RandomizedResponse(Fraction(1), 1),
        lambda: CoinResponse(Fraction(1)),
        lambda: UnaryEncoding(Fraction(0), 3),
        lambda: UnaryEncoding(Fraction(1), 1),
        lambda: Rappor(Fraction(0)),
        lambda: Rappor(Fraction(1), bits=2, hashes=2),
        lambda: Rappor(Fraction(1), flip=Fraction(1, 2)),
    ):
        with pytest.raises(ParameterError):
            make()
    with pytest.raises(InputError):
        RandomizedResponse(Fraction(1)).estimate(np.array([], np.int64))
    with pytest.raises(InputError):
        Rappor(Fraction(1)).estimate(np.zeros((0, 128), bool), ["x"])
