"""Merge records: equal keys become one, counts and sums add, extremes compare, sets unite.

Merging is commutative and associative (moments and sums of fractions up to rounding), so that the
shape of the tree and the order of cells make no difference. Where a frame must keep its size, the
second of two equal keys stays behind as a husk: its key, and nothing in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.protocol.layout import EMPTY, GROUP, SUM

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.protocol.layout import Layout, Records, StateField


@dataclass(frozen=True, slots=True)
class Tally:
    """How many contributions were counted: all, those that are no dummies, and void ones."""

    contributions: int
    real: int
    void: int


def fold(layout: Layout, contributions: Records, void: int = 0) -> Records:
    """What a partition of single contributions comes to: groups, and how many took part.

    ``void`` so many more came without a credential, and count for nothing else.
    """
    real = contributions[layout.tags(contributions) == GROUP]
    sums = layout.sums(len(contributions) + void, len(real), void)
    return np.concatenate((sums, combine(layout, real)))


def combine(layout: Layout, records: Records) -> Records:
    """Sort by key, merge equal keys, drop what is empty and husks."""
    records = _sorted(records[~layout.hollow(records)])
    first = _first(records)
    return records if first.all() else _merged(layout, records, first)


def _sorted(records: Records) -> Records:
    return records[np.argsort(records["key"], kind="stable")]


def _first(records: Records) -> NDArray[np.bool_]:
    """Which sorted records are the first with their key."""
    found = np.ones(len(records), dtype=bool)
    found[1:] = records["key"][1:] != records["key"][:-1]
    return found


def _merged(layout: Layout, records: Records, first: NDArray[np.bool_]) -> Records:
    """Sorted records, of which those with equal keys become one."""
    starts = np.flatnonzero(first)
    ids = np.cumsum(first) - 1
    merged = records[starts]
    merged["rows"] = np.add.reduceat(records["rows"], starts)
    for name in ("k", "l"):
        merged[name] = np.maximum.reduceat(records[name], starts)
    if layout.noisy:
        merged["w"] = np.add.reduceat(records["w"], starts)
    for i, state in enumerate(layout.states):
        _merge_state(merged, records, i, state, starts, ids)
    for i in range(len(layout.histograms)):
        merged[f"h{i}"] = np.add.reduceat(records[f"h{i}"], starts, axis=0)
    # Sets are the dear part: only those of keys that did meet another are united.
    several = np.diff(np.append(starts, len(records))) > 1
    inside = several[ids]
    numbers = (np.cumsum(several) - 1)[ids[inside]]
    for j, cap in enumerate(layout.caps):
        sizes, values = records[f"t{j}_n"][inside], records[f"t{j}"][inside]
        counts, united = _united(sizes, values, cap, numbers, int(several.sum()))
        merged[f"t{j}_n"][several] = counts
        merged[f"t{j}"][several] = united
    return merged


def frames(layout: Layout, records: Records, size: int, count: int) -> list[Records]:
    """Cut sorted records into so many frames of one size, filled up with empty records.

    Raises:
        OverflowError: they do not fit.
    """
    if len(records) > size * count:
        raise OverflowError
    padded = np.concatenate((records, layout.empty(size * count - len(records))))
    return [padded[i * size : (i + 1) * size] for i in range(count)]


def split(layout: Layout, left: Records, right: Records) -> tuple[Records, Records]:
    """Two frames merged into a lower and an upper one of the same size.

    Husks stay where their keys are: a network of such steps sorts only what keeps its number.
    """
    both = _sorted(np.concatenate((left, right)))
    first = _first(both) | (layout.tags(both) == EMPTY)
    if not first.all():
        whole = np.zeros_like(both)
        whole["key"] = both["key"]
        whole[first] = _merged(layout, both, first)
        both = whole
    return both[: len(left)], both[len(left) :]


def pack(layout: Layout, left: Records, right: Records) -> tuple[Records, Records]:
    """Two frames merged into a lower and an upper one, without husks: empty places come last."""
    low, high = frames(layout, combine(layout, np.concatenate((left, right))), len(left), 2)
    return low, high


def groups(layout: Layout, records: Records) -> tuple[Records, Tally]:
    """The groups among records, and how many contributions were counted."""
    records = records[~layout.hollow(records)]
    tags = layout.tags(records)
    sums = records[tags == SUM]
    counted = {key: int(rows) for key, rows in zip(sums["key"].tolist(), sums["rows"], strict=True)}
    tally = Tally(*(counted.get(key, 0) for key in (b"", bytes([SUM, 1]), bytes([SUM, 2]))))
    return records[tags == GROUP], tally


def _merge_state(
    merged: Records,
    records: Records,
    i: int,
    state: StateField,
    starts: NDArray[np.int64],
    ids: NDArray[np.int64],
) -> None:
    count = records[f"s{i}_n"]
    total = np.add.reduceat(count, starts)
    merged[f"s{i}_n"] = total
    if state.kind == "count":
        return
    if state.kind == "moments":
        mean = records[f"s{i}_mean"]
        middle = np.add.reduceat(count * mean, starts) / np.maximum(total, 1)
        apart = np.where(count > 0, mean - middle[ids], 0.0)
        merged[f"s{i}_mean"] = middle
        merged[f"s{i}_m2"] = np.add.reduceat(records[f"s{i}_m2"] + count * apart * apart, starts)
    elif state.exact:
        for half in ("high", "low"):
            merged[f"s{i}_{half}"] = np.add.reduceat(records[f"s{i}_{half}"], starts)
    elif state.kind == "sum":
        merged[f"s{i}"] = np.add.reduceat(records[f"s{i}"], starts)
    else:
        # The extreme of those that have a value: sorted by group, then absent last, then value.
        values = records[f"s{i}"]
        rank = np.unique(values, return_inverse=True)[1]
        rank = -rank if state.kind == "max" else rank
        best = np.lexsort((rank, count == 0, ids))[starts]
        merged[f"s{i}"] = values[best]


def _united(
    sizes: NDArray[np.int64],
    values: NDArray[np.int64],
    cap: int,
    ids: NDArray[np.int64],
    count: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The union of sets, of which the ``cap`` smallest values are kept: exact below the cap."""
    filled = np.arange(cap) < sizes[:, None]
    flat = values[filled]
    owners = np.repeat(ids, sizes)
    order = np.lexsort((flat, owners))
    flat, owners = flat[order], owners[order]
    if len(flat):
        new = np.concatenate(([True], (flat[1:] != flat[:-1]) | (owners[1:] != owners[:-1])))
        flat, owners = flat[new], owners[new]
    found = np.bincount(owners, minlength=count)
    rank = np.arange(len(flat)) - (np.cumsum(found) - found)[owners]
    kept = rank < cap
    out = np.zeros((count, cap), np.int64)
    out[owners[kept], rank[kept]] = flat[kept]
    return np.minimum(found, cap), out
