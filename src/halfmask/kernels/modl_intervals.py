"""The best cut of one ordered variable into intervals, the other variables held fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def best_intervals(
    starts: NDArray[np.int64],
    cells: NDArray[np.int32],
    counts: NDArray[np.int64],
    level: NDArray[np.float64],
    lf: NDArray[np.float64],
    n_cells: int,
) -> tuple[Any, float]:
    """The interval of each value at the least cost, and that cost without constant terms.

    Dynamic programming over the number of intervals: exact for the given elementary values, up to
    ``len(level) - 1`` intervals; ``level`` is the cost of each number of intervals.
    """
    size = len(starts) - 1
    cost = np.empty((size, size))
    inside = np.zeros(n_cells, np.int64)
    for i in range(size):
        total, cell_cost = 0, 0.0
        for j in range(i, size):
            for e in range(starts[j], starts[j + 1]):
                c, n = cells[e], counts[e]
                cell_cost += lf[inside[c] + n] - lf[inside[c]]
                inside[c] += n
                total += n
            cost[i, j] = lf[total] - cell_cost
        for e in range(starts[i], starts[size]):
            inside[cells[e]] = 0
    limit = min(len(level) - 1, size)
    best = np.full((limit + 1, size), np.inf)
    cut = np.zeros((limit + 1, size), np.int32)
    best[1] = cost[0]
    parts, least = 1, best[1, size - 1] + level[1]
    for k in range(2, limit + 1):
        for j in range(k - 1, size):
            for i in range(k - 1, j + 1):
                here = best[k - 1, i - 1] + cost[i, j]
                if here < best[k, j]:
                    best[k, j], cut[k, j] = here, i
        if best[k, size - 1] + level[k] < least:
            parts, least = k, best[k, size - 1] + level[k]
    out = np.empty(size, np.int32)
    j = size - 1
    for k in range(parts, 0, -1):
        i = cut[k, j]
        out[i : j + 1] = k - 1
        j = i - 1
    return out, least
