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

    from halfmask.table.classes import Histogram

_SAFE = 2**62

Ratio = tuple["NDArray[Any]", "NDArray[Any]"]


def equal(values: Histogram, column: str) -> Ratio:  # noqa: ARG001 - one signature for all three
    """The distance where every two values are equally far apart: half the sum of differences."""
    total = values.totals()
    rows, size = _sizes(values.counts, values.starts, factor=4)
    moved = _differences(
        values.values, _like(values.counts, rows), values.starts, total, rows, size
    )
    return moved, 2 * size * rows


def ordered(values: Histogram, column: str) -> Ratio:  # noqa: ARG001
    """The distance over values in their order: the running sums' differences, by (m - 1).

    Between two values of a class its running sum stands still while the table's rises, so that the
    places where the difference changes its sign are found by bisection and nothing is written out.
    """
    total = values.totals()
    order = np.flatnonzero(total)
    place = np.cumsum(total > 0) - 1
    places = len(order)
    rows, size = _sizes(values.counts, values.starts, factor=4 * max(places, 1))
    owners = values.owners
    rank = place[values.values]
    by_place = np.argsort(owners * max(places, 1) + rank, kind="stable")
    rank, counts = rank[by_place], _like(values.counts[by_place], rows)
    reached = np.cumsum(total[order])
    before = np.concatenate(([0], np.cumsum(_like(reached, rows))))
    running = np.cumsum(counts)
    running = running - np.concatenate(([0], running))[values.starts[:-1]][owners]
    until = np.append(rank[1:], places)
    until[values.starts[1:][np.diff(values.starts) > 0] - 1] = places
    n = rows[owners]
    turn = np.searchsorted(reached, (running * size // n).astype(np.int64), side="right")
    turn = np.clip(turn, rank, until)
    above = running * size * (turn - rank) - n * (before[turn] - before[rank])
    under = n * (before[until] - before[turn]) - running * size * (until - turn)
    moved = reduce(np.add, above + under, values.starts)
    first = values.starts[:-1][rows > 0]
    moved[rows > 0] += rows[rows > 0] * before[rank[first]]
    return moved, max(places - 1, 1) * size * rows


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
    levels = tree.height if len(tree.labels[-1]) == 1 else tree.height + 1
    total = values.totals()
    rows, size = _sizes(values.counts, values.starts, factor=4 * max(levels, 1))
    moved = np.zeros_like(rows)
    for level in range(levels):
        labels, known = tree.maps[level], len(tree.labels[level])
        codes, counts, starts = _relabel(values, labels, known)
        above = np.bincount(labels, weights=total, minlength=known).astype(np.int64)
        moved = moved + _differences(codes, _like(counts, rows), starts, above, rows, size)
    return moved, 2 * max(levels, 1) * size * rows


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
    """The sum of |c N - C n| over all values of the column, those that a class lacks included."""
    if rows.dtype != object:
        from halfmask.kernels import distance

        return np.asarray(distance.differences(codes, counts, starts, total, rows, size))
    everywhere = total[codes]
    n = np.repeat(rows, np.diff(starts))
    inside = reduce(np.add, np.abs(counts * size - everywhere * n), starts)
    missing = size - reduce(np.add, _like(everywhere, rows), starts)
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


def _like(numbers: NDArray[np.int64], rows: NDArray[Any]) -> NDArray[Any]:
    return numbers.astype(rows.dtype, copy=False)
