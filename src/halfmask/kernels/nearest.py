"""Nearest rows under a sum of column distances, ties broken at random but repeatably."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MIX = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def nearest(
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    left_numbers: NDArray[np.float64],
    right_numbers: NDArray[np.float64],
    numeric: NDArray[np.bool_],
    tables: NDArray[np.float32],
    offsets: NDArray[np.int64],
    widths: NDArray[np.int64],
    k: int,
    seed: int,
) -> tuple[Any, Any]:
    """The ``k`` nearest rows of ``right`` for each row of ``left``, nearest first.

    A column is numeric (distance: difference of the scaled numbers) or has a table of distances
    ``tables[offsets[c] + left code * widths[c] + right code]``.
    """
    rows, columns = left.shape
    found = np.full((rows, k), -1, np.int64)
    far = np.full((rows, k), np.inf, np.float64)
    order = np.zeros(k, np.uint64)
    for i in range(rows):
        for j in range(len(right)):
            total = 0.0
            limit = far[i, k - 1]
            for c in range(columns):
                if numeric[c]:
                    total += abs(left_numbers[i, c] - right_numbers[j, c])
                else:
                    total += tables[offsets[c] + left[i, c] * widths[c] + right[j, c]]
                if total > limit:
                    break
            if total > limit:
                continue
            chance = (np.uint64(j + 1) * _MIX) ^ (
                np.uint64(i + 1 + seed) * np.uint64(0xC2B2AE3D27D4EB4F)
            )
            chance = (chance ^ (chance >> np.uint64(31))) * _MIX
            place = k - 1
            if total == limit and found[i, place] >= 0 and chance >= order[place]:
                continue
            while place > 0 and (
                total < far[i, place - 1]
                or (total == far[i, place - 1] and chance < order[place - 1])
            ):
                far[i, place] = far[i, place - 1]
                found[i, place] = found[i, place - 1]
                order[place] = order[place - 1]
                place -= 1
            far[i, place] = total
            found[i, place] = j
            order[place] = chance
    return found, far
