"""Rows divided into classes: what a class must meet, and three ways to form some.

Median cuts (``cut``); MDAV around whoever stands farthest out (``mdav_classes``); and k-member,
grown row by row (``k_member``). What grows from dense places stands in ``growth.py``. None makes a
matrix of distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import (
    Sparing,
    bare,
    clear,
    constants,
    count_up,
    integer_rows,
    integers,
    interpret,
    kernel,
    reals,
    zeros,
)
from halfmask.kernels.distance import apart, distance, distances_from, plain_distances_from
from halfmask.kernels.partition import numpy_twins
from halfmask.kernels.partition.search_tree import select_rank

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Demands(NamedTuple):
    """What each row demands of the class it stands in.

    Attributes:
        k: (rows) how many rows.
        values: (rows, columns) codes of sensitive values; -1: missing, and counts for nothing.
        l: (rows, columns) how many different values; 0 demands nothing.
        t: (rows, columns) the largest distance to the distribution of all rows; 1 demands nothing.
        shares: (columns, values) the distribution of all rows whose value counts.
    """

    k: NDArray[np.int64]
    values: NDArray[np.int32]
    l: NDArray[np.int64]  # noqa: E741 - the letter of the definition
    t: NDArray[np.float64]
    shares: NDArray[np.float64]


@bare
def meets_demands(
    d: Any, order: NDArray[np.int64], begin: int, end: int, counts: NDArray[np.int64]
) -> bool:
    """Whether ``order[begin:end]`` is a class that meets all demands; ``counts`` is scratch."""
    size = end - begin
    for i in range(begin, end):
        if d.k[order[i]] > size:
            return False
    for s in range(d.values.shape[1]):
        most, close, distinct, known = 0, 1.0, 0, 0
        for i in range(begin, end):
            row = order[i]
            most, close = max(most, d.l[row, s]), min(close, d.t[row, s])
            if d.values[row, s] >= 0:
                known += 1
                counts[d.values[row, s]] += 1
                distinct += counts[d.values[row, s]] == 1
        # Half the sum of |share - share of all| is the sum where the class has more: values that it
        # lacks need not be looked at. Each value is counted once, as its count goes back to 0.
        moved = 1.0 if known == 0 else 0.0
        for i in range(begin, end):
            value = d.values[order[i], s]
            if value >= 0 and counts[value] > 0:
                moved += max(counts[value] / known - d.shares[s, value], 0.0)
                counts[value] = 0
        if distinct < most or (close < 1.0 and moved > close):
            return False
    return size > 0


class CutRoom(NamedTuple):
    """Where cuts write in between.

    Attributes:
        values: places of rows; ``spare`` the rows themselves.
        counts: per sensitive value, how often it occurs; 0 in between.
    """

    values: NDArray[np.int64]
    spare: NDArray[np.int64]
    counts: NDArray[np.int64]


@kernel
def _cut(
    p: Any,
    places: NDArray[np.int32],
    d: Any,
    largest: int,
    whole: bool,  # noqa: FBT001 - numba takes no keyword-only parameters
) -> tuple[Any, Any]:
    """Cut until no cut is allowed; gives rows in order of class, and where each class begins.

    Classes of at most ``largest`` rows are not cut (0: cut as far as demands allow). With ``whole``
    a class is left alone when it holds less than twice its own highest demand, as in the original
    algorithm; else a cut is allowed when each side meets the demands on that side.
    """
    n, columns = places.shape
    order = count_up(n)
    starts = integers(n + 1)
    classes = 0
    stack = integer_rows(128 + n, 2, 0)  # a class each, at worst
    stack[0, 0], stack[0, 1] = 0, n
    depth = 1
    widths = reals(columns, 0.0)
    room = CutRoom(integers(n), integers(n), zeros(max(d.shares.shape[1], 1)))
    while depth > 0:
        depth -= 1
        begin, end = stack[depth, 0], stack[depth, 1]
        middle = -1
        if end - begin > max(largest, 1) and _may_cut(d, order, begin, end, whole):
            for c in range(columns):
                low = high = order[begin]
                for i in range(begin + 1, end):
                    row = order[i]
                    if places[row, c] < places[low, c]:
                        low = row
                    elif places[row, c] > places[high, c]:
                        high = row
                widths[c] = apart(p, c, low, high) if places[low, c] < places[high, c] else -1.0
            while middle < 0:
                widest = 0
                for c in range(1, columns):
                    if widths[c] > widths[widest]:
                        widest = c
                if widths[widest] < 0:
                    break
                widths[widest] = -1.0
                middle = _halve(places, widest, d, order, begin, end, room)
        if middle < 0:
            starts[classes] = begin
            classes += 1
            continue
        # The left side is on top, so that classes come out in order.
        stack[depth, 0], stack[depth, 1] = middle, end
        stack[depth + 1, 0], stack[depth + 1, 1] = begin, middle
        depth += 2
    starts[classes] = n
    return order, starts[: classes + 1]


@bare
def _may_cut(d: Any, order: Any, begin: int, end: int, whole: bool) -> bool:  # noqa: FBT001
    if not whole:
        return True
    highest = 0
    for i in range(begin, end):
        highest = max(highest, d.k[order[i]])
    return end - begin >= 2 * highest


@bare
def _halve(places: Any, c: int, d: Any, order: Any, begin: int, end: int, room: Any) -> int:
    """Order the rows around the median of column ``c``; where the right side begins, or -1."""
    values, spare, counts = room.values, room.spare, room.counts
    size = end - begin
    for i in range(size):
        values[i] = places[order[begin + i], c]
    median = select_rank(values, size, size // 2)
    for attempt in range(2):  # many rows may share the median: it goes left, then right
        limit = median - attempt  # rows up to this place go left
        left, right = 0, 0
        for i in range(begin, end):
            row = order[i]
            if places[row, c] <= limit:
                spare[left] = row
                left += 1
            else:
                right += 1
                spare[size - right] = row
        if left == 0 or right == 0:
            continue
        # The right side was written from behind: back to the order it came in.
        for i in range((size - left) // 2):
            spare[left + i], spare[size - 1 - i] = spare[size - 1 - i], spare[left + i]
        if meets_demands(d, spare, 0, left, counts) and meets_demands(d, spare, left, size, counts):
            for i in range(size):
                order[begin + i] = spare[i]
            return begin + left
    return -1


class Variety(NamedTuple):
    """The sensitive values of the class that grows.

    Attributes:
        seen: (columns, values) the number of the last class that holds each value.
        distinct: per column, how many different values the class holds; ``most`` how many it needs.
    """

    seen: NDArray[np.int64]
    distinct: NDArray[np.int64]
    most: NDArray[np.int64]


@kernel
def _no_variety(d: Any) -> Any:
    """Before the first class."""
    seen = integer_rows(d.shares.shape[0], d.shares.shape[1], -1)
    return Variety(seen, zeros(d.values.shape[1]), zeros(d.values.shape[1]))


@bare
def note_values(d: Any, row: int, number: int, variety: Any) -> bool:
    """Take note of a new member's sensitive values; whether the class still lacks some."""
    seen, distinct, most = variety.seen, variety.distinct, variety.most
    short = False
    for s in range(d.values.shape[1]):
        if d.values[row, s] >= 0 and seen[s, d.values[row, s]] != number:
            seen[s, d.values[row, s]] = number
            distinct[s] += 1
        most[s] = max(most[s], d.l[row, s])
        short |= distinct[s] < most[s]
    return short


