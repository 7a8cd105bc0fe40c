"""Which released tuples cover which tuples of original values.

A released class covers a tuple of leaves if each of its labels covers the leaf of its column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.codes import joint
from halfmask.metrics.weighted import tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.kernels.cover import Found
    from halfmask.metrics.shared_column import SharedColumn


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


class Cover:
    """Distinct tuples of the original's leaves, and the released tuples over them.

    Attributes:
        ids: per entry of the original, its tuple.
        count: how many tuples there are.
        released: the released tuples; columns with little to cover stand first.
    """

    def __init__(self, columns: list[SharedColumn]) -> None:
        # Few ways down from the top; the widest ranges come last, where they are added at once.
        ordered = sorted(columns, key=lambda column: len(column.covered))
        self.released = Released(ordered)
        self.ids, self.count = joint([(c.before, c.leaves) for c in ordered])
        first = np.empty(self.count, dtype=np.int64)
        first[self.ids] = np.arange(len(self.ids))
        self._leaves = np.stack([c.before[first] for c in ordered])

    def mass(self, *, evenly: bool = True) -> NDArray[np.float64]:
        """Per tuple, the released rows over it.

        With ``evenly``, a released row counts for its share of the leaf tuples that it covers.
        """
        rows = self.released.rows
        weights = rows / self.released.leaves if evenly else rows
        return self._found(weights, np.empty(0, dtype=np.int64)).total()

    def tightest(self) -> NDArray[np.int64]:
        """Per tuple, the released tuple over it that covers least; -1 where none is over it."""
        order = np.argsort(self.released.leaves, kind="stable")
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order))
        best = self._found(self.released.rows, ranks).best
        return np.asarray(np.where(best >= 0, order[best], -1))

    def _found(self, weights: NDArray[np.float64], ranks: NDArray[np.int64]) -> Found:
        from halfmask.kernels import cover

        columns = self.released.columns
        above = [column.labels_of() for column in columns]
        found = cover.Found.of(self.count, weights, ranks)
        walked = cover.Columns(
            np.stack(self.released.labels),
            self._leaves,
            *_chained([(column.starts, column.covered) for column in columns]),
            *_chained(above),
            _offsets([len(column.starts) for column in columns]),
            _offsets([len(starts) for starts, _ in above]),
        )
        cover.covering(walked, found)
        return found


def covering_rows(columns: list[SharedColumn]) -> NDArray[np.int64]:
    """Per entry of the original, how many released rows could be its own: whose labels cover it."""
    found = Cover(columns)
    return np.asarray(np.rint(found.mass(evenly=False)), dtype=np.int64)[found.ids]


def finding_chance(columns: list[SharedColumn]) -> NDArray[np.float64]:
    """Per original row, the chance to find it by guessing a released row of the tightest fit.

    A row whose labels cover many tuples is less likely the one of a person who fits: each fitting
    row counts for its share of the tuples that it covers. 0 where no row fits.
    """
    found = Cover(columns)
    best, mass = found.tightest(), found.mass()
    chance = np.zeros(found.count)
    held = best >= 0
    chance[held] = 1.0 / (found.released.leaves[best[held]] * mass[held])
    return chance[found.ids]


def tightest_class(columns: list[SharedColumn]) -> NDArray[np.int64]:
    """Per entry of the original, the released class that covers it most tightly; -1: none."""
    found = Cover(columns)
    number = np.empty(len(found.released) + 1, dtype=np.int64)
    number[found.released.ids] = Released(columns).ids
    number[-1] = -1
    return np.asarray(number[found.tightest()][found.ids])


def _chained(
    lists: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lists of lists, one after the other."""
    shifts = _offsets([len(values) for _, values in lists])
    starts = [begin + shift for (begin, _), shift in zip(lists, shifts.tolist(), strict=True)]
    return np.concatenate(starts), np.concatenate([values for _, values in lists])


def _offsets(lengths: list[int]) -> NDArray[np.int64]:
    return np.cumsum([0, *lengths[:-1]], dtype=np.int64)
