"""Answers to grouped questions: exact figures in, noisy figures with intervals and a receipt out.

An engine computes the exact part (counts and whole-number sums per group); nothing of it leaves but
through here. All groups together cost as much as one, since a person's rows are counted once.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Literal

import numpy as np

from halfmask.dp.accountant import Entry
from halfmask.dp.budget import Approximate, Budget, Pure
from halfmask.dp.mechanisms.count_tree import CountTree, quantile
from halfmask.dp.mechanisms.stable_groups import StableGroups
from halfmask.dp.sampling import Sampler
from halfmask.dp.vault import noise
from halfmask.errors import ParameterError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.dp.accountant import Allowance, Receipt

Kind = Literal["count", "sum", "mean", "variance"]
STEPS = 1000  # how many whole steps a bounded value is rounded to on each side of its center


@dataclass(frozen=True, slots=True)
class Scale:
    """How a bounded number becomes a whole one: value = center + step * whole.

    An engine clips a value to the bounds and sums ``round((value - center) / step)``, and for a
    variance its square.

    Example:
        >>> Scale.of("age", 0, 130).step
        0.065
    """

    low: float
    high: float

    @classmethod
    def of(cls, column: str, low: float | None, high: float | None) -> Scale:
        """The scale of a column; missing bounds are an error that says how to give them."""
        if low is None or high is None or not low < high:
            raise SchemaError(
                f"Column {column!r} needs public bounds for this question: give low and high, "
                "known without looking at the rows; values beyond them count as the bound."
            )
        return cls(float(low), float(high))

    @property
    def center(self) -> float:
        """The value that becomes 0."""
        return (self.low + self.high) / 2

    @property
    def step(self) -> float:
        """What one whole step is worth."""
        return (self.high - self.low) / 2 / STEPS

    def whole(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Clipped and rounded values."""
        inside = np.clip(np.nan_to_num(values, nan=self.center), self.low, self.high)
        found: NDArray[np.int64] = np.rint((inside - self.center) / self.step).astype(np.int64)
        return found


@dataclass(frozen=True, slots=True)
class Question:
    """One column of the answer.

    Attributes:
        name: what the answer calls it.
        kind: count, sum, mean or variance.
        column: what is summed; empty for a count.
        scale: how its values become whole numbers; None for a count.
    """

    name: str
    kind: Kind
    column: str = ""
    scale: Scale | None = None

    def __post_init__(self) -> None:
        if self.kind != "count" and self.scale is None:
            raise SchemaError(f"{self.kind} of column {self.column!r} needs public bounds.")


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """What an engine found, per group; all whole numbers.

    Attributes:
        counts: rows of each group.
        sums: per column, the sum of scaled values.
        squares: per column, the sum of squared scaled values; only for a variance.
    """

    counts: NDArray[np.int64]
    sums: Mapping[str, NDArray[np.int64]]
    squares: Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """Noisy figures of one question, one per group, each with its interval."""

    name: str
    values: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """The figures, which groups are published, and the receipt."""

    figures: tuple[Figure, ...]
    published: NDArray[np.bool_]
    confidence: float
    receipt: Receipt


@dataclass(frozen=True, slots=True, eq=False)
class _Noisy:
    values: NDArray[np.int64]
    half: float


def answer(
    questions: Sequence[Question],
    exact: Exact,
    allowance: Allowance,
    *,
    groups: Literal["public", "threshold"] = "public",
    confidence: float = 0.95,
    sampler: Sampler | None = None,
) -> Answered:
    """Noisy figures for ``questions``, for the whole of ``allowance``.

    Args:
        questions: what to answer.
        exact: the exact figures; with public groups there is one for each of them, empty ones too.
        allowance: what is already spent for this answer; for thresholded groups it is charged in
            epsilon and delta (``accountant.allow(..., as_promised=True)``).
        groups: whether the groups are public, or only those far above one person are shown.
        confidence: of each interval.
        sampler: only for tests.
    """
    if not 0 < confidence < 1:
        raise ParameterError("confidence", confidence, "above 0 and below 1")
    drawn = sampler or Sampler()
    allowance.secure = allowance.secure and drawn.secure
    vectors = _vectors(questions)
    noisy: dict[str, _Noisy] = {}
    published = np.ones(len(exact.counts), np.bool_)
    # Each figure joins up to three vectors: their intervals must hold together.
    each = 1 - (1 - confidence) / 3
    share = allowance.remaining / len(vectors)
    if groups == "threshold":
        noisy["count"], published = _stable(exact.counts, share, each, allowance, drawn)
        vectors.remove("count")
        share = Pure(share.parts()[0])
    for vector in vectors:
        noisy[vector] = _measure(vector, exact, share, each, allowance, drawn)
    figures = tuple(_figure(question, noisy) for question in questions)
    return Answered(figures, published, confidence, allowance.receipt())


