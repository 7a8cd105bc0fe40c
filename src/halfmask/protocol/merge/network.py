"""Network-merge: two sorted partitions become one, two frames at a time.

Definition: iteration j lets any cell merge frame i of one side with frame i of the other, for all
i, into a lower and an upper frame. The first lower and the last upper frame are final; the others
are merged again, shifted by one. Two partitions of n frames take n iterations and n (n + 1) / 2
tasks and give 2 n frames. A cell holds two frames, never more.
Source: Michel 2019, Algorithm 4.

Equal keys are combined where they meet; a husk with the second's key keeps its place, because the
steps sort nothing whose number changes on the way. Where the frames would outgrow the room there
is, Batcher's network of two-frame tasks drops the husks and moves empty places to the end.
"""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=64)
def comparisons(frames: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Batcher's odd-even mergesort on any number of frames, in steps of disjoint pairs.

    Example:
        >>> comparisons(3)
        (((0, 1),), ((0, 2),), ((1, 2),))
    """
    size = 1 << (frames - 1).bit_length()
    found = []
    p = 1
    while p < size:
        k = p
        while k >= 1:
            pairs = tuple(
                (i + j, i + j + k)
                for j in range(k % p, size - k, 2 * k)
                for i in range(min(k, size - j - k))
                if (i + j) // (p * 2) == (i + j + k) // (p * 2) and i + j + k < frames
            )
            if pairs:
                found.append(pairs)
            k //= 2
        p *= 2
    return tuple(found)
