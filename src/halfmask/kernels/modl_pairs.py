"""What merging two parts of a variable gains the cells' likelihood, kept up to date.

Only non-empty cells are kept. For each pair of parts of a variable ``together`` holds what the
cells' likelihood gains by merging them; a merge updates it from the cells it touches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def _both(u: int, v: int, lf: NDArray[np.float64]) -> float:
    return lf[u + v] - lf[u] - lf[v] if u > 0 and v > 0 else 0.0


@njit(cache=True, nogil=True)
def _keys(codes: Any, n: int, mix: Any, skip: int, other: int) -> Any:
    """One number per cell for its place in all variables but ``skip`` and ``other``."""
    keys = np.zeros(n, np.uint64)
    for i in range(n):
        key = np.uint64(0)
        for k in range(codes.shape[1]):
            if k != skip and k != other:
                key += np.uint64(codes[i, k] + 1) * mix[k]
        keys[i] = key
    return keys


@njit(cache=True, nogil=True)
def _grouped(keys: Any, codes: Any, side: int, dims: int) -> Any:
    """An order of the cells in which equal keys stand together."""
    if dims > 2:
        return np.argsort(keys, kind="mergesort")
    other = 1 - side
    top = 0
    for i in range(len(keys)):
        top = max(top, codes[i, other] + 1)
    fill = np.zeros(top + 1, np.int64)
    for i in range(len(keys)):
        fill[codes[i, other] + 1] += 1
    for j in range(top):
        fill[j + 1] += fill[j]
    order = np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        order[fill[codes[i, other]]] = i
        fill[codes[i, other]] += 1
    return order


@njit(cache=True, nogil=True)
def first_pairs(
    codes: Any,
    counts: Any,
    n: int,
    side: int,
    ordered: Any,
    mix: Any,
    lf: Any,
    following: Any,
    together: Any,
    parts: int,
) -> None:
    """Fill ``together`` of one variable from all cells."""
    keys = _keys(codes, n, mix, side, -1)
    order = _grouped(keys, codes[:n], side, codes.shape[1])
    at = np.zeros(parts, np.int64)
    i = 0
    while i < n:
        j = i
        while j < n and keys[order[j]] == keys[order[i]]:
            at[codes[order[j], side]] = counts[order[j]]
            j += 1
        for p in range(i, j):
            a = codes[order[p], side]
            if ordered:
                b = following[a]
                if b >= 0 and at[b] > 0:
                    together[a, 0] += _both(at[a], at[b], lf)
            else:
                for q in range(p + 1, j):
                    b = codes[order[q], side]
                    gain = _both(at[a], at[b], lf)
                    together[a, b] += gain
                    together[b, a] += gain
        for p in range(i, j):
            at[codes[order[p], side]] = 0
        i = j


@njit(cache=True, nogil=True)
def _more(left: Any, right: Any, x: int, y: int, lf: Any) -> float:
    """What joining x and y gains more once the cells at their left and right are one."""
    apart = _both(left[x], left[y], lf) + _both(right[x], right[y], lf)
    return _both(left[x] + right[x], left[y] + right[y], lf) - apart


@njit(cache=True, nogil=True)
def other_pairs(
    codes: Any,
    counts: Any,
    touched: Any,
    side: int,
    a: int,
    other: int,
    ordered: Any,
    mix: Any,
    lf: Any,
    following: Any,
    together: Any,
    parts: int,
) -> None:
    """Update ``together`` of ``other`` for the merge of two parts of ``side``.

    ``touched`` are the cells of both parts.
    """
    n = len(touched)
    keys = np.zeros(n, np.uint64)
    for i in range(n):
        for k in range(codes.shape[1]):
            if k != side and k != other:
                keys[i] += np.uint64(codes[touched[i], k] + 1) * mix[k]
    order = np.argsort(keys, kind="mergesort") if codes.shape[1] > 2 else np.arange(n)
    left = np.zeros(parts, np.int64)
    right = np.zeros(parts, np.int64)
    present = np.empty(n, np.int64)
    i = 0
    while i < n:
        j, m = i, 0
        while j < n and keys[order[j]] == keys[order[i]]:
            t = touched[order[j]]
            x = codes[t, other]
            if left[x] == 0 and right[x] == 0:
                present[m] = x
                m += 1
            if codes[t, side] == a:
                left[x] += counts[t]
            else:
                right[x] += counts[t]
            j += 1
        for p in range(m):
            x = present[p]
            if ordered:
                y = following[x]
                if y >= 0:
                    together[x, 0] += _more(left, right, x, y, lf)
            else:
                for q in range(p + 1, m):
                    y = present[q]
                    gain = _more(left, right, x, y, lf)
                    together[x, y] += gain
                    together[y, x] += gain
        for p in range(m):
            left[present[p]], right[present[p]] = 0, 0
        i = j


@njit(cache=True, nogil=True)
def own_pairs(
    codes: Any,
    counts: Any,
    n: int,
    side: int,
    a: int,
    b: int,
    ordered: Any,
    mix: Any,
    lf: Any,
    before: int,
    after: int,
    together: Any,
) -> int:
    """Update ``together`` of ``side`` itself, give b's cells to a; returns how many cells stay."""
    keys = _keys(codes, n, mix, side, -1)
    order = _grouped(keys, codes[:n], side, codes.shape[1])
    if ordered:
        together[a, 0] = 0.0
        if before >= 0:
            together[before, 0] = 0.0
    drop = np.zeros(n, np.bool_)
    i = 0
    while i < n:
        j = i
        own, gone, n_before, n_after = -1, -1, 0, 0
        while j < n and keys[order[j]] == keys[order[i]]:
            x = codes[order[j], side]
            if x == a:
                own = order[j]
            elif x == b:
                gone = order[j]
            elif x == before:
                n_before = counts[order[j]]
            elif x == after:
                n_after = counts[order[j]]
            j += 1
        if own >= 0 or gone >= 0:
            n_a = counts[own] if own >= 0 else 0
            n_b = counts[gone] if gone >= 0 else 0
            if ordered:
                together[a, 0] += _both(n_a + n_b, n_after, lf)
                if before >= 0:
                    together[before, 0] += _both(n_before, n_a + n_b, lf)
            elif gone >= 0:
                for p in range(i, j):
                    x = codes[order[p], side]
                    if x != a and x != b:
                        m = counts[order[p]]
                        gain = _both(n_a + n_b, m, lf) - _both(n_a, m, lf)
                        together[a, x] += gain
                        together[x, a] += gain
            if gone >= 0:
                if own >= 0:
                    counts[own] += n_b
                    drop[gone] = True
                else:
                    codes[gone, side] = a
        i = j
    kept = 0
    for i in range(n):
        if not drop[i]:
            if kept != i:
                for k in range(codes.shape[1]):
                    codes[kept, k] = codes[i, k]
                counts[kept] = counts[i]
            kept += 1
    return kept
