"""Failing classes merged with near ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from halfmask.kernels.linked import link
from halfmask.kernels.space import distance

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
            link(s, x, best)
            x = following
        s.head[a] = -1
        s.size[best] += s.size[a]
        s.size[a] = 0
        s.need[best] = max(s.need[best], s.need[a])
        s.diameter[best] = wide
        s.diameter[a] = 0.0
        touched[best] = True
