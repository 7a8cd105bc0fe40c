"""MDAV: classes around whoever stands farthest out, without a matrix of distances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from halfmask.kernels.grow import count_values, farthest, new_value, remove
from halfmask.kernels.space import spread

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
            origin = farthest(p, alive, count, first, near)
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
        count = remove(alive, where, count, chosen[m])
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
