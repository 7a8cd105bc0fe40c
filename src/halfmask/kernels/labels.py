"""Classes cut and improved by what their labels lose, whatever kind of label a column publishes.

A class of n rows loses n times the widths of its labels. The width of a column is read from the
least and the largest place in the class (ranges, common labels), or from the set of its values.
Every kernel works in pieces: it stops when the work it was given is done, and goes on from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from halfmask.kernels.divide import satisfied

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Widths(NamedTuple):
    """What labels lose.

    Attributes:
        places: (rows, columns) where each value stands in its column.
        low: per place of all columns, where a range that begins there begins as it is written.
        high: the same for its end.
        begins: (columns) where the places of a column begin in ``low`` and ``high``.
        pairs: per least and largest place of small columns, how wide the label is.
        tables: (columns) where the pairs of a column begin; -1: ``low`` and ``high`` tell.
        sizes: (columns) how many places there are.
        bits: (rows, words) the values under each row's own label, of columns that publish sets.
        gain: (words) what one more value loses.
        weights: (columns) how wide the widest label is; 0 for columns of sets.
        alone: what every class is given back: a set of one value loses nothing.
    """

    places: NDArray[np.int32]
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    begins: NDArray[np.int64]
    pairs: NDArray[np.float32]
    tables: NDArray[np.int64]
    sizes: NDArray[np.int64]
    bits: NDArray[np.uint64]
    gain: NDArray[np.float64]
    weights: NDArray[np.float64]
    alone: float


@njit(cache=True, nogil=True)
def _open(box: Any, held: Any) -> None:
    """An empty class."""
    for c in range(box.shape[0]):
        box[c, 0], box[c, 1] = 2147483647, -1
    held[:] = 0


@njit(cache=True, nogil=True)
def _add(w: Any, row: int, box: Any, held: Any) -> None:
    for c in range(box.shape[0]):
        x = w.places[row, c]
        box[c, 0] = min(box[c, 0], x)
        box[c, 1] = max(box[c, 1], x)
    for i in range(len(held)):
        held[i] |= w.bits[row, i]


@njit(cache=True, nogil=True)
def _join(box: Any, held: Any, other: Any, more: Any, out: Any, union: Any) -> None:
    for c in range(box.shape[0]):
        out[c, 0] = min(box[c, 0], other[c, 0])
        out[c, 1] = max(box[c, 1], other[c, 1])
    for i in range(len(held)):
        union[i] = held[i] | more[i]


@njit(cache=True, nogil=True)
def _width(w: Any, box: Any, held: Any) -> Any:
    """How wide the labels of a class are, all columns together."""
    total = -w.alone
    for c in range(box.shape[0]):
        low, high = box[c, 0], box[c, 1]
        if w.weights[c] == 0.0 or low >= high:
            continue
        if w.tables[c] >= 0:
            total += w.pairs[w.tables[c] + low * w.sizes[c] + high]
        else:
            at = w.begins[c]
            total += min(w.high[at + high] - w.low[at + low], w.weights[c])
    for i in range(len(held)):
        x = held[i]
        x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
        x = (x & np.uint64(0x3333333333333333)) + (
            (x >> np.uint64(2)) & np.uint64(0x3333333333333333)
        )
        x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        total += np.float64((x * np.uint64(0x0101010101010101)) >> np.uint64(56)) * w.gain[i]
    return total


@njit(cache=True, nogil=True)
def _best_cut(
    w: Any, d: Any, rows: Any, begin: int, end: int, columns: int, share: float, spare: Any,
    counts: Any,
) -> tuple[int, float]:  # fmt: skip
    """Order ``rows[begin:end]`` around the cut that loses least; where it is (-1), and the loss.

    The widest columns are tried, each between any two places that are held. Both sides meet the
    demands of their rows and hold at least ``share`` of them.
    """
    n, m, words = end - begin, w.places.shape[1], w.bits.shape[1]
    box, held = np.empty((m, 2), np.int32), np.empty(words, np.uint64)
    _open(box, held)
    for i in range(begin, end):
        _add(w, rows[i], box, held)
    span = np.empty(m, np.float64)
    for c in range(m):
        span[c] = (box[c, 1] - box[c, 0]) / max(w.sizes[c] - 1, 1)
    tried = min(columns, m)
    most = min(4 * n + 64, 4096)
    left = np.empty(most, np.float64)
    size, need = np.empty(most, np.int64), np.empty(most, np.int64)
    first = np.empty(most + 1, np.int64)
    part, some = np.empty((m, 2), np.int32), np.empty(words, np.uint64)
    best, best_column, best_limit, buckets = np.inf, -1, 0, 0
    least = max(int(share * n), 1)
    strict = d.values.shape[1] > 0
    refused = np.zeros(m, np.bool_)
    while True:
        order = span.copy()
        best, best_column = np.inf, -1
        for _ in range(tried):
            c = int(np.argmax(order))
            if order[c] <= 0.0:
                break
            order[c] = -1.0
            if refused[c]:
                continue
            low, wide = np.int64(box[c, 0]), np.int64(box[c, 1]) - np.int64(box[c, 0]) + 1
            buckets = min(wide, most)
            first[: buckets + 1] = 0
            for i in range(begin, end):
                first[(w.places[rows[i], c] - low) * buckets // wide + 1] += 1
            for b in range(buckets):
                first[b + 1] += first[b]
            for i in range(begin, end):
                b = (w.places[rows[i], c] - low) * buckets // wide
                spare[first[b]] = rows[i]
                first[b] += 1
            # first[b] is now where bucket b ends
            _open(part, some)
            highest, at = 0, 0
            for b in range(buckets - 1):
                if at == first[b]:
                    left[b] = -1.0
                    continue
                while at < first[b]:
                    _add(w, spare[at], part, some)
                    highest = max(highest, int(d.k[spare[at]]))
                    at += 1
                size[b], need[b] = at, highest
                left[b] = _width(w, part, some) * at if at >= max(highest, least) else -1.0
            _open(part, some)
            highest, at = 0, n
            for b in range(buckets - 2, -1, -1):
                while at > first[b]:
                    at -= 1
                    _add(w, spare[at], part, some)
                    highest = max(highest, int(d.k[spare[at]]))
                if left[b] < 0.0 or n - at < max(highest, least):
                    continue
                total = left[b] + _width(w, part, some) * (n - at)
                if total < best:
                    best, best_column, best_limit = total, c, b
        if best_column < 0:
            return -1, np.inf
        c, low = best_column, np.int64(box[best_column, 0])
        wide = np.int64(box[c, 1]) - low + 1
        buckets = min(wide, most)
        at, behind = 0, n
        for i in range(begin, end):
            row = rows[i]
            if (w.places[row, c] - low) * buckets // wide <= best_limit:
                spare[at] = row
                at += 1
            else:
                behind -= 1
                spare[behind] = row
        if strict and not (
            satisfied(d, spare, 0, at, counts) and satisfied(d, spare, at, n, counts)
        ):
            refused[c] = True
            continue
        rows[begin:end] = spare[:n]
        return begin + at, best


_LARGE = 5_000
_SHARE = 0.02


@njit(cache=True, nogil=True)
def cut_classes(
    w: Any, d: Any, rows: Any, stack: Any, state: Any, starts: Any, columns: int, work: int
) -> None:
    """Cut ``rows`` top down while that is allowed; ``state`` is (open parts, classes found).

    ``stack`` holds the open parts; ``starts`` where classes begin. Stops when ``work`` rows were
    looked at.
    """
    n = len(rows)
    spare = np.empty(n, np.int64)
    counts = np.zeros(max(d.shares.shape[1], 1), np.int64)
    while state[0] > 0 and work > 0:
        state[0] -= 1
        begin, end = stack[state[0], 0], stack[state[0], 1]
        work -= end - begin
        at = -1
        # Large parts fall into parts of some size, or peeling them would never end.
        share = _SHARE if end - begin > _LARGE else 0.0
        while end - begin > 1:
            at, _ = _best_cut(w, d, rows, begin, end, columns, share, spare, counts)
            if at >= 0 or share == 0.0:
                break
            share = 0.0
        if at < 0:
            starts[state[1]] = begin
            state[1] += 1
            continue
        stack[state[0], 0], stack[state[0], 1] = at, end
        stack[state[0] + 1, 0], stack[state[0] + 1, 1] = begin, at
        state[0] += 2


class ClassLists(NamedTuple):
    """Classes as linked lists of rows, with what their labels hold.

    Attributes:
        ids: (rows) the class of each row.
        next: (rows) the next row of the same class; -1 ends.
        head: (classes) the first row; -1 where a class is empty.
        size: (classes) how many rows it holds.
        width: (classes) how wide its labels are.
        box: (classes, columns, 2) the least and the largest place.
        held: (classes, words) its sets.
        changed: (classes) the last sweep that changed it.
    """

    ids: NDArray[np.int64]
    next: NDArray[np.int64]
    head: NDArray[np.int64]
    size: NDArray[np.int64]
    width: NDArray[np.float64]
    box: NDArray[np.int32]
    held: NDArray[np.uint64]
    changed: NDArray[np.int64]


@njit(cache=True, nogil=True)
def settle(w: Any, s: Any, c: int, rows: Any, begin: int, end: int, sweep: int) -> None:
    """Let class ``c`` hold ``rows[begin:end]``."""
    s.head[c] = -1
    _open(s.box[c], s.held[c])
    for i in range(begin, end):
        row = rows[i]
        s.ids[row] = c
        s.next[row] = s.head[c]
        s.head[c] = row
        _add(w, row, s.box[c], s.held[c])
    s.size[c] = end - begin
    s.width[c] = _width(w, s.box[c], s.held[c]) if end > begin else 0.0
    s.changed[c] = sweep


@njit(cache=True, nogil=True)
def fill(w: Any, s: Any, order: Any, count: int) -> None:
    """Let the first ``count`` classes hold the rows that ``ids`` states, in their ``order``."""
    begin = 0
    for c in range(count):
        end = begin
        while end < len(order) and s.ids[order[end]] == c:
            end += 1
        settle(w, s, c, order, begin, end, 1)
        begin = end


@njit(cache=True, nogil=True)
def _members(s: Any, c: int, out: Any, at: int) -> int:
    row = s.head[c]
    while row >= 0:
        out[at] = row
        at += 1
        row = s.next[row]
    return at


_POOL = 512  # rows up to which two classes are looked at together
_EPS = 1e-9


@njit(cache=True, nogil=True)
def improve_classes(
    w: Any, d: Any, s: Any, near: Any, state: Any, columns: int, sweep: int, work: int
) -> float:
    """Let each class exchange rows with classes near it, and cut pairs of them anew.

    ``state`` is (the next class, unused classes); stops when ``work`` rows were looked at. Gives
    what was gained.
    """
    m, words, classes = w.places.shape[1], w.bits.shape[1], len(s.head)
    rows, spare = np.empty(2 * _POOL, np.int64), np.empty(2 * _POOL, np.int64)
    kept = np.empty(2 * _POOL, np.int64)
    counts = np.zeros(max(d.shares.shape[1], 1), np.int64)
    seen = np.full(classes, -1, np.int64)
    stack, found = np.empty((2 * _POOL, 2), np.int64), np.empty(2 * _POOL, np.int64)
    box, held = np.empty((m, 2), np.int32), np.empty(words, np.uint64)
    gained = 0.0
    while state[0] < classes and work > 0:
        a = state[0]
        state[0] += 1
        if s.size[a] == 0 or s.size[a] > _POOL or s.width[a] <= _EPS:
            continue
        before = _members(s, a, kept, 0)
        for i in range(before):
            for j in range(near.shape[1]):
                b = s.ids[near[kept[i], j]] if near[kept[i], j] >= 0 else a
                if b == a or seen[b] == a or s.size[a] + s.size[b] > _POOL:
                    continue
                seen[b] = a
                if s.changed[a] < sweep - 1 and s.changed[b] < sweep - 1:
                    continue
                size = _members(s, b, rows, _members(s, a, rows, 0))
                loss = s.size[a] * s.width[a] + s.size[b] * s.width[b]
                work -= size
                # Cut all rows of both anew, as far as that goes.
                depth, classes_found, total = 1, 0, 0.0
                stack[0, 0], stack[0, 1] = 0, size
                while depth > 0:
                    depth -= 1
                    begin, end = stack[depth, 0], stack[depth, 1]
                    at, _ = _best_cut(w, d, rows, begin, end, columns, 0.0, spare, counts)
                    if at < 0:
                        _open(box, held)
                        for x in range(begin, end):
                            _add(w, rows[x], box, held)
                        total += (end - begin) * _width(w, box, held)
                        found[classes_found] = begin
                        classes_found += 1
                        continue
                    stack[depth, 0], stack[depth, 1] = at, end
                    stack[depth + 1, 0], stack[depth + 1, 1] = begin, at
                    depth += 2
                if total < loss - _EPS and classes_found - 2 <= state[1]:
                    gained += loss - total
                    found[classes_found] = size
                    for x in range(classes_found):
                        c = a if x == 0 else b if x == 1 else classes - state[1]
                        if x > 1:
                            state[1] -= 1
                        settle(w, s, c, rows, found[x], found[x + 1], sweep)
                    if classes_found == 1:
                        settle(w, s, b, rows, 0, 0, sweep)
                    break
            if s.ids[kept[i]] != a:
                break
    return gained
