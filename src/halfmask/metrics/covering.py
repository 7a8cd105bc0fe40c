"""Which released tuples cover which tuples of original values.

A released class covers a tuple of leaves if each of its labels covers the leaf of its column. Where
labels stand at few combinations of levels, each combination is one lookup; else tuples are compared
one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.codes import joint
from halfmask.metrics.weighted import tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.shared_column import SharedColumn

    Leaves = Sequence[NDArray[np.int32]]

_PATTERNS = 500  # more combinations of levels than these are compared tuple by tuple


class Released:
    """The distinct released tuples of some columns.

    Attributes:
        columns: the columns.
        labels: per column, the label of each tuple.
        rows: how many released rows hold each tuple.
        ids: per entry of the release, its tuple.
    """

    def __init__(self, columns: list[SharedColumn]) -> None:
        self.columns = columns
        self.ids, count = joint([(c.after, c.labels) for c in columns])
        first = np.empty(count, dtype=np.int64)
        first[self.ids] = np.arange(len(self.ids))
        self.labels = [c.after[first] for c in columns]
        self.rows = tally(self.ids, count, columns[0].after_counts).astype(np.float64)
        self._levels = [
            (c.level[held].astype(np.int32), len(c.to_label))
            for c, held in zip(columns, self.labels, strict=True)
        ]
        self._pattern, self._patterns = joint(self._levels)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def leaves(self) -> NDArray[np.float64]:
        """Per tuple, how many tuples of leaves it covers."""
        out = np.ones(len(self))
        for column, held in zip(self.columns, self.labels, strict=True):
            out *= column.sizes[held]
        return out

    def covers(self, leaves: Leaves) -> Iterator[NDArray[np.int64]]:
        """Per combination of levels, the released tuple that covers each tuple of leaves, or -1."""
        for p in range(self._patterns):
            # At fixed levels every leaf has one label: one released tuple at most covers it.
            inside = np.flatnonzero(self._pattern == p)
            wanted = [
                column.to_label[level[inside[0]]][leaf]
                for column, (level, _), leaf in zip(self.columns, self._levels, leaves, strict=True)
            ]
            absent = np.any([w < 0 for w in wanted], axis=0)
            both = [
                (np.concatenate([held[inside], np.maximum(w, 0)]), column.labels)
                for column, held, w in zip(self.columns, self.labels, wanted, strict=True)
            ]
            numbers, total = joint(both)
            place = np.full(total, -1, dtype=np.int64)
            place[numbers[: len(inside)]] = inside
            yield np.where(absent, -1, place[numbers[len(inside) :]])

    @property
    def tangled(self) -> bool:
        """Whether labels stand at so many levels that tuples are better compared directly."""
        return self._patterns > _PATTERNS

    def tables(self) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
        """Whether labels cover leaves, column after column, where each begins and how wide."""
        tables = []
        for column in self.columns:
            held = np.zeros((column.labels, column.leaves), dtype=np.bool_)
            held[np.repeat(np.arange(column.labels), column.sizes), column.covered] = True
            tables.append(held)
        widths = np.array([column.leaves for column in self.columns], dtype=np.int64)
        offsets = np.cumsum([0] + [held.size for held in tables[:-1]], dtype=np.int64)
        return np.concatenate([held.ravel() for held in tables]), offsets, widths


def covering_mass(
    columns: list[SharedColumn], leaves: Leaves, *, evenly: bool = True
) -> NDArray[np.float64]:
    """Per tuple of leaves, the released rows whose labels cover it.

    With ``evenly``, a released row counts for its share of the leaf tuples that it covers.
    """
    released = Released(columns)
    rows = released.rows / released.leaves if evenly else released.rows
    if released.tangled:
        from halfmask.kernels import cover

        return np.asarray(
            cover.covered_mass(
                np.column_stack(leaves).astype(np.int64),
                np.column_stack(released.labels).astype(np.int64),
                rows,
                *released.tables(),
            )
        )
    mass = np.zeros(len(leaves[0]))
    for found in released.covers(leaves):
        mass += np.where(found >= 0, rows[found], 0.0)
    return mass


def covering_rows(columns: list[SharedColumn]) -> NDArray[np.int64]:
    """Per entry of the original, how many released rows could be its own: whose labels cover it."""
    ids, leaves = _distinct(columns)
    rows = covering_mass(columns, leaves, evenly=False)
    return np.asarray(np.rint(rows), dtype=np.int64)[ids]


def tightest_class(columns: list[SharedColumn]) -> NDArray[np.int64]:
    """Per entry of the original, the released class that covers it most tightly; -1: none."""
    ids, leaves = _distinct(columns)
    released = Released(columns)
    size = released.leaves
    if released.tangled:
        from halfmask.kernels import cover

        order = np.argsort(size, kind="stable")
        labels = np.column_stack(released.labels).astype(np.int64)[order]
        found = np.asarray(
            cover.first_cover(np.column_stack(leaves).astype(np.int64), labels, *released.tables())
        )
        return np.asarray(np.where(found >= 0, order[found], -1)[ids])
    best = np.full(len(leaves[0]), -1, dtype=np.int64)
    for found in released.covers(leaves):
        better = (found >= 0) & ((best < 0) | (size[found] < size[best]))
        best = np.where(better, found, best)
    return best[ids]


def _distinct(columns: list[SharedColumn]) -> tuple[NDArray[np.int64], list[NDArray[np.int32]]]:
    """The distinct tuples of leaves that the original holds, and each entry's."""
    ids, count = joint([(c.before, c.leaves) for c in columns])
    first = np.empty(count, dtype=np.int64)
    first[ids] = np.arange(len(ids))
    return ids, [c.before[first] for c in columns]
