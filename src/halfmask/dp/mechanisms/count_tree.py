"""All quantiles of one column at once, from noisy counts on a public binary tree of intervals.

Definition: every level of the tree is a histogram with noise; the number of rows below an edge is
the sum of at most one node per level.
Source: Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private histograms
through consistency", 2010; Dwork, Naor, Pitassi, Rothblum, "Continual observation", 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.mechanisms.discrete_laplace import DiscreteLaplace
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from halfmask.dp.budget import Pure
    from halfmask.dp.sampling import Sampler


@dataclass(frozen=True, slots=True)
class CountTree:
    """A tree over ``2**levels`` public intervals; one person has ``sensitivity`` rows.

    Example:
        >>> CountTree(Fraction(1), levels=6).cost
        epsilon = 1
    """

    epsilon: Fraction
    levels: int
    sensitivity: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.levels <= 20:
            raise ParameterError("levels", self.levels, "1 to 20")

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise of each node: a person is counted once per level."""
        return DiscreteLaplace(self.epsilon, self.sensitivity * (self.levels + 1))

    @property
    def cost(self) -> Pure:
        """What one use costs."""
        return self.noise.cost

    @property
    def variance(self) -> float:
        """The variance of the number of rows below an edge, at most."""
        return self.noise.variance * (self.levels + 1)

    def half_width(self, confidence: float) -> float:
        """How far a number of rows below an edge may be off, at all edges together."""
        each = 1 - (1 - confidence) / 2**self.levels
        return NormalDist().inv_cdf((1 + each) / 2) * sqrt(self.variance)

    def apply(self, counts: NDArray[np.int64], sampler: Sampler) -> NDArray[np.int64]:
        """Noisy numbers of rows below each of the ``2**levels + 1`` edges."""
        size = 2**self.levels
        if len(counts) != size:
            raise ParameterError("counts", len(counts), f"{size} intervals")
        below = np.zeros(size + 1, np.int64)
        edges = np.arange(size + 1)
        for level in range(self.levels + 1):
            width = 2**level
            nodes = self.noise.apply(counts.reshape(-1, width).sum(axis=1), sampler)
            used = (edges >> level) & 1 == 1
            below[used] += nodes[(edges[used] >> level) - 1]
        return below


def quantile(
    below: NDArray[np.int64], edges: NDArray[np.float64], share: float, half_width: float
) -> tuple[float, float, float]:
    """The quantile and its interval, read off the noisy numbers of rows below each edge."""
    rising = np.maximum.accumulate(below.astype(np.float64))
    target = share * rising[-1]
    point = int(np.searchsorted(rising, target))
    low = int(np.searchsorted(rising, target - 2 * half_width, side="left"))
    high = int(np.searchsorted(rising, target + 2 * half_width, side="left"))
    last = len(edges) - 1
    return (
        float(edges[min(point, last)]),
        float(edges[max(0, min(low, last) - 1)]),
        float(edges[min(high, last)]),
    )
