"""Grouping of packed keys: the compiled inner loop under classes and the search.

A key is one row of a ``(n, words)`` uint64 array; each column occupies a bit field inside one
word. ``regroup`` replaces the fields of some columns and gives equal keys one id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.kernels.compiler import (
    Sparing,
    constants,
    integers,
    kernel,
    narrow,
    word_rows,
    zeros,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MIX = np.uint64(0x9E3779B97F4A7C15)
# Keys that NumPy sorts in about the time in which a kernel is compiled; a call is worth so many.
_SORTED, _CALL, _FEW = 2_000_000, 1_000, 8_192


def pack_codes(keys: NDArray[np.uint64], word: int, shift: int, codes: NDArray[np.int32]) -> None:
    """Write one column's codes into its bit field."""
    keys[:, word] |= codes.astype(np.uint64) << np.uint64(shift)


@kernel
def _regroup(
    keys: NDArray[np.uint64],
    rows: NDArray[np.int64],
    words: NDArray[np.int64],
    shifts: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    maps: NDArray[np.uint64],
) -> tuple[Any, Any, Any]:
    """Recode the fields ``words/shifts/masks`` through ``maps`` and group equal keys.

    Returns the id of each input key, the distinct keys in order of first occurrence, and the sum of
    ``rows`` for each of them.
    """
    n, width = keys.shape
    size, bits = 16, 4
    while size < 2 * n:
        size, bits = 2 * size, bits + 1
    cut = np.uint64(64 - bits)
    slots = narrow(size)
    for i in range(size):
        slots[i] = -1
    ids = narrow(n)
    out = word_rows(n, width)
    sums = zeros(n)
    count = 0
    if width == 1:  # the usual case, kept in registers
        for i in range(n):
            key = keys[i, 0]
            for j in range(len(words)):
                code = np.int64((key >> shifts[j]) & masks[j])
                key = (key & ~(masks[j] << shifts[j])) | (maps[offsets[j] + code] << shifts[j])
            slot = np.int64((key * _MIX) >> cut)
            found = slots[slot]
            while found >= 0 and out[found, 0] != key:
                slot = (slot + 1) & (size - 1)
                found = slots[slot]
            if found < 0:
                found = count
                slots[slot] = count
                out[count, 0] = key
                count += 1
            ids[i] = found
            sums[found] += rows[i]
        return ids, out[:count], sums[:count]
    for i in range(n):
        key_row = out[count]  # written in place: a new key is already where it belongs
        for w in range(width):
            key_row[w] = keys[i, w]
        for j in range(len(words)):
            w = words[j]
            code = np.int64((key_row[w] >> shifts[j]) & masks[j])
            kept = key_row[w] & ~(masks[j] << shifts[j])
            key_row[w] = kept | (maps[offsets[j] + code] << shifts[j])
        mixed = np.uint64(0)
        for w in range(width):
            mixed = (mixed ^ key_row[w]) * _MIX
            mixed ^= mixed >> np.uint64(29)
        slot = np.int64((mixed * _MIX) >> cut)
        found = slots[slot]
        while found >= 0 and _differ(out, found, count):
            slot = (slot + 1) & (size - 1)
            found = slots[slot]
        if found < 0:
            found = count
            slots[slot] = count
            count += 1
        ids[i] = found
        sums[found] += rows[i]
    return ids, out[:count], sums[:count]


@kernel
def _differ(keys: Any, one: int, other: int) -> bool:
    for w in range(keys.shape[1]):  # noqa: SIM110 - generators are not compiled
        if keys[one, w] != keys[other, w]:
            return True
    return False


def _sort_keys(
    keys: NDArray[np.uint64],
    rows: NDArray[np.int64],
    words: NDArray[np.int64],
    shifts: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    maps: NDArray[np.uint64],
) -> tuple[Any, Any, Any]:
    """What ``regroup`` gives, by sorting."""
    out = keys.copy()
    for j, w in enumerate(words.tolist()):
        codes = ((out[:, w] >> shifts[j]) & masks[j]).astype(np.int64)
        out[:, w] = (out[:, w] & ~(masks[j] << shifts[j])) | (maps[offsets[j] + codes] << shifts[j])
    width = out.shape[1]
    ids, firsts = _number(out.view(f"V{8 * width}")[:, 0] if width > 1 else out.sum(axis=1))
    sums = np.zeros(len(firsts), np.int64)
    np.add.at(sums, ids, rows)
    return ids.astype(np.int32), out[firsts], sums


