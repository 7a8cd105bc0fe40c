"""Differences between the histograms of classes and that of all rows, summed in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def differences(
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
    total: NDArray[np.int64],
    rows: NDArray[np.int64],
    size: int,
) -> Any:
    """Per class, the sum of |c size - C n| over all values of the column; n are its ``rows``.

    Values that a class lacks contribute C n each: what is left of ``size`` once those that it
    holds are taken away.
    """
    classes = len(starts) - 1
    out = np.zeros(classes, np.int64)
    for i in range(classes):
        n, missing = rows[i], size
        for e in range(starts[i], starts[i + 1]):
            everywhere = total[codes[e]]
            out[i] += abs(counts[e] * size - everywhere * n)
            missing -= everywhere
        out[i] += missing * n
    return out


@njit(cache=True, nogil=True)
def ordered(
    places: NDArray[np.int64],
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
    reached: NDArray[np.int64],
    rows: NDArray[np.int64],
    size: int,
) -> Any:
    """Per class, the sum over places of |size * running count - n * ``reached``|.

    A class that holds many of the places is written out. In others the running count stands still
    between two entries while ``reached`` rises, so that the sum is taken from prefix sums on either
    side of the place where the difference changes its sign.
    """
    last = len(reached)
    before = np.zeros(last + 1, np.int64)
    before[1:] = np.cumsum(reached)
    dense = np.zeros(last, np.int64)
    out = np.zeros(len(starts) - 1, np.int64)
    for i in range(len(out)):
        first, end, n = starts[i], starts[i + 1], rows[i]
        if first == end:
            continue
        if last <= 16 * (end - first):
            for e in range(first, end):
                dense[places[e]] = counts[e]
            count = 0
            for place in range(last):
                count += dense[place]
                out[i] += abs(count * size - n * reached[place])
                dense[place] = 0
            continue
        order = np.argsort(places[first:end])
        moved, running = n * before[places[first + order[0]]], 0
        for j in range(len(order)):
            e = first + order[j]
            running += counts[e] * size
            here = places[e]
            until = places[first + order[j + 1]] if j + 1 < len(order) else last
            low, high = here, until
            while low < high:
                middle = (low + high) // 2
                if n * reached[middle] <= running:
                    low = middle + 1
                else:
                    high = middle
            moved += running * (low - here) - n * (before[low] - before[here])
            moved += n * (before[until] - before[low]) - running * (until - low)
        out[i] = moved
    return out


@njit(cache=True, nogil=True)
def layered(
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
    maps: NDArray[np.int32],
    totals: NDArray[np.int64],
    rows: NDArray[np.int64],
    size: int,
) -> Any:
    """``differences`` of the labels of each level, summed over the levels of ``maps``."""
    inside = np.zeros(totals.shape[1], np.int64)
    seen = np.empty(totals.shape[1], np.int64)
    out = np.zeros(len(starts) - 1, np.int64)
    for i in range(len(out)):
        n = rows[i]
        for level in range(len(maps)):
            found = 0
            for e in range(starts[i], starts[i + 1]):
                label = maps[level, codes[e]]
                if inside[label] == 0:
                    seen[found] = label
                    found += 1
                inside[label] += counts[e]
            missing = size
            for f in range(found):
                label = seen[f]
                everywhere = totals[level, label]
                out[i] += abs(inside[label] * size - everywhere * n)
                missing -= everywhere
                inside[label] = 0
            out[i] += missing * n
    return out
