"""From noisy vectors to the figures of an answer, each with an interval; nothing exact is seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.mechanisms.count_tree import quantile
from halfmask.dp.questions import STEPS, Question, Scale

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Noisy:
    """A noisy vector, and how far each of its numbers may be off."""

    values: NDArray[np.int64]
    half: float


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """Noisy figures of one question, one per group, each with its interval."""

    name: str
    values: Floats
    low: Floats
    high: Floats


def figure(question: Question, counted: str, noisy: Mapping[str, Noisy]) -> Figure:
    """The figures of ``question``; ``counted`` names the vector that counts its values."""
    if question.scale is None or question.kind == "count":
        count = noisy[counted]
        values = count.values.astype(np.float64)
        low, high = np.maximum(values - count.half, 0), values + count.half
        return Figure(question.name, values, low, high)
    if question.kind == "quantile":
        return _quantile(question, question.scale, noisy[f"tree {question.column}"])
    total, scale = noisy[f"sum {question.column}"], question.scale
    if question.kind == "sum":
        return _sum(question.name, total, noisy.get(counted), scale)
    mean = _ratio(total, noisy[counted])
    if question.kind == "mean":
        low, value, high = (scale.center + scale.step * np.clip(p, -STEPS, STEPS) for p in mean)
        return Figure(question.name, value, low, high)
    square = _ratio(noisy[f"squares {question.column}"], noisy[counted])
    found = _variance(question.name, mean, square, scale.step)
    if question.sample:
        found = _of_sample(found, noisy[counted])
    if question.kind == "deviation":
        return Figure(found.name, np.sqrt(found.values), np.sqrt(found.low), np.sqrt(found.high))
    return found


def _sum(name: str, total: Noisy, count: Noisy | None, scale: Scale) -> Figure:
    """A sum around zero, or around a center that each counted value adds."""
    values = scale.step * total.values
    half = scale.step * total.half
    if scale.center and count is not None:
        values = values + scale.center * count.values
        half += abs(scale.center) * count.half
    return Figure(name, values, values - half, values + half)


def _ratio(top: Noisy, below: Noisy) -> tuple[Floats, Floats, Floats]:
    """Low, value and high of a quotient whose two parts each lie in their interval."""
    count = np.maximum(below.values, 1).astype(np.float64)
    few, many = np.maximum(below.values - below.half, 1), np.maximum(below.values + below.half, 1)
    up, down = top.values + top.half, top.values - top.half
    high = np.maximum(up / few, up / many)
    low = np.minimum(down / few, down / many)
    return low, top.values / count, high


def _variance(
    name: str, mean: tuple[Floats, ...], square: tuple[Floats, ...], step: float
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


def _of_sample(found: Figure, count: Noisy) -> Figure:
    """Divided by n - 1 instead of n; the interval takes the fewest people for its upper end."""
    many = np.maximum(count.values, 2) / (np.maximum(count.values, 2) - 1)
    few = np.maximum(count.values - count.half, 2)
    return replace(found, values=found.values * many, high=found.high * (few / (few - 1)))


def _quantile(question: Question, scale: Scale, tree: Noisy) -> Figure:
    read = [quantile(below, scale.edges, question.at, tree.half) for below in tree.values]
    values, low, high = np.array(read, dtype=np.float64).reshape(-1, 3).T
    return Figure(question.name, values, np.minimum(low, values), np.maximum(high, values))
