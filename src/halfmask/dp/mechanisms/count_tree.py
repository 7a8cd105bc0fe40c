"""All quantiles of one column at once, from noisy counts on a public tree of intervals.

Definition: every level of the tree is a histogram with noise; where levels say different things,
the least squares count; the number of rows below an edge is the sum of the intervals before it.
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
        return float(self.variances(0.0).max())

    def variances(self, share: float) -> NDArray[np.float64]:
        """Per edge, the variance of (rows below it) - share * (all rows)."""
        sizes = [self.size // self.branching**level for level in range(self.levels)]
        each = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1], axis=1)
        below = self._below(each)
        apart = below - share * below[:, -1:]
        found: NDArray[np.float64] = self.noise.variance * (apart**2).sum(axis=0)
        return found

    def half_width(self, confidence: float) -> float:
        """How far a number of rows below an edge may be off."""
        return NormalDist().inv_cdf((1 + confidence) / 2) * sqrt(self.variance)

    def nodes(self, counts: NDArray[np.int64], sampler: Sampler) -> list[NDArray[np.int64]]:
        """The noisy count of every node, level by level from the intervals up."""
        if counts.shape[-1] != self.size:
            raise ParameterError("counts", counts.shape[-1], f"{self.size} intervals")
        groups = counts.shape[:-1]
        return [
            self.noise.apply(
                counts.reshape(*groups, self.size // width, width).sum(axis=-1), sampler
            )
            for width in (self.branching**level for level in range(self.levels))
        ]

    def apply(self, counts: NDArray[np.int64], sampler: Sampler) -> NDArray[np.float64]:
        """Noisy numbers of rows below each edge, for each group.

        The last axis holds the intervals; axes before it are groups of different rows.
        """
        return self._below([level.astype(np.float64) for level in self.nodes(counts, sampler)])

    def _below(self, nodes: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Rows below each edge, where all levels agree as the least squares have it (Hay)."""
        branching, found = self.branching, [nodes[0]]
        for level in range(1, self.levels):
            wide, narrow = branching ** (level + 1), branching**level
            inside = _by_parent(found[-1], branching).sum(axis=-1)
            mixed = (wide - narrow) * nodes[level] + (narrow - 1) * inside
            found.append(mixed / (wide - 1))
        agreed = found[-1]
        for level in reversed(range(self.levels - 1)):
            children = _by_parent(found[level], branching)
            missing = (agreed - children.sum(axis=-1)) / branching
            agreed = (children + missing[..., None]).reshape(found[level].shape)
        start = np.zeros((*agreed.shape[:-1], 1))
        return np.concatenate([start, agreed.cumsum(axis=-1)], axis=-1)


def _by_parent(nodes: NDArray[np.float64], branching: int) -> NDArray[np.float64]:
    return nodes.reshape(*nodes.shape[:-1], nodes.shape[-1] // branching, branching)


def quantile(
    below: NDArray[np.float64],
    edges: NDArray[np.float64],
    share: float,
    reach: NDArray[np.float64],
) -> tuple[float, float, float]:
    """The quantile and its interval, read off the noisy numbers of rows below each edge.

    Args:
        below: noisy numbers of rows below each edge.
        edges: the public edges.
        share: which quantile.
        reach: per edge how far ``below`` less the wanted number of rows may be off.
    """
    apart = below - share * below[-1]
    # Rows below an edge do not fall from edge to edge: of the noisy ones, the best rising curve.
    point = int(np.searchsorted(_rising(apart), 0.0))
    low = int(np.searchsorted(_rising(apart + reach), 0.0))
    high = int(np.searchsorted(_rising(apart - reach), 0.0))
    last = len(edges) - 1
    return (
        float(edges[min(point, last)]),
        float(edges[max(0, min(low, last) - 1)]),
        float(edges[min(high, last)]),
    )


def _rising(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Halfway between the least curve above that never falls, and the largest below."""
    above = np.maximum.accumulate(values)
    beneath = np.minimum.accumulate(values[::-1])[::-1]
    found: NDArray[np.float64] = (above + beneath) / 2
    return found
