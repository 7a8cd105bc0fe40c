"""Publish what meets its level's guarantee, move the rest upward: one of three semantics.

Selective: precision first. What meets its guarantee is published where it stands.

Definition: level by level, a group that meets its guarantee is published; any other is merged
into its parent; what still fails at the coarsest level is left out. A published group never helps
a coarser one.
Source: Michel 2019, Algorithm 1 and section 4.4.

Complete, exactly: most people first, then the finest levels, with a proof.

Definition: maximize lexicographically F1 = people published, then F2 = sum of depth x people, over
all ways to move each group as a whole to its own level or a coarser one, such that every row that
receives anybody meets its guarantee. A group may be moved beyond the level of a coarser one.
Source: Michel 2019, section 4.4.

F1 is decided in closed form. A node that fails with everybody below it can never be published; a
node that passes with everybody below it can publish them all. So exactly the groups below (or at)
some passing node are published, and the topmost passing nodes split the rest into parts.

F2 is decided from the leaves up. Of every node, the least loss (people x levels beyond each
group's finest possible level) is sought that the groups below it can have, where whoever leaves
the node finds a place one level up: a lower bound of what they lose in any solution. If the best
solutions below meet the node's guarantee together, they are the node's best too. If not, whoever
stands at the node may leave it, which shows how much better any other solution has to be; what
cannot be part of one is left out of a small mixed-integer program (``integer_program``), and mostly
nothing remains. At the top of a part nobody can leave: its least loss is the optimum.

The same groups give the same answer, whatever the clock says: work is counted, and for each node
apart, so that what is decided at a node follows from the groups below it alone.

Complete, greedily: a group that fails pulls published finer groups up to itself.

Definition: level by level, a group that fails takes the smallest published descendant that makes
it pass, or the smallest ones one after the other; if even all of them do not suffice, it is
merged into its parent instead. Publishes as many people as any choice can, but not always at the
finest levels.
Source: Michel 2019, Algorithm 2 (as printed it publishes inside its loop and does not say what
happens where one descendant is not enough).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InternalError
from halfmask.query import integer_program
from halfmask.query.groups import DROPPED, add

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.query.clauses import Semantics
    from halfmask.query.groups import Groups


EFFORT = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class LevelChoice:
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
class PublishedRows:
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


def choose_levels(
    groups: Groups, semantics: Semantics, *, effort: float | None = EFFORT
) -> LevelChoice:
    """Decide where each group goes; ``effort`` bounds the work of ``complete``."""
    if semantics == "selective":
        return choose_selective(groups)
    if semantics == "complete-greedy":
        return choose_greedily(groups)
    return choose_complete(groups, effort=effort)


def publish_groups(groups: Groups, choice: LevelChoice) -> PublishedRows:
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
    return PublishedRows(
        ids,
        np.concatenate(levels or [empty]),
        np.concatenate(firsts or [empty]),
        np.concatenate(people or [empty]),
    )


def choose_selective(groups: Groups) -> LevelChoice:
    """Publish bottom-up; this is the optimum of its own rule, so there is no gap."""
    target = np.full(len(groups), DROPPED, dtype=np.int64)
    rising = np.empty(0, dtype=np.int64)
    for level in range(groups.top + 1):
        own = np.flatnonzero(groups.level == level)
        if not len(rising) and groups.separate:
            # Groups of one level have different keys: nothing to merge yet.
            holds = groups.alone(level, own)
            target[own[holds]] = level
            rising = own[~holds]
            continue
        inside = np.concatenate((rising, own))
        ids, first = groups.nodes(level, inside)
        holds = groups.passes(level, inside, ids, len(first))[ids]
        target[inside[holds]] = level
        rising = inside[~holds]
    return LevelChoice(target, 0.0)


def choose_complete(groups: Groups, *, effort: float | None = None) -> LevelChoice:
    """The optimum, or with so much effort the best found and how far it may be from it."""
    finest, coarsest = passing_levels(groups)
    state = _State(groups, finest, coarsest, effort)
    for level in range(groups.top + 1):
        _climb(state, level)
    choice = LevelChoice(state.target, 0.0)
    missed = state.lost(np.flatnonzero(finest != DROPPED)) - state.proven
    return LevelChoice(state.target, missed / (choice.depth(groups) + missed) if missed else 0.0)


def passing_levels(groups: Groups) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per group, the finest and the coarsest level at which a node above it passes (-1: none)."""
    finest = np.full(len(groups), DROPPED, dtype=np.int64)
    coarsest = np.full(len(groups), DROPPED, dtype=np.int64)
    # From the coarsest down: the finest level that passes is the last one noted.
    for level in range(groups.top, -1, -1):
        inside = np.flatnonzero(groups.level <= level)
        ids, first = groups.nodes(level, inside)
        holds = inside[groups.passes(level, inside, ids, len(first))[ids]]
        finest[holds] = level
        coarsest[holds] = np.maximum(coarsest[holds], level)
    return finest, coarsest


