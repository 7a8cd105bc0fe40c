"""Swap-merge: two sorted partitions of any size, a frame of each in memory at a time.

Definition: the frames of both partitions lie in the spill; the smaller head moves on. A cell holds
one frame of each side and one that it fills; everything else is swapped out.
Source: Michel 2019, section 4.5.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.protocol import records
from halfmask.protocol.layout import EMPTY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from halfmask.protocol.layout import Layout, Records
    from halfmask.protocol.schedule import Task


def merge(
    layout: Layout, left: Iterator[Records], right: Iterator[Records], frame: int
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
            ready = records.combine(layout, np.concatenate((first, other[:cut])))
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


def padded(layout: Layout, merged: Iterator[Records], task: Task, frame: int) -> Iterator[Records]:
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


def _full(layout: Layout, frames: Iterator[Records]) -> Iterator[Records]:
    """Frames without their empty records; those that hold nothing are passed over."""
    for content in frames:
        kept = content[layout.tags(content) != EMPTY]
        if len(kept):
            yield kept
