"""Network-merge: two sorted partitions become one, two frames at a time.

Definition: iteration j lets any cell merge frame i of one side with frame i of the other, for all
i, into a lower and an upper frame. The first lower and the last upper frame are final; the others
are merged again, shifted by one. Two partitions of n frames take n iterations and n (n + 1) / 2
tasks and give 2 n frames. A cell holds two frames, never more.
Source: Michel 2019, Algorithm 4.

Equal keys are combined where they meet; a husk with the second's key keeps its place, because the
steps sort nothing whose number changes on the way. Where the frames would outgrow the room there
is, Batcher's network of two-frame tasks drops the husks and moves empty places to the end.

Swap-merge: two sorted partitions of any size, a frame of each in memory at a time.

Definition: the frames of both partitions lie in the spill; the smaller head moves on. A cell holds
one frame of each side and one that it fills; everything else is swapped out.
Source: Michel 2019, section 4.5.2.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from halfmask.protocol.records import layout as records
from halfmask.protocol.records.layout import EMPTY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from halfmask.protocol.records.layout import RecordLayout, Records
    from halfmask.protocol.schedule import MergeTask


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


def merge_frames(
    layout: RecordLayout, left: Iterator[Records], right: Iterator[Records], frame: int
) -> Iterator[Records]:
    """Sorted, combined records in full frames; the last may be shorter."""
    sides = [_full(layout, left), _full(layout, right)]
    heads = [next(sides[0], None), next(sides[1], None)]
    done = np.empty(0, layout.dtype)
    while heads[0] is not None or heads[1] is not None:
        if heads[0] is None or heads[1] is None:
            which = 0 if heads[0] is not None else 1
            ready, rest = heads[which], None
        else:
            # Everything up to the smaller of the two last keys can meet no other equal key.
            which = 0 if heads[0]["key"][-1] <= heads[1]["key"][-1] else 1
            first, other = (heads[0], heads[1]) if which == 0 else (heads[1], heads[0])
            cut = int(other["key"].searchsorted(first["key"][-1], side="right"))
            ready = records.combine_records(layout, np.concatenate((first, other[:cut])))
            rest = other[cut:]
        assert ready is not None  # noqa: S101 - one side is there
        done = np.concatenate((done, ready))
        heads[which] = next(sides[which], None)
        if rest is not None:
            heads[1 - which] = rest if len(rest) else next(sides[1 - which], None)
        while len(done) >= frame:
            yield done[:frame]
            done = done[frame:]
    if len(done):
        yield done


def pad_frames(
    layout: RecordLayout, merged: Iterator[Records], task: MergeTask, frame: int
) -> Iterator[Records]:
    """The merged frames, then empty ones, as many as the task must deliver.

    Stops early where there are more, so that the caller sees a frame missing.
    """
    wanted = len(task.outputs)
    written = 0
    for content in merged:
        if written == wanted - 1:
            rest = next(merged, None)
            if rest is not None:
                return
        written += 1
        yield np.concatenate((content, layout.empty(frame - len(content))))
    for _ in range(wanted - written):
        yield layout.empty(frame)


def _full(layout: RecordLayout, frames: Iterator[Records]) -> Iterator[Records]:
    """Frames without their empty records; those that hold nothing are passed over."""
    for content in frames:
        kept = content[layout.tags(content) != EMPTY]
        if len(kept):
            yield kept
