"""Figures of entries that stand for rows: rows themselves, or distinct tuples with counts.

Everything here takes ``counts``, how many rows each entry stands for. Rows are numbered through the
entries: those of the first entry come first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.table.classes import COUNTERS
from halfmask.table.tuples import all_ones, tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.table.tuples import Counts


def joint(columns: Sequence[tuple[NDArray[np.int32], int]]) -> tuple[NDArray[np.int64], int]:
    """The number of each row's combination of codes, dense from 0, and how many there are.

    Args:
        columns: per column, the code of each row and the number of codes.
    """
    key, space = columns[0][0].astype(np.int64), columns[0][1]
    for codes, size in columns[1:]:
        if space * size >= 2**62:
            key, space = dense(key, space)
        key = key * size + codes
        space *= size
    return dense(key, space)


def dense(key: NDArray[np.int64], space: int) -> tuple[NDArray[np.int64], int]:
    """Renumber ``key`` without gaps, in ascending order."""
    if space <= COUNTERS * len(key):
        used = np.zeros(space, dtype=bool)
        used[key] = True
        place = np.cumsum(used) - 1
        return place[key], int(used.sum())
    values, numbers = np.unique(key, return_inverse=True)
    return numbers.astype(np.int64), len(values)


def runs(begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers ``begins[i]`` to ``begins[i] + lengths[i]``, one run after the other."""
    shift = begins - (np.cumsum(lengths) - lengths)
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(shift, lengths))


def pairs(
    left: NDArray[np.int64],
    right: NDArray[np.int32] | NDArray[np.int64],
    size: int,
    groups: int,
    counts: Counts,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The observed pairs of codes in ascending order: left, right, and in how many rows."""
    key = left * size + right
    if groups * size <= COUNTERS * len(key):
        rows = tally(key, groups * size, counts)
        seen = np.flatnonzero(rows)
        rows = rows[seen]
    elif all_ones(counts):
        seen, rows = np.unique(key, return_counts=True)
    else:
        seen, place = np.unique(key, return_inverse=True)
        rows = tally(place, len(seen), counts)
        seen, rows = seen[rows > 0], rows[rows > 0]  # an entry may stand for no row
    return seen // size, seen % size, rows


_SQUARED = 1e70  # numbers up to which squares, and products of two squares, are numbers too


def entries_of(rows: NDArray[np.int64], counts: Counts) -> NDArray[np.int64]:
    """The entry that each of some rows belongs to."""
    if all_ones(counts):
        return rows
    return np.searchsorted(np.cumsum(counts), rows, side="right")


def entropy_of(counts: NDArray[np.int64]) -> float:
    """The entropy in bits of a distribution given as counts."""
    filled = counts[counts > 0]
    if len(filled) < 2:
        return 0.0
    parts = filled / filled.sum()
    return float(-(parts @ np.log2(parts)))


def weighted_mean(values: NDArray[Any], counts: NDArray[Any]) -> float:
    """The mean over rows."""
    if all_ones(counts):
        return float(values.mean())
    return float((values @ counts) / counts.sum())


def deviation(values: NDArray[np.float64], counts: NDArray[Any]) -> float:
    """The standard deviation over rows."""
    small = in_range(values)
    scale = 1.0 if small is values else float(np.abs(values).max())
    middle = weighted_mean(small, counts)
    return scale * float(np.sqrt(weighted_mean((small - middle) ** 2, counts)))


def in_range(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same numbers, as parts of the largest where their squares would be no numbers."""
    largest = float(np.abs(values).max(initial=0.0))
    return values / largest if largest > _SQUARED else values


def quantiles(
    numbers: NDArray[np.float64], counts: NDArray[np.int64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The quantiles of ``numbers`` that occur ``counts`` times, by linear interpolation."""
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(counts[order])
    place = shares * (int(ends[-1]) - 1)
    below = np.floor(place)
    last = int(ends[-1]) - 1
    low = numbers[order][np.searchsorted(ends, below, side="right")]
    high = numbers[order][np.searchsorted(ends, np.minimum(below + 1, last), side="right")]
    part, gap = place - below, high - low
    return np.asarray(np.where(part < 0.5, low + gap * part, high - gap * (1 - part)))


@dataclass(frozen=True, slots=True, eq=False)
class ClassRows:
    """The rows of each class of a table.

    Attributes:
        order: the entries in order of their class, those of no class left out.
        ends: how many rows there are up to each of them.
        starts: how many rows stand before each class; the last entry is all of them.
        first: the first row of each entry in the table.
    """

    order: NDArray[np.int64]
    ends: NDArray[np.int64]
    starts: NDArray[np.int64]
    first: NDArray[np.int64]

    def at(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The entries of rows that are numbered class after class, and their rows in the table."""
        turn = np.searchsorted(self.ends, places, side="right")
        entries = self.order[turn]
        before = np.where(turn > 0, self.ends[np.maximum(turn - 1, 0)], 0)
        return entries, self.first[entries] + places - before


def class_rows(ids: NDArray[np.int64], classes: int, counts: Counts) -> ClassRows:
    """Put entries in order of their class; -1 is none."""
    order = np.argsort(ids, kind="stable")
    order = order[np.searchsorted(ids[order], 0) :]
    ends = np.cumsum(counts[order])
    sizes = tally(ids[order], classes, counts[order])
    first = np.cumsum(counts) - counts
    return ClassRows(order, ends, np.concatenate(([0], np.cumsum(sizes))), first)
