"""The earth mover's distance between each class and the whole table, as integer ratios.

With c the counts in a class of n rows and C those in the table of N rows, every distance is a sum
of |c N - C n| or of its running sums, divided by n N and a constant: all integers, so that the
comparison with a threshold is exact. Only values that occur count as values of the column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import SchemaError
from halfmask.models.statistics import reduce

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.histogram import Histogram

_SAFE = 2**62

Ratio = tuple["NDArray[Any]", "NDArray[Any]"]


def equal(values: Histogram, column: str) -> Ratio:  # noqa: ARG001 - one signature for all three
    """The distance where every two values are equally far apart: half the sum of differences."""
    total = values.totals()
    rows, size = _sizes(values.counts, values.starts, factor=4)
    full = 2 * size * rows
    if rows.dtype != object:
        from halfmask.kernels import distance

        moved = distance.differences(values.values, values.counts, values.starts, total, rows, size)
        return np.asarray(moved), full
    counts = values.counts.astype(object)
    return _differences(values.values, counts, values.starts, total, rows, size), full


def ordered(values: Histogram, column: str) -> Ratio:  # noqa: ARG001
    """The distance over values in their order: the running sums' differences, by (m - 1)."""
    total = values.totals()
    order = np.flatnonzero(total)
    places = (np.cumsum(total > 0) - 1)[values.values]
    reached = np.cumsum(total[order])
    rows, size = _sizes(values.counts, values.starts, factor=4 * max(len(order), 1))
    full = max(len(order) - 1, 1) * size * rows
    if rows.dtype != object:
        from halfmask.kernels import distance

        moved = distance.ordered(places, values.counts, values.starts, reached, rows, size)
        return np.asarray(moved), full
    moved = np.zeros_like(rows)
    for i in range(len(rows)):
        inside = slice(values.starts[i], values.starts[i + 1])
        dense = np.zeros(len(order), dtype=object)
        dense[places[inside]] = values.counts[inside].astype(object)
        moved[i] = np.abs(np.cumsum(dense) * size - reached.astype(object) * rows[i]).sum()
    return moved, full


def hierarchical(values: Histogram, column: str) -> Ratio:
    """The distance over a hierarchy: the mean over its levels of the equal distance there.

    Li's recursion charges height(N) / H * min(surplus, lack) at each label N; as twice the minimum
    is the difference between what the children and what N itself must move, the charges telescope
    to the sum over the levels below the root.
    """
    tree = values.hierarchy
    if tree is None:
        raise SchemaError(
            f"Column {column!r} has no hierarchy, which the hierarchical distance needs: "
            "declare one in the schema."
        )
    # Where the top level keeps several labels, the root stands one level above it.
    levels = max(tree.height if len(tree.labels[-1]) == 1 else tree.height + 1, 1)
    maps, total = tree.maps[:levels], values.totals()
    known = max(len(labels) for labels in tree.labels)
    totals = np.zeros((len(maps), known), dtype=np.int64)
    for level, labels in enumerate(maps):
        np.add.at(totals[level], labels, total)
    rows, size = _sizes(values.counts, values.starts, factor=4 * levels)
    full = 2 * levels * size * rows
    if rows.dtype != object:
        from halfmask.kernels import distance

        moved = distance.layered(
            values.values, values.counts, values.starts, maps, totals, rows, size
        )
        return np.asarray(moved), full
    moved = np.zeros_like(rows)
    for level, labels in enumerate(maps):
        codes, counts, starts = _relabel(values, labels, known)
        moved = moved + _differences(
            codes, counts.astype(object), starts, totals[level], rows, size
        )
    return moved, full


def _relabel(
    values: Histogram, labels: NDArray[np.int32], known: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The histogram with each value replaced by its label."""
    pairs = values.owners * known + labels[values.values]
    order = np.argsort(pairs, kind="stable")
    pairs = pairs[order]
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    counts = np.add.reduceat(values.counts[order], first) if len(first) else values.counts[:0]
    merged = pairs[first]
    groups = len(values.starts) - 1
    starts = np.searchsorted(merged, np.arange(groups + 1) * known)
    return merged % known, counts, starts


def _differences(
    codes: NDArray[Any],
    counts: NDArray[Any],
    starts: NDArray[np.int64],
    total: NDArray[np.int64],
    rows: NDArray[Any],
    size: int,
) -> NDArray[Any]:
    """The sum of |c N - C n| over all values of the column, in Python's integers."""
    everywhere = total[codes]
    n = np.repeat(rows, np.diff(starts))
    inside = reduce(np.add, np.abs(counts * size - everywhere * n), starts)
    missing = size - reduce(np.add, everywhere.astype(object), starts)
    return np.asarray(inside + missing * rows)


def _sizes(
    counts: NDArray[np.int64], starts: NDArray[np.int64], *, factor: int
) -> tuple[NDArray[Any], int]:
    """Rows per class and in all, as Python's integers where machine integers could overflow."""
    rows: NDArray[Any] = reduce(np.add, counts, starts)
    size = int(counts.sum())
    if factor * size * size >= _SAFE:
        rows = rows.astype(object)
    return rows, size
