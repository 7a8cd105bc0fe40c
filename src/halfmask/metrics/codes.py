"""Several columns as one number per row, and counts of pairs; plain NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_COUNTERS = 1 << 22  # up to here a plain array of counters is faster than sorting


def joint(columns: Sequence[tuple[NDArray[np.int32], int]]) -> tuple[NDArray[np.int64], int]:
    """The number of each row's combination of codes, dense from 0, and how many there are.

    Args:
        columns: per column, the code of each row and the number of codes.
    """
    key, space = columns[0][0].astype(np.int64), columns[0][1]
    for codes, size in columns[1:]:
        if space * size >= 2**62:
            key, space = dense(key, space)
        key = key * size + codes
        space *= size
    return dense(key, space)


def dense(key: NDArray[np.int64], space: int) -> tuple[NDArray[np.int64], int]:
    """Renumber ``key`` without gaps, in ascending order."""
    if space <= max(_COUNTERS, 4 * len(key)):
        used = np.zeros(space, dtype=bool)
        used[key] = True
        place = np.cumsum(used) - 1
        return place[key], int(used.sum())
    values, numbers = np.unique(key, return_inverse=True)
    return numbers.astype(np.int64), len(values)


def runs(begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers ``begins[i]`` to ``begins[i] + lengths[i]``, one run after the other."""
    shift = begins - (np.cumsum(lengths) - lengths)
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(shift, lengths))


def pairs(
    left: NDArray[np.int64],
    right: NDArray[np.int32] | NDArray[np.int64],
    size: int,
    groups: int,
    weights: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The observed pairs of codes in ascending order: left, right, and how often.

    With ``weights``, each pair given counts so often.
    """
    key = left * size + right
    if groups * size <= _COUNTERS:
        counts = np.bincount(key, weights, minlength=groups * size)
        seen = np.flatnonzero(counts)
        counts = counts[seen]
    elif weights is None:
        seen, counts = np.unique(key, return_counts=True)
    else:
        seen, place = np.unique(key, return_inverse=True)
        counts = np.bincount(place, weights)
    return seen // size, seen % size, counts.astype(np.int64)
