"""Classes grown row by row, as k-member and MDAV do it, without a matrix of distances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

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
        row = _farthest(p, alive, count, drawn, reach)
        size, need, diameter = 0, 0, 0.0
        distinct[:] = 0
        most[:] = 0
        while True:
            members[size] = row
            size += 1
            need = max(need, d.k[row])
            short = count_values(d, row, classes, seen, distinct, most)
            count = _remove(alive, where, count, row)
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
def count_values(d: Any, row: int, number: int, seen: Any, distinct: Any, most: Any) -> bool:
    """Take note of a new member's sensitive values; whether the class still lacks some."""
    short = False
    for s in range(d.values.shape[1]):
        if seen[s, d.values[row, s]] != number:
            seen[s, d.values[row, s]] = number
            distinct[s] += 1
        most[s] = max(most[s], d.l[row, s])
        short |= distinct[s] < most[s]
    return short


@njit(cache=True, nogil=True)
def new_value(d: Any, row: int, number: int, seen: Any, distinct: Any, most: Any) -> bool:
    """Whether a row brings a value that the class lacks where it lacks some."""
    for s in range(d.values.shape[1]):
        if distinct[s] < most[s] and seen[s, d.values[row, s]] != number:
            return True
    return False


@njit(cache=True, nogil=True)
def _remove(alive: Any, where: Any, count: int, row: int) -> int:
    """Take a row out of the first ``count`` of ``alive``."""
    last = alive[count - 1]
    alive[where[row]] = last
    where[last] = where[row]
    return count - 1


@njit(cache=True, nogil=True)
def _farthest(p: Any, alive: Any, count: int, origin: int, scratch: Any) -> int:
    spread(p, origin, alive, count, scratch)
    best, far = -1, -1.0
    for a in range(count):
        row = alive[a]
        x = scratch[row]
        if x > far or (x == far and row < best):
            best, far = row, x
    return best


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


@njit(cache=True, nogil=True)
def mdav(p: Any, d: Any, ordinal: NDArray[np.bool_]) -> Any:
    """MDAV: the class of each row; -1 for rows left over at the end.

    Classes form around the row farthest from the centroid of the rows that remain, and around the
    row farthest from that one; each takes nearest rows until it meets the demands of all its rows.
    """
    n = len(d.k)
    ids = np.full(n, -1, np.int64)
    alive, where = np.arange(n), np.arange(n)
    count, classes = n, 0
    near = np.empty(n, np.float64)
    seen = np.full(d.shares.shape, -1, np.int64)
    distinct = np.zeros(d.values.shape[1], np.int64)
    most = np.zeros(d.values.shape[1], np.int64)
    highest = 1
    for i in range(n):
        highest = max(highest, d.k[i])
    sums, gone, votes, starts = _centroid(p, n)
    middle = np.empty(p.codes.shape[1], np.int64)
    first = -1
    while count > 0:
        if first < 0:
            origin = _outermost(p, alive, count, sums, gone, votes, starts, middle, ordinal)
        else:
            origin = _farthest(p, alive, count, first, near)
        first = origin if first < 0 else -1
        spread(p, origin, alive, count, near)
        ids, count, done = _nearest_class(
            p, d, alive, where, count, near, classes, ids, seen, distinct, most, highest,
            sums, gone, votes, starts,
        )  # fmt: skip
        classes += done
    return ids


@njit(cache=True, nogil=True)
def _centroid(p: Any, n: int) -> tuple[Any, Any, Any, Any]:
    """Sums of positions, rows that have one, and how often each category occurs."""
    sums = np.zeros(p.numbers.shape[1], np.float64)
    there = np.zeros(p.numbers.shape[1], np.int64)
    starts = np.zeros(p.codes.shape[1] + 1, np.int64)
    for c in range(p.codes.shape[1]):
        starts[c + 1] = starts[c] + p.sizes[c]
    votes = np.zeros(starts[-1], np.int64)
    for i in range(n):
        _weigh(p, i, 1, sums, there, votes, starts)
    return sums, there, votes, starts


@njit(cache=True, nogil=True)
def _weigh(p: Any, row: int, sign: int, sums: Any, there: Any, votes: Any, starts: Any) -> None:
    for c in range(p.numbers.shape[1]):
        x = p.numbers[row, c]
        if x == x:
            sums[c] += sign * x
            there[c] += sign
    for c in range(p.codes.shape[1]):
        votes[starts[c] + p.codes[row, c]] += sign


