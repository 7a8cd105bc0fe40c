"""What a group of rows publishes: Algorithm 1 of the hybrid k-anonymity, and the mode.

Definition: take the groups of parts that a group of rows meets most, until every column has a part;
    the parts taken are the column's published set.
Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018, 4.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from halfmask.table.sets import ANY, SIGN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.prepare import ColumnParts, Melted

Link = Literal["count", "lift"]
LINKS = ("count", "lift")


def meetings(
    groups: NDArray[np.int32], matrix: NDArray[np.int32], part_group: NDArray[np.int32]
) -> NDArray[np.int64]:
    """(groups of rows, groups of parts) how often they meet."""
    width = int(part_group.max()) + 1
    height = int(groups.max()) + 1
    flat = groups[:, None].astype(np.int64) * width + part_group[matrix]
    return np.bincount(flat.ravel(), minlength=height * width).reshape(height, width)


def part_counts(
    groups: NDArray[np.int32], matrix: NDArray[np.int32], parts: int
) -> NDArray[np.int64]:
    """(groups of rows, parts) how often they meet."""
    return meetings(groups, matrix, np.arange(parts, dtype=np.int32))


def chosen_parts(
    met: NDArray[np.int64],
    part_group: NDArray[np.int32],
    melted: Melted,
    *,
    link: Link = "count",
) -> NDArray[np.bool_]:
    """(groups of rows, parts) the parts that each group of rows publishes.

    Args:
        met: (groups of rows, groups of parts) how often they meet.
        part_group: the group of each part.
        melted: the columns and their parts.
        link: what orders the groups of parts: the count, or the count against independence. Ties
            go to the larger count per observation of the part group, then to the first.
    """
    width = met.shape[1]
    totals = np.maximum(met.sum(axis=0), 1)
    lift = met / totals
    keys = (met, lift) if link == "count" else (lift, met)
    places = np.broadcast_to(np.arange(width), met.shape)
    order = np.lexsort((places, -keys[1], -keys[0]), axis=1)
    covers = np.zeros((width, len(melted.columns)), dtype=bool)
    covers[part_group, melted.owner] = True
    taken = np.zeros(met.shape, dtype=bool)
    for start in range(0, len(met), 1024):
        block = order[start : start + 1024]
        seen = np.logical_or.accumulate(covers[block], axis=1).all(axis=2)
        last = seen.argmax(axis=1)
        use = np.arange(width) <= last[:, None]
        np.put_along_axis(taken[start : start + 1024], block, use, axis=1)
    return taken[:, part_group]


def modes(counts: NDArray[np.int64], melted: Melted) -> NDArray[np.bool_]:
    """(groups of rows, parts) the most frequent part of each column in each group of rows."""
    out = np.zeros(counts.shape, dtype=bool)
    for low, high in zip(melted.offsets[:-1], melted.offsets[1:], strict=True):
        best = low + counts[:, low:high].argmax(axis=1)
        out[np.arange(len(counts)), best] = True
    return out


def set_label(column: ColumnParts, parts: NDArray[np.int64]) -> str:
    """A set of parts as text: all of them, one, a run of intervals, or a list."""
    count = len(column.labels)
    if len(parts) == count and count > 1:
        return "*"
    if len(parts) > 1 and column.cuts is not None and int(parts.max()) < len(column.cuts):
        run = bool((np.diff(parts) == 1).all())
        if run:
            return _run_label(column, int(parts[0]), int(parts[-1]))
    return SIGN.join(column.labels[p] for p in parts)


def _run_label(column: ColumnParts, first: int, last: int) -> str:
    """Neighbouring intervals as one."""
    low, high = column.labels[first], column.labels[last]
    if first == 0:
        return f"<={high.rpartition(',')[2].rstrip(']')}" if high[0] == "]" else ANY
    low_bound = low[1:].rpartition(",")[0]
    return f">{low_bound}" if high[0] == ">" else f"]{low_bound},{high.rpartition(',')[2]}"
