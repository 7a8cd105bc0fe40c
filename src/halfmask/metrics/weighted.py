"""Entries that stand for rows: a row itself, or a distinct tuple and how many rows hold it.

Everything here takes ``counts``, how many rows each entry stands for, or None where each stands for
one. Rows are numbered through the entries: those of the first entry come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64] | None


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
    if counts is None:
        return float(values.std())
    return float(np.sqrt(mean((values - mean(values, counts)) ** 2, counts)))


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
