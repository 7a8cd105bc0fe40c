"""Code lengths that the criterion is made of, in natural logarithms.

Definition: log B(V, J) with B(V, J) = sum of S2(V, i) for i = 1..J, S2 = Stirling numbers of the
    second kind; L(n) = log 2.86511 + log 2 * log2*(n), log2*(n) = log2 n + log2 log2 n + ...
Source: Boullé, "Data grid models for preparation and modeling in supervised learning", 2011;
    Rissanen, "A universal prior for integers", 1983.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

HUGE_GRID = 2**30  # above it the count of compositions is approximated, as Khiops does
_TAIL = 20  # the alternating series of 1/e is exact in a double after so many terms


@lru_cache(maxsize=4)
def log_factorials(limit: int) -> NDArray[np.float64]:
    """Log n! for n = 0..limit."""
    table = np.zeros(limit + 1)
    small = min(limit, 255)
    table[1 : small + 1] = [math.lgamma(n + 1.0) for n in range(1, small + 1)]
    if limit > small:  # Stirling's series: the first term left out is below 1e-17 from 256 on
        n = np.arange(small + 1, limit + 1, dtype=np.float64)
        table[small + 1 :] = (
            n * np.log(n) - n + 0.5 * np.log(2 * np.pi * n) + 1 / (12 * n) - 1 / (360 * n**3)
        )
    table.flags.writeable = False
    return table


@lru_cache(maxsize=32)
def log_partitions(values: int, limit: int) -> NDArray[np.float64]:
    """Log B(values, J) for J = 0..limit (J = 0 gives minus infinity).

    B(V, J) = sum over i of i^V / i! * D(J - i), D(m) = sum over j <= m of (-1)^j / j!; all terms
    are at least 0, so that the sum is stable.
    """
    i = np.arange(1, limit + 1, dtype=np.float64)
    terms = values * np.log(i) - log_factorials(limit)[1:]
    signs = np.array([(-1) ** j / math.factorial(j) for j in range(_TAIL + 1)])
    derangements = np.maximum(np.cumsum(signs), 0.0)
    peak = np.maximum.accumulate(terms)
    total = np.zeros(limit)
    for lag in range(min(_TAIL, limit)):
        shifted = terms[: limit - lag] - peak[lag:]
        total[lag:] += derangements[lag] * np.exp(shifted)
    if limit > _TAIL:
        settled = np.logaddexp.accumulate(terms)[: limit - _TAIL]
        total[_TAIL:] += math.exp(-1.0) * np.exp(settled - peak[_TAIL:])
    out = np.concatenate([[-np.inf], peak + np.log(total)])
    # B(V, J) does not grow beyond J = V: all partitions are counted
    out[values:] = out[min(values, limit)]
    out.flags.writeable = False
    return np.asarray(out)


def log_compositions(total: int, cells: float) -> float:
    """Log C(total + cells - 1, cells - 1): in how many ways counts can be spread over cells."""
    if cells <= 1:
        return 0.0
    if cells > HUGE_GRID:
        return total * math.log(cells) - math.lgamma(total + 1.0)
    return math.lgamma(total + cells) - math.lgamma(cells) - math.lgamma(total + 1.0)


def log_star(n: int) -> float:
    """log2*(n): the iterated binary logarithm, positive terms only."""
    total, term = 0.0, math.log2(n) if n > 1 else 0.0
    while term > 0:
        total += term
        term = math.log2(term)
    return total


def universal(n: int) -> float:
    """The code length of a positive integer without bound."""
    return math.log(2.86511) + math.log(2) * log_star(n)


@lru_cache(maxsize=64)
def _star_mass(bound: int) -> float:
    """Log of the sum of 2^-log2*(i) for i = 1..bound."""
    i = np.arange(1, bound + 1, dtype=np.float64)
    total = np.zeros(bound)
    term = np.log2(i)
    while (positive := term > 0).any():
        total[positive] += term[positive]
        term = np.log2(np.where(positive, term, 1.0))
    return float(np.log(np.exp2(-total).sum()))


def universal_bounded(n: int, bound: int) -> float:
    """The code length of an integer in 1..bound."""
    return _star_mass(max(bound, 1)) + math.log(2) * log_star(n)
