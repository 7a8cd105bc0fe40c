"""Entries that stand for rows: a row itself, or a distinct tuple and how many rows hold it.

Everything here takes ``counts``, how many rows each entry stands for, or None where each stands for
one. Rows are numbered through the entries: those of the first entry come first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64] | None

_SQUARED = 1e70  # numbers up to which squares, and products of two squares, are numbers too


def tally(ids: NDArray[Any], size: int, counts: Counts = None) -> NDArray[np.int64]:
    """How many rows hold each of ``size`` ids."""
    return np.bincount(ids, weights=counts, minlength=size).astype(np.int64)


def rows_of(entries: int, counts: Counts) -> int:
    """How many rows so many entries stand for."""
    return entries if counts is None else int(counts.sum())


def entries_of(rows: NDArray[np.int64], counts: Counts) -> NDArray[np.int64]:
    """The entry that each of some rows belongs to."""
    if counts is None:
        return rows
    return np.searchsorted(np.cumsum(counts), rows, side="right")


def mean(values: NDArray[Any], counts: NDArray[Any] | None) -> float:
    """The mean over rows."""
    return float(values.mean() if counts is None else (values @ counts) / counts.sum())


def deviation(values: NDArray[np.float64], counts: NDArray[Any] | None) -> float:
    """The standard deviation over rows."""
    small = in_range(values)
    scale = 1.0 if small is values else float(np.abs(values).max())
    if counts is None:
        return scale * float(small.std())
    return scale * float(np.sqrt(mean((small - mean(small, counts)) ** 2, counts)))


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
class Members:
    """The rows of each class of a table.

    Attributes:
        order: the entries in order of their class, those of no class left out.
        ends: how many rows there are up to each of them.
        starts: how many rows stand before each class; the last entry is all of them.
        first: the first row of each entry in the table; None where entries are rows.
    """

    order: NDArray[np.int64]
    ends: NDArray[np.int64]
    starts: NDArray[np.int64]
    first: NDArray[np.int64] | None

    def at(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The entries of rows that are numbered class after class, and their rows in the table."""
        turn = np.searchsorted(self.ends, places, side="right")
        entries = self.order[turn]
        if self.first is None:
            return entries, entries
        before = np.where(turn > 0, self.ends[np.maximum(turn - 1, 0)], 0)
        return entries, self.first[entries] + places - before


def members_of(ids: NDArray[np.int64], classes: int, counts: Counts = None) -> Members:
    """Put entries in order of their class; -1 is none."""
    order = np.argsort(ids, kind="stable")
    order = order[np.searchsorted(ids[order], 0) :]
    held = None if counts is None else counts[order]
    sizes = tally(ids[order], classes, held)
    ends = np.arange(1, len(order) + 1) if held is None else np.cumsum(held)
    first = None if counts is None else np.cumsum(counts) - counts
    return Members(order, ends, np.concatenate(([0], np.cumsum(sizes))), first)