@njit(cache=True, nogil=True)
def _outermost(
    p: Any, alive: Any, count: int, sums: Any, there: Any, votes: Any, starts: Any, middle: Any,
    ordinal: Any,
) -> int:  # fmt: skip
    """The row farthest from the centroid: means of numbers, most frequent categories."""
    for c in range(len(middle)):
        place = 0
        if ordinal[c]:
            half, running = 0, 0
            for v in range(starts[c], starts[c + 1]):
                half += votes[v]
            while running + votes[starts[c] + place] <= half // 2:
                running += votes[starts[c] + place]
                place += 1
        else:
            for v in range(starts[c + 1] - starts[c]):
                if votes[starts[c] + v] > votes[starts[c] + place]:
                    place = v
        middle[c] = place
    best, far = -1, -1.0
    for a in range(count):
        row = alive[a]
        x = 0.0
        for c in range(p.numbers.shape[1]):
            value = p.numbers[row, c]
            mean = sums[c] / max(there[c], 1)
            x += abs(value - mean) if value == value else p.spans[c]
        for c in range(p.codes.shape[1]):
            x += p.table[p.offsets[c] + p.codes[row, c] * p.sizes[c] + middle[c]]
        if x > far or (x == far and row < best):
            best, far = row, x
    return best


@njit(cache=True, nogil=True)
def _nearest_class(
    p: Any, d: Any, alive: Any, where: Any, count: int, near: Any, number: int, ids: Any,
    seen: Any, distinct: Any, most: Any, highest: int, sums: Any, there: Any, votes: Any,
    starts: Any,
) -> tuple[Any, int, int]:  # fmt: skip
    """Take rows in order of ``near`` until they meet all their demands."""
    wanted = min(count, highest)
    candidates = _smallest(near, alive, count, wanted)
    size, need, taken = 0, 0, 0
    distinct[:] = 0
    most[:] = 0
    short = False
    chosen = np.empty(count, np.int64)
    while True:
        if taken == len(candidates):
            if len(candidates) == count:
                break
            candidates = _smallest(near, alive, count, min(count, 4 * len(candidates)))
        row = candidates[taken]
        taken += 1
        if size >= need and short and not new_value(d, row, number, seen, distinct, most):
            continue
        chosen[size] = row
        size += 1
        need = max(need, d.k[row])
        short = count_values(d, row, number, seen, distinct, most)
        if size >= need and not short:
            break
    done = 1 if size >= need and not short else 0
    if not done:  # what is left cannot form a class
        for a in range(count):
            ids[alive[a]] = -1
        return ids, 0, 0
    for m in range(size):
        ids[chosen[m]] = number
        count = _remove(alive, where, count, chosen[m])
        _weigh(p, chosen[m], -1, sums, there, votes, starts)
    return ids, count, done


@njit(cache=True, nogil=True)
def _smallest(near: Any, alive: Any, count: int, wanted: int) -> Any:
    """The ``wanted`` rows with the smallest ``near`` in ascending order, ties by number."""
    heap = np.empty(wanted, np.int64)  # the largest on top
    size = 0
    for a in range(count):
        row = alive[a]
        if size < wanted:
            i = size
            size += 1
            while i > 0 and _later(near, row, heap[(i - 1) // 2]):
                heap[i] = heap[(i - 1) // 2]
                i = (i - 1) // 2
            heap[i] = row
        elif _later(near, heap[0], row):
            _sink(near, heap, wanted, row)
    for end in range(wanted - 1, 0, -1):
        row = heap[end]
        heap[end] = heap[0]
        _sink(near, heap, end, row)
    return heap


@njit(cache=True, nogil=True)
def _later(near: Any, a: int, b: int) -> bool:
    return near[a] > near[b] or (near[a] == near[b] and a > b)


@njit(cache=True, nogil=True)
def _sink(near: Any, heap: Any, size: int, row: int) -> None:
    """Put ``row`` on top of a heap of ``size`` rows and let it sink."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _later(near, heap[child + 1], heap[child]):
            child += 1
        if not _later(near, heap[child], row):
            break
        heap[i] = heap[child]
        i = child
    heap[i] = row
