"""What a class of so many rows can lose at least and at most, given the rows that fit it.

See ``halfmask.metrics.class_bounds`` for what the bounds say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from halfmask.kernels.space import spread

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Fits(NamedTuple):
    """Classes and the distinct rows that fit them.

    Attributes:
        sizes: how many rows each class publishes.
        starts: where the rows of each class begin in ``fits``, the last entry where all end.
        fits: distinct rows.
        rows: how many rows each distinct one stands for.
        points: where each distinct row stands among the points.
        codes: (columns, distinct rows) their values.
    """

    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]
    fits: NDArray[np.int64]
    rows: NDArray[np.int64]
    points: NDArray[np.int64]
    codes: NDArray[np.int32]


@njit(cache=True, nogil=True)
def radii(p: Any, f: Any) -> Any:
    """The sums over published rows of the least radius and of the largest distance."""
    least = most = 0.0
    far = np.empty(max(p.numbers.shape[0], p.codes.shape[0], p.marks.shape[0]), np.float64)
    for c in range(len(f.sizes)):
        fits = f.fits[f.starts[c] : f.starts[c + 1]]
        places = f.points[fits]
        nearest, widest = np.inf, 0.0
        for origin in places:
            spread(p, origin, places, len(places), far)
            within = 0
            for a in range(len(places)):
                widest = max(widest, far[places[a]])
                within += f.rows[fits[a]] if far[places[a]] < nearest else 0
            if within >= f.sizes[c]:
                nearest = _radius(far[places], f.rows[fits], f.sizes[c])
        least += f.sizes[c] * nearest
        most += f.sizes[c] * widest
    return least, most


@njit(cache=True, nogil=True)
def _radius(far: Any, rows: Any, size: int) -> float:
    """How far one must go to meet ``size`` rows."""
    held = 0
    for a in np.argsort(far):
        held += rows[a]
        if held >= size:
            return float(far[a])
    return np.inf


@njit(cache=True, nogil=True)
def entropies(f: Any, width: int) -> Any:
    """The sums over classes and columns of the least and the most bits, times rows."""
    least = most = 0.0
    counts = np.zeros(width, np.int64)
    for column in f.codes:
        for c in range(len(f.sizes)):
            fits = f.fits[f.starts[c] : f.starts[c + 1]]
            for i in fits:
                counts[column[i]] += f.rows[i]
            held = np.empty(len(fits), np.int64)
            values = 0
            for i in fits:
                if counts[column[i]]:
                    held[values] = counts[column[i]]
                    counts[column[i]] = 0
                    values += 1
            low, high = filled(np.sort(held[:values]), f.sizes[c])
            least += low
            most += high
    return least, most


@njit(cache=True, nogil=True)
def filled(counts: Any, size: int) -> Any:
    """The least and the most bits, times rows, of the values of ``size`` rows.

    ``counts`` are the rows of each value, ascending. The most frequent values fill a class with the
    least; as even as can be, each value has all its rows or an equal share of what is left.
    """
    least = most = 0.0
    left = size
    for v in range(len(counts) - 1, -1, -1):
        taken = min(counts[v], left)
        least += _bits(taken, size)
        left -= taken
    left = size
    for v in range(len(counts)):
        # What does not divide is left for the last values, which have most rows.
        taken = min(counts[v], left // (len(counts) - v))
        most += _bits(taken, size)
        left -= taken
    return least, most


@njit(cache=True, nogil=True)
def _bits(rows: int, size: int) -> float:
    return float(rows * np.log2(size / rows)) if rows else 0.0
