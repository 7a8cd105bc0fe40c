"""Whether columns tell more of each other than chance does.

Definition: the mutual information of two columns against that of the same columns shuffled. That of
    shuffled columns follows a scaled chi-square law, whose scale and degrees come from their mean
    and variance; columns depend on each other where the chance of as much is below one in a
    thousand, over all pairs that were tried.
Source: Agresti, "Categorical data analysis", 2013, ch. 3; own: the law fitted to shuffled columns,
    since many values with few rows each have another one than the tables print.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

ROWS = 20_000  # looked at, drawn evenly
SHUFFLES = 20
CHANCE = 1e-3


def dependent_columns(codes: Mapping[str, NDArray[np.int32]], *, seed: int = 0) -> set[str]:
    """The columns that depend on at least one of the others.

    Example:
        >>> half = np.repeat([0, 1], 200)
        >>> other = np.tile([0, 1], 200)
        >>> sorted(dependent_columns({"a": half, "b": half, "c": other}))
        ['a', 'b']
    """
    random = np.random.default_rng(seed)
    rows = len(next(iter(codes.values()), np.empty(0)))
    chosen = np.arange(rows) if rows <= ROWS else random.choice(rows, ROWS, replace=False)
    known = {n: np.unique(one[chosen], return_inverse=True)[1] for n, one in codes.items()}
    pairs = list(combinations(known, 2))
    out: set[str] = set()
    for one, two in pairs:
        if {one, two} <= out:
            continue
        if _chance(known[one].reshape(-1), known[two].reshape(-1), random) * len(pairs) < CHANCE:
            out |= {one, two}
    return out


def _chance(one: NDArray[np.int64], two: NDArray[np.int64], random: np.random.Generator) -> float:
    """The chance that columns without any dependence tell as much of each other."""
    from scipy.stats import chi2

    found = _information(one, two)
    shuffled = np.array([_information(one, random.permutation(two)) for _ in range(SHUFFLES)])
    mean, variance = float(shuffled.mean()), float(shuffled.var(ddof=1))
    if mean <= 0 or variance <= 0:
        return 1.0 if found <= mean else 0.0
    scale = variance / (2 * mean)
    return float(chi2.sf(found / scale, mean / scale))


def _information(one: NDArray[np.int64], two: NDArray[np.int64]) -> float:
    """The sum of n log n over the cells, which the mutual information rises with."""
    width = int(two.max(initial=0)) + 1
    cells = np.unique(one * width + two, return_counts=True)[1].astype(np.float64)
    sides = [np.bincount(side).astype(np.float64) for side in (one, two)]
    apart = sum(float((s[s > 0] * np.log(s[s > 0])).sum()) for s in sides)
    total = len(one) * float(np.log(max(len(one), 1)))
    return 2 * max(float((cells * np.log(cells)).sum()) + total - apart, 0.0)
