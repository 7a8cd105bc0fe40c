"""Nearest rows under a sum of column distances, ties broken at random but repeatably."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MIX = np.uint64(0x9E3779B97F4A7C15)
_UNIT = 1.0 / 2.0**64


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
    starts: NDArray[np.int64],
    k: int,
    seed: int,
) -> tuple[Any, Any]:
    """The ``k`` nearest rows of ``right`` for each entry of ``left``, nearest first.

    A column is numeric (distance: difference of the scaled numbers, at most 1) or has a table of
    distances ``tables[offsets[c] + left code * widths[c] + right code]``. Entry j of ``right``
    stands for the rows ``starts[j]`` to ``starts[j + 1]``, each of which has the same chance among
    rows that are as near.
    """
    rows, columns = left.shape
    found = np.full((rows, k), -1, np.int64)
    far = np.full((rows, k), np.inf, np.float64)
    order = np.zeros(k, np.float64)
    for i in range(rows):
        for j in range(len(right)):
            total = 0.0
            limit = far[i, k - 1]
            for c in range(columns):
                if numeric[c]:
                    total += min(abs(left_numbers[i, c] - right_numbers[j, c]), 1.0)
                else:
                    total += tables[offsets[c] + left[i, c] * widths[c] + right[j, c]]
                if total > limit:
                    break
            if total > limit:
                continue
            held = starts[j + 1] - starts[j]
            chance = _mixed(j, i + seed)
            turn: Any = 0.0
            for t in range(min(k, held)):
                # The smallest of `held` random numbers, then the second smallest ...
                part = np.float64(chance) * _UNIT
                left_over = held - t
                step = part if left_over == 1 else 1.0 - (1.0 - part) ** (1.0 / left_over)
                turn = turn + (1.0 - turn) * step
                place = k - 1
                if total == far[i, place] and found[i, place] >= 0 and turn >= order[place]:
                    break
                if total > far[i, place]:
                    break
                chance = _mixed(chance >> np.uint64(2), t + 1)
                row = starts[j] + (_start(j, i + seed, held) + t) % held
                while place > 0 and (
                    total < far[i, place - 1]
                    or (total == far[i, place - 1] and turn < order[place - 1])
                ):
                    far[i, place] = far[i, place - 1]
                    found[i, place] = found[i, place - 1]
                    order[place] = order[place - 1]
                    place -= 1
                far[i, place] = total
                found[i, place] = row
                order[place] = turn
    return found, far


@njit(cache=True, nogil=True)
def _mixed(one: Any, two: Any) -> Any:
    """A number that looks random but repeats."""
    chance = (np.uint64(one) + np.uint64(1)) * _MIX ^ (
        (np.uint64(two) + np.uint64(1)) * np.uint64(0xC2B2AE3D27D4EB4F)
    )
    return (chance ^ (chance >> np.uint64(31))) * _MIX


@njit(cache=True, nogil=True)
def _start(one: int, two: int, held: int) -> Any:
    """Which of ``held`` rows comes first."""
    return np.int64((_mixed(two, one) >> np.uint64(11)) % np.uint64(held))
