"""Which released tuples cover which tuples of leaves, one by one: for labels that overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def covered_mass(
    leaves: NDArray[np.int64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    table: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    widths: NDArray[np.int64],
) -> Any:
    """Per tuple of leaves, the sum of the weights of the released tuples that cover it.

    ``table[offsets[c] + label * widths[c] + leaf]`` says whether a label of column c covers a leaf.
    """
    out = np.zeros(len(leaves), np.float64)
    columns = leaves.shape[1]
    for t in range(len(labels)):
        for i in range(len(leaves)):
            inside = True
            for c in range(columns):
                if not table[offsets[c] + labels[t, c] * widths[c] + leaves[i, c]]:
                    inside = False
                    break
            if inside:
                out[i] += weights[t]
    return out


@njit(cache=True, nogil=True)
def first_cover(
    leaves: NDArray[np.int64],
    labels: NDArray[np.int64],
    table: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    widths: NDArray[np.int64],
) -> Any:
    """Per tuple of leaves, the first released tuple that covers it; -1 where none does."""
    out = np.full(len(leaves), -1, np.int64)
    columns = leaves.shape[1]
    for i in range(len(leaves)):
        for t in range(len(labels)):
            inside = True
            for c in range(columns):
                if not table[offsets[c] + labels[t, c] * widths[c] + leaves[i, c]]:
                    inside = False
                    break
            if inside:
                out[i] = t
                break
    return out
