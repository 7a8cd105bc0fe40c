"""Classes split, and pairs of near classes cut anew."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from halfmask.kernels.demands import satisfied
from halfmask.kernels.linked import link, settle
from halfmask.kernels.space import distance

POOL = 64  # rows up to which two classes are cut anew
_EPS = 1e-9


@njit(cache=True, nogil=True)
def cut_anew(
    p: Any, d: Any, s: Any, near: Any, sweep: int, tried: Any, rows: Any, key: Any, counts: Any
) -> float:
    """Split classes, and cut pairs of classes that are near each other anew; what that gains."""
    n = len(d.k)
    spares = np.flatnonzero(s.size == 0)
    count, gained = len(spares), 0.0
    tried[:] = -1
    for c in range(n):
        if s.size[c] == 0 or s.diameter[c] == 0 or s.size[c] > POOL:
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
                if s.size[c] + s.size[b] <= POOL:
                    won = _improve_pair(p, d, s, c, b, -1, sweep, rows, key, counts)
                    gained += won
                    if won > 0:
                        following = s.head[c]
                        break
            x = following
    tried[:] = -1
    return gained


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
        link(s, rows[i], c)
        s.size[c] += 1
    settle(p, d.k, s, a, sweep)
    settle(p, d.k, s, other, sweep)
    return float(before - best)


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
