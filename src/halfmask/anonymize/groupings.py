"""Classes at any levels, each computed from a finer grouping that is already known.

Levels are raised column by column in a fixed order, many-valued columns first, and what lies on the
way is kept: a new node then costs one pass over a grouping that is hardly larger than itself. Where
several searches look at much the same levels of one table, all that was grouped is shared, and new
levels are reached from the smallest known grouping that is finer.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.table.classes import Classes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.problem import NodeOutcome
    from halfmask.table.hierarchy import Hierarchy


class Groupings:
    """The classes of a table at any combination of levels, with a bounded memory of finer ones."""

    def __init__(
        self, tuples: Classes, hierarchies: Sequence[Hierarchy], budget: int = 64 << 20
    ) -> None:
        self.tuples = tuples
        self.order = sorted(range(len(hierarchies)), key=lambda c: -len(hierarchies[c].labels[0]))
        self._budget = max(budget, 4 * size_of(tuples))
        self._held = 0
        self._known: OrderedDict[tuple[int, ...], Classes] = OrderedDict()
        self._hierarchies = hierarchies
        self._fields: dict[tuple[int, int, int], tuple[NDArray[Any], ...]] = {}

    def at(self, levels: Sequence[int], near: NodeOutcome | None = None) -> Classes:
        """The classes when column c is generalized to ``levels[c]``.

        ``near`` is nowhere coarser: where its classes are fewer than what is known on the way, they
        are merged.
        """
        path = [levels[c] for c in self.order]
        while path and path[-1] == 0:
            path.pop()
        if near is not None and len(near.classes) < len(self._known_before(tuple(path))):
            return self._merge(near, levels)
        return self._reach(tuple(path))

    def _known_before(self, path: tuple[int, ...]) -> Classes:
        """The coarsest grouping on the way to ``path`` that is remembered."""
        ends = range(len(path), 0, -1)
        return next((self._known[path[:e]] for e in ends if path[:e] in self._known), self.tuples)

    def _merge(self, near: NodeOutcome, levels: Sequence[int]) -> Classes:
        columns = [c for c, level in enumerate(levels) if level != near.levels[c]]
        if len(columns) == 1:
            column = columns[0]
            fields = self._step(column, near.levels[column], levels[column])
            return near.classes.merged(*near.classes.recode(fields))
        maps = [level_map(self._hierarchies[c], near.levels[c], levels[c]) for c in columns]
        return near.classes.coarsen(columns, maps)

    def _reach(self, path: tuple[int, ...]) -> Classes:
        if not path:
            return self.tuples
        if path in self._known:
            self._known.move_to_end(path)
            return self._known[path]
        end = len(path) - 1
        while end > 0 and path[end - 1] == 0:
            end -= 1
        finer = self._reach(path[:end])
        coarser = self._raise(finer, len(path) - 1, path[-1])
        # Nothing is reached through a complete path, and hardly anything through one column less.
        if len(path) < len(self.order) - 1:
            self._remember(path, coarser)
        return coarser

    def _raise(self, finer: Classes, place: int, level: int) -> Classes:
        return finer.merged(*finer.recode(self._step(self.order[place], 0, level)))

    def _step(self, column: int, low: int, high: int) -> tuple[NDArray[Any], ...]:
        """What leads labels of one level of a column to those of another; the same for all."""
        found = self._fields.get((column, low, high))
        if found is None:
            maps = [level_map(self._hierarchies[column], low, high)]
            found = self._fields[column, low, high] = self.tuples.field_maps([column], maps)
        return found

    def _remember(self, path: tuple[int, ...], classes: Classes) -> None:
        kept = copy_classes(classes)
        self._known[path] = kept
        self._held += size_of(kept)
        while self._held > self._budget and len(self._known) > 1:
            self._held -= size_of(self._known.popitem(last=False)[1])


def level_map(hierarchy: Hierarchy, low: int, high: int) -> NDArray[np.int32]:
    """The label on level ``high`` of each label on level ``low``."""
    if low == 0:
        return np.asarray(hierarchy.maps[high])
    out = np.zeros(int(hierarchy.maps[low].max()) + 1, dtype=np.int32)
    out[hierarchy.maps[low]] = hierarchy.maps[high]
    return out


def copy_classes(classes: Classes) -> Classes:
    """The same classes in arrays of their own: the kernel's results are views of longer ones."""
    keys, rows = classes.keys.copy(), classes.rows.copy()
    people = rows if classes.people is classes.rows else classes.people
    c = classes  # spelled out: ``replace`` takes longer than to copy
    return Classes(keys, rows, people, c.histograms, c.population, c.layout, c.owners, c.stands)


def size_of(classes: Classes) -> int:
    """Roughly how many bytes classes take."""
    histograms = sum(h.values.nbytes + h.counts.nbytes for h in classes.histograms.values())
    return int(classes.keys.nbytes + classes.rows.nbytes + histograms)


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

    def at(self, levels: Sequence[int], near: NodeOutcome | None = None) -> Classes:  # noqa: ARG002
        """The classes when column c is generalized to ``levels[c]``; all near ones are known."""
        wanted = tuple(levels)
        if not any(wanted):
            return self.tuples
        if wanted in self._place:
            self._place.move_to_end(wanted)
            return self._classes[self._place[wanted]]
        place = self._nearest(wanted)
        columns = [c for c, level in enumerate(wanted) if level != self._levels[place, c]]
        low = self._levels[place].tolist()
        maps = [level_map(self._hierarchies[c], low[c], wanted[c]) for c in columns]
        found = copy_classes(self._classes[place].coarsen(columns, maps))
        self._keep(wanted, found)
        return found

    def _nearest(self, wanted: tuple[int, ...]) -> int:
        """The place of the smallest known grouping that is nowhere coarser."""
        used = len(self._classes)
        finer = (self._levels[:used] <= np.array(wanted, dtype=np.int16)).all(axis=1)
        return int(np.where(finer, self._sizes[:used], np.iinfo(np.int64).max).argmin())

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
