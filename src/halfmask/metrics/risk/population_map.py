"""How many people of the population share a person's class: the Poisson model (k-map).

Definition: with the prior 1 / rate a class of f people in the sample holds F in the population with
P(F | f) = C(F - 1, f - 1) p^f (1 - p)^(F - f), where p is the fraction of the population that is in
the sample.
Source: Benedetti and Franconi, "Statistical and technological solutions for controlled data
dissemination", 1998.

Who is alone in the sample is so alone in the population with the chance p, whatever the table looks
like: for tables in which most people are alone the figures are far too low.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.estimate import Estimate, exact, failed

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PRIOR = (
    "The model says at most the share of the population that is in the table, whoever they are."
)


def poisson(frequencies: NDArray[np.int64], fraction: float) -> Estimate:
    """The share of the population who are unique, which is p for everybody alone in the sample."""
    n = int(np.arange(len(frequencies)) @ frequencies)
    alone = float(frequencies[1])
    if alone == 0:
        return failed("Nobody is alone in the table: there is nothing to estimate from.", n)
    spread = math.sqrt(alone * fraction * (1 - fraction)) / n
    found = _interval(alone * fraction / n, spread, n)
    return Estimate(found.value, found.low, found.high, n, trusted=False, reason=_PRIOR)


def poisson_below(
    frequencies: NDArray[np.int64], fraction: float, k: int, *, unique: float = 0.0
) -> Estimate:
    """The share of the table's people whose class holds fewer than ``k`` in the population.

    Args:
        frequencies: [r] classes of the table hold r people.
        fraction: the share of the population that is in the table.
        k: fewer are too few.
        unique: the share of people who are certainly unique; a smaller figure is not trusted.
    """
    n = int(np.arange(len(frequencies)) @ frequencies)
    sizes = np.flatnonzero(frequencies)
    sizes = sizes[sizes < k]
    if not len(sizes):
        return exact(0.0, n, f"Every class of the table holds {k} people already.")
    chances = np.array([_fewer(int(f), k, fraction) for f in sizes])
    value = float((sizes * frequencies[sizes]) @ chances) / n
    squares = frequencies[sizes] * sizes.astype(np.float64) ** 2
    variance = float(squares @ (chances * (1 - chances)))
    found = _interval(value, math.sqrt(variance) / n, n)
    if value >= unique:
        return found
    reason = f"At least {unique:.1%} are unique in the population."
    return Estimate(value, found.low, found.high, n, trusted=False, reason=reason)


def _fewer(f: int, k: int, fraction: float) -> float:
    """P(F < k | f) in the population, given the class's size in the table."""
    return math.fsum(
        math.comb(size - 1, f - 1) * fraction**f * (1 - fraction) ** (size - f)
        for size in range(f, k)
    )


def _interval(value: float, spread: float, n: int) -> Estimate:
    reason = "Where a few classes are very large, more people are rare than this says."
    low, high = max(0.0, value - 1.96 * spread), min(1.0, value + 1.96 * spread)
    return Estimate(value, low, high, n, reason=reason)
