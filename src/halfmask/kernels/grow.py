"""What classes that grow row by row share: the rows still free, and the values a class holds."""

from __future__ import annotations

from typing import Any

from numba import njit

from halfmask.kernels.space import spread


@njit(cache=True, nogil=True)
def count_values(d: Any, row: int, number: int, seen: Any, distinct: Any, most: Any) -> bool:
    """Take note of a new member's sensitive values; whether the class still lacks some."""
    short = False
    for s in range(d.values.shape[1]):
        if seen[s, d.values[row, s]] != number:
            seen[s, d.values[row, s]] = number
            distinct[s] += 1
        most[s] = max(most[s], d.l[row, s])
        short |= distinct[s] < most[s]
    return short


@njit(cache=True, nogil=True)
def new_value(d: Any, row: int, number: int, seen: Any, distinct: Any, most: Any) -> bool:
    """Whether a row brings a value that the class lacks where it lacks some."""
    for s in range(d.values.shape[1]):
        if distinct[s] < most[s] and seen[s, d.values[row, s]] != number:
            return True
    return False


@njit(cache=True, nogil=True)
def remove(alive: Any, where: Any, count: int, row: int) -> int:
    """Take a row out of the first ``count`` of ``alive``."""
    last = alive[count - 1]
    alive[where[row]] = last
    where[last] = where[row]
    return count - 1


@njit(cache=True, nogil=True)
def farthest(p: Any, alive: Any, count: int, origin: int, scratch: Any) -> int:
    """The free row that is farthest from ``origin``."""
    spread(p, origin, alive, count, scratch)
    best, far = -1, -1.0
    for a in range(count):
        row = alive[a]
        x = scratch[row]
        if x > far or (x == far and row < best):
            best, far = row, x
    return best
