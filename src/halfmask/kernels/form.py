"""Classes formed where rows are dense, each row by its marginal cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from halfmask.kernels.grow import count_values, new_value
from halfmask.kernels.space import distance
from halfmask.kernels.tree import all_free, nearest, take


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
