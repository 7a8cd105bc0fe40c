"""Merge values that are too rare to be told apart from noise, by noisy counts alone.

Rare values of a nominal column share one group; neighbors of an ordered column join until a group
is large enough. Inside a group, values are drawn by their own noisy counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def pooled(counts: NDArray[np.float64], least: float) -> NDArray[np.int64]:
    """Per value, its group: values below ``least`` share the last one.

    Example:
        >>> pooled(np.array([50.0, 1.0, 40.0, 2.0]), 10).tolist()
        [0, 2, 1, 2]
    """
    large = counts >= least
    if large.sum() >= len(counts) - 1:  # a group of one rare value is that value
        return np.arange(len(counts))
    return np.where(large, np.cumsum(large) - 1, large.sum()).astype(np.int64)


def joined(counts: NDArray[np.float64], least: float) -> NDArray[np.int64]:
    """Per value of an ordered column, its group of neighbors with ``least`` rows or more.

    Example:
        >>> joined(np.array([5.0, 5.0, 1.0, 9.0, 1.0]), 8).tolist()
        [0, 0, 1, 1, 1]
    """
    groups = np.zeros(len(counts), np.int64)
    group, held = 0, 0.0
    for value, count in enumerate(counts):
        if held >= least:
            group, held = group + 1, 0.0
        groups[value] = group
        held += float(count)
    if held < least and group:  # what is left over joins the group before
        groups[groups == group] = group - 1
    return groups