def _number(keys: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number keys in order of first occurrence; where each number occurs first."""
    _, firsts, places = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order))
    return numbers[places], firsts[order]


def _effort(keys: NDArray[Any], *_: Any) -> int:
    return _CALL + len(keys) if len(keys) <= _FEW else _SORTED + 1


regroup: Any = Sparing(_regroup, _effort, _SORTED, _sort_keys)


def number_keys(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per key a number from 0 in order of first occurrence, and how often each number occurs."""
    places, fields = np.empty(0, np.int64), np.empty(0, np.uint64)  # no column is recoded
    ones = np.ones(len(keys), np.int64)
    ids, _, counts = regroup(keys.reshape(-1, 1), ones, places, fields, fields, places, fields)
    return ids.astype(np.int64), counts  # wide enough for products of numbers


@kernel
def add_up(ids: NDArray[np.int32], weights: NDArray[np.int64], groups: int) -> Any:
    """Sum the weights of each group."""
    out = zeros(groups)
    for i in range(len(ids)):
        out[ids[i]] += weights[i]
    return out


@kernel
def people_per_group(ids: NDArray[np.int32], groups: int, unit: Any, person: Any) -> Any:
    """Count distinct people per group; the pairs (unit, person) stand in order of person."""
    out, last = zeros(groups), constants(groups, -1)
    for j in range(len(unit)):
        group = ids[unit[j]]
        if last[group] != person[j]:
            last[group] = person[j]
            out[group] += 1
    return out


def merge_histograms(
    ids: NDArray[np.int32],
    groups: int,
    starts: NDArray[np.int64],
    values: NDArray[np.int32],
    counts: NDArray[np.int64],
    domain: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Merge the sparse histograms (CSR) of units into those of their groups."""
    if not values.flags.writeable:  # one version for all: to compile another costs more
        values = values.copy()
    out_starts, out_values, out_counts = merge(ids, groups, starts, values, counts, domain)
    return out_starts, out_values.copy(), out_counts.copy()


@kernel
def _merge(ids: Any, groups: int, starts: Any, values: Any, counts: Any, domain: int) -> Any:
    units = len(starts) - 1
    begin = zeros(groups + 1)
    for u in range(units):
        begin[ids[u] + 1] += 1
    for g in range(groups):
        begin[g + 1] += begin[g]
    order, fill = integers(units), integers(groups)
    for g in range(groups):
        fill[g] = begin[g]
    for u in range(units):
        order[fill[ids[u]]] = u
        fill[ids[u]] += 1
    out_starts = zeros(groups + 1)
    out_values, out_counts = narrow(len(values)), integers(len(values))
    place = constants(domain, -1)
    size = 0
    for g in range(groups):
        first = size
        for o in range(begin[g], begin[g + 1]):
            u = order[o]
            for e in range(starts[u], starts[u + 1]):
                v = values[e]
                if place[v] < first:
                    place[v] = size
                    out_values[size] = v
                    out_counts[size] = counts[e]
                    size += 1
                else:
                    out_counts[place[v]] += counts[e]
        out_starts[g + 1] = size
    return out_starts, out_values[:size], out_counts[:size]


def _sort_values(
    ids: NDArray[np.int32],
    groups: int,
    starts: NDArray[np.int64],
    values: NDArray[np.int32],
    counts: NDArray[np.int64],
    domain: int,
) -> tuple[Any, Any, Any]:
    """What ``merge`` gives, by sorting."""
    of = np.repeat(ids, np.diff(starts)).astype(np.int64)
    order = np.argsort(of, kind="stable")
    numbers, firsts = _number(of[order] * domain + values[order])
    sums = np.zeros(len(firsts), np.int64)
    np.add.at(sums, numbers, counts[order])
    sizes = np.bincount(of[order][firsts], minlength=groups)
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return ends, values[order][firsts], sums


merge: Any = Sparing(_merge, lambda *given: _effort(given[3]), _SORTED, _sort_values)
