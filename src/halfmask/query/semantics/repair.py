"""A feasible solution of a part where the solution found so far leaves groups out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.query.groups import Groups


def repaired(
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
