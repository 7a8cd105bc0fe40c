"""Groups of rows of a wanted size: merge those that are too small, split those that are large.

The levels of a merge hierarchy reach only a few sizes; below a level any size is reached by
splitting a group on the part that explains most of it, as long as both halves are large enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.codes import log_factorials
from halfmask.coclustering.merges import compact

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CANDIDATES = 64  # parts that a split is tried on, the most even ones first


def split_large(
    groups: NDArray[np.int32], matrix: NDArray[np.int32], least: int
) -> NDArray[np.int32]:
    """Split groups again and again so that none could be split into two of ``least`` rows.

    Args:
        groups: the group of each row.
        matrix: (rows, columns) the part of each row in each column.
        least: the fewest rows of a group.
    """
    out = np.empty(len(groups), dtype=np.int32)
    order = np.argsort(groups, kind="stable")
    ends = np.flatnonzero(np.diff(groups[order])) + 1
    waiting = np.split(order, ends)
    done = 0
    while waiting:
        rows = waiting.pop()
        halves = _halves(rows, matrix[rows], least) if len(rows) >= 2 * least else None
        if halves is None:
            out[rows] = done
            done += 1
        else:
            waiting.extend(halves)
    return compact(out)


def _halves(
    rows: NDArray[np.int64], matrix: NDArray[np.int32], least: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """The rows with and without the part whose presence tells most, or None."""
    present, codes = np.unique(matrix, return_inverse=True)
    codes = codes.reshape(matrix.shape)
    n, width = len(rows), len(present)
    counts = np.bincount(codes.ravel(), minlength=width)
    even = np.minimum(counts, n - counts)
    candidates = np.argsort(-even, kind="stable")[:_CANDIDATES]
    candidates = candidates[even[candidates] >= least]
    if not len(candidates):
        return None
    has = np.zeros((n, width), dtype=np.float32)
    has[np.arange(n)[:, None], codes] = 1.0
    inside = (has[:, candidates].T @ has).astype(np.float64)
    held = counts[candidates].astype(np.float64)[:, None]
    outside = counts - inside
    gain = _entropic(inside, held) + _entropic(outside, n - held)
    best = candidates[int(gain.sum(axis=1).argmax())]
    with_it = has[:, best] > 0
    return rows[with_it], rows[~with_it]


def _entropic(counts: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(counts > 0, counts * np.log(np.maximum(counts, 1.0) / total), 0.0)


def join(
    groups: NDArray[np.int32], counts: NDArray[np.int64], failing: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Join each failing group with the one that costs least; returns the new group of each group.

    Args:
        groups: the group of each row (for their sizes).
        counts: (groups, part groups) how often each part group occurs.
        failing: groups that may not stay alone.
    """
    rows = counts.copy()
    sizes = np.bincount(groups, minlength=len(counts)).astype(np.int64)
    totals = rows.sum(axis=1)
    factorial = log_factorials(int(totals.sum() + sizes.sum()))
    names = np.arange(len(counts), dtype=np.int32)
    alive = np.ones(len(counts), dtype=bool)
    for group in failing[np.argsort(sizes[failing], kind="stable")].tolist():
        small = int(names[group])
        if small != group:  # joined already
            continue
        others = np.flatnonzero(alive & (np.arange(len(alive)) != small))
        if not len(others):
            break
        change = -(factorial[rows[others] + rows[small]] - factorial[rows[others]]).sum(axis=1)
        joined, held = totals[others] + totals[small], sizes[others] + sizes[small]
        change += factorial[joined + held - 1] - factorial[held - 1]
        change -= factorial[totals[others] + sizes[others] - 1] - factorial[sizes[others] - 1]
        target = int(others[change.argmin()])
        rows[target] += rows[small]
        sizes[target] += sizes[small]
        totals[target] += totals[small]
        alive[small] = False
        names[names == small] = target
    return compact(names)
