"""Groups of people with their exact statistics: all that filtering ever sees of the rows.

A group is moved by naming a coarser level: its key there follows from the key it has. So a
result is one target level per group, -1 where it is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

DROPPED = -1


@dataclass(frozen=True, slots=True, eq=False)
class KeyColumn:
    """One grouping column over all groups.

    Attributes:
        codes: per group, which of the distinct values it holds.
        values: the distinct values as the engine gave them.
        maps: per depth, the label code of each distinct value.
        labels: per depth, what is shown for each label code.
        depths: per level, the depth of this column.
    """

    codes: NDArray[np.int64]
    values: pa.Array
    maps: tuple[NDArray[np.int64], ...]
    labels: tuple[list[object], ...]
    depths: tuple[int, ...]

    def at(self, level: int, groups: NDArray[np.int64]) -> NDArray[np.int64]:
        """The label codes of ``groups`` at ``level``."""
        picked: NDArray[np.int64] = self.maps[self.depths[level]][self.codes[groups]]
        return picked

    def size(self, level: int) -> int:
        """How many labels there are at ``level``."""
        return len(self.labels[self.depths[level]])


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """The distinct values of each group, listed only where there are fewer than ``cap``.

    Attributes:
        counts: per group, how many; exact.
        starts: where each group's list begins (full groups have an empty one).
        values: the listed values as codes.
        domain: how many different codes there are.
        cap: from so many on, no threshold can fail.
    """

    counts: NDArray[np.int64]
    starts: NDArray[np.int64]
    values: NDArray[np.int64]
    domain: int
    cap: int


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The groups before filtering.

    Attributes:
        level: per group, the level its people contribute at.
        people: how many people stand in it.
        keys: the grouping columns.
        counts: per requirement, numbers that add up or distinct values that unite.
        thresholds: (levels, requirements) what must be reached.
        demand: per group, the largest k and l that a contributor asked for; None: nobody asks.
        states: the mergeable parts of the aggregates.
        refused: people whom no level satisfies.
        without_policy: people without a policy who are left out.
        largest_refused: the largest k that one of the refused asks for.
        separate: whether no two groups share level and key.
    """

    level: NDArray[np.int64]
    people: NDArray[np.int64]
    keys: tuple[KeyColumn, ...]
    counts: tuple[NDArray[np.int64] | Distinct, ...]
    thresholds: NDArray[np.int64]
    states: pa.Table
    demand: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    refused: int = 0
    without_policy: int = 0
    largest_refused: int = 0
    separate: bool = True

    def __len__(self) -> int:
        return len(self.level)

    @property
    def top(self) -> int:
        """The coarsest level."""
        return len(self.thresholds) - 1

    def nodes(
        self, level: int, groups: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Number the groups by their key at ``level``; also the first group of each number."""
        ids = np.zeros(len(groups), dtype=np.int64)
        size = 1
        for key in self.keys:
            width = key.size(level)
            if size * width > 2**62:
                _, ids = np.unique(ids, return_inverse=True)
                size = int(ids.max(initial=0)) + 1
            ids = ids * width + key.at(level, groups)
            size *= max(1, width)
        _, first, ids = np.unique(ids, return_index=True, return_inverse=True)
        return ids.astype(np.int64), first.astype(np.int64)

    def passes(
        self, level: int, groups: NDArray[np.int64], ids: NDArray[np.int64], n: int
    ) -> NDArray[np.bool_]:
        """Tell for each of ``n`` nodes at ``level`` whether its groups meet the guarantee."""
        holds = np.ones(n, dtype=bool)
        for count, needed in zip(self.counts, self.thresholds[level], strict=True):
            if isinstance(count, Distinct):
                holds &= _reach(count, groups, ids, n, int(needed))
            else:
                holds &= add(ids, count[groups], n) >= needed
        return holds

    def alone(self, level: int, groups: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell for each group whether it meets the guarantee of ``level`` by itself."""
        holds = np.ones(len(groups), dtype=bool)
        for count, needed in zip(self.counts, self.thresholds[level], strict=True):
            holds &= (count.counts if isinstance(count, Distinct) else count)[groups] >= needed
        return holds


def add(ids: NDArray[np.int64], numbers: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Add up whole numbers per id, exactly."""
    total = np.zeros(n, dtype=np.int64)
    np.add.at(total, ids, numbers)
    return total


def _reach(
    count: Distinct, groups: NDArray[np.int64], ids: NDArray[np.int64], n: int, needed: int
) -> NDArray[np.bool_]:
    holds = np.zeros(n, dtype=bool)
    holds[ids[count.counts[groups] >= needed]] = True
    rest = ~holds[ids]
    if not rest.any():
        return holds
    owners, nodes = groups[rest], ids[rest]
    lengths = count.starts[owners + 1] - count.starts[owners]
    offsets = np.repeat(
        count.starts[owners] - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths
    )
    values = count.values[offsets + np.arange(lengths.sum())]
    pairs = np.unique(np.repeat(nodes, lengths) * max(1, count.domain) + values)
    sizes = np.bincount(pairs // max(1, count.domain), minlength=n)
    return holds | (sizes >= needed)
