"""How far two distributions are apart, on one column or on several at once.

Definition: H(p, q) = sqrt(sum (sqrt p - sqrt q)^2 / 2), from 0 (the same) to 1 (disjoint); a label
    that stands for several values gives each of them an equal share of its rows.
Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018, 2.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def hellinger(p: NDArray[Any], q: NDArray[Any]) -> float:
    """The distance of two histograms over the same cells; both are scaled to sum 1.

    Example:
        >>> round(hellinger(np.array([0.5, 0.5]), np.array([0.9, 0.1])), 6)
        0.32492
    """
    a, b = np.asarray(p, dtype=np.float64).ravel(), np.asarray(q, dtype=np.float64).ravel()
    overlap = np.sqrt(a / a.sum() * (b / b.sum())).sum()
    return float(np.sqrt(max(0.0, 1.0 - overlap)))


def joint(codes: NDArray[np.int32], sizes: Sequence[int]) -> NDArray[np.int64]:
    """The histogram of rows over the cross product of their columns."""
    flat = np.zeros(len(codes), dtype=np.int64)
    for place, size in enumerate(sizes):
        flat = flat * size + codes[:, place]
    return np.bincount(flat, minlength=int(np.prod(sizes, dtype=np.int64)))


def joint_of_sets(
    weights: NDArray[np.int64], sets: Sequence[NDArray[np.bool_]]
) -> NDArray[np.float64]:
    """The histogram of classes whose labels stand for sets of values, spread evenly over them.

    Args:
        weights: how many rows each class holds.
        sets: per column, (classes, values) what the class's label stands for.
    """
    out = np.zeros([s.shape[1] for s in sets])
    for row, weight in enumerate(weights.tolist()):
        inside = [np.flatnonzero(s[row]) for s in sets]
        out[np.ix_(*inside)] += weight / np.prod([len(i) for i in inside])
    return out.ravel()
