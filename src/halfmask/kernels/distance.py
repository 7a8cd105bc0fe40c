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
