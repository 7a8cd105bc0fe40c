"""k-member: classes grown row by row, without a matrix of distances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from halfmask.kernels.grow import count_values, farthest, new_value, remove
from halfmask.kernels.mdav import (
    _smallest,
)
from halfmask.kernels.space import distance, spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CLOSE = 48  # rows near the first member of a class that are looked at before all others


@njit(cache=True, nogil=True)
def k_member(
    p: Any,
    d: Any,
    draws: NDArray[np.float64],
    improved: bool,  # noqa: FBT001 - numba takes no keyword-only parameters
) -> Any:
    """Greedy k-member: the class of each row; -1 for rows left over at the end.

    Each class starts at the row farthest from one drawn at random and takes the row with the best
    score until it meets the demands of all its rows. A row's largest distance to the class is
    brought up to date only if what is known of it does not rule the row out.
    """
    n = len(d.k)
    ids = np.full(n, -1, np.int64)
    alive, where = np.arange(n), np.arange(n)
    count, classes = n, 0
    reach = np.empty(n, np.float64)  # at least the largest distance to the class so far
    known = np.empty(n, np.int64)  # how many members that counts
    members = np.empty(n, np.int64)
    seen = np.full(d.shares.shape, -1, np.int64)
    distinct = np.zeros(d.values.shape[1], np.int64)
    most = np.zeros(d.values.shape[1], np.int64)
    close, edge = np.empty(0, np.int64), 0.0
    while count > 0:
        drawn = alive[int(draws[classes] * count)]
        row = farthest(p, alive, count, drawn, reach)
        size, need, diameter = 0, 0, 0.0
        distinct[:] = 0
        most[:] = 0
        while True:
            members[size] = row
            size += 1
            need = max(need, d.k[row])
            short = count_values(d, row, classes, seen, distinct, most)
            count = remove(alive, where, count, row)
            if (size >= need and not short) or count == 0:
                break
            if size == 1:
                spread(p, row, alive, count, reach)
                known[:] = 1
                close = _smallest(reach, alive, count, min(count, _CLOSE))
                edge = reach[close[-1]]
            row, diameter = _best(
                p, d, alive, count, members, size, need, diameter, reach, known, improved,
                classes, seen, distinct, most, short, close, edge, where,
            )  # fmt: skip
        if size >= need and not short:
            for m in range(size):
                ids[members[m]] = classes
            classes += 1
    return ids


@njit(cache=True, nogil=True)
def _best(
    p: Any, d: Any, alive: Any, count: int, members: Any, size: int, need: int, diameter: float,
    reach: Any, known: Any, improved: Any, number: int, seen: Any, distinct: Any, most: Any,
    short: Any, close: Any, edge: float, where: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """The row that raises the class's loss least, and the diameter with it.

    Rows that were ``close`` to the first member come first: all others were at least ``edge`` away
    from it, which often rules them out together.
    """
    best, best_score, best_reach = -1, np.inf, np.inf
    full = short and size >= need  # only a missing value is still wanted
    for attempt in range(-1, 2):
        if attempt < 0 and full:
            continue
        if attempt == 0 and best >= 0:
            least = (max(size + 1, need) if improved else size + 1) * max(diameter, edge)
            if best_score < least or (best_score == least and best_reach < edge):
                break
        for a in range(len(close) if attempt < 0 else count):
            row = close[a] if attempt < 0 else alive[a]
            if attempt < 0 and (where[row] >= count or alive[where[row]] != row):
                continue
            final = max(size + 1, need, d.k[row]) if improved else size + 1
            lower = final * max(diameter, reach[row])
            if lower > best_score or (lower == best_score and reach[row] > best_reach):
                continue
            if full and attempt == 0 and not new_value(d, row, number, seen, distinct, most):
                continue
            for m in range(known[row], size):
                reach[row] = max(reach[row], distance(p, members[m], row))
            known[row] = size
            score = final * max(diameter, reach[row])
            if score < best_score or (
                score == best_score
                and (reach[row] < best_reach or (reach[row] == best_reach and row < best))
            ):
                best, best_score, best_reach = row, score, reach[row]
        if best >= 0 and attempt >= 0:
            break
    return best, max(diameter, best_reach)