@bare
def new_value(d: Any, row: int, number: int, variety: Any) -> bool:
    """Whether a row brings a value that the class lacks where it lacks some."""
    for s in range(d.values.shape[1]):
        value = d.values[row, s]
        lacks = variety.distinct[s] < variety.most[s]
        if lacks and value >= 0 and variety.seen[s, value] != number:
            return True
    return False


class FreeRows(NamedTuple):
    """Rows without a class, the first so many of ``rows``; ``where`` each row stands there."""

    rows: NDArray[np.int64]
    where: NDArray[np.int64]


@bare
def remove(free: Any, count: int, row: int) -> int:
    """Take a row out of the first ``count``."""
    last = free.rows[count - 1]
    free.rows[free.where[row]] = last
    free.where[last] = free.where[row]
    return count - 1


@kernel
def farthest(p: Any, alive: Any, count: int, origin: int, scratch: Any) -> int:
    """The free row that is farthest from ``origin``."""
    distances_from(p, origin, alive, count, scratch)
    best, far = -1, -1.0
    for a in range(count):
        row = alive[a]
        x = scratch[row]
        if x > far or (x == far and row < best):
            best, far = row, x
    return best


@kernel
def _mdav_classes(p: Any, d: Any, ordinal: NDArray[np.bool_]) -> Any:
    """MDAV: the class of each row; -1 for rows left over at the end.

    Classes form around the row farthest from the centroid of the rows that remain, and around the
    row farthest from that one; each takes nearest rows until it meets the demands of all its rows.
    """
    n = len(d.k)
    ids = constants(n, -1)
    free = FreeRows(count_up(n), count_up(n))
    count, classes = n, 0
    near = reals(n, 0.0)
    variety, centroid = _no_variety(d), _centroid(p, n)
    highest = 1
    for i in range(n):
        highest = max(highest, d.k[i])
    first = -1
    while count > 0:
        if first < 0:
            origin = _outermost(p, free.rows, count, centroid, ordinal)
        else:
            origin = farthest(p, free.rows, count, first, near)
        first = origin if first < 0 else -1  # two classes a turn: the second far from the first
        distances_from(p, origin, free.rows, count, near)
        chosen = _nearest_class(d, free.rows, count, near, classes, variety, highest)
        if len(chosen) == 0:  # what is left cannot form a class
            break
        for m in range(len(chosen)):
            ids[chosen[m]] = classes
            count = remove(free, count, chosen[m])
            _weigh(p, chosen[m], -1, centroid)
        classes += 1
    return ids


