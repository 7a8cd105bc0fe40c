"""The entropy of each class against a threshold, decided exactly.

With counts c_1 ... c_m and n their sum, H >= ln l means n^n >= l^n * c_1^c_1 * ... * c_m^c_m.
Floats decide classes that lie clear of the threshold; integers decide the others, after dividing
the counts by their greatest common divisor (which leaves H as it is).
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from halfmask.models.statistics import reduce

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from halfmask.table.histogram import Histogram

_INTEGERS_UP_TO = 200_000


def at_least(values: Histogram, least: Fraction) -> NDArray[np.bool_]:
    """Tell for each class whether its entropy is at least ln ``least``."""
    counts, starts = values.counts, values.starts
    lengths = np.diff(starts)
    n = reduce(np.add, counts, starts).astype(np.float64)
    scale = n * np.log(np.maximum(n, 1.0))
    spread = scale - reduce(np.add, counts * np.log(counts), starts)
    wanted = n * math.log(least)
    # Each of the (lengths + 3) terms is at most scale + wanted and carries a rounding of the
    # logarithm (1 ulp), of the product and of the running sum: under 4 * 2**-53 each, twice safe.
    margin = (lengths + 3) * 2.0**-50 * (scale + wanted)
    result = np.asarray(spread >= wanted)
    close = np.abs(spread - wanted) <= margin
    if close.any():
        _settle(values, least, np.flatnonzero(close), result)
    return result


def effective(values: Histogram) -> float:
    """The lowest exp(H) of all classes: the l that they satisfy."""
    counts, starts = values.counts, values.starts
    n = reduce(np.add, counts, starts).astype(np.float64)
    h = np.log(n) - reduce(np.add, counts * np.log(counts), starts) / n
    lowest = int(np.argmin(h))
    inside = counts[starts[lowest] : starts[lowest + 1]]
    if inside.min() == inside.max():
        return float(len(inside))
    return float(np.exp(h[lowest]))


def _settle(
    values: Histogram, least: Fraction, close: NDArray[np.int64], result: NDArray[np.bool_]
) -> None:
    """Decide the classes of ``close``: equal counts at a glance, the others by integers."""
    counts, starts = values.counts, values.starts
    lengths = np.diff(starts)
    even = reduce(np.maximum, counts, starts) == reduce(np.minimum, counts, starts)
    result[close] = lengths[close] >= math.ceil(least)
    for i in close[~even[close]]:
        inside = np.sort(counts[starts[i] : starts[i + 1]])
        result[i] = _decide(tuple(int(c) for c in inside), least)


@lru_cache(maxsize=4096)
def _decide(counts: tuple[int, ...], least: Fraction) -> bool:
    divisor = math.gcd(*counts)
    counts = tuple(c // divisor for c in counts)
    n = sum(counts)
    difference, error = _difference(counts, n, least)
    if abs(difference) > error:
        return difference > 0
    if n > _INTEGERS_UP_TO:
        return False  # equal to 70 digits and too large to write out: not proven, so not promised
    product = math.prod(c**c for c in counts)
    return bool((n * least.denominator) ** n >= least.numerator**n * product)


def _difference(counts: tuple[int, ...], n: int, least: Fraction) -> tuple[Decimal, Decimal]:
    """The logarithm of left over right side to 80 digits, and a bound of its error."""
    with localcontext() as context:
        context.prec = 80
        terms = [c * Decimal(c).ln() for c in counts]
        left = n * Decimal(n * least.denominator).ln()
        right = n * Decimal(least.numerator).ln()
        error = (left + right + sum(terms)) * (len(terms) + 4) * Decimal(10) ** -78
        return left - right - sum(terms), error
