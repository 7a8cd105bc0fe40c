"""Comparisons and enclosures against Python's own integers and fractions."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from halfmask.models.exact_comparison import (
    at_most,
    exponential,
    fraction,
    is_below,
    largest,
    log_bounds,
    power_bounds,
)

counts = st.integers(0, 2**60)
ratios = st.one_of(
    st.fractions(min_value=Fraction(1, 10**6), max_value=10**6),
    st.sampled_from([Fraction(10**70 + 1, 3 * 10**70), Fraction(1, 3), Fraction(10**400)]),
)


@given(st.lists(st.tuples(counts, counts), min_size=1, max_size=5), ratios)
@example([(1, 3), (2**58, 3 * 2**58)], Fraction(1, 3))
@example([(2**58, 3 * 2**58), (2**58 + 1, 3 * 2**58)], Fraction(10**70 - 1, 3 * 10**70))
def test_comparisons_are_those_of_fractions(pairs, ratio):
    left = np.array([a for a, _ in pairs], dtype=np.int64)
    right = np.array([b for _, b in pairs], dtype=np.int64)
    assert at_most(left, right, ratio).tolist() == [a <= ratio * b for a, b in pairs]
    assert is_below(left, right, ratio).tolist() == [a < ratio * b for a, b in pairs]
    if right.min() > 0:
        assert largest(left, right) == max(Fraction(a, b) for a, b in pairs)


def test_a_number_is_what_was_written():
    assert fraction(0.1) == Fraction(1, 10)
    assert fraction(0.1 + 0.2) == Fraction("0.30000000000000004")
    assert fraction(Decimal("0.25")) == Fraction(1, 4)
    assert fraction(np.float64(0.5)) == Fraction(1, 2)


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_bounds_enclose_the_logarithm(value):
    low, high = log_bounds(value)
    with localcontext() as context:
        context.prec = 100
        true = (Decimal(value.numerator) / Decimal(value.denominator)).ln()
        assert Decimal(low.numerator) / low.denominator <= true
        assert Decimal(high.numerator) / high.denominator >= true
    assert high - low <= Fraction(1, 10**50)


@pytest.mark.parametrize("text", ["0.0001", "0.5", "1", "2.75", "30"])
def test_bounds_enclose_the_exponential(text):
    low, high = exponential(Fraction(text), (Fraction(1), Fraction(1)))
    with localcontext() as context:
        context.prec = 100
        true = Decimal(text).exp()
        assert Decimal(low.numerator) / low.denominator < true
        assert Decimal(high.numerator) / high.denominator > true
    assert (high - low) / low < Fraction(1, 10**55)


def test_powers_are_exact_where_they_can_be():
    assert power_bounds(Fraction(10), Fraction(2)) == (100, 100)
    low, high = power_bounds(Fraction(4), Fraction(1, 2))
    assert low < 2 < high
    assert float(power_bounds(Fraction(10), Fraction(1, 2))[0]) == math.sqrt(10)
    assert log_bounds(Fraction(1)) == (0, 0)


def test_nothing_is_below_zero():
    some = np.array([0, 1], dtype=np.int64)
    assert is_below(some, some, Fraction(0)).tolist() == [False, False]
    assert largest(some[:0], some[:0]) == 0
