"""Median cuts: a table falls apart along its widest columns while both sides may stand alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from halfmask.kernels.demands import satisfied
from halfmask.kernels.space import apart

if TYPE_CHECKING:
    from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def cut(
    p: Any,
    places: NDArray[np.int32],
    d: Any,
    largest: int,
    whole: bool,  # noqa: FBT001 - numba takes no keyword-only parameters
) -> tuple[Any, Any]:
    """Cut until no cut is allowed; gives rows in order of class, and where each class begins.

    Classes of at most ``largest`` rows are not cut (0: cut as far as demands allow). With ``whole``
    a class is left alone when it holds less than twice its own highest demand, as in the original
    algorithm; else a cut is allowed when each side meets the demands on that side.
    """
    n, columns = places.shape
    order = np.arange(n)
    starts = np.empty(n + 1, np.int64)
    classes = 0
    stack = np.empty((128 + n, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    depth = 1
    widths = np.empty(columns, np.float64)
    values = np.empty(n, np.int32)
    spare = np.empty(n, np.int64)
    counts = np.zeros(max(d.shares.shape[1], 1), np.int64)
    while depth > 0:
        depth -= 1
        begin, end = stack[depth, 0], stack[depth, 1]
        middle = -1
        if end - begin > max(largest, 1) and _may_cut(d, order, begin, end, whole):
            for c in range(columns):
                low = high = order[begin]
                for i in range(begin + 1, end):
                    row = order[i]
                    if places[row, c] < places[low, c]:
                        low = row
                    elif places[row, c] > places[high, c]:
                        high = row
                widths[c] = apart(p, c, low, high) if places[low, c] < places[high, c] else -1.0
            while middle < 0:
                widest = int(np.argmax(widths))
                if widths[widest] < 0:
                    break
                widths[widest] = -1.0
                middle = _halve(places, widest, d, order, begin, end, values, spare, counts)
        if middle < 0:
            starts[classes] = begin
            classes += 1
            continue
        # The left side is on top, so that classes come out in order.
        stack[depth, 0], stack[depth, 1] = middle, end
        stack[depth + 1, 0], stack[depth + 1, 1] = begin, middle
        depth += 2
    starts[classes] = n
    return order, starts[: classes + 1].copy()


@njit(cache=True, nogil=True)
def _may_cut(d: Any, order: Any, begin: int, end: int, whole: bool) -> bool:  # noqa: FBT001
    if not whole:
        return True
    highest = 0
    for i in range(begin, end):
        highest = max(highest, d.k[order[i]])
    return end - begin >= 2 * highest


@njit(cache=True, nogil=True)
def _halve(
    places: Any, c: int, d: Any, order: Any, begin: int, end: int, values: Any, spare: Any,
    counts: Any,
) -> int:  # fmt: skip
    """Order the rows around the median of column ``c``; where the right side begins, or -1."""
    size = end - begin
    for i in range(size):
        values[i] = places[order[begin + i], c]
    ranked = np.sort(values[:size])
    median = ranked[size // 2]
    for attempt in range(2):
        limit = median - attempt  # rows up to this place go left
        left, right = 0, 0
        for i in range(begin, end):
            row = order[i]
            if places[row, c] <= limit:
                spare[left] = row
                left += 1
            else:
                right += 1
                spare[size - right] = row
        if left == 0 or right == 0:
            continue
        spare[left:size] = spare[left:size][::-1].copy()
        if satisfied(d, spare, 0, left, counts) and satisfied(d, spare, left, size, counts):
            order[begin:end] = spare[:size]
            return begin + left
    return -1
