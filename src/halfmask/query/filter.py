"""Publish what meets its level's guarantee, move the rest upward: one of three semantics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InternalError
from halfmask.query.groups import DROPPED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.query.groups import Groups
    from halfmask.query.parsing.chain import Semantics

EFFORT = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Where each group goes.

    Attributes:
        target: per group, the level it is published at, or -1.
        gap: how far the second objective may be from its optimum (0: proven optimal; None: a
            heuristic that proves nothing).
    """

    target: NDArray[np.int64]
    gap: float | None = None

    def people(self, groups: Groups) -> int:
        """F1: how many people are published."""
        return int(groups.people[self.target != DROPPED].sum())

    def depth(self, groups: Groups) -> int:
        """F2: the sum of depth times people, the coarsest level having depth 0."""
        kept = self.target != DROPPED
        return int(((groups.top - self.target[kept]) * groups.people[kept]).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """The rows to publish.

    Attributes:
        ids: per group, its row, or -1.
        level: per row, its level.
        first: per row, one of its groups (whose key gives the labels).
        people: per row, how many people.
    """

    ids: NDArray[np.int64]
    level: NDArray[np.int64]
    first: NDArray[np.int64]
    people: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.level)


def choose(groups: Groups, semantics: Semantics, *, effort: float | None = EFFORT) -> Choice:
    """Decide where each group goes; ``effort`` bounds the work of ``complete``."""
    from halfmask.query.semantics import complete, complete_greedy, selective

    if semantics == "selective":
        return selective.choose(groups)
    if semantics == "complete-greedy":
        return complete_greedy.choose(groups)
    return complete.choose(groups, effort=effort)


def publish(groups: Groups, choice: Choice) -> Published:
    """Gather the groups that share a target into rows; every row must meet its guarantee.

    Raises:
        InternalError: where a semantics chose a row below its guarantee.
    """
    ids = np.full(len(groups), -1, dtype=np.int64)
    levels, firsts, people = [], [], []
    offset = 0
    for level in range(groups.top + 1):
        inside = np.flatnonzero(choice.target == level)
        if not len(inside):
            continue
        if (groups.level[inside] > level).any():
            raise InternalError("A group was published finer than its people allow.")
        own, first = groups.nodes(level, inside)
        n = len(first)
        if not groups.passes(level, inside, own, n).all():
            raise InternalError("A row was chosen that does not meet its guarantee.")
        ids[inside] = own + offset
        levels.append(np.full(n, level, dtype=np.int64))
        firsts.append(inside[first])
        total = np.zeros(n, dtype=np.int64)
        np.add.at(total, own, groups.people[inside])
        people.append(total)
        offset += n
    empty = np.empty(0, dtype=np.int64)
    return Published(
        ids,
        np.concatenate(levels or [empty]),
        np.concatenate(firsts or [empty]),
        np.concatenate(people or [empty]),
    )