@dataclass(slots=True)
class _State:
    """What is known of the levels so far.

    Attributes:
        target: the best place of each group as far as looked.
        room: what moving a group may cost if nothing beyond the bounds is lost elsewhere.
        node: per level, the number of each group's node (-1: none); no two levels share one.
        first: one group of each node of the level below.
        bound: the proven loss of each node of the level below.
        shared: the nodes where shared values are told apart.
        proven: the bounds of the finished parts.
    """

    groups: Groups
    finest: NDArray[np.int64]
    coarsest: NDArray[np.int64]
    effort: float | None
    target: NDArray[np.int64] = field(init=False)
    room: NDArray[np.int64] = field(init=False)
    node: list[NDArray[np.int64]] = field(default_factory=list)
    first: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    bound: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    shared: set[int] = field(default_factory=set)
    proven: int = 0

    def __post_init__(self) -> None:
        self.target = self.finest.copy()
        self.room = np.zeros(len(self.groups), dtype=np.int64)

    def lost(self, members: NDArray[np.int64]) -> int:
        moved = self.target[members] - self.finest[members]
        return int((self.groups.people[members] * moved).sum())


def _climb(state: _State, level: int) -> None:
    """Decide the nodes of one level, given those below."""
    groups = state.groups
    inside = np.flatnonzero(
        (state.finest != DROPPED) & (state.finest <= level) & (level <= state.coarsest)
    )
    ids, first = groups.nodes(level, inside)
    offset = max((int(n.max(initial=-1)) for n in state.node), default=-1) + 1
    number = np.full(len(groups), -1, dtype=np.int64)
    number[inside] = ids + offset
    state.node.append(number)
    below = number[state.first] >= 0
    children, bounds = state.first[below], state.bound[below]
    parents = number[children] - offset
    sums = add(parents, bounds, len(first))
    proven = sums.copy()
    here = state.target[inside] == level
    holds = groups.passes(level, inside[here], ids[here], len(first))
    # Where the best solutions below meet the guarantee together they are the node's best too.
    failing = np.flatnonzero((np.bincount(ids[here], minlength=len(first)) > 0) & ~holds)
    order, by_parent = np.argsort(ids, kind="stable"), np.argsort(parents, kind="stable")
    starts = np.searchsorted(ids[order], [failing, failing + 1])
    kids = np.searchsorted(parents[by_parent], [failing, failing + 1])
    for v, a, b, c, d in zip(failing.tolist(), *starts.tolist(), *kids.tolist(), strict=True):
        members, mine = inside[order[a:b]], by_parent[c:d]
        parts = [
            (state.node[level - 1][g], int(bounds[i]))
            for g, i in zip(children[mine], mine, strict=True)
        ]
        proven[v] = _decide(state, level, members, int(sums[v]), parts)
    # Nobody leaves the top of a part: what is lost there is what the part loses.
    done = state.coarsest[inside[first]] == level
    state.proven += int(proven[done].sum())
    state.room[inside] = np.minimum(state.room[inside] + (proven - sums)[ids], proven[ids])
    state.first, state.bound = inside[first], proven


def _decide(
    state: _State,
    level: int,
    members: NDArray[np.int64],
    least: int,
    parts: list[tuple[int, int]],
) -> int:
    """Improve the solution of a node that fails as it stands; returns its proven loss."""
    top = int(state.coarsest[members[0]]) == level
    here = members[state.target[members] == level]
    if top:
        state.target[here] = DROPPED
        state.target[members] = _repair(state.groups, members, state.target[members], level)
    else:
        state.target[here] = level + 1
    # Search close to the bound first: the less may be lost, the less has to be looked at.
    problem = integer_program.LevelProgram(
        state.groups, members, state.finest, state.node, level, not top, state.room, parts, least
    )
    more = 1
    while (known := state.lost(members)) > least:
        limit = min(problem.least + more, known - 1)
        found, bound = integer_program.solve_program(problem, limit, state.shared, state.effort)
        if found is not None:
            state.target[members] = found
        least = max(least, bound)
        if least <= limit:
            break  # Found it, or it takes too much.
        more *= 4
    return least


def _repair(
    groups: Groups, members: NDArray[np.int64], target: NDArray[np.int64], top: int
) -> NDArray[np.int64]:
    """Who is left out goes to the top of the part with the cheapest company.

    The top passes with everybody, so taking enough of the others along always helps.
    """
    target = target.copy()
    target[target < 0] = top
    cost = groups.people[members] * (top - target)
    order = np.argsort(cost, kind="stable")
    order = order[target[order] < top]
    # More company never breaks a guarantee (counts add up, values unite): halving finds the least.
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        trial = target.copy()
        trial[order[:middle]] = top
        if _top_passes(groups, members, trial, top):
            high = middle
        else:
            low = middle + 1
    target[order[:high]] = top
    return _raise_failing(groups, members, target, top)


