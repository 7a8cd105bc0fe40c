"""Comparisons that a guarantee hangs on, decided exactly on whole arrays.

A parameter is the decimal number that the caller wrote (``0.1`` is one tenth), a count is an
integer. Machine integers decide where they suffice; else floats decide what lies clear of the
threshold by more than their error, and Python's integers decide the rest.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ParameterNumber = int | float | Fraction | Decimal

SAFE = 2**62  # products below it fit into 64 bits, and so does the sum of two
# Counts, one product and one quotient: fewer than 16 roundings of 2**-53 each.
_MARGIN = 2.0**-48
_DIGITS = 60
HUGE = Fraction(2**256)  # above every quotient of counts


@lru_cache(maxsize=1024, typed=True)
@lru_cache(maxsize=1024, typed=True)
def fraction(value: ParameterNumber) -> Fraction:
    """The number as it was written: ``0.1`` is one tenth."""
    if isinstance(value, Rational):
        return Fraction(value.numerator, value.denominator)
    return Fraction(str(value))


def at_most(
    left: NDArray[np.int64], right: NDArray[np.int64], ratio: Fraction
) -> NDArray[np.bool_]:
    """Tell where ``left <= ratio * right``; both hold integers that are not negative."""
    num, den = ratio.numerator, ratio.denominator
    if int(left.max(initial=1)) * den < SAFE and int(right.max(initial=1)) * num < SAFE:
        return np.asarray(left * den <= right * num)
    x, y = left.astype(np.float64), right.astype(np.float64) * float(min(ratio, HUGE))
    result = np.asarray(x <= y)
    for i in np.flatnonzero(np.abs(x - y) <= _MARGIN * (x + y)):
        result[i] = int(left[i]) * den <= int(right[i]) * num
    return result


def is_below(
    left: NDArray[np.int64], right: NDArray[np.int64], ratio: Fraction
) -> NDArray[np.bool_]:
    """Tell where ``left < ratio * right``; both hold integers that are not negative."""
    if ratio == 0:
        return np.zeros(len(left), dtype=np.bool_)
    return ~at_most(right, left, 1 / ratio)


def largest(left: NDArray[np.int64], right: NDArray[np.int64]) -> Fraction:
    """The largest ``left / right``, exactly; 0 where there is none."""
    if len(left) == 0:
        return Fraction(0)
    quotient = left.astype(np.float64) / right.astype(np.float64)
    top = quotient.max()
    near = np.flatnonzero(quotient >= top - _MARGIN * abs(top))
    pairs = {(int(left[i]), int(right[i])) for i in near}
    return max(Fraction(a, b) for a, b in pairs)


def power_bounds(base: Fraction, exponent: Fraction) -> tuple[Fraction, Fraction]:
    """A lower and an upper bound of ``base ** exponent``, 55 digits apart or closer."""
    if exponent.denominator == 1 and abs(exponent.numerator) <= 64:
        value = base**exponent.numerator
        return value, value
    return exponential(exponent, log_bounds(base))


def exponential(factor: Fraction, exponent: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    """Bounds of ``exp(factor * x)`` for every ``x`` between two bounds; ``factor`` >= 0."""
    with localcontext() as context:
        context.prec = _DIGITS
        context.Emin, context.Emax = -999_999, 999_999
        low, high = (factor * bound for bound in exponent)
        return (
            Fraction(_decimal(low).next_minus().exp().next_minus()),
            Fraction(_decimal(high).next_plus().exp().next_plus()),
        )


def log_bounds(value: Fraction) -> tuple[Fraction, Fraction]:
    """A lower and an upper bound of the natural logarithm of ``value``."""
    if value == 1:
        return Fraction(0), Fraction(0)
    with localcontext() as context:
        context.prec = _DIGITS
        number = _decimal(value)
        return (
            Fraction(number.next_minus().ln().next_minus()),
            Fraction(number.next_plus().ln().next_plus()),
        )


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