class Centroid(NamedTuple):
    """The middle of the rows that remain.

    Attributes:
        sums: per numeric column, the sum of its positions; ``there`` how many rows have one.
        votes: how often each category occurs; those of a column begin at ``starts``.
        middle: per categorical column, its middle; written by who asks for it.
    """

    sums: NDArray[np.float64]
    there: NDArray[np.int64]
    votes: NDArray[np.int64]
    starts: NDArray[np.int64]
    middle: NDArray[np.int64]


@kernel
def _centroid(p: Any, n: int) -> Any:
    """The centroid of all rows."""
    starts = zeros(p.codes.shape[1] + 1)
    for c in range(p.codes.shape[1]):
        starts[c + 1] = starts[c] + p.sizes[c]
    sums, there = reals(p.numbers.shape[1], 0.0), zeros(p.numbers.shape[1])
    centroid = Centroid(sums, there, zeros(starts[-1]), starts, integers(p.codes.shape[1]))
    for i in range(n):
        _weigh(p, i, 1, centroid)
    return centroid


@bare
def _weigh(p: Any, row: int, sign: int, centroid: Any) -> None:
    for c in range(p.numbers.shape[1]):
        x = p.numbers[row, c]
        if x == x:
            centroid.sums[c] += sign * x
            centroid.there[c] += sign
    for c in range(p.codes.shape[1]):
        centroid.votes[centroid.starts[c] + p.codes[row, c]] += sign


@bare
def _outermost(p: Any, alive: Any, count: int, centroid: Any, ordinal: Any) -> int:
    """The row farthest from the centroid: means of numbers, most frequent categories."""
    sums, there, middle = centroid.sums, centroid.there, centroid.middle
    votes, starts = centroid.votes, centroid.starts
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


@kernel
def _nearest_class(
    d: Any, alive: Any, count: int, near: Any, number: int, variety: Any, highest: int
) -> Any:
    """The rows that come first by ``near`` and together meet their demands; none where none do."""
    wanted = min(count, highest)
    candidates = _smallest(near, alive, count, wanted)
    size, need, taken = 0, 0, 0
    clear(variety.distinct)
    clear(variety.most)
    short = False
    chosen = integers(count)
    while True:
        if taken == len(candidates):
            if len(candidates) == count:
                break
            # Seldom: demands for values passed over what was near.
            candidates = _smallest(near, alive, count, min(count, 4 * len(candidates)))
        row = candidates[taken]
        taken += 1
        if size >= need and short and not new_value(d, row, number, variety):
            continue
        chosen[size] = row
        size += 1
        need = max(need, d.k[row])
        short = note_values(d, row, number, variety)
        if size >= need and not short:
            return chosen[:size]
    return chosen[:0]


