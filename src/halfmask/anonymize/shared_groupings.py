"""Classes at any levels for several searches on one table.

Other settings look at much the same levels, so that what was grouped is remembered, and new levels
are reached in one pass from the smallest known grouping that is finer.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.groupings import Groupings, compact, size_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.hierarchy import Hierarchy

BUDGET = 256 << 20  # bytes


class SharedGroupings(Groupings):
    """Groupings that outlast a search, with a bounded memory."""

    def __init__(
        self, tuples: Classes, hierarchies: Sequence[Hierarchy], budget: int = BUDGET
    ) -> None:
        super().__init__(tuples, hierarchies, budget)
        self._place: OrderedDict[tuple[int, ...], int] = OrderedDict()
        self._classes: list[Classes] = [tuples]
        self._levels = np.zeros((64, len(hierarchies)), dtype=np.int16)
        self._sizes = np.full(64, np.iinfo(np.int64).max, dtype=np.int64)
        self._sizes[0] = len(tuples)
        self._free: list[int] = []

    def at(self, levels: Sequence[int]) -> Classes:
        """The classes when column c is generalized to ``levels[c]``."""
        wanted = tuple(levels)
        if not any(wanted):
            return self.tuples
        if wanted in self._place:
            self._place.move_to_end(wanted)
            return self._classes[self._place[wanted]]
        place = self._nearest(wanted)
        columns = [c for c, level in enumerate(wanted) if level != self._levels[place, c]]
        maps = [self._between(c, int(self._levels[place, c]), wanted[c]) for c in columns]
        found = compact(self._classes[place].coarsen(columns, maps))
        self._keep(wanted, found)
        return found

    def _nearest(self, wanted: tuple[int, ...]) -> int:
        """The place of the smallest known grouping that is nowhere coarser."""
        used = len(self._classes)
        finer = (self._levels[:used] <= np.array(wanted, dtype=np.int16)).all(axis=1)
        return int(np.where(finer, self._sizes[:used], np.iinfo(np.int64).max).argmin())

    def _between(self, column: int, low: int, high: int) -> NDArray[np.int32]:
        """The label on level ``high`` of each label on level ``low``."""
        maps = self._hierarchies[column].maps
        if low == 0:
            return np.asarray(maps[high])
        out = np.zeros(int(maps[low].max()) + 1, dtype=np.int32)
        out[maps[low]] = maps[high]
        return out

    def _keep(self, levels: tuple[int, ...], classes: Classes) -> None:
        self._held += size_of(classes)
        while self._held > self._budget and self._place:
            _, place = self._place.popitem(last=False)
            self._held -= size_of(self._classes[place])
            self._sizes[place] = np.iinfo(np.int64).max
            self._classes[place] = self.tuples  # give the memory back
            self._free.append(place)
        if self._free:
            place = self._free.pop()
            self._classes[place] = classes
        else:
            place = len(self._classes)
            self._classes.append(classes)
            if place == len(self._sizes):
                more = np.full_like(self._sizes, np.iinfo(np.int64).max)
                self._sizes = np.concatenate([self._sizes, more])
                self._levels = np.concatenate([self._levels, np.zeros_like(self._levels)])
        self._place[levels] = place
        self._levels[place], self._sizes[place] = levels, len(classes)
