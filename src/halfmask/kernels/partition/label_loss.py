"""Classes cut and improved by what their labels lose, whatever kind of label a column publishes.

A class of n rows loses n times the widths of its labels. The width of a column is read from the
least and the largest place in the class (ranges, common labels), or from the set of its values.
Every kernel works in pieces: it stops when the work it was given is done, and goes on from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import light
from halfmask.kernels.partition.construction import meets_demands

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


_POOL = 512  # rows up to which two classes are looked at together
_BUCKETS = 4096  # places of a column between which cuts are tried


class Room(NamedTuple):
    """Where the kernels write in between; ``room_for`` makes it."""

    integers: NDArray[np.int64]
    reals: NDArray[np.float64]
    words: NDArray[np.uint64]


def room_for(w: Widths, d: Any) -> Room:
    """Room for all rows; counts of sensitive values begin and end at 0."""
    rows, columns = w.places.shape
    wide = max(rows + 1, 4 * _POOL, _BUCKETS + 1, 2 * columns, d.shares.shape[1])
    return Room(
        np.zeros((13, wide), np.int64),
        np.zeros((3, wide)),
        np.zeros((3, w.bits.shape[1]), np.uint64),
    )


@light
def _open(box: Any, held: Any) -> None:
    """An empty class."""
    for c in range(len(box) // 2):
        box[2 * c], box[2 * c + 1] = 2147483647, -1
    for i in range(len(held)):
        held[i] = 0


@light
def _add(places: Any, bits: Any, row: int, box: Any, held: Any) -> None:
    for c in range(len(box) // 2):
        x = places[row, c]
        if x < box[2 * c]:
            box[2 * c] = x
        if x > box[2 * c + 1]:
            box[2 * c + 1] = x
    for i in range(len(held)):
        held[i] |= bits[row, i]


@light
def _width(w: Any, box: Any, held: Any) -> Any:
    """How wide the labels of a class are, all columns together."""
    total = -w.alone
    for c in range(len(box) // 2):
        low, high = box[2 * c], box[2 * c + 1]
        if w.weights[c] == 0.0 or low >= high:
            continue
        if w.tables[c] >= 0:
            total += w.pairs[w.tables[c] + low * w.sizes[c] + high]
        else:
            at = w.begins[c]
            total += min(w.high[at + high] - w.low[at + low], w.weights[c])
    for i in range(len(held)):
        x = held[i]  # its bits are counted, in pairs, in fours, in bytes, and the bytes added up
        x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
        x = (x & np.uint64(0x3333333333333333)) + (
            (x >> np.uint64(2)) & np.uint64(0x3333333333333333)
        )
        x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        total += np.float64((x * np.uint64(0x0101010101010101)) >> np.uint64(56)) * w.gain[i]
    return total


@light
def _measure(w: Any, rows: Any, begin: int, end: int, box: Any, held: Any) -> Any:
    """How wide the labels of ``rows[begin:end]`` are together; fills ``box`` and ``held``."""
    _open(box, held)
    for i in range(begin, end):
        _add(w.places, w.bits, rows[i], box, held)
    return _width(w, box, held)


_FEW = 24  # rows up to which they are ordered one by one


@light
def _order(
    places: Any, c: int, rows: Any, begin: int, end: int, span: tuple[int, int, int], room: Any
) -> None:
    """Order ``rows[begin:end]`` by the bucket that their place in a column falls into.

    ``span`` is the least place, how many there are, and how many buckets; the rows and their
    buckets are left in ``room``.
    """
    low, wide, buckets = span
    first, spare, key = room.integers[2], room.integers[5], room.integers[12]
    if end - begin <= _FEW:
        for i in range(end - begin):
            row = rows[begin + i]
            b = (places[row, c] - low) * buckets // wide
            j = i
            while j > 0 and key[j - 1] > b:
                key[j], spare[j] = key[j - 1], spare[j - 1]
                j -= 1
            key[j], spare[j] = b, row
        return
    for b in range(buckets + 1):
        first[b] = 0
    for i in range(begin, end):
        first[(places[rows[i], c] - low) * buckets // wide + 1] += 1
    for b in range(buckets):
        first[b + 1] += first[b]
    for i in range(begin, end):
        b = (places[rows[i], c] - low) * buckets // wide
        spare[first[b]], key[first[b]] = rows[i], b
        first[b] += 1


@light
def _best_cut(
    w: Any, d: Any, rows: Any, begin: int, end: int, columns: int, share: float, room: Any
) -> tuple[int, float]:
    """Order ``rows[begin:end]`` around the cut that loses least; where it is (-1), and the loss.

    The widest columns are tried, each between any two places that are held. Both sides meet the
    demands of their rows and hold at least ``share`` of them.
    """
    places, bits, k = w.places, w.bits, d.k
    n, m = end - begin, places.shape[1]
    least = max(int(share * n), 1)
    lowest, most_asked = k[rows[begin]], least
    for i in range(begin, end):
        lowest, most_asked = min(lowest, k[rows[i]]), max(most_asked, k[rows[i]])
    lowest = max(lowest, least)  # rows of either side at least; one side holds who asks most
    if n < lowest + most_asked:
        return -1, np.inf
    box, held = room.integers[0, : 2 * m], room.words[0]
    _measure(w, rows, begin, end, box, held)
    span, order, left = room.reals[0], room.reals[1], room.reals[2]
    for c in range(m):
        span[c] = (box[2 * c + 1] - box[2 * c]) / max(w.sizes[c] - 1, 1)
    most = min(4 * n + 64, _BUCKETS)  # buckets for few rows would take longer than the rows
    part, some = room.integers[1, : 2 * m], room.words[1]
    refused, spare, key = room.integers[3], room.integers[5], room.integers[12]
    strict = d.values.shape[1] > 0
    for c in range(m):
        refused[c] = 0
    while True:
        for c in range(m):
            order[c] = span[c]
        best, best_column, best_limit = np.inf, -1, 0
        for _ in range(min(columns, m)):
            c = 0
            for other in range(1, m):
                if order[other] > order[c]:
                    c = other
            if order[c] <= 0.0:
                break
            order[c] = -1.0
            if refused[c] > 0:
                continue
            low, wide = box[2 * c], box[2 * c + 1] - box[2 * c] + 1
            _order(places, c, rows, begin, end, (low, wide, min(wide, most)), room)
            _open(part, some)
            highest = 0
            for i in range(1, n - lowest + 1):
                _add(places, bits, spare[i - 1], part, some)
                highest = max(highest, k[spare[i - 1]])
                left[i] = -1.0
                if key[i] > key[i - 1] and i >= max(highest, least):
                    left[i] = _width(w, part, some) * i
            _open(part, some)
            highest = 0
            for i in range(n - 1, lowest - 1, -1):
                _add(places, bits, spare[i], part, some)
                highest = max(highest, k[spare[i]])
                if left[i] < 0.0 or n - i < max(highest, least):
                    continue
                total = left[i] + _width(w, part, some) * (n - i)
                if total < best:
                    best, best_column, best_limit = total, c, key[i - 1]
        if best_column < 0:
            return -1, np.inf
        c, low = best_column, box[2 * best_column]
        wide = box[2 * c + 1] - low + 1
        buckets = min(wide, most)
        at, behind = 0, n
        for i in range(begin, end):
            row = rows[i]
            if (places[row, c] - low) * buckets // wide <= best_limit:
                spare[at] = row
                at += 1
            else:
                behind -= 1
                spare[behind] = row
        counts = room.integers[4]
        if strict and not (
            meets_demands(d, spare, 0, at, counts) and meets_demands(d, spare, at, n, counts)
        ):
            refused[c] = 1
            continue
        for i in range(n):
            rows[begin + i] = spare[i]
        return begin + at, best


_LARGE = 5_000  # rows from which a part must not be peeled
_SHARE = 0.02  # of such a part, that either side holds at least


class Parts(NamedTuple):
    """Rows that are being cut.

    Attributes:
        rows: in order of the parts.
        stack: where the open parts begin and end.
        starts: where classes begin.
    """

    rows: NDArray[np.int64]
    stack: NDArray[np.int64]
    starts: NDArray[np.int64]


@light
def _cut_classes(w: Any, d: Any, parts: Parts, state: Any, room: Any, work: int) -> None:
    """Cut rows top down while that is allowed, until ``work`` rows were looked at."""
    rows, stack, starts = parts.rows, parts.stack, parts.starts
    while state[0] > 0 and work > 0:
        state[0] -= 1
        begin, end = stack[state[0], 0], stack[state[0], 1]
        work -= end - begin
        at = -1
        # Large parts fall into parts of some size, or peeling them would never end.
        share = _SHARE if end - begin > _LARGE else 0.0
        while end - begin > 1:
            at, _ = _best_cut(w, d, rows, begin, end, state[2], share, room)
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
    """Classes as linked lists of rows.

    Attributes:
        ids: (rows) the class of each row.
        next: (rows) the next row of the same class; -1 ends.
        head: (classes) the first row; -1 where a class is empty.
        size: (classes) how many rows it holds.
        width: (classes) how wide its labels are; negative: not known yet.
        changed: (classes) the last sweep that changed it.
        box: (classes, 2 * columns) its least and largest places, once the width is known.
        held: (classes, words) the values under its labels, once the width is known.
    """

    ids: NDArray[np.int64]
    next: NDArray[np.int64]
    head: NDArray[np.int64]
    size: NDArray[np.int64]
    width: NDArray[np.float64]
    changed: NDArray[np.int64]
    box: NDArray[np.int64]
    held: NDArray[np.uint64]


@light
def _settle(s: Any, c: int, rows: Any, begin: int, end: int, sweep: int) -> None:
    """Let class ``c`` hold ``rows[begin:end]``."""
    s.head[c] = -1
    for i in range(begin, end):
        row = rows[i]
        s.ids[row] = c
        s.next[row] = s.head[c]
        s.head[c] = row
    s.size[c] = end - begin
    s.width[c] = -1.0
    s.changed[c] = sweep


@light
def _loss(w: Any, s: Any, c: int, rows: Any) -> Any:
    """What a class loses, its width brought up to date."""
    if s.width[c] < 0.0:
        count = _members(s, c, rows, 0)
        s.width[c] = max(_measure(w, rows, 0, count, s.box[c], s.held[c]), 0.0)
    return s.size[c] * s.width[c]


@light
def _members(s: Any, c: int, out: Any, at: int) -> int:
    row = s.head[c]
    while row >= 0:
        out[at] = row
        at += 1
        row = s.next[row]
    return at


_EPS = 1e-9


@light
def _improve_classes(w: Any, d: Any, s: Any, near: Any, state: Any, room: Any, work: int) -> float:
    m, classes, sweep = w.places.shape[1], len(s.head), state[3]
    rows, kept = room.integers[6], room.integers[7]
    stack, found, seen = room.integers[8], room.integers[9], room.integers[10]
    box, held = room.integers[11, : 2 * m], room.words[2]
    for c in range(classes):
        seen[c] = -1
    gained = 0.0
    while state[0] < classes and work > 0:
        a = state[0]
        state[0] += 1
        if s.size[a] == 0 or s.size[a] > _POOL or _loss(w, s, a, rows) <= _EPS:
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
                loss = _loss(w, s, a, rows) + _loss(w, s, b, rows)
                size = _members(s, b, rows, _members(s, a, rows, 0))
                work -= size
                # Cut all rows of both anew, as far as that goes.
                depth, classes_found, total = 1, 0, 0.0
                stack[0], stack[1] = 0, size
                while depth > 0:
                    depth -= 1
                    begin, end = stack[2 * depth], stack[2 * depth + 1]
                    at, _ = _best_cut(w, d, rows, begin, end, state[2], 0.0, room)
                    if at < 0:
                        total += (end - begin) * _measure(w, rows, begin, end, box, held)
                        found[classes_found] = begin
                        classes_found += 1
                        continue
                    stack[2 * depth], stack[2 * depth + 1] = at, end
                    stack[2 * depth + 2], stack[2 * depth + 3] = begin, at
                    depth += 2
                if total < loss - _EPS and classes_found - 2 <= state[1]:
                    gained += loss - total
                    found[classes_found] = size
                    for x in range(classes_found):
                        c = a if x == 0 else b if x == 1 else classes - state[1]
                        if x > 1:
                            state[1] -= 1
                        _settle(s, c, rows, found[x], found[x + 1], sweep)
                    if classes_found == 1:
                        _settle(s, b, rows, 0, 0, sweep)
                    break
            if s.ids[kept[i]] != a:
                break
    return gained


@light
def _move_rows(w: Any, d: Any, s: Any, near: Any, state: Any, room: Any, work: int) -> float:
    m, strict = w.places.shape[1], d.values.shape[1] > 0
    rows, kept, seen = room.integers[6], room.integers[7], room.integers[10]
    box, held = room.integers[11, : 2 * m], room.words[2]
    for c in range(len(s.head)):
        seen[c] = -1
    gained = 0.0
    while state[0] < len(s.ids) and work > 0:
        row = state[0]
        state[0] += 1
        a = s.ids[row]
        if s.size[a] == 1 or s.size[a] > _POOL or _loss(w, s, a, rows) <= _EPS:
            continue
        work -= s.size[a]
        count, highest, x = 0, 0, s.head[a]
        while x >= 0:
            if x != row:
                kept[count] = x
                count += 1
                highest = max(highest, d.k[x])
            x = s.next[x]
        if count < highest:
            continue
        left = max(_measure(w, kept, 0, count, box, held), 0.0)
        saved = _loss(w, s, a, rows) - count * left
        best, least, free = -1, saved - _EPS, not strict
        for j in range(near.shape[1]):
            b = s.ids[near[row, j]] if near[row, j] >= 0 else a
            if b == a or seen[b] == row or s.size[b] + 1 < d.k[row]:
                continue
            seen[b] = row
            work -= 1
            cost = -_loss(w, s, b, rows)
            for i in range(2 * m):
                box[i] = s.box[b, i]
            for i in range(len(held)):
                held[i] = s.held[b, i]
            _add(w.places, w.bits, row, box, held)
            cost += (s.size[b] + 1) * max(_width(w, box, held), 0.0)
            if cost >= least:
                continue
            if strict:
                free = free or meets_demands(d, kept, 0, count, room.integers[4])
                if not free:
                    break
                size = _members(s, b, rows, 0)
                rows[size] = row
                if not meets_demands(d, rows, 0, size + 1, room.integers[4]):
                    continue
            best, least = b, cost
        if best < 0:
            continue
        gained += saved - least
        size = _members(s, best, rows, 0)
        rows[size] = row
        _settle(s, a, kept, 0, count, -state[3])
        _settle(s, best, rows, 0, size + 1, -state[3])
    return gained


@light
def _run(
    w: Any, d: Any, s: Any, near: Any, parts: Parts, state: Any, room: Any, work: int
) -> float:
    """All kernels in one: whoever improves classes cut them before, often, with the same parts."""
    if state[3] == 0:
        _cut_classes(w, d, parts, state, room, work)
        return 0.0
    if state[3] < 0:
        return _move_rows(w, d, s, near, state, room, work)
    return _improve_classes(w, d, s, near, state, room, work)


_NONE, _NOTHING = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
_NO_CLASSES = ClassLists(
    _NONE, _NONE, _NONE, _NONE, np.zeros(0), _NONE, _NOTHING, np.zeros((0, 0), np.uint64)
)
_NO_PARTS = Parts(_NONE, _NOTHING, _NONE)
_NOBODY = np.zeros((0, 0), np.int32)


def cut_classes(
    w: Widths, d: Any, parts: Parts, state: NDArray[np.int64], room: Room, work: int
) -> None:
    """Cut rows top down while that is allowed.

    ``state`` is (open parts, classes found, columns that are tried, 0). Stops when ``work`` rows
    were looked at.
    """
    _run(w, d, _NO_CLASSES, _NOBODY, parts, state, room, work)


def improve_classes(
    w: Widths,
    d: Any,
    s: ClassLists,
    near: NDArray[np.int32],
    state: NDArray[np.int64],
    room: Room,
    work: int,
) -> float:
    """Let each class exchange rows with classes near it, and cut pairs of them anew.

    ``state`` is (the next class, unused classes, columns that are tried, the sweep, from 1). Stops
    when ``work`` rows were looked at. Gives what was gained.
    """
    return float(_run(w, d, s, near, _NO_PARTS, state, room, work))


def move_rows(
    w: Widths,
    d: Any,
    s: ClassLists,
    near: NDArray[np.int32],
    state: NDArray[np.int64],
    room: Room,
    work: int,
) -> float:
    """Let each row move to the class near it where both classes together lose least.

    ``state`` is (the next row, 0, 0, the sweep, from -1 down). Stops when ``work`` rows were looked
    at. Gives what was gained.
    """
    return float(_run(w, d, s, near, _NO_PARTS, state, room, work))
