"""Complete, exactly: most people first, then the finest levels, with a proof.

Definition: maximize lexicographically F1 = people published, then F2 = sum of depth x people, over
all ways to move each group as a whole to its own level or a coarser one, such that every row that
receives anybody meets its guarantee. A group may be moved beyond the level of a coarser one.
Source: Michel 2019, section 4.4.

F1 is decided in closed form. A node that fails with everybody below it can never be published; a
node that passes with everybody below it can publish them all. So exactly the groups below (or at)
some passing node are published, and the topmost passing nodes split the rest of the problem into
independent parts. In each part F2 is a mixed-integer program (``program``), of which everything
that cannot be part of an optimum is left out first.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from halfmask.query.collect import DROPPED
from halfmask.query.filter import Choice
from halfmask.query.semantics import complete_greedy, program, selective

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.query.collect import Groups


def choose(groups: Groups, *, time_limit: float | None = None) -> Choice:
    """The optimum, or with a time limit the best found and how far it may be from it."""
    until = None if time_limit is None else time.monotonic() + time_limit
    lowest, part = parts(groups)
    known = [selective.choose(groups).target, complete_greedy.choose(groups).target]
    target = np.full(len(groups), DROPPED, dtype=np.int64)
    bound_missed = 0
    # Small parts first: if time runs out, only the largest ones keep a gap.
    for members in sorted(_members(part), key=len):
        found, missed = _best(groups, members, lowest[members], [k[members] for k in known], until)
        target[members] = found
        bound_missed += missed
    choice = Choice(target, 0.0)
    depth = choice.depth(groups)
    gap = bound_missed / (depth + bound_missed) if bound_missed else 0.0
    return Choice(target, gap)


def parts(groups: Groups) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per group, the finest level it can be published at, and its independent part (-1: none)."""
    lowest = np.full(len(groups), DROPPED, dtype=np.int64)
    part = np.full(len(groups), -1, dtype=np.int64)
    offset = 0
    for level in range(groups.top, -1, -1):
        inside = np.flatnonzero(groups.level <= level)
        ids, first = groups.nodes(level, inside)
        holds = groups.passes(level, inside, ids, len(first))[ids]
        lowest[inside[holds]] = level
        new = holds & (part[inside] < 0)
        part[inside[new]] = ids[new] + offset
        offset += len(first)
    return lowest, part


def _members(part: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    kept = np.flatnonzero(part >= 0)
    order = kept[np.argsort(part[kept], kind="stable")]
    cuts = np.flatnonzero(np.diff(part[order])) + 1
    return np.split(order, cuts) if len(order) else []


def _best(
    groups: Groups,
    members: NDArray[np.int64],
    ideal: NDArray[np.int64],
    known: list[NDArray[np.int64]],
    until: float | None,
) -> tuple[NDArray[np.int64], int]:
    """The best targets of one part and by how much F2 may still be better."""
    if program.feasible(groups, members, ideal):
        return ideal, 0
    whole = [program.repaired(groups, members, k) for k in known]
    costs = [int((groups.people[members] * w).sum()) for w in whole]
    return program.solve(groups, members, ideal, whole[int(np.argmin(costs))], until)
