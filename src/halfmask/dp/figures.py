"""From noisy vectors to the figures of an answer, each with an interval; nothing exact is seen.

Counts have the exact quantiles of their noise. What is computed from several vectors (means,
spreads, sums around a center) has the interval of the figure over what the exact vectors can have
been: the noisy ones less noise of their known distribution, at evenly spread points instead of
draws. For a mean this is Fieller's interval. It is post-processing and costs nothing.
Source: Fieller, "Some problems in interval estimation", 1954; Roberts, "The unreasonable
effectiveness of quasirandom sequences", 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.mechanisms.count_tree import CountTree, quantile
from halfmask.dp.mechanisms.stable_groups import StableGroups
from halfmask.dp.questions import STEPS, Question, Scale

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.dp.mechanisms.discrete_gaussian import DiscreteGaussian
    from halfmask.dp.mechanisms.discrete_laplace import DiscreteLaplace

    Floats = NDArray[np.float64]
    Mechanism = StableGroups | CountTree | DiscreteLaplace | DiscreteGaussian

_POINTS = 2048
_FEWEST = 256  # points, where there are very many groups
_CELLS = 1 << 22  # groups times points at a time
_ROOT = 1.2207440846057596  # of x**4 = x + 1: steps that fill three dimensions evenly


@dataclass(frozen=True, slots=True, eq=False)
class Noisy:
    """A noisy vector: the weighted sum of one or several measured ones, and what is in it.

    Attributes:
        values: one per group; for a tree groups x edges.
        noise: the weights and the mechanisms that were added up.
        mixture: the variance per counted row where only some people were read, weighted up; 0: all.
    """

    values: Floats
    noise: tuple[tuple[float, Mechanism], ...]
    mixture: float = 0.0

    def plus(self, other: Noisy | None) -> Noisy:
        """Both vectors added up."""
        if other is None:
            return self
        return Noisy(other.values + self.values, (*other.noise, *self.noise), self.mixture)

    def spread(self, confidence: float) -> tuple[float, float]:
        """(low, high): the noise is from -low to high with this confidence."""
        if len(self.noise) == 1:
            weight, mechanism = self.noise[0]
            low, high = _plain(mechanism).spread(confidence)
            return weight * low, weight * high
        low, high = np.quantile(self.table(_POINTS), [(1 - confidence) / 2, (1 + confidence) / 2])
        return -float(low), float(high)

    def rank(self, share: float, confidence: float) -> Floats:
        """Of a tree, per edge how far the rows below it less a share of all rows may be off."""
        trees = [(w, tree) for w, tree in self.noise if isinstance(tree, CountTree)]
        variances = np.sum([w**2 * tree.variances(share) for w, tree in trees], axis=0)
        return np.asarray(NormalDist().inv_cdf((1 + confidence) / 2) * np.sqrt(variances))

    def table(self, points: int) -> Floats:
        """Evenly spread, equally likely values of the noise, ascending."""
        chances = (np.arange(points) + 0.5) / points
        found = np.zeros(points)
        for place, (weight, mechanism) in enumerate(self.noise):
            # Each part in another order, so that their sum is that of independent parts.
            order = np.argsort(_points(points, place), kind="stable")
            found += weight * _plain(mechanism).quantiles(chances)[order]
        return np.sort(found)


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """Noisy figures of one question, one per group, each with its interval."""

    name: str
    values: Floats
    low: Floats
    high: Floats


def figure(
    question: Question, counted: str, noisy: Mapping[str, Noisy], confidence: float
) -> Figure:
    """The figures of ``question``; ``counted`` names the vector that counts its values."""
    if question.scale is None or question.kind == "count":
        return _count(question.name, noisy[counted], confidence)
    if question.kind == "quantile":
        return _quantile(question, question.scale, noisy[f"tree {question.column}"], confidence)
    total = noisy[f"sum {question.column}"]
    if question.kind == "sum":
        return _sum(question.name, total, noisy.get(counted), question.scale, confidence)
    vectors = [noisy[counted], total]
    if question.kind == "mean":
        return _computed(question.name, vectors, _mean(question.scale), confidence)
    vectors.append(noisy[f"squares {question.column}"])
    return _computed(question.name, vectors, _variance(question), confidence)


def _count(name: str, count: Noisy, confidence: float) -> Figure:
    low, high = count.spread(confidence)
    if count.mixture:
        more = NormalDist().inv_cdf((1 + confidence) / 2) ** 2 * count.mixture
        sampled = more * np.maximum(count.values, 1)
        below, above = np.sqrt(high**2 + sampled), np.sqrt(low**2 + sampled)
        return Figure(name, count.values, *_counts(count.values - below, count.values + above))
    return Figure(name, count.values, *_counts(count.values - high, count.values + low))


def _counts(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """No count is below 0."""
    return np.maximum(low, 0), np.maximum(high, 0)


def _sum(name: str, total: Noisy, count: Noisy | None, scale: Scale, confidence: float) -> Figure:
    """A sum around zero, or around a center that each counted value adds."""
    values = scale.step * total.values
    low, high = (scale.step * end for end in total.spread(confidence))
    if scale.center and count is not None:
        values = values + scale.center * count.values
        points = _draws([count, total], _POINTS)
        noise = scale.center * points[0] + scale.step * points[1]
        ends = np.quantile(noise, [(1 - confidence) / 2, (1 + confidence) / 2])
        low, high = -float(ends[0]), float(ends[1])
    if total.mixture:
        # The squares of values within a bound add up to at most the bound times their sum.
        most = max(abs(scale.low), abs(scale.high))
        rows = np.maximum(np.abs(values) / most, 1) if count is None else count.values
        reach = NormalDist().inv_cdf((1 + confidence) / 2)
        sampled = reach**2 * total.mixture * most**2 * np.maximum(rows, 1)
        return Figure(
            name, values, values - np.sqrt(high**2 + sampled), values + np.sqrt(low**2 + sampled)
        )
    return Figure(name, values, values - high, values + low)


def _mean(scale: Scale) -> Callable[..., Floats]:
    def mean(count: Floats, total: Floats) -> Floats:
        found = np.clip(total / np.maximum(count, 1), -STEPS, STEPS)
        return np.asarray(scale.center + scale.step * found)

    return mean


def _variance(question: Question) -> Callable[..., Floats]:
    scale = question.scale
    assert scale is not None  # noqa: S101 - a spread has bounds

    def variance(count: Floats, total: Floats, squares: Floats) -> Floats:
        rows = np.maximum(count, 1)
        found = np.clip(squares / rows - (total / rows) ** 2, 0, STEPS * STEPS) * scale.step**2
        if count.ndim > 1:  # what the noise leaves no row for says nothing
            ends = np.arange(count.shape[1]) % 2 * (STEPS * scale.step) ** 2
            found = np.where(count < 1, ends, found)
        if question.sample:
            found = found * np.maximum(count, 2) / (np.maximum(count, 2) - 1)
        return np.asarray(np.sqrt(found) if question.kind == "deviation" else found)

    return variance


def _computed(
    name: str, vectors: Sequence[Noisy], formula: Callable[..., Floats], confidence: float
) -> Figure:
    """What ``formula`` makes of the vectors, and of what they can have been without noise."""
    values = formula(*(vector.values for vector in vectors))
    groups = len(values)
    points = max(_FEWEST, min(_POINTS, 16 * _CELLS // max(groups, 1)))
    draws = _draws(vectors, points)
    ends = np.empty((2, groups))
    wanted = [(1 - confidence) / 2, (1 + confidence) / 2]
    for start in range(0, groups, max(1, _CELLS // points)):
        some = slice(start, start + max(1, _CELLS // points))
        exact = [v.values[some, None] - d for v, d in zip(vectors, draws, strict=True)]
        ends[:, some] = np.quantile(formula(*exact), wanted, axis=1)
    return Figure(name, values, np.minimum(ends[0], values), np.maximum(ends[1], values))


def _draws(vectors: Sequence[Noisy], points: int) -> list[Floats]:
    """Noise for each vector at evenly spread points of all of them together."""
    return [
        vector.table(points)[(_points(points, place) * points).astype(np.int64)]
        for place, vector in enumerate(vectors)
    ]


def _points(points: int, place: int) -> Floats:
    """The ``place``-th coordinate of evenly spread points, from 0 to below 1."""
    step = _ROOT ** -(place + 1) if place < 3 else sqrt(place + 0.5)
    return np.asarray((0.5 + step * np.arange(1, points + 1)) % 1)


def _quantile(question: Question, scale: Scale, tree: Noisy, confidence: float) -> Figure:
    reach, noise = NormalDist().inv_cdf((1 + confidence) / 2), tree.rank(question.at, confidence)
    read = []
    for below in tree.values:
        sampled = tree.mixture * question.at * (1 - question.at) * max(float(below[-1]), 1.0)
        width = np.sqrt(noise**2 + reach**2 * sampled)
        read.append(quantile(below, scale.edges, question.at, width))
    values, low, high = np.array(read, dtype=np.float64).reshape(-1, 3).T
    return Figure(question.name, values, np.minimum(low, values), np.maximum(high, values))


def _plain(mechanism: Mechanism) -> DiscreteLaplace | DiscreteGaussian:
    if isinstance(mechanism, StableGroups | CountTree):
        return mechanism.noise
    return mechanism
