"""Answers to grouped questions under noise, and what epsilon means for one person.

An engine computes the exact part (counts and whole-number sums per group); nothing of it leaves but
through here, as noisy figures with intervals and a receipt. All groups together cost as much as
one, since a person's rows are counted once.

Definition: of n equally likely values, P(the attacker names the true one) <= e^e / (e^e + n - 1),
where e is the privacy loss between any two of them. Between "this person is in the table" and "is
not", the loss is epsilon. Between two values of one person it is 2 epsilon, since neighbors add or
remove a person and a change is both.
Counts have the exact quantiles of their noise. What is computed from several vectors (means,
spreads, sums around a center) has the interval of the figure over what the exact vectors can have
been: the noisy ones less noise of their known distribution, at evenly spread points instead of
draws. For a mean this is Fieller's interval. It is post-processing and costs nothing.
Source: Nguyen, Castelluccia, "Techniques d'anonymisation tabulaire", 2020, Theorem 22; Fieller,
"Some problems in interval estimation", 1954; Roberts, "The unreasonable effectiveness of
quasirandom sequences", 2018.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import expm1, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.budget import (
    Approximate,
    Budget,
    Concentrated,
    Number,
    Pure,
    epsilon_of,
    exact_number,
)
from halfmask.dp.mechanisms import CountTree, StableGroups, quantile
from halfmask.dp.sampling import Sampler
from halfmask.dp.views import STEPS, ExactCounts, Question, Scale, count_of, views_of
from halfmask.errors import ParameterError
from halfmask.table.document import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from halfmask.dp.accountant import Allowance, Receipt
    from halfmask.dp.mechanisms import DiscreteGaussian, DiscreteLaplace
    from halfmask.dp.views import GroupRule, Question

    Floats = NDArray[np.float64]
    Mechanism = StableGroups | CountTree | DiscreteLaplace | DiscreteGaussian


_UP = 1 + 1e-12


def attacker(epsilon: Number, values: int, *, delta: Number = 0) -> float:
    """The bound of Theorem 22, rounded up; ``delta`` is added, since it promises nothing there.

    Example:
        >>> round(attacker(10, 10**6), 4)
        0.0216
    """
    if values < 2:
        raise ParameterError("values", values, "at least 2")
    loss = float(exact_number("epsilon", epsilon))
    if loss > 700:
        return 1.0
    odds = expm1(loss) + 1
    return min(1.0, odds / (odds + values - 1) * _UP + float(exact_number("delta", delta)))


@dataclass(frozen=True, slots=True)
class ColumnBound(Result):
    """How well an attacker can guess one column of one person, before and after the release."""

    column: str
    values: int
    before: float
    after: float


def column_bounds(promise: Budget, sizes: Mapping[str, int]) -> tuple[ColumnBound, ...]:
    """The bound for each column with its number of public values, and first for membership."""
    epsilon, delta = epsilon_and_delta(promise)
    member = ColumnBound("(in the table?)", 2, 0.5, attacker(epsilon, 2, delta=delta))
    # A changed value is one person removed and another added: twice epsilon, and delta grows too.
    grown = min(1.0, float(delta) * (expm1(min(float(epsilon), 700.0)) + 2)) if delta else 0.0
    return (
        member,
        *(
            ColumnBound(name, size, 1 / size, attacker(2 * epsilon, size, delta=grown))
            for name, size in sizes.items()
            if size > 1
        ),
    )


def epsilon_and_delta(promise: Budget) -> tuple[Number, Number]:
    """Epsilon and delta of any budget; zCDP is read at delta = 1e-9."""
    if isinstance(promise, Pure):
        return promise.epsilon, 0
    if isinstance(promise, Approximate):
        return promise.epsilon, promise.delta
    if isinstance(promise, Concentrated):
        return epsilon_of(promise, 1e-9), 1e-9
    raise ParameterError("promise", type(promise).__name__, "a budget")


_ROUNDED = 2  # multiples of STEPS that a variance may be off by, as values and squares are rounded
_POINTS = 2048
_FEWEST = 256  # points, where there are very many groups
_CELLS = 1 << 26  # groups times points, before there are fewer points
_TILE = 1 << 16  # groups times points at a time: what stays near the processor
_ROOT = 1.2207440846057596  # of x**4 = x + 1: steps that fill three dimensions evenly


@dataclass(frozen=True, slots=True, eq=False)
class NoisyVector:
    """A noisy vector: the weighted sum of one or several measured ones, and what is in it.

    Attributes:
        values: one per group; for a tree groups x edges.
        noise: the weights and the mechanisms that were added up.
        mixture: the variance per counted row where only some people were read, weighted up; 0: all.
    """

    values: Floats
    noise: tuple[tuple[float, Mechanism], ...]
    mixture: float = 0.0

    def plus(self, other: NoisyVector | None) -> NoisyVector:
        """Both vectors added up."""
        if other is None:
            return self
        return NoisyVector(other.values + self.values, (*other.noise, *self.noise), self.mixture)

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


def noisy_figure(
    question: Question, counted: str, noisy: Mapping[str, NoisyVector], confidence: float
) -> Figure:
    """The figures of ``question``; ``count_of`` names the vector that counts its values."""
    if question.scale is None or question.kind == "count":
        return _count(question.name, noisy[counted], confidence)
    if question.kind == "quantile":
        return _quantile(question, question.scale, noisy[f"tree {question.column}"], confidence)
    total = noisy[f"sum {question.column}"]
    if question.kind == "sum":
        return _sum(question.name, total, noisy.get(counted), question.scale, confidence)
    vectors = [noisy[counted], total]
    if question.kind == "mean":
        return _compute(question.name, vectors, _mean(question.scale), confidence)
    vectors.append(noisy[f"squares {question.column}"])
    return _compute(question.name, vectors, _variance(question), confidence)


def _count(name: str, count: NoisyVector, confidence: float) -> Figure:
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


def _sum(
    name: str, total: NoisyVector, count: NoisyVector | None, scale: Scale, confidence: float
) -> Figure:
    """A sum around zero, or around a center that each counted value adds."""
    values = scale.step * total.values
    low: float | Floats
    high: float | Floats
    low, high = (scale.step * end for end in total.spread(confidence))
    if scale.center and count is not None:
        values = values + scale.center * count.values
        points = _draws([count, total], _POINTS)
        noise = scale.center * points[0] + scale.step * points[1]
        ends = np.quantile(noise, [(1 - confidence) / 2, (1 + confidence) / 2])
        low, high = -float(ends[0]), float(ends[1])
    if count is not None:  # as far as all values together may have been rounded
        off = scale.rounded * np.maximum(count.values, 0)
        low, high = low + off, high + off
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
    def mean(count: Floats, total: Floats, side: int = 0) -> Floats:
        found = np.clip(total / np.maximum(count, 1) + side / 2, -STEPS, STEPS)
        return np.asarray(scale.center + scale.step * found)

    return mean


def _variance(question: Question) -> Callable[..., Floats]:
    scale = question.scale
    assert scale is not None  # noqa: S101 - a spread has bounds

    def variance(count: Floats, total: Floats, squares: Floats, side: int = 0) -> Floats:
        rows = np.maximum(count, 1)
        found = STEPS * squares / rows - (total / rows) ** 2
        found = np.clip(found + side * _ROUNDED * STEPS, 0, STEPS * STEPS) * scale.step**2
        if count.ndim > 1:  # what the noise leaves no row for says nothing
            ends = np.arange(count.shape[1]) % 2 * (STEPS * scale.step) ** 2
            found = np.where(count < 1, ends, found)
        if question.sample:
            found = found * np.maximum(count, 2) / (np.maximum(count, 2) - 1)
        return np.asarray(np.sqrt(found) if question.kind == "deviation" else found)

    return variance


def _compute(
    name: str, vectors: Sequence[NoisyVector], formula: Callable[..., Floats], confidence: float
) -> Figure:
    """What ``formula`` makes of the vectors, and of what they can have been without noise."""
    values = formula(*(vector.values for vector in vectors))
    groups = len(values)
    points = max(_FEWEST, min(_POINTS, _CELLS // max(groups, 1)))
    draws = _draws(vectors, points)
    ends = np.empty((2, groups))
    wanted = [(1 - confidence) / 2, (1 + confidence) / 2]
    for start in range(0, groups, _TILE // points):
        some = slice(start, start + _TILE // points)
        exact = [v.values[some, None] - d for v, d in zip(vectors, draws, strict=True)]
        for end, side in enumerate((-1, 1)):
            found = formula(*exact, side=side)
            ends[end, some] = np.quantile(found, wanted[end], axis=1, overwrite_input=True)
    return Figure(name, values, np.minimum(ends[0], values), np.maximum(ends[1], values))


def _draws(vectors: Sequence[NoisyVector], points: int) -> list[Floats]:
    """Noise for each vector at evenly spread points of all of them together."""
    return [
        vector.table(points)[(_points(points, place) * points).astype(np.int64)]
        for place, vector in enumerate(vectors)
    ]


def _points(points: int, place: int) -> Floats:
    """The ``place``-th coordinate of evenly spread points, from 0 to below 1."""
    step = _ROOT ** -(place + 1) if place < 3 else sqrt(place + 0.5)
    return np.asarray((0.5 + step * np.arange(1, points + 1)) % 1)


def _quantile(question: Question, scale: Scale, tree: NoisyVector, confidence: float) -> Figure:
    reach, noise = NormalDist().inv_cdf((1 + confidence) / 2), tree.rank(question.at, confidence)
    # The variance of the wanted number of rows, where only some people were read.
    sampled = tree.mixture * question.at * (1 - question.at) * np.maximum(tree.values[:, -1:], 1.0)
    width = np.sqrt(noise**2 + reach**2 * sampled)
    values, low, high = quantile(tree.values, scale.edges, question.at, width)
    return Figure(question.name, values, np.minimum(low, values), np.maximum(high, values))


def _plain(mechanism: Mechanism) -> DiscreteLaplace | DiscreteGaussian:
    if isinstance(mechanism, StableGroups | CountTree):
        return mechanism.noise
    return mechanism


@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """The exact figures of the people of one public level of demand.

    Attributes:
        level: the level, which pays for its own noise.
        exact: its figures.
        weight: what each of its numbers counts in the answer.
    """

    level: Fraction
    exact: ExactCounts
    weight: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class NoisyAnswer:
    """The figures, which groups are published, and the receipt."""

    figures: tuple[Figure, ...]
    published: NDArray[np.bool_]
    confidence: float
    receipt: Receipt


def answer(
    questions: Sequence[Question],
    exact: ExactCounts | Sequence[Stratum],
    allowance: Allowance,
    *,
    groups: GroupRule = "public",
    confidence: float = 0.95,
    mixture: float = 0.0,
    sampler: Sampler | None = None,
) -> NoisyAnswer:
    """Noisy figures for ``questions``, for the whole of ``allowance``.

    Args:
        questions: what to answer.
        exact: the exact figures; with public groups there is one for each of them, empty ones too.
            Of several strata each is measured with the noise that its level pays for; levels are
            disjoint people.
        allowance: what is already spent for this answer; for thresholded groups it is charged in
            epsilon and delta (``accountant.allow(..., as_promised=True)``).
        groups: whether the groups are public, or only those far above one person are shown.
        confidence: of each interval.
        mixture: the variance per row where strata stand for people who are not read.
        sampler: only for tests.
    """
    require_confidence(confidence)
    drawn = sampler or Sampler()
    allowance.secure = allowance.secure and drawn.secure
    strata = (
        [(None, exact, 1.0)]
        if isinstance(exact, ExactCounts)
        else [(one.level, one.exact, one.weight) for one in exact]
    )
    first = strata[0][1]
    noisy: dict[str, NoisyVector] = {}
    published = np.ones(len(first.counts), np.bool_)
    for level, figures, weight in strata:
        views = views_of(
            questions,
            figures.present,
            allowance.left(level),
            allowance.rows_per_person,
            groups=groups,
        )
        for view in views:
            allowance.charge(replace(view.entry, level=level))  # paid before figures are touched
            whole = figures.vector(view.vector).astype(np.int64)
            if isinstance(view.mechanism, StableGroups):
                measured, published = view.mechanism.apply(whole, drawn)
                values = weight * measured
            else:
                values = weight * view.mechanism.apply(whole, drawn)
            one = NoisyVector(values.astype(np.float64), ((weight, view.mechanism),), mixture)
            noisy[view.vector] = one.plus(noisy.get(view.vector))
    found = tuple(
        noisy_figure(q, count_of(q.column, first.present), noisy, confidence) for q in questions
    )
    return NoisyAnswer(found, published, confidence, allowance.receipt())


def require_confidence(confidence: float) -> None:
    """Refuse a confidence that no interval has."""
    if not 0 < confidence < 1:
        raise ParameterError("confidence", confidence, "above 0 and below 1")
