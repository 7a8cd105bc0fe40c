"""Which released tuples cover which tuples of leaves, for labels that overlap.

The released tuples that cover a leaf are a row of bits. Those that cover a tuple of leaves are the
bits that all its rows share, 64 of them at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BITS = 1 << 30  # bits that are held at once; more released tuples are taken in turns


@njit(cache=True, nogil=True)
def covered_mass(
    leaves: NDArray[np.int64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    table: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    widths: NDArray[np.int64],
    held: int = _BITS,
) -> Any:
    """Per tuple of leaves, the sum of the weights of the released tuples that cover it.

    ``table[offsets[c] + label * widths[c] + leaf]`` says whether a label of column c covers a leaf;
    ``held`` bits are in memory at once.
    """
    out = np.zeros(len(leaves), np.float64)
    turn = max(64, held // max(1, widths.sum()) // 64 * 64)
    for begin in range(0, len(labels), turn):
        bits, starts = _bits(labels[begin : begin + turn], table, offsets, widths)
        for i in range(len(leaves)):
            for w in range(bits.shape[1]):
                shared = _shared(bits, starts, leaves, i, w)
                while shared:
                    out[i] += weights[begin + 64 * w + _lowest(shared)]
                    shared &= shared - np.uint64(1)
    return out


@njit(cache=True, nogil=True)
def first_cover(
    leaves: NDArray[np.int64],
    labels: NDArray[np.int64],
    table: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    widths: NDArray[np.int64],
    held: int = _BITS,
) -> Any:
    """Per tuple of leaves, the first released tuple that covers it; -1 where none does."""
    out = np.full(len(leaves), -1, np.int64)
    turn = max(64, held // max(1, widths.sum()) // 64 * 64)
    for begin in range(0, len(labels), turn):
        bits, starts = _bits(labels[begin : begin + turn], table, offsets, widths)
        for i in range(len(leaves)):
            if out[i] >= 0:
                continue
            for w in range(bits.shape[1]):
                shared = _shared(bits, starts, leaves, i, w)
                if shared:
                    out[i] = begin + 64 * w + _lowest(shared)
                    break
    return out


@njit(cache=True, nogil=True)
def _bits(
    labels: NDArray[np.int64],
    table: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    widths: NDArray[np.int64],
) -> Any:
    """Per leaf of each column, a bit for every released tuple that covers it."""
    starts = np.cumsum(widths) - widths
    bits = np.zeros((widths.sum(), (len(labels) + 63) // 64), np.uint64)
    for c in range(len(widths)):
        for t in range(len(labels)):
            first = offsets[c] + labels[t, c] * widths[c]
            bit = np.uint64(1) << np.uint64(t & 63)
            for leaf in range(widths[c]):
                if table[first + leaf]:
                    bits[starts[c] + leaf, t >> 6] |= bit
    return bits, starts


@njit(cache=True, nogil=True, inline="always")
def _shared(
    bits: NDArray[np.uint64],
    starts: NDArray[np.int64],
    leaves: NDArray[np.int64],
    i: int,
    w: int,
) -> Any:
    """The bits of one word that all leaves of a tuple share."""
    shared = bits[starts[0] + leaves[i, 0], w]
    for c in range(1, len(starts)):
        if not shared:
            break
        shared &= bits[starts[c] + leaves[i, c], w]
    return shared


@njit(cache=True, nogil=True, inline="always")
def _lowest(word: Any) -> int:
    """The place of the lowest bit that is set."""
    place = 0
    for step in (32, 16, 8, 4, 2, 1):
        if not word & ((np.uint64(1) << np.uint64(step)) - np.uint64(1)):
            word >>= np.uint64(step)
            place += step
    return place
