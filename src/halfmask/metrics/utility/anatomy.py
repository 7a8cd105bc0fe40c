"""Counts on an anatomized table, whose sensitive values are published per group and not per row.

Definition: the number of rows with value s that satisfy a condition on the quasi-identifiers is
estimated as sum_g ST(g, s) * (rows of g that satisfy it) / |g|, where ST counts the value in g.
Source: Xiao and Tao, "Anatomy: simple and effective privacy preservation", 2006.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def anatomy_count(
    groups: NDArray[np.int64], holds: NDArray[np.bool_], matches: NDArray[np.bool_]
) -> float:
    """Estimate how many rows hold a value and match a condition.

    Args:
        groups: the group of each row, from 0.
        holds: per row, whether it holds the value; only its count per group is used.
        matches: per row, whether its quasi-identifiers satisfy the condition.

    Example:
        >>> anatomy_count(np.array([0, 0]), np.array([True, False]), np.array([True, False]))
        0.5
    """
    sizes = np.bincount(groups)
    held = np.bincount(groups, weights=holds, minlength=len(sizes))
    fitting = np.bincount(groups, weights=matches, minlength=len(sizes))
    return float((held * fitting / np.maximum(sizes, 1)).sum())
