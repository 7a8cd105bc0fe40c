"""Refinement of groupings: one column more splits every group; what cannot split leaves.

A grouping is a list of units (distinct tuples) ordered by group, with the place where each group
starts. Groups that no further column can change are handed out as soon as they arise, which makes
a walk over many column sets cheap. Packed keys travel with the units, because reading them in
order is many times faster than looking them up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def refine(
    keys: NDArray[np.uint64],
    rows: NDArray[np.int32],
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    word: int,
    shift: np.uint64,
    mask: np.uint64,
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Split every group by one column.

    Returns keys, rows, ids and starts of the groups of several units, the rows of each of these
    groups, and the ids of the units that stand alone.
    """
    groups, width = len(starts) - 1, keys.shape[1]
    size = np.int64(mask) + 1
    out_keys = np.empty_like(keys)
    out_rows = np.empty_like(rows)
    out_ids = np.empty_like(ids)
    begins = np.empty(len(ids) // 2 + 1, np.int64)
    sums = np.empty(len(ids) // 2 + 1, np.int64)
    lone = np.empty(len(ids), np.int32)
    count = np.zeros(size, np.int64)
    total = np.zeros(size, np.int64)
    place = np.empty(size, np.int64)
    touched = np.empty(size, np.int32)
    filled = found = alone = 0
    begins[0] = 0
    for g in range(groups):
        first, end = starts[g], starts[g + 1]
        seen = 0
        for i in range(first, end):
            code = np.int64((keys[i, word] >> shift) & mask)
            if count[code] == 0:
                touched[seen] = code
                seen += 1
            count[code] += 1
            total[code] += rows[i]
        for j in range(seen):
            code = touched[j]
            if count[code] == 1:
                place[code] = -1
            else:
                place[code] = filled
                filled += count[code]
                sums[found] = total[code]
                found += 1
                begins[found] = filled
            count[code] = 0
            total[code] = 0
        for i in range(first, end):
            code = np.int64((keys[i, word] >> shift) & mask)
            to = place[code]
            if to < 0:
                lone[alone] = ids[i]
                alone += 1
                continue
            for w in range(width):
                out_keys[to, w] = keys[i, w]
            out_rows[to] = rows[i]
            out_ids[to] = ids[i]
            place[code] = to + 1
    return (
        out_keys[:filled],
        out_rows[:filled],
        out_ids[:filled],
        begins[: found + 1],
        sums[:found],
        lone[:alone],
    )


@njit(cache=True, nogil=True)
def _bits(table: NDArray[np.float64], n: int) -> Any:
    """The value of n log2 n, looked up while the table reaches that far."""
    return table[n] if n < len(table) else n * np.log2(n)


@njit(cache=True, nogil=True)
def split(
    keys: NDArray[np.uint64],
    rows: NDArray[np.int32],
    labels: NDArray[np.int32],
    starts: NDArray[np.int64],
    word: int,
    shift: np.uint64,
    mask: np.uint64,
    domain: int,
    bits: NDArray[np.float64],
) -> tuple[Any, Any, Any, Any, float, int]:
    """Split every group by one column and keep the groups that hold several labels.

    Returns their keys, rows, labels and starts, the sum over them of n log n minus the sum of
    c log c over their labels (``bits[n]`` is n log2 n, as far as it reaches), and the rows of
    groups with one label.
    """
    groups, width = len(starts) - 1, keys.shape[1]
    wide = np.int64(mask) + 1
    out_keys = np.empty_like(keys)
    out_rows = np.empty_like(rows)
    out_labels = np.empty_like(labels)
    begins = np.empty(len(labels) // 2 + 1, np.int64)
    first_label = np.empty(wide, np.int32)
    several = np.zeros(wide, np.bool_)
    size = np.zeros(wide, np.int64)
    members = np.zeros(wide, np.int64)
    place = np.empty(wide, np.int64)
    held = np.empty(wide, np.int32)
    count = np.zeros(domain, np.int64)
    touched = np.empty(domain, np.int32)
    begins[0] = 0
    filled = found = pure_rows = 0
    total = 0.0
    for g in range(groups):
        first, end = starts[g], starts[g + 1]
        codes = 0
        for i in range(first, end):
            code = np.int64((keys[i, word] >> shift) & mask)
            if members[code] == 0:
                held[codes] = code
                codes += 1
                first_label[code] = labels[i]
                several[code] = False
            elif labels[i] != first_label[code]:
                several[code] = True
            members[code] += 1
            size[code] += rows[i]
        begin = found
        for j in range(codes):
            code = held[j]
            if several[code]:
                total += _bits(bits, size[code])
                place[code] = filled
                filled += members[code]
                found += 1
                begins[found] = filled
            else:
                pure_rows += size[code]
                place[code] = -1
            size[code] = 0
            members[code] = 0
        for i in range(first, end):
            code = np.int64((keys[i, word] >> shift) & mask)
            to = place[code]
            if to >= 0:
                for w in range(width):
                    out_keys[to, w] = keys[i, w]
                out_rows[to] = rows[i]
                out_labels[to] = labels[i]
                place[code] = to + 1
        for h in range(begin, found):
            seen = 0
            for i in range(begins[h], begins[h + 1]):
                label = out_labels[i]
                if count[label] == 0:
                    touched[seen] = label
                    seen += 1
                count[label] += out_rows[i]
            for j in range(seen):
                total -= _bits(bits, count[touched[j]])
                count[touched[j]] = 0
    return (
        out_keys[:filled],
        out_rows[:filled],
        out_labels[:filled],
        begins[: found + 1],
        total,
        pure_rows,
    )


@njit(cache=True, nogil=True)
def leaves(
    keys: NDArray[np.uint64],
    rows: NDArray[np.int32],
    labels: NDArray[np.int32],
    starts: NDArray[np.int64],
    words: NDArray[np.int64],
    shifts: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    domain: int,
    bits: NDArray[np.float64],
    count: NDArray[Any],
) -> tuple[Any, Any, Any]:
    """Per column, what ``split`` would find, without splitting.

    ``count`` is room for a counter of rows per code and label, all 0, and is left so.

    Returns the sums, the rows in groups of one label, and how many groups hold several labels.
    """
    groups, columns = len(starts) - 1, len(words)
    widest = np.int64(masks.max()) + 1
    totals = np.zeros(columns, np.float64)
    pure = np.zeros(columns, np.int64)
    several = np.zeros(columns, np.int64)
    touched = np.empty(len(count), np.int32)
    size = np.zeros(widest, np.int64)
    kinds = np.zeros(widest, np.int64)
    held = np.empty(widest, np.int32)
    for g in range(groups):
        first, end = starts[g], starts[g + 1]
        for column in range(columns):
            word, shift, mask = words[column], shifts[column], masks[column]
            seen = codes = 0
            for i in range(first, end):
                code = np.int64((keys[i, word] >> shift) & mask)
                pair = code * domain + labels[i]
                if count[pair] == 0:
                    touched[seen] = pair
                    seen += 1
                    if kinds[code] == 0:
                        held[codes] = code
                        codes += 1
                    kinds[code] += 1
                count[pair] += rows[i]
                size[code] += rows[i]
            for j in range(seen):
                totals[column] -= _bits(bits, count[touched[j]])
                count[touched[j]] = 0
            for j in range(codes):
                code = held[j]
                totals[column] += _bits(bits, size[code])
                if kinds[code] == 1:
                    pure[column] += size[code]
                else:
                    several[column] += 1
                size[code] = 0
                kinds[code] = 0
    return totals, pure, several


@njit(cache=True, nogil=True)
def minimal(
    lone: NDArray[np.int32],
    mask: int,
    heads: NDArray[np.int64],
    links: NDArray[np.int64],
    masks: NDArray[np.int64],
    used: int,
) -> int:
    """Note column set ``mask`` for each unit of ``lone`` that no noted subset singles out.

    The sets of a unit form a list: ``heads[unit]`` is its newest entry and ``links`` the one
    before. Returns how many entries are in use; the caller leaves room for ``len(lone)`` more.
    """
    for i in range(len(lone)):
        unit = lone[i]
        entry = heads[unit]
        while entry >= 0 and (masks[entry] & mask) != masks[entry]:
            entry = links[entry]
        if entry < 0:
            masks[used] = mask
            links[used] = heads[unit]
            heads[unit] = used
            used += 1
    return used
