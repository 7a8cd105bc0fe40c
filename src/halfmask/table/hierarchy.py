"""The levels of generalization of one column, as integer arrays.

A hierarchy is bound to the distinct values of a column: ``maps[level][value]`` is the code of the
label that the value gets at that level, so that to generalize is to index. Level 0 is the value
itself. Levels nest: two values that share a label share all coarser labels.
"""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

TOP = "*"


class HierarchyBuilder(Protocol):
    """A rule that makes the hierarchy of a column from its distinct values."""

    def build(self, column: str, values: pa.Array) -> Hierarchy:
        """Return the hierarchy of ``values``; ``column`` is named in errors."""
        ...

    def to_dict(self) -> dict[str, object]:
        """Return what stands behind ``hierarchy =`` in the schema file."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Hierarchy:
    """Labels of every level for the distinct values of one column.

    Attributes:
        maps: (levels, values) int32; ``maps[0]`` is ``arange(values)``.
        labels: per level, the text of each label; ``labels[0]`` holds the values themselves
            (``None`` is the missing value, a value of its own).
        leaves: per level, how many leaves of the whole hierarchy each label covers.
        size: the number of leaves of the whole hierarchy (it may know more than the table holds).
        beneath: per level, how high each label stands over the leaves that the table does not hold.
    """

    maps: NDArray[np.int32]
    labels: tuple[list[object], ...]
    leaves: tuple[NDArray[np.int64], ...]
    size: int
    beneath: tuple[NDArray[np.int64], ...]

    def __repr__(self) -> str:
        return f"Hierarchy({len(self.labels[0])} values, {len(self.labels)} levels)"

    @property
    def height(self) -> int:
        """The coarsest level."""
        return len(self.labels) - 1

    def subtree_heights(self) -> list[NDArray[np.int64]]:
        """Per level, the height of the tree under each label.

        A label that repeats the one below it is the same node: so a value that stands less deep
        than others is stretched.
        """
        texts = [np.array([canonical(one) for one in level], object) for level in self.labels]
        out = [np.zeros(len(texts[0]), dtype=np.int64)]
        for level in range(1, len(texts)):
            above = self.step(level - 1, level)
            own = out[-1] + (texts[level - 1] != texts[level][above])
            high = self.beneath[level].copy()
            np.maximum.at(high, above, own)
            out.append(high)
        return out

    def share(self, level: int) -> NDArray[np.float64]:
        """The share of all leaves that each label of ``level`` covers."""
        return self.leaves[level] / self.size

    def step(self, fine: int, coarse: int) -> NDArray[np.int32]:
        """The label at ``coarse`` of each label at ``fine``."""
        out = np.zeros(len(self.labels[fine]), dtype=np.int32)
        out[self.maps[fine]] = self.maps[coarse]
        return out

    def above(self, level: int) -> Hierarchy:
        """The levels from ``level`` on, where no two values share a label of that one."""
        return replace(
            self,
            maps=self.maps[level:],
            labels=self.labels[level:],
            leaves=self.leaves[level:],
            beneath=self.beneath[level:],
        )

    def select(self, places: NDArray[np.int64]) -> Hierarchy:
        """The labels of some of the values, which still cover the leaves of all."""
        maps, labels, leaves, beneath = [], [], [], []
        for level, row in enumerate(self.maps):
            used, first, inverse = np.unique(row[places], return_index=True, return_inverse=True)
            order = np.argsort(first)
            maps.append(np.argsort(order)[inverse.reshape(-1)].astype(np.int32))
            labels.append([self.labels[level][code] for code in used[order].tolist()])
            leaves.append(self.leaves[level][used[order]])
            beneath.append(self.beneath[level][used[order]])
        return Hierarchy(np.stack(maps), tuple(labels), tuple(leaves), self.size, tuple(beneath))


def from_levels(levels: list[list[object]], *, other_leaves: list[list[object]]) -> Hierarchy:
    """Build a hierarchy from label columns that are known to nest.

    Args:
        levels: per level, the label of each value of the table, level 0 first.
        other_leaves: the same for leaves that the table does not hold (empty lists if none).
    """
    maps, labels, leaves, beneath = [], [], [], []
    below, height = other_leaves[0], np.zeros(len(other_leaves[0]), dtype=np.int64)
    for level, (inside, outside) in enumerate(zip(levels, other_leaves, strict=True)):
        codes: dict[object, int] = {}
        row = [codes.setdefault(label, len(codes)) for label in inside]
        counts = np.bincount(np.asarray(row, dtype=np.int64), minlength=len(codes))
        for label in outside:
            if label in codes:
                counts[codes[label]] += 1
        if level == 1:  # a label of one such leaf is that leaf
            held = Counter(outside)
            height += np.array([x in codes or held[x] > 1 for x in outside], dtype=np.int64)
        elif level > 1:
            grown = [one != other for one, other in zip(outside, below, strict=True)]
            height += np.array(grown, dtype=np.int64)
        below, high = outside, np.zeros(len(codes), dtype=np.int64)
        above = np.array([codes.get(label, -1) for label in outside], dtype=np.int64)
        np.maximum.at(high, above[above >= 0], height[above >= 0])
        maps.append(np.asarray(row, dtype=np.int32))
        labels.append(list(codes))
        leaves.append(counts.astype(np.int64))
        beneath.append(high)
    size = len(levels[0]) + len(other_leaves[0])
    return Hierarchy(np.stack(maps), tuple(labels), tuple(leaves), size, tuple(beneath))


def broken_nesting(fine: list[object], coarse: list[object]) -> int:
    """How many labels of ``fine`` have more than one label at ``coarse``."""
    pairs = set(zip(fine, coarse, strict=True))
    if len(pairs) == len(set(fine)):
        return 0
    return sum(count > 1 for count in Counter(label for label, _ in pairs).values())


def flat(values: list[object]) -> Hierarchy:
    """The hierarchy with two levels: the value, or nothing."""
    return from_levels([values, [TOP] * len(values)], other_leaves=[[], []])


def canonical(value: object) -> str:
    """The text by which a typed value and a leaf in a file are the same: 39, 39.0 and "39"."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | decimal.Decimal) and isfinite(value) and value == int(value):
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.timetz() == datetime.time():
        return value.date().isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)
