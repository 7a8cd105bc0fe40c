"""One tree per column from the merges of a co-clustering of (row, part of a column).

Definition: walk the levels from the finest grid to one cell; whenever parts of a column newly fall
    into the same group, one node joins them.
Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018, 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.criterion import Criterion
from halfmask.coclustering.merges import by_appearance, merge
from halfmask.coclustering.observations import Variable, observe
from halfmask.table.sets import MISSING, SIGN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.hierarchy import MergeHierarchy
    from halfmask.coclustering.prepare import ColumnParts, Melted

_NAMED = 4  # a group of up to so many parts is labeled with all of them


@dataclass(frozen=True, slots=True, eq=False)
class ColumnTree:
    """The groups of one column's parts, level by level.

    Attributes:
        column: the parts; they are level 0.
        levels: per level from 0, the group of each part; the last level is one group.
    """

    column: ColumnParts
    levels: tuple[NDArray[np.int32], ...]

    def __repr__(self) -> str:
        return f"ColumnTree({self.column.name!r}, {len(self.levels)} levels)"

    def labels(self, level: int) -> list[str]:
        """The label of each group of one level."""
        groups = self.levels[level]
        counts = np.bincount(self.column.codes, minlength=len(self.column.labels))
        out = [
            group_label(self.column, np.flatnonzero(groups == g), counts)
            for g in range(int(groups.max()) + 1)
        ]
        return [
            label if out.index(label) == place else f"{label} ({place})"
            for place, label in enumerate(out)
        ]

    def first(self, parts: int) -> ColumnTree:
        """The tree of the first parts alone."""
        column = replace(self.column, labels=self.column.labels[:parts])
        return ColumnTree(column, tuple(by_appearance(level[:parts]) for level in self.levels))

    def lowest(self, parts: NDArray[np.int64]) -> tuple[int, int]:
        """The finest level and the group there that covers all of ``parts``."""
        for level, groups in enumerate(self.levels):
            if len(np.unique(groups[parts])) == 1:
                return level, int(groups[parts[0]])
        return len(self.levels) - 1, 0

    def to_csv(self) -> str:
        """The tree as ARX reads it: part;level 1;...;root."""
        labels = [list(self.column.labels)]
        labels += [self.labels(level) for level in range(1, len(self.levels) - 1)]
        lines = [
            ";".join(
                [names[groups[p]] for names, groups in zip(labels, self.levels, strict=False)]
                + ["*"]
            )
            for p in range(len(self.column.labels))
        ]
        return "\n".join(lines) + "\n"


def group_label(column: ColumnParts, parts: NDArray[np.int64], counts: NDArray[np.int64]) -> str:
    """A group of parts as text: all of them, their ends, or the most frequent and how many more."""
    names = [column.labels[p] for p in parts.tolist()]
    run = len(parts) > 2 and bool((np.diff(parts) == 1).all())
    if run and column.ordered and column.cuts is None and column.labels[parts[-1]] != MISSING:
        return f"{names[0]} to {names[-1]}"
    if len(names) <= _NAMED:
        return SIGN.join(names)
    known = np.argsort(-counts[parts], kind="stable")[:2]
    return SIGN.join([*(names[p] for p in known.tolist()), f"{len(names) - 2} more"])


def column_trees(levels: MergeHierarchy, melted: Melted) -> dict[str, ColumnTree]:
    """The tree of each column, as the merges of the grid give it."""
    side = levels.grid.side("part")
    group = levels.grid.partition[side].copy()
    found: dict[str, list[NDArray[np.int32]]] = {}
    places = {
        column.name: slice(melted.offsets[k], melted.offsets[k + 1])
        for k, column in enumerate(melted.columns)
    }
    for name, place in places.items():
        found[name] = [np.arange(place.stop - place.start, dtype=np.int32)]
    merges = [(-1, -1)] + [
        (kept, gone) for merged, kept, gone in levels.path.steps.tolist() if merged == side
    ]
    for kept, gone in merges:
        group[group == gone] = kept
        for name, place in places.items():
            here = by_appearance(group[place])
            if int(here.max()) < int(found[name][-1].max()):
                found[name].append(here)
    return {c.name: ColumnTree(c, tuple(found[c.name])) for c in melted.columns}


def ordered_tree(column: ColumnParts, groups: NDArray[np.int32]) -> ColumnTree:
    """The tree of a column whose neighbours alone may join, by its law over groups of rows.

    The missing value, the last part where there is one, joins at the root only.
    """
    parts = int(column.codes.max()) + 1
    missing = parts < len(column.labels) or column.labels[-1] == MISSING
    count = len(column.labels) - (1 if missing else 0)
    present = column.codes < count
    observed = observe(
        [
            Variable("part", "numeric", count),
            Variable("group", "categorical", int(groups.max()) + 1),
        ],
        [column.codes[present], groups[present]],
    )
    start = (
        np.arange(count, dtype=np.int32),
        np.arange(int(groups.max()) + 1, dtype=np.int32),
    )
    path = merge(Criterion(observed), start, cost=0.0, frozen=[False, True])
    levels = []
    for step in range(len(path.steps) + 1):
        here = path.partition(step)[0]
        levels.append(np.append(here, here.max() + 1).astype(np.int32) if missing else here)
    if missing:
        levels.append(np.zeros(count + 1, dtype=np.int32))
    return ColumnTree(column, tuple(levels))


def thinned(tree: ColumnTree, limit: int) -> ColumnTree:
    """At most ``limit`` levels between the parts and the root, each with about half the groups."""
    middle = [level for level in tree.levels[1:] if int(level.max()) + 1 > 1]
    if len(middle) > limit:
        counts = np.array([int(level.max()) + 1 for level in middle])
        first = int(tree.levels[0].max()) + 1
        wanted = np.geomspace(first, 1, limit + 2)[1:-1]
        picked = sorted({int(np.abs(counts - w).argmin()) for w in wanted})
        middle = [middle[p] for p in picked]
    root = np.zeros_like(tree.levels[0])
    return ColumnTree(tree.column, (tree.levels[0], *middle, root))
