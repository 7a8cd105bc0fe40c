"""Classes improved by moving rows, exchanging them and cutting pairs of classes anew.

The loss of a class is its size times its diameter. Every step keeps all demands for rows met and
lowers the loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from halfmask.kernels.demands import satisfied
from halfmask.kernels.grow import count_values, new_value
from halfmask.kernels.space import distance
from halfmask.kernels.tree import all_free, nearest, take

if TYPE_CHECKING:
    from numpy.typing import NDArray

_POOL = 64  # rows up to which two classes are cut anew
_EPS = 1e-9


class Partition(NamedTuple):
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


@njit(cache=True, nogil=True)
def form(p: Any, places: Any, tree: Any, d: Any, seeds: Any, anyway: Any, regret: float) -> Any:
    """Form classes around ``seeds`` in their order from rows that are near and still free.

    Of the candidates the one with the lowest marginal cost joins: what it adds to the class, less
    ``regret`` times what it would lose anywhere (``anyway``), so that demanding and remote rows
    stay together and others are spared. -1 for rows left over.
    """
    n, k = len(d.k), d.k
    ids = np.full(n, -1, np.int64)
    free = all_free(tree)
    most = 64
    rows, far = np.empty(most, np.int64), np.empty(most, np.float64)
    reach = np.empty(most, np.float64)
    stack, gaps = np.empty(512, np.int64), np.empty(512, np.float64)
    members = np.empty(n, np.int64)
    seen = np.full(d.shares.shape, -1, np.int64)
    distinct = np.zeros(d.values.shape[1], np.int64)
    asked = np.zeros(d.values.shape[1], np.int64)
    classes, left, nodes = 0, n, len(tree.begin)
    for seed in seeds:
        if free[nodes + seed] == 0:
            continue
        size, need, diameter = 0, 0, 0.0
        wanted, found, row = 0, 0, seed
        distinct[:] = 0
        asked[:] = 0
        while True:
            members[size] = row
            size += 1
            need = max(need, k[row])
            short = count_values(d, row, classes, seen, distinct, asked)
            take(tree, free, row)
            left -= 1
            if (size >= need and not short) or left == 0:
                break
            for j in range(found):
                if rows[j] >= 0:
                    reach[j] = max(reach[j], distance(p, row, rows[j]))
            best, best_score = -1, np.inf
            while True:
                for j in range(found):
                    if rows[j] < 0:
                        continue
                    if size >= need and not new_value(d, rows[j], classes, seen, distinct, asked):
                        continue
                    wide = max(diameter, reach[j])
                    score = max(size + 1, need, k[rows[j]]) * wide - regret * anyway[rows[j]]
                    if score < best_score:
                        best, best_score = j, score
                if (best >= 0 and wanted >= need) or (wanted > 0 and found == left):
                    break
                wanted = max(2 * need + 4, 2 * wanted)
                if wanted > most:
                    most = 2 * wanted
                    rows, far = np.empty(most, np.int64), np.empty(most, np.float64)
                    reach = np.empty(most, np.float64)
                found = nearest(p, places, tree, free, seed, wanted, rows, far, stack, gaps)
                best, best_score = -1, np.inf
                for j in range(found):
                    reach[j] = far[j]
                    for m in range(1, size):
                        reach[j] = max(reach[j], distance(p, members[m], rows[j]))
            if best < 0:
                break
            row = rows[best]
            diameter = max(diameter, reach[best])
            rows[best] = -1
        if size >= need and not short:
            if diameter == 0.0:
                size, left = _take_alike(p, places, tree, free, d, members, size, left, stack, gaps)
            for m in range(size):
                ids[members[m]] = classes
            classes += 1
    return ids


@njit(cache=True, nogil=True)
def _take_alike(
    p: Any, places: Any, tree: Any, free: Any, d: Any, members: Any, size: int, left: int,
    stack: Any, gaps: Any,
) -> tuple[int, int]:  # fmt: skip
    """Let free rows with the very same values join a class without diameter: they cost nothing."""
    rows, far = np.empty(8, np.int64), np.empty(8, np.float64)
    while left > 0 and d.values.shape[1] == 0:
        found = nearest(p, places, tree, free, members[0], 8, rows, far, stack, gaps)
        joined = 0
        for j in range(found):
            if far[j] == 0.0 and d.k[rows[j]] <= size + 1:
                members[size] = rows[j]
                size += 1
                left -= 1
                take(tree, free, rows[j])
                joined += 1
        if joined == 0:
            break
    return size, left


@njit(cache=True, nogil=True)
def lists(p: Any, k: Any, ids: Any) -> Any:
    """The partition that ``ids`` states; every row must have a class."""
    n = len(ids)
    head, after = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    size, need = np.zeros(n, np.int64), np.zeros(n, np.int64)
    diameter = np.zeros(n, np.float64)
    for row in range(n - 1, -1, -1):
        c = ids[row]
        after[row] = head[c]
        head[c] = row
        size[c] += 1
        need[c] = max(need[c], k[row])
    out = Partition(ids, head, after, size, need, diameter, np.zeros(n, np.int64))
    for c in range(n):
        diameter[c] = _diameter(p, out, c, -1)
    return out


@njit(cache=True, nogil=True)
def _diameter(p: Any, s: Any, c: int, without: int) -> float:
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


@njit(cache=True, nogil=True)
def _need(k: Any, s: Any, c: int, without: int) -> int:
    highest = 0
    a = s.head[c]
    while a >= 0:
        if a != without:
            highest = max(highest, k[a])
        a = s.next[a]
    return highest


@njit(cache=True, nogil=True)
def _reach(p: Any, s: Any, c: int, row: int, without: int) -> float:
    """The largest distance from ``row`` to a class, one row of it and itself left out."""
    widest = 0.0
    a = s.head[c]
    while a >= 0:
        if a != without and a != row:
            widest = max(widest, distance(p, a, row))
        a = s.next[a]
    return widest


@njit(cache=True, nogil=True)
def _unlink(s: Any, row: int) -> None:
    c = s.ids[row]
    if s.head[c] == row:
        s.head[c] = s.next[row]
        return
    a = s.head[c]
    while s.next[a] != row:
        a = s.next[a]
    s.next[a] = s.next[row]


@njit(cache=True, nogil=True)
def _link(s: Any, row: int, c: int) -> None:
    s.next[row] = s.head[c]
    s.head[c] = row
    s.ids[row] = c


@njit(cache=True, nogil=True)
def _settle(p: Any, k: Any, s: Any, c: int, sweep: int) -> None:
    """Bring what is known of a class up to date."""
    s.need[c] = _need(k, s, c, -1)
    s.diameter[c] = _diameter(p, s, c, -1)
    s.changed[c] = sweep


@njit(cache=True, nogil=True)
def _meets(d: Any, s: Any, c: int, without: int, added: int, rows: Any, counts: Any) -> bool:
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
    return size == 0 or satisfied(d, rows, 0, size, counts)


@njit(cache=True, nogil=True)
def _improve_row(
    p: Any, d: Any, s: Any, near: Any, row: int, sweep: int, tried: Any, rows: Any, counts: Any
) -> float:
    """Move a row to a class near it, or exchange it with a row there; what that gains."""
    k = d.k
    a = s.ids[row]
    size_a, wide_a = s.size[a], s.diameter[a]
    inner_a, need_a = _diameter(p, s, a, row), _need(k, s, a, row)
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
            fits = before - now > gain and _meets(d, s, a, row, -1, rows, counts)
            if fits and _meets(d, s, b, -1, row, rows, counts):
                gain, target, partner = before - now, b, -1
        x = s.head[b]
        while x >= 0:
            reach_b = second if x == at else first
            if before - size_a * inner_a - size_b * reach_b > gain and size_a >= k[x]:
                new_a = max(inner_a, _reach(p, s, a, x, row))
                if before - size_a * new_a - size_b * reach_b > gain:
                    new_b = max(reach_b, _diameter(p, s, b, x))
                    now = size_a * new_a + size_b * new_b
                    fits = size_b >= k[row] and size_b >= _need(k, s, b, x) and size_a >= need_a
                    fits = fits and before - now > gain
                    fits = fits and _meets(d, s, a, row, x, rows, counts)
                    if fits and _meets(d, s, b, x, row, rows, counts):
                        gain, target, partner = before - now, b, x
            x = s.next[x]
    if target < 0:
        return 0.0
    _unlink(s, row)
    if partner >= 0:
        _unlink(s, partner)
        _link(s, partner, a)
    else:
        s.size[a] -= 1
        s.size[target] += 1
    _link(s, row, target)
    _settle(p, k, s, a, sweep)
    _settle(p, k, s, target, sweep)
    return gain


@njit(cache=True, nogil=True)
def _cut(
    p: Any, d: Any, rows: Any, count: int, one: int, other: int, key: Any, counts: Any
) -> tuple[Any, Any]:
    """The best way to cut rows in order between two of them: the loss, and how many go left.

    0 means that they stay together.
    """
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
    right_wide, right_need = np.zeros(count + 1), np.zeros(count + 1, np.int64)
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
                or (satisfied(d, rows, 0, left, counts) and satisfied(d, rows, left, count, counts))
            ):
                best, at = now, left
    return best, at


@njit(cache=True, nogil=True)
def _improve_pair(
    p: Any, d: Any, s: Any, a: int, b: int, spare: int, sweep: int, rows: Any, key: Any,
    counts: Any,
) -> float:  # fmt: skip
    """Cut the rows of two classes (of one, if ``b`` is negative) anew; what that gains."""
    count = 0
    for c in (a, b):
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
    best, at = _cut(p, d, rows, count, first, second, key, counts)
    if best >= before - _EPS:
        return 0.0
    other = b if b >= 0 else spare
    s.head[a] = s.head[other] = -1
    s.size[a], s.size[other] = 0, 0
    for i in range(count):
        c = a if i < at or at == 0 else other
        _link(s, rows[i], c)
        s.size[c] += 1
    _settle(p, d.k, s, a, sweep)
    _settle(p, d.k, s, other, sweep)
    return float(before - best)


@njit(cache=True, nogil=True)
def improve(p: Any, d: Any, s: Any, near: Any, sweeps: int, enough: float) -> float:
    """Improve the partition until a sweep gains less than the share ``enough``; the loss left."""
    n = len(d.k)
    tried = np.full(n, -1, np.int64)
    rows, key = np.empty(n + 1, np.int64), np.empty(2 * _POOL, np.float64)
    counts = np.zeros(max(d.shares.shape[1], 1), np.int64)
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
                gained += _improve_row(p, d, s, near, row, sweep, tried, rows, counts)
        gained += _cut_anew(p, d, s, near, sweep, tried, rows, key, counts)
        gained += _dissolve(p, d, s, near, sweep, rows, counts)
        total -= gained
        if gained <= enough * total:
            break
    return total


@njit(cache=True, nogil=True)
def _cut_anew(
    p: Any, d: Any, s: Any, near: Any, sweep: int, tried: Any, rows: Any, key: Any, counts: Any
) -> float:
    """Split classes, and cut pairs of classes that are near each other anew; what that gains."""
    n = len(d.k)
    spares = np.flatnonzero(s.size == 0)
    count, gained = len(spares), 0.0
    tried[:] = -1
    for c in range(n):
        if s.size[c] == 0 or s.diameter[c] == 0 or s.size[c] > _POOL:
            continue
        if count > 0 and s.size[c] >= 2 and s.changed[c] >= sweep - 1:
            won = _improve_pair(p, d, s, c, -1, spares[count - 1], sweep, rows, key, counts)
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
                if s.size[c] + s.size[b] <= _POOL:
                    won = _improve_pair(p, d, s, c, b, -1, sweep, rows, key, counts)
                    gained += won
                    if won > 0:
                        following = s.head[c]
                        break
            x = following
    tried[:] = -1
    return gained


@njit(cache=True, nogil=True)
def _dissolve(p: Any, d: Any, s: Any, near: Any, sweep: int, rows: Any, counts: Any) -> float:
    """Give up classes whose rows lose less in other classes, each in another one."""
    n = len(d.k)
    gained = 0.0
    target = np.empty(_POOL, np.int64)
    taken = np.full(n, -1, np.int64)
    for c in range(n):
        if s.size[c] == 0 or s.diameter[c] == 0 or s.size[c] > _POOL or s.changed[c] < sweep - 1:
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
                wide = max(s.diameter[b], _reach(p, s, b, x, -1))
                cost = (s.size[b] + 1) * wide - s.size[b] * s.diameter[b]
                if cost < best_cost and _meets(d, s, b, -1, x, rows, counts):
                    best, best_cost = b, cost
            if best < 0:
                budget = -1.0
                break
            taken[best] = c
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
            _link(s, x, target[i])
            s.size[target[i]] += 1
            _settle(p, d.k, s, target[i], sweep)
            i += 1
            x = following
        s.head[c] = -1
        s.size[c] = 0
        _settle(p, d.k, s, c, sweep)
    return gained


@njit(cache=True, nogil=True)
def absorb(p: Any, k: Any, s: Any, failing: NDArray[np.bool_], near: Any) -> None:
    """Merge every failing class with the class that this raises the loss least for.

    Classes that then hold as many rows as anybody in them demands come first. Candidates are the
    classes of ``near`` rows or, where that is empty or knows none, all classes. A class that took
    another one in this round is not looked at again.
    """
    n = len(k)
    touched = np.zeros(n, np.bool_)
    cross = np.zeros(n, np.float64)
    for a in range(n):
        if not failing[a] or touched[a] or s.size[a] == 0:
            continue
        best, best_short, best_cost = -1, True, np.inf
        for attempt in range(2):
            if attempt == 0 and near.shape[0] == 0:
                continue
            cross[:] = -1.0
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
                    for y in range(n):
                        b = s.ids[y]
                        if b != a:
                            cross[b] = max(cross[b], distance(p, x, y))
                x = s.next[x]
            for b in range(n):
                if b == a or cross[b] < 0 or s.size[b] == 0:
                    continue
                size = s.size[a] + s.size[b]
                wide = max(cross[b], s.diameter[a], s.diameter[b])
                cost = size * wide - s.size[a] * s.diameter[a] - s.size[b] * s.diameter[b]
                short = size < max(s.need[a], s.need[b])
                if (short, cost) < (best_short, best_cost):
                    best, best_short, best_cost = b, short, cost
            if best >= 0:
                break
        if best < 0:
            continue
        wide = max(cross[best], s.diameter[a], s.diameter[best])
        x = s.head[a]
        while x >= 0:
            following = s.next[x]
            _link(s, x, best)
            x = following
        s.head[a] = -1
        s.size[best] += s.size[a]
        s.size[a] = 0
        s.need[best] = max(s.need[best], s.need[a])
        s.diameter[best] = wide
        s.diameter[a] = 0.0
        touched[best] = True
