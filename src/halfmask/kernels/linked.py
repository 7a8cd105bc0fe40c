"""Classes as linked lists of rows, which rows enter and leave at no cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from halfmask.kernels.demands import satisfied
from halfmask.kernels.space import distance

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
        diameter[c] = diameter_of(p, out, c, -1)
    return out


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def need_of(k: Any, s: Any, c: int, without: int) -> int:
    """The highest demand in a class, one row left out; -1 leaves out none."""
    highest = 0
    a = s.head[c]
    while a >= 0:
        if a != without:
            highest = max(highest, k[a])
        a = s.next[a]
    return highest


@njit(cache=True, nogil=True)
def reach_of(p: Any, s: Any, c: int, row: int, without: int) -> float:
    """The largest distance from ``row`` to a class, one row of it and itself left out."""
    widest = 0.0
    a = s.head[c]
    while a >= 0:
        if a != without and a != row:
            widest = max(widest, distance(p, a, row))
        a = s.next[a]
    return widest


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def link(s: Any, row: int, c: int) -> None:
    """Put a row at the head of a class; its size is left to the caller."""
    s.next[row] = s.head[c]
    s.head[c] = row
    s.ids[row] = c


@njit(cache=True, nogil=True)
def settle(p: Any, k: Any, s: Any, c: int, sweep: int) -> None:
    """Bring what is known of a class up to date."""
    s.need[c] = need_of(k, s, c, -1)
    s.diameter[c] = diameter_of(p, s, c, -1)
    s.changed[c] = sweep


@njit(cache=True, nogil=True)
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
    return size == 0 or satisfied(d, rows, 0, size, counts)
