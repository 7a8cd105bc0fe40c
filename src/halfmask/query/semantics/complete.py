"""Complete, exactly: most people first, then the finest levels, with a proof.

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
cannot be part of one is left out of a small mixed-integer program (``program``), and mostly
nothing remains. At the top of a part nobody can leave: its least loss is the optimum.

The same groups give the same answer, whatever the clock says: work is counted, and for each node
apart, so that what is decided at a node follows from the groups below it alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from halfmask.query.filter import Choice
from halfmask.query.groups import DROPPED, add
from halfmask.query.semantics import program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.query.groups import Groups


def choose(groups: Groups, *, effort: float | None = None) -> Choice:
    """The optimum, or with so much effort the best found and how far it may be from it."""
    finest, coarsest = limits(groups)
    state = _State(groups, finest, coarsest, effort)
    for level in range(groups.top + 1):
        _climb(state, level)
    choice = Choice(state.target, 0.0)
    missed = state.lost(np.flatnonzero(finest != DROPPED)) - state.proven
    return Choice(state.target, missed / (choice.depth(groups) + missed) if missed else 0.0)


def limits(groups: Groups) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per group, the finest and the coarsest level at which a node above it passes (-1: none)."""
    finest = np.full(len(groups), DROPPED, dtype=np.int64)
    coarsest = np.full(len(groups), DROPPED, dtype=np.int64)
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
        state.target[members] = _repaired(state.groups, members, state.target[members], level)
    else:
        state.target[here] = level + 1
    # Search close to the bound first: the less may be lost, the less has to be looked at.
    problem = program.Problem(
        state.groups, members, state.finest, state.node, level, not top, state.room, parts, least
    )
    more = 1
    while (known := state.lost(members)) > least:
        limit = min(problem.least + more, known - 1)
        found, bound = program.solve(problem, limit, state.shared, state.effort)
        if found is not None:
            state.target[members] = found
        least = max(least, bound)
        if least <= limit:
            break  # Found it, or it takes too much.
        more *= 4
    return least


def _repaired(
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
    return _mended(groups, members, target, top)


def _top_passes(
    groups: Groups, members: NDArray[np.int64], target: NDArray[np.int64], top: int
) -> bool:
    inside = members[target == top]
    return bool(groups.passes(top, inside, np.zeros(len(inside), dtype=np.int64), 1)[0])


def _mended(
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
