"""Classes improved by moving rows, exchanging them, cutting pairs anew and dissolving classes.

Classes are linked lists of rows, which rows enter and leave at no cost. The loss of a class is its
size times its diameter. Every step keeps all demands for rows met and lowers the loss, but the
first, which merges failing classes with near ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import (
    Sparing,
    bare,
    interpret,
    kernel,
    light,
    reals,
    zeros,
)
from halfmask.kernels.distance import diameters, distance
from halfmask.kernels.partition import numpy_twins
from halfmask.kernels.partition.construction import meets_demands

if TYPE_CHECKING:
    from numpy.typing import NDArray


class LinkedClasses(NamedTuple):
    """Classes as linked lists of rows.

    Attributes:
        ids: the class of each row.
        head: per class its first row, -1 if it is empty.
        next: per row the one behind it in its class, -1 at the end.
        size: rows of each class.
        need: the highest demand in each class.
        diameter: the largest distance in each class.
        changed: per class, the sweep in which it changed last.
    """

    ids: NDArray[np.int64]
    head: NDArray[np.int64]
    next: NDArray[np.int64]
    size: NDArray[np.int64]
    need: NDArray[np.int64]
    diameter: NDArray[np.float64]
    changed: NDArray[np.int64]


def link_classes(p: Any, k: NDArray[np.int64], ids: NDArray[np.int64]) -> LinkedClasses:
    """The partition that ``ids`` states; every row must have a class."""
    n = len(ids)
    head, after = np.full((2, n), -1, np.int64)
    order = np.argsort(ids, kind="stable")
    head[ids[::-1]] = np.arange(n - 1, -1, -1)  # of equals the last counts: the first row
    follows = ids[order[1:]] == ids[order[:-1]]
    after[order[:-1][follows]] = order[1:][follows]
    need = np.zeros(n, np.int64)
    np.maximum.at(need, ids, k)
    size = np.bincount(ids, minlength=n).astype(np.int64)
    wide = diameters(p, order, np.append(0, np.cumsum(size)))
    return LinkedClasses(ids, head, after, size, need, wide, np.zeros(n, np.int64))


@bare
def diameter_of(p: Any, s: Any, c: int, without: int) -> float:
    """The largest distance in a class, one row left out; -1 leaves out none."""
    widest = 0.0
    a = s.head[c]
    while a >= 0:
        if a != without:
            b = s.next[a]
            while b >= 0:
                if b != without:
                    widest = max(widest, distance(p, a, b))
                b = s.next[b]
        a = s.next[a]
    return widest


@bare
def need_of(k: Any, s: Any, c: int, without: int) -> int:
    """The highest demand in a class, one row left out; -1 leaves out none."""
    highest = 0
    a = s.head[c]
    while a >= 0:
        if a != without:
            highest = max(highest, k[a])
        a = s.next[a]
    return highest


@bare
def reach_of(p: Any, s: Any, c: int, row: int, without: int) -> float:
    """The largest distance from ``row`` to a class, one row of it and itself left out."""
    widest = 0.0
    a = s.head[c]
    while a >= 0:
        if a != without and a != row:
            widest = max(widest, distance(p, a, row))
        a = s.next[a]
    return widest


@bare
def unlink(s: Any, row: int) -> None:
    """Take a row out of its class; its size is left to the caller."""
    c = s.ids[row]
    if s.head[c] == row:
        s.head[c] = s.next[row]
        return
    a = s.head[c]
    while s.next[a] != row:
        a = s.next[a]
    s.next[a] = s.next[row]


@bare
def link(s: Any, row: int, c: int) -> None:
    """Put a row at the head of a class; its size is left to the caller."""
    s.next[row] = s.head[c]
    s.head[c] = row
    s.ids[row] = c


@bare
def settle(p: Any, k: Any, s: Any, c: int, sweep: int) -> None:
    """Bring what is known of a class up to date."""
    s.need[c] = need_of(k, s, c, -1)
    s.diameter[c] = diameter_of(p, s, c, -1)
    s.changed[c] = sweep


@bare
def meets(d: Any, s: Any, c: int, without: int, added: int, rows: Any, counts: Any) -> bool:
    """Whether a class would meet all demands with one row less and another more."""
    if d.values.shape[1] == 0:
        return True  # demands for rows alone are checked by the caller
    size = 0
    a = s.head[c]
    while a >= 0:
        if a != without:
            rows[size] = a
            size += 1
        a = s.next[a]
    if added >= 0:
        rows[size] = added
        size += 1
    return size == 0 or meets_demands(d, rows, 0, size, counts)


@bare
def reach_others(p: Any, s: Any, a: int, x: int, cross: Any) -> None:
    """Raise what is known of how far row ``x`` of class ``a`` is from each other class."""
    for y in range(len(s.ids)):
        b = s.ids[y]
        if b != a:
            cross[b] = max(cross[b], distance(p, x, y))


@bare
def cheapest(s: Any, a: int, cross: Any) -> int:
    """The class that class ``a`` raises the loss least for; -1 where there is none.

    Those that then hold as many rows as anybody in them demands come first.
    """
    best, best_short, best_cost = -1, True, np.inf
    for b in range(len(cross)):
        if b == a or cross[b] < 0 or s.size[b] == 0:
            continue
        size = s.size[a] + s.size[b]
        wide = max(cross[b], s.diameter[a], s.diameter[b])
        cost = size * wide - s.size[a] * s.diameter[a] - s.size[b] * s.diameter[b]
        short = size < max(s.need[a], s.need[b])
        if cost < best_cost if short == best_short else best_short:
            best, best_short, best_cost = b, short, cost
    return best


@kernel
def _absorb(p: Any, k: Any, s: Any, failing: NDArray[np.bool_], near: Any) -> None:
    """Merge every failing class with the class that this raises the loss least for.

    Candidates are the classes of ``near`` rows or, where that is empty or knows none, all classes.
    A class that took another one in this round is not looked at again.
    """
    n = len(k)
    touched, cross = zeros(n), reals(n, 0.0)
    for a in range(n):
        if not failing[a] or touched[a] or s.size[a] == 0:
            continue
        best = -1
        for attempt in range(2):  # classes of near rows; then all
            if attempt == 0 and near.shape[0] == 0:
                continue
            for b in range(n):
                cross[b] = -1.0
            x = s.head[a]
            while x >= 0:
                if attempt == 0:
                    for j in range(near.shape[1]):
                        if near[x, j] >= 0:
                            b = s.ids[near[x, j]]
                            if cross[b] < 0:
                                y = s.head[b]
                                while y >= 0:
                                    z = s.head[a]
                                    while z >= 0:
                                        cross[b] = max(cross[b], distance(p, z, y))
                                        z = s.next[z]
                                    y = s.next[y]
                else:
                    reach_others(p, s, a, x, cross)
                x = s.next[x]
            best = cheapest(s, a, cross)
            if best >= 0:
                break
        if best < 0:
            continue
        wide = max(cross[best], s.diameter[a], s.diameter[best])
        x = s.head[a]
        while x >= 0:
            following = s.next[x]
            link(s, x, best)
            x = following
        s.head[a] = -1
        s.size[best] += s.size[a]
        s.size[a] = 0
        s.need[best] = max(s.need[best], s.need[a])
        s.diameter[best] = wide
        s.diameter[a] = 0.0
        touched[best] = 1


def _absorbed(_: Any, k: Any, s: Any, failing: Any, near: Any) -> int:
    """About microseconds of NumPy; where many classes fail it takes too long."""
    rows = int(s.size[failing].sum())
    return 10**9 if len(near) else rows * (200 + len(k) // 20)


absorb: Any = Sparing(
    _absorb,
    _absorbed,
    1_000_000,
    interpret(
        _absorb,
        reach_others=numpy_twins.plain_reach_others,
        cheapest=numpy_twins.plain_cheapest,
    ),
)


POOL = 64  # rows up to which two classes are cut anew
_EPS = 1e-9  # gains below it are rounding, and could be won back and forth for ever


class SweepRoom(NamedTuple):
    """Where a sweep writes in between; ``_room_for`` makes it.

    Attributes:
        integers: by whom each class was looked at; the rows of some classes; classes without rows;
            by whom each class was taken; where rows go; the highest demands of the ends of rows.
        reals: what orders rows; the diameters of their ends.
        counts: per sensitive value, how often it occurs; 0 in between.
    """

    integers: NDArray[np.int64]
    reals: NDArray[np.float64]
    counts: NDArray[np.int64]


_TRIED, _ROWS, _SPARES, _TAKEN, _TARGETS, _NEEDS = range(6)
_KEYS, _WIDE = range(2)


def _room_for(d: Any) -> SweepRoom:
    """Room for all rows: kernels that make no array compile and run faster."""
    n = len(d.k) + 2 * POOL + 1
    counts = np.zeros(max(d.shares.shape[1], 1), np.int64)
    return SweepRoom(np.full((6, n), -1, np.int64), np.zeros((2, 2 * POOL + 1)), counts)


@light
def _cut_anew(p: Any, d: Any, s: Any, near: Any, sweep: int, room: Any) -> float:
    """Split classes, and cut pairs of classes that are near each other anew; what that gains."""
    n, tried, spares = len(d.k), room.integers[_TRIED], room.integers[_SPARES]
    count, gained = 0, 0.0
    for c in range(n):
        tried[c] = -1
        if s.size[c] == 0:
            spares[count] = c
            count += 1
    for c in range(n):
        if s.size[c] == 0 or s.diameter[c] == 0 or s.size[c] > POOL:
            continue
        if count > 0 and s.size[c] >= 2 and s.changed[c] >= sweep - 1:
            won = _improve_pair(p, d, s, c, -1, spares[count - 1], sweep, room)
            count -= won > 0
            gained += won
        x = s.head[c]
        while x >= 0:
            following = s.next[x]
            for j in range(near.shape[1]):
                if near[x, j] < 0:
                    break
                b = s.ids[near[x, j]]
                if b == c or tried[b] == c:
                    continue
                tried[b] = c
                if s.changed[c] < sweep - 1 and s.changed[b] < sweep - 1:
                    continue
                if s.size[c] + s.size[b] <= POOL:
                    won = _improve_pair(p, d, s, c, b, -1, sweep, room)
                    gained += won
                    if won > 0:
                        following = s.head[c]
                        break
            x = following
    for c in range(n):
        tried[c] = -1
    return gained


@light
def _improve_pair(
    p: Any, d: Any, s: Any, a: int, b: int, spare: int, sweep: int, room: Any
) -> float:
    """Cut the rows of two classes (of one, if ``b`` is negative) anew; what that gains."""
    rows, count = room.integers[_ROWS], 0
    for side in range(2):
        c = b if side else a
        if c >= 0:
            x = s.head[c]
            while x >= 0:
                rows[count] = x
                count += 1
                x = s.next[x]
    before = s.size[a] * s.diameter[a] + (s.size[b] * s.diameter[b] if b >= 0 else 0.0)
    far, first, second = -1.0, rows[0], rows[0]
    for i in range(count):
        for j in range(i):
            x = distance(p, rows[i], rows[j])
            if x > far:
                far, first, second = x, rows[i], rows[j]
    best, at = _cut(p, d, room, count, first, second)
    if best >= before - _EPS:
        return 0.0
    other = b if b >= 0 else spare
    s.head[a] = s.head[other] = -1
    s.size[a], s.size[other] = 0, 0
    for i in range(count):
        c = a if i < at or at == 0 else other
        link(s, rows[i], c)
        s.size[c] += 1
    settle(p, d.k, s, a, sweep)
    settle(p, d.k, s, other, sweep)
    return float(before - best)


@light
def _cut(p: Any, d: Any, room: Any, count: int, one: int, other: int) -> tuple[Any, Any]:
    """The best way to cut rows in order between two of them: the loss, and how many go left.

    0 means that they stay together.
    """
    rows, key, counts = room.integers[_ROWS], room.reals[_KEYS], room.counts
    k, strict = d.k, d.values.shape[1] > 0
    for i in range(count):
        key[i] = distance(p, rows[i], one) - distance(p, rows[i], other)
    for i in range(1, count):  # few rows: insertion sort
        x, row = key[i], rows[i]
        j = i
        while j > 0 and key[j - 1] > x:
            key[j], rows[j] = key[j - 1], rows[j - 1]
            j -= 1
        key[j], rows[j] = x, row
    # Diameters of all ends first, then those of all beginnings as they grow: each pair is looked at
    # twice, not once a cut.
    right_wide, right_need = room.reals[_WIDE], room.integers[_NEEDS]
    right_wide[count], right_need[count] = 0.0, 0
    for i in range(count - 1, -1, -1):
        wide = right_wide[i + 1]
        for j in range(i + 1, count):
            wide = max(wide, distance(p, rows[i], rows[j]))
        right_wide[i], right_need[i] = wide, max(right_need[i + 1], k[rows[i]])
    best, at = count * right_wide[0] if right_need[0] <= count else np.inf, 0
    wide, need = 0.0, 0
    for i in range(count - 1):
        for j in range(i):
            wide = max(wide, distance(p, rows[i], rows[j]))
        need = max(need, k[rows[i]])
        left, right = i + 1, count - i - 1
        if left >= need and right >= right_need[i + 1]:
            now = left * wide + right * right_wide[i + 1]
            if now < best - _EPS and (
                not strict
                or (
                    meets_demands(d, rows, 0, left, counts)
                    and meets_demands(d, rows, left, count, counts)
                )
            ):
                best, at = now, left
    return best, at


def improve_partition(
    p: Any, d: Any, s: LinkedClasses, near: NDArray[np.int32], sweeps: int, enough: float
) -> float:
    """Improve the partition until a sweep gains less than the share ``enough``; the loss left."""
    return float(_improve_partition(p, d, s, near, sweeps, enough, _room_for(d)))


@light
def _improve_partition(
    p: Any, d: Any, s: Any, near: Any, sweeps: int, enough: float, room: Any
) -> float:
    n = len(d.k)
    total = 0.0
    for c in range(n):
        total += s.size[c] * s.diameter[c]
        s.changed[c] = 1
    for sweep in range(1, sweeps + 1):
        gained = 0.0
        for row in range(n):
            c = s.ids[row]
            active = s.changed[c] >= sweep - 1
            for j in range(near.shape[1]):
                if active or near[row, j] < 0:
                    break
                active = s.changed[s.ids[near[row, j]]] >= sweep - 1
            if active and s.diameter[c] > 0:
                gained += _improve_row(p, d, s, near, row, sweep, room)
        gained += _cut_anew(p, d, s, near, sweep, room)
        gained += _dissolve(p, d, s, near, sweep, room)
        total -= gained
        if gained <= enough * total:
            break
    return total


@light
def _improve_row(p: Any, d: Any, s: Any, near: Any, row: int, sweep: int, room: Any) -> float:
    """Move a row to a class near it, or exchange it with a row there; what that gains."""
    tried, rows, counts = room.integers[_TRIED], room.integers[_ROWS], room.counts
    k = d.k
    a = s.ids[row]
    size_a, wide_a = s.size[a], s.diameter[a]
    inner_a, need_a = diameter_of(p, s, a, row), need_of(k, s, a, row)
    leaves = size_a - 1 >= need_a
    gain, target, partner = _EPS, -1, -1
    for j in range(near.shape[1]):
        if near[row, j] < 0:
            break
        b = s.ids[near[row, j]]
        if b == a or tried[b] == row:
            continue
        tried[b] = row
        size_b, wide_b = s.size[b], s.diameter[b]
        # The two largest distances from the row to b: without ``at`` b is ``second`` away.
        first, second, at = 0.0, 0.0, -1
        x = s.head[b]
        while x >= 0:
            far = distance(p, row, x)
            if far > first or at < 0:
                first, second, at = far, first, x
            elif far > second:
                second = far
            x = s.next[x]
        before = size_a * wide_a + size_b * wide_b
        if leaves and size_b + 1 >= k[row]:
            now = (size_a - 1) * inner_a + (size_b + 1) * max(wide_b, first)
            fits = before - now > gain and meets(d, s, a, row, -1, rows, counts)
            if fits and meets(d, s, b, -1, row, rows, counts):
                gain, target, partner = before - now, b, -1
        x = s.head[b]
        while x >= 0:
            reach_b = second if x == at else first
            # Bounds that cost nothing come before distances that take a pass over a class.
            if before - size_a * inner_a - size_b * reach_b > gain and size_a >= k[x]:
                new_a = max(inner_a, reach_of(p, s, a, x, row))
                if before - size_a * new_a - size_b * reach_b > gain:
                    new_b = max(reach_b, diameter_of(p, s, b, x))
                    now = size_a * new_a + size_b * new_b
                    fits = size_b >= k[row] and size_b >= need_of(k, s, b, x) and size_a >= need_a
                    fits = fits and before - now > gain
                    fits = fits and meets(d, s, a, row, x, rows, counts)
                    if fits and meets(d, s, b, x, row, rows, counts):
                        gain, target, partner = before - now, b, x
            x = s.next[x]
    if target < 0:
        return 0.0
    unlink(s, row)
    if partner >= 0:
        unlink(s, partner)
        link(s, partner, a)
    else:
        s.size[a] -= 1
        s.size[target] += 1
    link(s, row, target)
    settle(p, k, s, a, sweep)
    settle(p, k, s, target, sweep)
    return gain


@light
def _dissolve(p: Any, d: Any, s: Any, near: Any, sweep: int, room: Any) -> float:
    """Give up classes whose rows lose less in other classes, each in another one."""
    rows, counts = room.integers[_ROWS], room.counts
    taken, target = room.integers[_TAKEN], room.integers[_TARGETS]
    n = len(d.k)
    gained = 0.0
    for c in range(n):
        taken[c] = -1
    for c in range(n):
        if s.size[c] == 0 or s.diameter[c] == 0 or s.size[c] > POOL or s.changed[c] < sweep - 1:
            continue
        budget = s.size[c] * s.diameter[c] - _EPS
        count = 0
        x = s.head[c]
        while x >= 0 and budget > 0:
            best, best_cost = -1, budget
            for j in range(near.shape[1]):
                if near[x, j] < 0:
                    break
                b = s.ids[near[x, j]]
                if b == c or taken[b] == c or s.size[b] + 1 < d.k[x]:
                    continue
                if best >= 0 and s.diameter[b] >= best_cost:
                    continue
                wide = max(s.diameter[b], reach_of(p, s, b, x, -1))
                cost = (s.size[b] + 1) * wide - s.size[b] * s.diameter[b]
                if cost < best_cost and meets(d, s, b, -1, x, rows, counts):
                    best, best_cost = b, cost
            if best < 0:
                budget = -1.0
                break
            taken[best] = c  # one row each: the cost of a second would have to be found anew
            target[count] = best
            count += 1
            budget -= best_cost
            x = s.next[x]
        if budget <= 0 or count < s.size[c]:
            continue
        gained += budget
        x, i = s.head[c], 0
        while x >= 0:
            following = s.next[x]
            link(s, x, target[i])
            s.size[target[i]] += 1
            settle(p, d.k, s, target[i], sweep)
            i += 1
            x = following
        s.head[c] = -1
        s.size[c] = 0
        settle(p, d.k, s, c, sweep)
    return gained
