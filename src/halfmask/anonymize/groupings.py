"""Classes at any levels, each computed from a finer grouping that is already known.

Levels are raised column by column in a fixed order, many-valued columns first, and what lies on the
way is kept: a new node then costs one pass over a grouping that is hardly larger than itself.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.table.classes import Classes
    from halfmask.table.hierarchy import Hierarchy


class Groupings:
    """The classes of a table at any combination of levels, with a bounded memory of finer ones."""

    def __init__(
        self, tuples: Classes, hierarchies: Sequence[Hierarchy], budget: int = 32 << 20
    ) -> None:
        self.tuples = tuples
        self.order = sorted(range(len(hierarchies)), key=lambda c: -len(hierarchies[c].labels[0]))
        self._budget = max(budget, 4 * size_of(tuples))
        self._held = 0
        self._known: OrderedDict[tuple[int, ...], Classes] = OrderedDict()
        self._hierarchies = hierarchies

    def at(self, levels: Sequence[int]) -> Classes:
        """The classes when column c is generalized to ``levels[c]``."""
        path = [levels[c] for c in self.order]
        while path and path[-1] == 0:
            path.pop()
        return self._reach(tuple(path))

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
        if len(path) < len(self.order):  # nothing is reached through a complete path
            self._remember(path, coarser)
        return coarser

    def _raise(self, finer: Classes, place: int, level: int) -> Classes:
        column = self.order[place]
        return finer.coarsen([column], [self._hierarchies[column].maps[level]])

    def _remember(self, path: tuple[int, ...], classes: Classes) -> None:
        kept = compact(classes)
        self._known[path] = kept
        self._held += size_of(kept)
        while self._held > self._budget and len(self._known) > 1:
            self._held -= size_of(self._known.popitem(last=False)[1])


def compact(classes: Classes) -> Classes:
    """The same classes in arrays of their own: the kernel's results are views of longer ones."""
    rows = classes.rows.copy()
    people = rows if classes.people is classes.rows else classes.people
    return replace(classes, keys=classes.keys.copy(), rows=rows, people=people)


def size_of(classes: Classes) -> int:
    """Roughly how many bytes classes take."""
    histograms = sum(h.values.nbytes + h.counts.nbytes for h in classes.histograms.values())
    return int(classes.keys.nbytes + classes.rows.nbytes + histograms)
