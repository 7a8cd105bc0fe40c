from __future__ import annotations

from fractions import Fraction
from math import exp, log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfmask.dp.budget import (
    Approximate,
    Concentrated,
    Pure,
    as_kind,
    budget,
    concentrated_within,
    delta_of,
    epsilon_of,
    parallel,
    read_budget,
    total,
)
from halfmask.errors import ParameterError

epsilons = st.fractions(min_value=0, max_value=10)


def test_floats_are_read_as_printed() -> None:
    assert Pure(0.1) + Pure(0.2) == Pure("0.3")
    assert sum((Pure(0.1) for _ in range(10)), Pure(0)) == Pure(1)


def test_k_runs_cost_k_epsilon_and_disjoint_people_the_maximum() -> None:
    # tabular-models, example 11: two randomized responses, and disjoint data
    ln3 = Fraction(str(log(3)))
    assert total([Pure(ln3)] * 2, Pure(9)) == Pure(2 * ln3)
    assert parallel([Pure(1), Pure(3), Pure(2)]) == Pure(3)


@given(epsilons, epsilons, epsilons)
def test_addition_is_a_commutative_monoid(a: Fraction, b: Fraction, c: Fraction) -> None:
    x, y, z = Pure(a), Pure(b), Pure(c)
    assert x + y == y + x
    assert (x + y) + z == x + (y + z)
    assert x + Pure(0) == x
    assert x <= x + y


def test_order_is_by_every_part() -> None:
    small, wide = Approximate(1, "1e-6"), Approximate(2, "1e-9")
    assert not small <= wide
    assert not wide <= small
    assert Approximate(1, "1e-9") < small
    assert small > Approximate(1, "1e-9")


def test_kinds_do_not_mix_silently() -> None:
    with pytest.raises(ParameterError, match="one kind"):
        Pure(1) + Concentrated(1)
    with pytest.raises(ParameterError):
        as_kind(Concentrated(1), Pure(1))
    assert as_kind(Pure(2), Concentrated(1)) == Concentrated(2)
    assert as_kind(Pure(2), Approximate(1, 0)) == Approximate(2, 0)


def test_what_is_left_is_never_negative() -> None:
    assert Pure(1) - Pure(3) == Pure(0)


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), "x", None])
def test_impossible_numbers_are_refused(bad: object) -> None:
    with pytest.raises(ParameterError):
        Pure(bad)  # type: ignore[arg-type]


def test_user_budget() -> None:
    assert budget(1) == Pure(1)
    assert budget(1, 1e-9) == Approximate(1, "1e-9")
    for bad in (0, "0"):
        with pytest.raises(ParameterError):
            budget(bad)
    with pytest.raises(ParameterError):
        budget(1, 1)


def test_round_trip_through_the_ledgers_text() -> None:
    for one in (Pure("1/3"), Approximate("0.7", "1e-9"), Concentrated("2/7")):
        assert read_budget(one.to_dict()) == one


def test_zcdp_conversion_against_the_gaussian_mechanism() -> None:
    """The exact delta of a Gaussian with rho = 1/2 at epsilon = 3, by its normal distribution."""
    from statistics import NormalDist

    rho, epsilon = 0.5, 3.0
    sigma = 1 / sqrt(2 * rho)
    phi = NormalDist().cdf
    exact = phi(0.5 / sigma - epsilon * sigma) - exp(epsilon) * phi(-0.5 / sigma - epsilon * sigma)
    assert exact <= delta_of(rho, epsilon) <= 6 * exact


def test_conversions_are_careful_and_tight() -> None:
    promise = Approximate(1, "1e-9")
    rho = concentrated_within(promise)
    assert delta_of(float(rho.rho), 1.0) <= 1e-9
    assert delta_of(float(rho.rho) * 1.001, 1.0) > 1e-9
    # Never worse than the classic rho + 2 sqrt(rho log(1 / delta)).
    classic = (sqrt(log(1e9) + 1) - sqrt(log(1e9))) ** 2
    assert float(rho.rho) > classic
    assert epsilon_of(rho, "1e-9") == pytest.approx(1, rel=1e-6)
