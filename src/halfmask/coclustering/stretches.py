"""By how wide stretches of numbers two columns are counted together.

Definition: names count as they are. A number counts by a stretch of neighboring intervals around
    it: the shortest one, of those that halving gives again and again, in which twice k people would
    share it with the other column's value if the two columns were independent. A value that a
    quarter of all people hold is no neighbor of others: it ends stretches, and is one of its own.

A pair of a rare value and a short interval can hardly be held by k people. Would it be left out,
rare values would vanish; a wider stretch says less of whoever holds them. How wide it is follows
from how many people hold each part of either column, not from what they hold together.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_ROOM = 2  # times k people are expected in a pair
_HEAVY = 0.25  # of all people: a value that so many hold stands alone


@dataclass(frozen=True, slots=True, eq=False)
class Stretches:
    """The nested stretches around each part of one column, the shortest first.

    Attributes:
        first: (levels, parts) the first part of the stretch; it names it.
        people: (levels, parts) how many people the stretch's parts hold, added up.
    """

    first: Ints
    people: Ints

    def __repr__(self) -> str:
        return f"Stretches({self.first.shape[1]} parts, {self.first.shape[0]} levels)"

    def least(self, people: NDArray[np.float64]) -> Ints:
        """Per wanted number of people and part, the level of the shortest stretch that has it."""
        enough = self.people[None] >= people[:, None, None]
        last = len(self.people) - 1
        return np.where(enough.any(axis=1), enough.argmax(axis=1), last).astype(np.int64)


def stretches(people: Ints, intervals: int, single: NDArray[np.bool_], everybody: int) -> Stretches:
    """The stretches of one column.

    Args:
        people: how many people hold each part.
        intervals: how many of the first parts are neighbors in order; 0 of a column of names.
        single: whether a part is one value.
        everybody: how many people there are.
    """
    parts = np.arange(len(people))
    wall = (parts >= intervals) | (single & (people >= _HEAVY * everybody))
    begins = wall | np.r_[True, wall[:-1]] if len(people) else wall
    levels = [np.maximum.accumulate(np.where(begins, parts, 0))]
    while True:  # every stretch falls into halves, the first one larger by a part at most
        names, place = np.unique(levels[-1], return_inverse=True)
        size = np.bincount(place)
        if size.max(initial=1) == 1:
            break
        levels.append(levels[-1] + np.where(parts >= (names + (size + 1) // 2)[place],
                                            ((size + 1) // 2)[place], 0))  # fmt: skip
    first = np.stack(levels[::-1]).astype(np.int64)
    held = [np.bincount(level, people, len(people))[level] for level in first]
    return Stretches(first, np.stack(held).astype(np.int64))


def levels_together(one: Stretches, other: Stretches, k: int, everybody: int) -> tuple[Ints, Ints]:
    """(parts, parts of the other) by which level of each column a pair of parts is counted."""
    wanted = float(_ROOM * k * everybody)
    # If columns were independent, a pair of stretches would hold people * people / everybody.
    found = []
    for column in (one, other):
        alone = column.least(np.array([sqrt(wanted)]))[0]
        found.append(np.maximum(column.people[alone, np.arange(column.people.shape[1])], 1))
    return one.least(wanted / found[1]).T, other.least(wanted / found[0])
