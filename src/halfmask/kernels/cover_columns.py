"""Labels and the leaves that they cover, as the kernel that walks over them sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Columns(NamedTuple):
    """Labels and the leaves that they cover, column after column.

    Attributes:
        labels: (columns, released tuples).
        leaves: (columns, tuples of leaves) in lexicographic order.
        starts: where the leaves of each label begin in ``covered``.
        covered: the leaves under each label, ascending.
        label_at: where each column begins in ``starts``.
        low: (columns, released tuples) the first leaf; ``high`` the last.
        gaps: (columns, released tuples) whether leaves between them are not covered.
    """

    labels: NDArray[np.int32]
    leaves: NDArray[np.int32]
    starts: NDArray[np.int64]
    covered: NDArray[np.int64]
    label_at: NDArray[np.int64]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    gaps: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        labels: list[NDArray[np.int32]],
        leaves: NDArray[np.int32],
        covered: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
    ) -> Columns:
        """From labels, and per column where the leaves of each label begin, and these."""
        each = list(zip(labels, covered, strict=True))
        low = np.stack([held[starts[label]] for label, (starts, held) in each]).astype(np.int32)
        high = np.stack([held[starts[label + 1] - 1] for label, (starts, held) in each])
        sizes = np.stack([np.diff(starts)[label] for label, (starts, _) in each])
        gaps = high - low + 1 > sizes
        # Ranges are known by their ends; leaves are looked up in columns with gaps alone.
        ragged = [held if gaps[c].any() else held[:0] for c, (_, held) in enumerate(covered)]
        shifts = np.cumsum([0] + [len(held) for held in ragged[:-1]])
        return cls(
            np.stack(labels),
            leaves,
            np.concatenate([at + shift for (at, _), shift in zip(covered, shifts, strict=True)]),
            np.concatenate(ragged),
            np.cumsum([0] + [len(starts) for starts, _ in covered[:-1]], dtype=np.int64),
            low,
            high.astype(np.int32),
            gaps,
        )


class Found(NamedTuple):
    """What is wanted of the pairs that cover, and what was found.

    Attributes:
        weights: of the released tuples.
        mass: per tuple of leaves, the weight over it; exactly 0 where nothing covers it.
        ranks: of the released tuples; empty where nobody asks for the lowest.
        best: per tuple of leaves, the lowest rank, -1 for none.
        ends: per released tuple, how many tuples of leaves it covers, or where the next of them
            goes in ``fits``; empty where nobody asks.
        fits: tuples of leaves, released tuple after released tuple; empty to count them.
    """

    weights: NDArray[np.float64]
    mass: NDArray[np.float64]
    ranks: NDArray[np.int64]
    best: NDArray[np.int64]
    ends: NDArray[np.int64]
    fits: NDArray[np.int64]


@njit(cache=True, nogil=True)
def covers(c: Any, column: int, t: int, leaf: int) -> bool:
    """Whether a released tuple covers a leaf in one column."""
    if not c.low[column, t] <= leaf <= c.high[column, t]:
        return False
    if not c.gaps[column, t]:
        return True
    label = c.label_at[column] + c.labels[column, t]
    end = c.starts[label + 1]
    at = first_from(c.covered, c.starts[label], end, leaf)
    return bool(at < end and c.covered[at] == leaf)


@njit(cache=True, nogil=True)
def first_from(values: Any, low: int, high: int, wanted: int) -> int:
    """The first place from ``low`` whose value is not below ``wanted``."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
