"""Distances between rows: Manhattan over columns that each span their weight.

A numeric column adds the difference of two positions, a categorical one the height of the lowest
common label. Heights of small hierarchies stand in a table; those of large ones are counted as the
levels at which two labels differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Points(NamedTuple):
    """Rows as the kernels see them.

    Attributes:
        numbers: (rows, numeric columns) positions, times the column's weight; NaN is missing.
        spans: per numeric column its weight, which is how far a missing value is from others.
        codes: (rows, categorical columns) places of values in their hierarchy.
        table: the distances between all places of a column, column after column.
        offsets: where each categorical column begins in ``table``.
        sizes: how many places each categorical column has.
        marks: (rows, levels) labels of large hierarchies, level after level.
        steps: what differing labels add, per level.
        slots: (columns, 3) per column of the table its kind (0 numeric, 1 categorical, 2 large),
            where it stands among those of its kind, and how many levels a large one takes.
    """

    numbers: NDArray[np.float64]
    spans: NDArray[np.float64]
    codes: NDArray[np.int32]
    table: NDArray[np.float64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    marks: NDArray[np.int32]
    steps: NDArray[np.float64]
    slots: NDArray[np.int64]


@njit(cache=True, nogil=True)
def distance(p: Any, i: int, j: int) -> float:
    """How far rows ``i`` and ``j`` are apart."""
    total = 0.0
    for c in range(p.numbers.shape[1]):
        x = abs(p.numbers[i, c] - p.numbers[j, c])
        if x != x:
            both = np.isnan(p.numbers[i, c]) and np.isnan(p.numbers[j, c])
            x = 0.0 if both else p.spans[c]
        total += x
    for c in range(p.codes.shape[1]):
        total += p.table[p.offsets[c] + p.codes[i, c] * p.sizes[c] + p.codes[j, c]]
    for m in range(p.marks.shape[1]):
        if p.marks[i, m] != p.marks[j, m]:
            total += p.steps[m]
    return total


@njit(cache=True, nogil=True)
def apart(p: Any, column: int, i: int, j: int) -> Any:
    """How far rows ``i`` and ``j`` are apart in one column."""
    kind, slot = p.slots[column, 0], p.slots[column, 1]
    if kind == 0:
        x = abs(p.numbers[i, slot] - p.numbers[j, slot])
        if x != x:
            both = np.isnan(p.numbers[i, slot]) and np.isnan(p.numbers[j, slot])
            x = 0.0 if both else p.spans[slot]
        return x
    if kind == 1:
        place = p.offsets[slot] + p.codes[i, slot] * p.sizes[slot] + p.codes[j, slot]
        return p.table[place]
    total = 0.0
    for m in range(slot, slot + p.slots[column, 2]):
        if p.marks[i, m] != p.marks[j, m]:
            total += p.steps[m]
    return total


@njit(cache=True, nogil=True)
def spread(p: Any, origin: int, rows: Any, count: int, out: Any) -> None:
    """Write the distance from ``origin`` of each of the first ``count`` rows to ``out[row]``."""
    numbers, categories, levels = p.numbers.shape[1], p.codes.shape[1], p.marks.shape[1]
    begin = np.empty(categories, np.int64)
    for c in range(categories):
        begin[c] = p.offsets[c] + p.codes[origin, c] * p.sizes[c]
    for a in range(count):
        row = rows[a]
        total = 0.0
        for c in range(numbers):
            x = abs(p.numbers[origin, c] - p.numbers[row, c])
            if x != x:
                both = np.isnan(p.numbers[origin, c]) and np.isnan(p.numbers[row, c])
                x = 0.0 if both else p.spans[c]
            total += x
        for c in range(categories):
            total += p.table[begin[c] + p.codes[row, c]]
        for m in range(levels):
            if p.marks[origin, m] != p.marks[row, m]:
                total += p.steps[m]
        out[row] = total


@njit(cache=True, nogil=True)
def matrix(p: Any, rows: NDArray[np.int64]) -> Any:
    """All distances between a few rows."""
    n = len(rows)
    out = np.zeros((n, n), np.float64)
    for i in range(n):
        for j in range(i):
            out[i, j] = out[j, i] = distance(p, rows[i], rows[j])
    return out


@njit(cache=True, nogil=True)
def diameters(p: Any, order: NDArray[np.int64], starts: NDArray[np.int64]) -> Any:
    """The largest distance inside each class; class c is ``order[starts[c]:starts[c + 1]]``."""
    out = np.zeros(len(starts) - 1, np.float64)
    for c in range(len(out)):
        widest = 0.0
        for a in range(starts[c], starts[c + 1]):
            for b in range(starts[c], a):
                widest = max(widest, distance(p, order[a], order[b]))
        out[c] = widest
    return out


@njit(cache=True, nogil=True)
def column_widths(
    p: Any,
    places: NDArray[np.int32],
    column: int,
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
) -> Any:
    """How wide each class is in one column: the distance of its outermost places."""
    out = np.zeros(len(starts) - 1, np.float64)
    for c in range(len(out)):
        low = high = order[starts[c]]
        for a in range(starts[c] + 1, starts[c + 1]):
            row = order[a]
            if places[row, column] < places[low, column]:
                low = row
            if places[row, column] > places[high, column]:
                high = row
        out[c] = apart(p, column, low, high)
    return out


@njit(cache=True, nogil=True)
def pair_sums(
    p: Any, order: NDArray[np.int64], starts: NDArray[np.int64], held: NDArray[np.int64]
) -> Any:
    """The sum of all distances inside each class, every pair once; row i stands for ``held[i]``."""
    out = np.zeros(len(starts) - 1, np.float64)
    for c in range(len(out)):
        for a in range(starts[c], starts[c + 1]):
            for b in range(starts[c], a):
                one, two = order[a], order[b]
                out[c] += distance(p, one, two) * held[one] * held[two]
    return out


@njit(cache=True, nogil=True)
def smallest_between(p: Any, ids: NDArray[np.int64]) -> float:
    """The smallest distance between rows of different classes; infinite if there is one class."""
    best = np.inf
    for i in range(len(ids)):
        for j in range(i):
            if ids[i] != ids[j]:
                best = min(best, distance(p, i, j))
    return best