def _top_passes(
    groups: Groups, members: NDArray[np.int64], target: NDArray[np.int64], top: int
) -> bool:
    inside = members[target == top]
    return bool(groups.passes(top, inside, np.zeros(len(inside), dtype=np.int64), 1)[0])


def _raise_failing(
    groups: Groups, members: NDArray[np.int64], target: NDArray[np.int64], top: int
) -> NDArray[np.int64]:
    """Rows that lost too much by that go up as well."""
    for level in range(top):
        inside = np.flatnonzero(target == level)
        if len(inside):
            ids, first = groups.nodes(level, members[inside])
            holds = groups.passes(level, members[inside], ids, len(first))
            target[inside[~holds[ids]]] = top
    return target


def choose_greedily(groups: Groups) -> LevelChoice:
    """Publish bottom-up, pulling up where it helps; proves nothing about F2."""
    target = np.full(len(groups), DROPPED, dtype=np.int64)
    rising = np.empty(0, dtype=np.int64)
    for level in range(groups.top + 1):
        own = np.flatnonzero(groups.level == level)
        inside = np.concatenate((rising, own))
        ids, first = groups.nodes(level, inside)
        holds = groups.passes(level, inside, ids, len(first))
        target[inside[holds[ids]]] = level
        failing = np.flatnonzero(~holds)
        rising = inside[~holds[ids]]
        # Below the finest level there is nothing to pull up.
        if level and len(failing):
            rising = _pull(groups, target, level, rising)
    return LevelChoice(target, None)


def _pull(
    groups: Groups, target: NDArray[np.int64], level: int, rising: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Let failing nodes pull up published descendants; returns the groups that still rise."""
    below = np.flatnonzero((target >= 0) & (target < level))
    if not len(below):
        return rising
    every = np.concatenate((rising, below))
    ids, first = groups.nodes(level, every)
    mine, theirs = ids[: len(rising)], ids[len(rising) :]
    # Only where everything together suffices can anything be gained.
    wanted = np.zeros(len(first), dtype=bool)
    wanted[mine] = True
    wanted &= groups.passes(level, every, ids, len(first))
    near = wanted[theirs]
    below, theirs = below[near], theirs[near]
    order = np.argsort(theirs, kind="stable")
    below, theirs = below[order], theirs[order]
    stays = []
    by_mine = np.argsort(mine, kind="stable")
    for node in np.unique(mine):
        lo, hi = np.searchsorted(mine[by_mine], [node, node + 1])
        pool = rising[by_mine[lo:hi]]
        a, b = np.searchsorted(theirs, [node, node + 1])
        if not wanted[node] or a == b:
            stays.append(pool)
            continue
        taken = _smallest(groups, target, level, pool, below[a:b])
        target[taken] = level
        target[pool] = level
    return np.concatenate(stays) if stays else rising[:0]


def _smallest(
    groups: Groups,
    target: NDArray[np.int64],
    level: int,
    pool: NDArray[np.int64],
    candidates: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The groups of the smallest published descendants that make ``pool`` pass at ``level``."""
    rows = _rows(groups, target, candidates)
    # One row that suffices alone loses less detail than several.
    for members in rows:
        if _suffices(groups, level, pool, members):
            return members
    low, high = 1, len(rows)
    while low < high:
        middle = (low + high) // 2
        if _suffices(groups, level, pool, np.concatenate(rows[:middle])):
            high = middle
        else:
            low = middle + 1
    return np.concatenate(rows[:high])


def _rows(
    groups: Groups, target: NDArray[np.int64], candidates: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """The published rows among ``candidates``, smallest first, ties in key order."""
    found: list[tuple[int, int, int, NDArray[np.int64]]] = []
    for level in np.unique(target[candidates]).tolist():
        inside = candidates[target[candidates] == level]
        ids, first = groups.nodes(level, inside)
        sizes = add(ids, groups.people[inside], len(first))
        order = np.argsort(ids, kind="stable")
        parts = np.split(inside[order], np.cumsum(np.bincount(ids))[:-1])
        found += [(int(sizes[i]), level, i, part) for i, part in enumerate(parts)]
    found.sort(key=lambda row: row[:3])
    return [row[3] for row in found]


def _suffices(
    groups: Groups, level: int, pool: NDArray[np.int64], members: NDArray[np.int64]
) -> bool:
    together = np.concatenate((pool, members))
    return bool(groups.passes(level, together, np.zeros(len(together), dtype=np.int64), 1)[0])