def quantiles(
    column: str,
    counts: NDArray[np.int64],
    edges: NDArray[np.float64],
    shares: Sequence[float],
    allowance: Allowance,
    *,
    confidence: float = 0.95,
    sampler: Sampler | None = None,
) -> tuple[tuple[float, float, float], ...]:
    """Quantiles of one bounded column with intervals, from exact counts between public edges.

    Args:
        column: named in the receipt.
        counts: rows between each two ``edges``; a power of two of them.
        edges: public and ascending.
        shares: such as 0.5 for the median.
        allowance: pure budget that is already spent for this answer.
        confidence: of all intervals together.
        sampler: only for tests.
    """
    cost = allowance.remaining
    if not isinstance(cost, Pure):
        raise ParameterError("delta", "above 0", "0 for quantiles")
    levels = len(counts).bit_length() - 1
    tree = CountTree(cost.epsilon, levels, allowance.rows_per_person)
    drawn = sampler or Sampler()
    allowance.secure = allowance.secure and drawn.secure
    variance = Fraction(tree.variance).limit_denominator(10**6)
    allowance.charge(Entry(f"tree over {column}", "CountTree", tree.cost, variance))
    below = tree.apply(counts, drawn)
    half = tree.half_width(confidence)
    return tuple(quantile(below, edges, share, half) for share in shares)


def _vectors(questions: Sequence[Question]) -> list[str]:
    """The vectors that must be measured, each once: the count, sums and squares."""
    if not questions:
        raise ParameterError("questions", 0, "at least one")
    found = ["count"]
    for question in questions:
        if question.kind != "count":
            found.append(f"sum {question.column}")
        if question.kind == "variance":
            found.append(f"squares {question.column}")
    return list(dict.fromkeys(found))


def _stable(
    counts: NDArray[np.int64],
    share: Budget,
    confidence: float,
    allowance: Allowance,
    sampler: Sampler,
) -> tuple[_Noisy, NDArray[np.bool_]]:
    """Counts of groups that show themselves, at this share of epsilon and all of delta."""
    left = allowance.remaining
    if not isinstance(share, Approximate) or not isinstance(left, Approximate) or not left.delta:
        raise ParameterError("delta", 0, "above 0 where groups are not public")
    mechanism = StableGroups(share.epsilon, left.delta, allowance.rows_per_person)
    variance = Fraction(mechanism.variance).limit_denominator(10**6)
    allowance.charge(Entry("groups and counts", "StableGroups", mechanism.cost, variance))
    noisy, shown = mechanism.apply(counts, sampler)
    return _Noisy(noisy, mechanism.noise.half_width(confidence)), shown


def _measure(
    vector: str,
    exact: Exact,
    cost: Budget,
    confidence: float,
    allowance: Allowance,
    sampler: Sampler,
) -> _Noisy:
    kind, _, column = vector.partition(" ")
    source = {"count": exact.counts}.get(kind)
    if source is None:
        source = (exact.sums if kind == "sum" else exact.squares)[column]
    # One row moves a count by 1, a scaled sum by STEPS, a sum of squares by STEPS squared.
    reach = {"count": 1, "sum": STEPS, "squares": STEPS * STEPS}[kind]
    mechanism = noise(cost, reach * allowance.rows_per_person)
    variance = Fraction(mechanism.variance).limit_denominator(10**6)
    allowance.charge(Entry(vector, type(mechanism).__name__, mechanism.cost, variance))
    noisy = mechanism.apply(source.astype(np.int64), sampler)
    return _Noisy(noisy, mechanism.half_width(confidence))


def _figure(question: Question, noisy: Mapping[str, _Noisy]) -> Figure:
    count = noisy["count"]
    if question.kind == "count" or question.scale is None:
        values = count.values.astype(np.float64)
        return Figure(
            question.name, values, np.maximum(values - count.half, 0), values + count.half
        )
    total = noisy[f"sum {question.column}"]
    center, step = question.scale.center, question.scale.step
    if question.kind == "sum":
        values = center * count.values + step * total.values
        half = abs(center) * count.half + step * total.half
        return Figure(question.name, values, values - half, values + half)
    mean = _ratio(total, count)
    if question.kind == "mean":
        low, value, high = (center + step * np.clip(part, -STEPS, STEPS) for part in mean)
        return Figure(question.name, value, low, high)
    square = _ratio(noisy[f"squares {question.column}"], count)
    return _variance(question.name, mean, square, step)


def _ratio(
    top: _Noisy, below: _Noisy
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Low, value and high of a quotient whose two parts each lie in their interval."""
    count = np.maximum(below.values, 1).astype(np.float64)
    few, many = np.maximum(below.values - below.half, 1), np.maximum(below.values + below.half, 1)
    up, down = top.values + top.half, top.values - top.half
    high = np.maximum(up / few, up / many)
    low = np.minimum(down / few, down / many)
    return low, top.values / count, high


def _variance(
    name: str,
    mean: tuple[NDArray[np.float64], ...],
    square: tuple[NDArray[np.float64], ...],
    step: float,
) -> Figure:
    most = float(STEPS * STEPS)
    low, value, high = mean
    largest = np.maximum(low**2, high**2)
    smallest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(low**2, high**2))
    values = np.clip(square[1] - value**2, 0, most)
    return Figure(
        name,
        values * step**2,
        np.clip(square[0] - largest, 0, most) * step**2,
        np.clip(square[2] - smallest, 0, most) * step**2,
    )


def edges_of(low: float, high: float, intervals: int) -> NDArray[np.float64]:
    """Public edges of a power of two of equal intervals, at least as many as asked for."""
    size = 1 << max(1, ceil(np.log2(max(2, intervals))))
    return np.linspace(low, high, size + 1)