@kernel
def _smallest(near: Any, alive: Any, count: int, wanted: int) -> Any:
    """The ``wanted`` rows with the smallest ``near`` in ascending order, ties by number."""
    heap = integers(wanted)  # the largest on top
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


@bare
def _later(near: Any, a: int, b: int) -> bool:
    return near[a] > near[b] or (near[a] == near[b] and a > b)


@bare
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


def _rows(_: Any, d: Any, *__: Any) -> int:
    return len(d.k)


def _cells(_: Any, places: Any, *__: Any) -> int:
    return int(places.size)


_PLAIN: dict[str, Any] = {
    "distances_from": plain_distances_from,
    "farthest": numpy_twins.plain_farthest,
    "_smallest": numpy_twins.plain_smallest,
    "_outermost": numpy_twins.plain_outermost,
    "_best": numpy_twins.plain_best,
}
cut: Any = Sparing(_cut, _cells, 80_000)
mdav_classes: Any = Sparing(_mdav_classes, _rows, 6_000, interpret(_mdav_classes, **_PLAIN))

_CLOSE = 48  # rows near the first member of a class that are looked at before all others


@kernel
def _k_member(
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
    ids = constants(n, -1)
    free = FreeRows(count_up(n), count_up(n))
    count, classes = n, 0
    grown = GrowingClass(integers(n), reals(n, 0.0), integers(n), _no_variety(d))
    close, edge = integers(0), 0.0
    while count > 0:
        drawn = free.rows[int(draws[classes] * count)]
        row = farthest(p, free.rows, count, drawn, grown.reach)
        size, need, diameter = 0, 0, 0.0
        clear(grown.variety.distinct)
        clear(grown.variety.most)
        while True:
            grown.members[size] = row
            size += 1
            need = max(need, d.k[row])
            short = note_values(d, row, classes, grown.variety)
            count = remove(free, count, row)
            if (size >= need and not short) or count == 0:
                break
            if size == 1:
                distances_from(p, row, free.rows, count, grown.reach)
                for i in range(n):
                    grown.known[i] = 1
                close = _smallest(grown.reach, free.rows, count, min(count, _CLOSE))
                edge = grown.reach[close[-1]]
            stage = GrowthStage(classes, size, need, diameter, short and size >= need, improved)
            row, diameter = _best(p, d, free, count, grown, stage, close, edge)
        if size >= need and not short:
            for m in range(size):
                ids[grown.members[m]] = classes
            classes += 1
    return ids


class GrowingClass(NamedTuple):
    """What k-member knows of the class that grows.

    Attributes:
        members: its rows.
        reach: per free row, at least the largest distance to the class so far.
        known: per free row, how many members that counts.
        variety: its sensitive values.
    """

    members: NDArray[np.int64]
    reach: NDArray[np.float64]
    known: NDArray[np.int64]
    variety: Variety


class GrowthStage(NamedTuple):
    """How far a class has grown.

    Attributes:
        number: the number of the class.
        size: how many rows it holds; ``need`` how many they demand.
        diameter: its largest distance.
        full: whether only a missing value is still wanted.
        improved: whether a row's demand counts in its score.
    """

    number: int
    size: int
    need: int
    diameter: float
    full: bool
    improved: bool


@bare
def _best(
    p: Any, d: Any, free: Any, count: int, grown: Any, stage: Any, close: Any, edge: float
) -> tuple[Any, Any]:
    """The row that raises the class's loss least, and the diameter with it.

    Rows that were ``close`` to the first member come first: all others were at least ``edge`` away
    from it, which often rules them out together.
    """
    alive, where = free.rows, free.where
    members, reach, known = grown.members, grown.reach, grown.known
    size, need, diameter, improved = stage.size, stage.need, stage.diameter, stage.improved
    best, best_score, best_reach = -1, np.inf, np.inf
    # -1: those close by; 0: all rows, but with a missing value where one is wanted; 1: all rows.
    for attempt in range(-1, 2):
        if attempt < 0 and stage.full:
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
            lower = final * max(diameter, reach[row])  # reach only grows as members are counted
            if lower > best_score or (lower == best_score and reach[row] > best_reach):
                continue
            lacking = stage.full and attempt == 0
            if lacking and not new_value(d, row, stage.number, grown.variety):
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


k_member: Any = Sparing(_k_member, _rows, 6_000, interpret(_k_member, **_PLAIN))
