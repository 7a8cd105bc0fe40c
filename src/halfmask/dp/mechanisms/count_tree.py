"""All quantiles of one column at once, from noisy counts on a public tree of intervals.

Definition: every level of the tree is a histogram with noise; the number of rows below an edge is
the sum of the nodes before it, at most ``branching - 1`` a level.
Source: Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private histograms
through consistency", 2010; Qardaji, Yang, Li, "Understanding hierarchical methods for
differentially private histograms", 2013 (sixteen branches: fewer levels, less noise in each).
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
    """A tree over ``branching**levels`` public intervals; one person has ``sensitivity`` rows.

    Example:
        >>> CountTree(Fraction(1), levels=2).cost
        epsilon = 1
    """

    epsilon: Fraction
    levels: int
    sensitivity: int = 1
    branching: int = 16

    def __post_init__(self) -> None:
        if self.branching < 2 or self.levels < 1 or self.size > 1 << 20:
            raise ParameterError("levels", self.levels, "1 or more, at most 2**20 intervals")

    @property
    def size(self) -> int:
        """How many intervals there are."""
        return int(self.branching**self.levels)

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise of each node: a person is counted once per level."""
        return DiscreteLaplace(self.epsilon, self.sensitivity * self.levels)

    @property
    def cost(self) -> Pure:
        """What one use costs."""
        return self.noise.cost

    @property
    def variance(self) -> float:
        """The variance of the number of rows below an edge, at most."""
        return self.noise.variance * max(self.branching, self.levels * (self.branching - 1))

    def half_width(self, confidence: float) -> float:
        """How far a number of rows below an edge may be off, at all edges together."""
        each = 1 - (1 - confidence) / self.size
        return NormalDist().inv_cdf((1 + each) / 2) * sqrt(self.variance)

    def apply(self, counts: NDArray[np.int64], sampler: Sampler) -> NDArray[np.int64]:
        """Noisy numbers of rows below each edge, for each group.

        The last axis holds the intervals; axes before it are groups of different rows.
        """
        if counts.shape[-1] != self.size:
            raise ParameterError("counts", counts.shape[-1], f"{self.size} intervals")
        groups = counts.shape[:-1]
        below = np.zeros((*groups, self.size + 1), np.int64)
        edges = np.arange(self.size + 1)
        for level in range(self.levels):
            width = self.branching**level
            nodes = self.noise.apply(counts.reshape(*groups, -1, width).sum(axis=-1), sampler)
            sums = np.concatenate([np.zeros((*groups, 1), np.int64), nodes.cumsum(axis=-1)], -1)
            # The nodes of this level between the last edge of the level above and this edge.
            above = width * self.branching
            start = edges // above * above if level < self.levels - 1 else np.zeros_like(edges)
            below += sums[..., edges // width] - sums[..., start // width]
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
