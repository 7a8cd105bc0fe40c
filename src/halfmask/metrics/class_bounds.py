"""What losses of classes can be where their labels overlap: the least and the most.

Definition: a class of m rows consists of m rows that its labels cover, whoever they are. Its
diameter is at most the largest distance of two rows that fit, and at least the least radius that
holds m of them around one of them. The entropy of its values is least where the most frequent
values that fit fill it, and most where it holds all values as evenly as their rows allow.
Source: ours, for DBIL and EBIL of ``halfmask.metrics.partition``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.codes import joint
from halfmask.metrics.covering import Released
from halfmask.metrics.space import space_of
from halfmask.metrics.weighted import tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.sides import Sides

_CELLS = 400_000_000  # more pairs of class and distinct row are not looked at


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most that DBIL and EBIL of the published rows can be."""

    dbil: tuple[float, float]
    ebil: tuple[float, float]


def class_bounds(both: Sides, pairs: int) -> Bounds | None:
    """Bound the losses of the rows that stay.

    None where some class has fewer rows that fit than it publishes, so that its rows stand for
    nobody, or where more than ``pairs`` pairs of rows would have to be looked at.
    """
    from halfmask.kernels import space as kernels

    columns = both.quasi
    released = Released(columns)
    ids, count = joint([(c.before, c.leaves) for c in columns])
    if len(released) * count > _CELLS:
        return None
    first = np.empty(count, dtype=np.int64)
    first[ids] = np.arange(len(ids))
    rows = tally(ids, count, both.original_counts)
    space = space_of(both.original, [c.name for c in columns])
    codes = [c.before[first] for c in columns]
    dbil, ebil = np.zeros(2), np.zeros(2)
    for place, size in enumerate(released.rows.astype(np.int64).tolist()):
        fits = _fitting(released, codes, place)
        pairs -= len(fits) ** 2
        if pairs < 0 or int(rows[fits].sum()) < size:
            return None
        far = np.asarray(kernels.matrix(space.points, first[fits]))
        dbil += size * np.array([_least(far, rows[fits], size), float(far.max())])
        for held in codes:
            ebil += _entropies(np.bincount(held[fits], weights=rows[fits]).astype(np.int64), size)
    return Bounds((float(dbil[0]), float(dbil[1])), (float(ebil[0]), float(ebil[1])))


def _fitting(released: Released, codes: list[NDArray[np.int32]], place: int) -> NDArray[np.int64]:
    """The distinct rows that one released class covers."""
    inside = np.ones(len(codes[0]), dtype=bool)
    for held, labels, column in zip(codes, released.labels, released.columns, strict=True):
        under = np.zeros(column.leaves, dtype=bool)
        label = int(labels[place])
        under[column.covered[column.starts[label] : column.starts[label + 1]]] = True
        inside &= under[held]
    return np.flatnonzero(inside)


def _least(far: NDArray[np.float64], rows: NDArray[np.int64], size: int) -> float:
    """The least radius around a row that holds ``size`` rows."""
    order = np.argsort(far, axis=1)
    enough = (np.cumsum(rows[order], axis=1) >= size).argmax(axis=1)
    last = np.take_along_axis(order, enough[:, None], axis=1)
    return float(np.take_along_axis(far, last, axis=1).min())


def _entropies(counts: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """The least and the most bits, times rows, of the values of ``size`` of these rows."""
    counts = np.sort(counts[counts > 0])[::-1]
    before = np.cumsum(counts) - counts
    greedy = np.clip(size - before, 0, counts)
    # As even as can be: every value up to a level, the rows that are left one each above it.
    level = int(np.searchsorted(_filled(counts), size, side="right"))
    even = np.minimum(counts, level)
    even[: size - int(even.sum())] += 1
    return np.array([_bits(greedy, size), _bits(even, size)])


def _filled(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many rows values hold if each has at most 1, 2, ... of them."""
    above = len(counts) - np.searchsorted(counts[::-1], np.arange(1, counts[0] + 1))
    return np.asarray(np.cumsum(above))


def _bits(counts: NDArray[np.int64], size: int) -> float:
    held = counts[counts > 0]
    return math.fsum((held * np.log2(size / held)).tolist())
