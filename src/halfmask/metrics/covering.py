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

    from halfmask.kernels.cover_columns import Found
    from halfmask.metrics.shared_column import SharedColumn

_NONE: NDArray[np.int64] = np.empty(0, dtype=np.int64)


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
        first: per tuple, an entry of the original that holds it.
        released: the released tuples; columns whose labels cover little stand first.
    """

    def __init__(self, columns: list[SharedColumn]) -> None:
        # Few ways down from the top; the widest ranges come last, where they are added at once.
        ordered = sorted(columns, key=lambda column: float(column.merged.sizes.mean()))
        self.released = Released(ordered)
        before = [(c.ordered.number[c.before], c.leaves) for c in ordered]
        self.ids, self.count = joint(before)
        self.first = np.empty(self.count, dtype=np.int64)
        self.first[self.ids] = np.arange(len(self.ids))

    def mass(self) -> NDArray[np.float64]:
        """Per tuple, the released rows over it, each for its share of the tuples it covers."""
        alike, leaves = self._alike()
        return self._found(leaves, self.released.rows / self.released.leaves).mass[alike]

    def tightest(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Per tuple, the released tuple over it that covers least, -1 for none; and its mass."""
        order = np.argsort(self.released.leaves, kind="stable")
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order))
        alike, leaves = self._alike()
        found = self._found(leaves, self.released.rows / self.released.leaves, ranks=ranks)
        best = np.where(found.best >= 0, order[found.best], -1)
        return best[alike], found.mass[alike]

    def fitting(self, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """The tuples that each released tuple covers: where those of each begin, and these.

        None where the squares of their numbers add up to more than ``most``.
        """
        leaves = np.stack([c.ordered.number[c.before[self.first]] for c in self.released.columns])
        rows, ends = self.released.rows, np.zeros(len(self.released), dtype=np.int64)
        sizes = self._found(leaves, rows, ends=ends, merged=False).ends
        if int((sizes * sizes).sum()) > most:
            return None
        starts = np.concatenate(([0], np.cumsum(sizes)))
        fits = np.empty(starts[-1], dtype=np.int64)
        if len(fits):
            self._found(leaves, rows, ends=starts[:-1].copy(), fits=fits, merged=False)
        return starts, fits

    def _alike(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Tuples that no label tells apart are one: per tuple its number; and their leaves."""
        columns = self.released.columns
        leaves = [c.merged.number[c.before[self.first]] for c in columns]
        if all(c.merged is c.ordered for c in columns):
            return np.arange(self.count), np.stack(leaves)
        sizes = [c.merged.count for c in columns]
        ids, count = joint(list(zip(leaves, sizes, strict=True)))
        first = np.empty(count, dtype=np.int64)
        first[ids] = np.arange(len(ids))
        return ids, np.stack([held[first] for held in leaves])

    def _found(
        self,
        leaves: NDArray[np.int32],
        weights: NDArray[np.float64],
        *,
        ranks: NDArray[np.int64] = _NONE,
        ends: NDArray[np.int64] = _NONE,
        fits: NDArray[np.int64] = _NONE,
        merged: bool = True,
    ) -> Found:
        from halfmask.kernels.cover import covering
        from halfmask.kernels.cover_columns import Columns, Found

        count = leaves.shape[1]
        best = np.full(count, -1, dtype=np.int64)
        found = Found(weights, np.zeros(count), ranks, best, ends, fits)
        orders = [c.merged if merged else c.ordered for c in self.released.columns]
        under = [(order.starts, order.covered) for order in orders]
        covering(Columns.of(self.released.labels, leaves, under), found)
        return found


def finding_chance(columns: list[SharedColumn]) -> NDArray[np.float64]:
    """Per original row, the chance to find it by guessing a released row of the tightest fit.

    A row whose labels cover many tuples is less likely the one of a person who fits: each fitting
    row counts for its share of the tuples that it covers. 0 where no row fits.
    """
    found = Cover(columns)
    best, mass = found.tightest()
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
    return np.asarray(number[found.tightest()[0]][found.ids])
