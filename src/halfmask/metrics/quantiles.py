"""Quantiles of numbers that stand for several rows each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def quantiles(
    numbers: NDArray[np.float64], rows: NDArray[np.int64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What ``numpy.quantile(numpy.repeat(numbers, rows), shares)`` gives, without repeating.

    Example:
        >>> quantiles(np.array([1.0, 5.0]), np.array([3, 1]), np.array([0.5, 1.0])).tolist()
        [1.0, 5.0]
    """
    order = np.argsort(numbers, kind="stable")
    sorted_, ends = numbers[order], np.cumsum(rows[order])
    at = shares * (ends[-1] - 1)
    low = np.floor(at).astype(np.int64)
    part = at - low
    below = sorted_[np.searchsorted(ends, low, side="right")]
    above = sorted_[np.searchsorted(ends, np.minimum(low + 1, ends[-1] - 1), side="right")]
    step = above - below
    return np.where(part < 0.5, below + step * part, above - step * (1 - part))
