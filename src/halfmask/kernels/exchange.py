"""Classes improved by moving rows, exchanging them, cutting pairs anew and dissolving classes.

The loss of a class is its size times its diameter. Every step keeps all demands for rows met and
lowers the loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from halfmask.kernels.linked import (
    diameter_of,
    link,
    meets,
    need_of,
    reach_of,
    settle,
    unlink,
)
from halfmask.kernels.recut import POOL, cut_anew
from halfmask.kernels.space import distance

_EPS = 1e-9


@njit(cache=True, nogil=True)
def improve(p: Any, d: Any, s: Any, near: Any, sweeps: int, enough: float) -> float:
    """Improve the partition until a sweep gains less than the share ``enough``; the loss left."""
    n = len(d.k)
    tried = np.full(n, -1, np.int64)
    rows, key = np.empty(n + 1, np.int64), np.empty(2 * POOL, np.float64)
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
        gained += cut_anew(p, d, s, near, sweep, tried, rows, key, counts)
        gained += _dissolve(p, d, s, near, sweep, rows, counts)
        total -= gained
        if gained <= enough * total:
            break
    return total


@njit(cache=True, nogil=True)
def _improve_row(
    p: Any, d: Any, s: Any, near: Any, row: int, sweep: int, tried: Any, rows: Any, counts: Any
) -> float:
    """Move a row to a class near it, or exchange it with a row there; what that gains."""
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


@njit(cache=True, nogil=True)
def _dissolve(p: Any, d: Any, s: Any, near: Any, sweep: int, rows: Any, counts: Any) -> float:
    """Give up classes whose rows lose less in other classes, each in another one."""
    n = len(d.k)
    gained = 0.0
    target = np.empty(POOL, np.int64)
    taken = np.full(n, -1, np.int64)
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
            link(s, x, target[i])
            s.size[target[i]] += 1
            settle(p, d.k, s, target[i], sweep)
            i += 1
            x = following
        s.head[c] = -1
        s.size[c] = 0
        settle(p, d.k, s, c, sweep)
    return gained
