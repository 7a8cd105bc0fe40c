"""Which released tuples cover which tuples of original values.

A released class covers a tuple of leaves if each of its labels covers the leaf of its column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.codes import joint
from halfmask.metrics.weighted import tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.shared_column import SharedColumn

    Leaves = Sequence[NDArray[np.int32]]


class Released:
    """The distinct released tuples of some columns, in lexicographic order.

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

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def leaves(self) -> NDArray[np.float64]:
        """Per tuple, how many tuples of leaves it covers."""
        out = np.ones(len(self))
        for column, held in zip(self.columns, self.labels, strict=True):
            out *= column.sizes[held]
        return out

    def over(
        self, leaves: Leaves, weights: NDArray[np.float64], ranks: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Per tuple of leaves, the weight of the released tuples over it, and their lowest rank.

        ``leaves`` are distinct and in lexicographic order, as the released tuples are; the rank is
        -1 where nothing covers a tuple.
        """
        from halfmask.kernels import cover

        above = [column.labels_of() for column in self.columns]
        count = len(leaves[0])
        found = cover.Found(weights, ranks, np.zeros(count), np.full(count, -1, dtype=np.int64))
        columns = cover.Columns(
            np.stack(self.labels),
            np.stack(leaves),
            *_chained([(column.starts, column.covered) for column in self.columns]),
            *_chained(above),
            _offsets([len(column.starts) for column in self.columns]),
            _offsets([len(starts) for starts, _ in above]),
        )
        cover.covering(columns, found)
        return found.mass, found.best


def covering_mass(
    columns: list[SharedColumn], leaves: Leaves, *, evenly: bool = True
) -> NDArray[np.float64]:
    """Per tuple of leaves, the released rows whose labels cover it.

    With ``evenly``, a released row counts for its share of the leaf tuples that it covers.
    """
    released = Released(columns)
    rows = released.rows / released.leaves if evenly else released.rows
    return released.over(leaves, rows, np.zeros(len(released), dtype=np.int64))[0]


def covering_rows(columns: list[SharedColumn]) -> NDArray[np.int64]:
    """Per entry of the original, how many released rows could be its own: whose labels cover it."""
    ids, leaves = _distinct(columns)
    rows = covering_mass(columns, leaves, evenly=False)
    return np.asarray(np.rint(rows), dtype=np.int64)[ids]


def finding_chance(columns: list[SharedColumn]) -> NDArray[np.float64]:
    """Per original row, the chance to find it by guessing a released row of the tightest fit.

    A row whose labels cover many tuples is less likely the one of a person who fits: each fitting
    row counts for its share of the tuples that it covers. 0 where no row fits.
    """
    ids, leaves = _distinct(columns)
    best = tightest_class(columns)
    sizes = Released(columns).leaves
    fits = covering_mass(columns, leaves)[ids]
    chance = np.zeros(len(best))
    held = best >= 0
    chance[held] = 1.0 / (sizes[best[held]] * fits[held])
    return chance


def tightest_class(columns: list[SharedColumn]) -> NDArray[np.int64]:
    """Per entry of the original, the released class that covers it most tightly; -1: none."""
    ids, leaves = _distinct(columns)
    released = Released(columns)
    order = np.argsort(released.leaves, kind="stable")
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    best = released.over(leaves, released.rows, ranks)[1]
    return np.asarray(np.where(best >= 0, order[best], -1)[ids])


def _distinct(columns: list[SharedColumn]) -> tuple[NDArray[np.int64], list[NDArray[np.int32]]]:
    """The distinct tuples of leaves that the original holds, and each entry's."""
    ids, count = joint([(c.before, c.leaves) for c in columns])
    first = np.empty(count, dtype=np.int64)
    first[ids] = np.arange(len(ids))
    return ids, [c.before[first] for c in columns]


def _chained(
    lists: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lists of lists, one after the other."""
    shifts = _offsets([len(values) for _, values in lists])
    starts = [begin + shift for (begin, _), shift in zip(lists, shifts.tolist(), strict=True)]
    return np.concatenate(starts), np.concatenate([values for _, values in lists])


def _offsets(lengths: list[int]) -> NDArray[np.int64]:
    return np.cumsum([0, *lengths[:-1]], dtype=np.int64)
