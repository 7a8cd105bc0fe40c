"""Complete, greedily: a group that fails pulls published finer groups up to itself.

Definition: level by level, a group that fails takes the smallest published descendant that makes
it pass, or the smallest ones one after the other; if even all of them do not suffice, it is
merged into its parent instead. Publishes as many people as any choice can, but not always at the
finest levels.
Source: Michel 2019, Algorithm 2 (as printed it publishes inside its loop and does not say what
happens where one descendant is not enough).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.query.filter import Choice
from halfmask.query.groups import DROPPED, add

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.query.groups import Groups


def choose(groups: Groups) -> Choice:
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
        if level and len(failing):
            rising = _pull(groups, target, level, rising)
    return Choice(target, None)


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
