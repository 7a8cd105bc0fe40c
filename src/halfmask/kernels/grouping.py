"""Grouping of packed keys: the compiled inner loop under classes and the search.

A key is one row of a ``(n, words)`` uint64 array; each column occupies a bit field inside one
word. ``regroup`` replaces the fields of some columns and gives equal keys one id.

Refinement: one column more splits every group; what cannot split leaves. A grouping is a list of
entries (distinct tuples, or these person by person) ordered by group, with the place where each
group starts. Groups that no further column can change are handed out as soon as they arise, which
makes a walk over many column sets cheap. All walks refine by one kernel; they differ in what tells
the entries of a group apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import (
    Sparing,
    bare,
    constants,
    integers,
    kernel,
    narrow,
    reals,
    word_rows,
    zeros,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: Fibonacci hashing
# Keys that NumPy sorts in about the time in which a kernel is compiled; a call is worth so many.
_SORTED, _CALL, _FEW = 14_000_000, 1_000, 8_192
_NEAR = 1 << 17  # keys up to which their slots stay in a cache
_DENSE = 4  # keys that there could be, for each that there is, up to which they are counted


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
    near = width == 1 and n <= _NEAR
    # Open addressing; half the slots stay free or more, so that runs are short.
    room, size, bits = (4 if near else 2) * n, 16, 4
    while size < room:
        size, bits = 2 * size, bits + 1
    cut = np.uint64(64 - bits)
    slots = narrow(size)
    for i in range(size):
        slots[i] = -1
    ids = narrow(n)
    out = word_rows(n, width)
    sums = zeros(n)
    count = 0
    if near:  # the usual case: what stands in a slot is compared without asking whether it is free
        for i in range(n):
            key = _recode(keys[i, 0], shifts, masks, offsets, maps)
            slot = np.int64((key * _MIX) >> cut)  # the high bits: all bits of the key reach them
            out[count, 0] = key  # where a free slot leads, so that it is the same
            found = slots[slot] if slots[slot] >= 0 else count
            while out[found, 0] != key:
                slot = (slot + 1) & (size - 1)
                found = slots[slot] if slots[slot] >= 0 else count
            slots[slot] = found
            count += found == count
            ids[i] = found
            sums[found] += rows[i]
        return ids, out[:count], sums[:count]
    if width == 1:  # many keys: their slots are far away, where one does not write without need
        for i in range(n):
            key = _recode(keys[i, 0], shifts, masks, offsets, maps)
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


@bare
def _recode(key: Any, shifts: Any, masks: Any, offsets: Any, maps: Any) -> Any:
    for j in range(len(shifts)):
        code = np.int64((key >> shifts[j]) & masks[j])
        key = (key & ~(masks[j] << shifts[j])) | (maps[offsets[j] + code] << shifts[j])
    return key


@bare
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
    sums = _sums(ids, rows)
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
                if (
                    place[v] < first
                ):  # of an earlier group: nothing has to be cleared between groups
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
    order = of.argsort(kind="stable")
    of, values, counts = of[order], values[order], counts[order]
    keys = of * domain + values
    if groups * domain <= _DENSE * len(keys) + _CALL:
        numbers, firsts = keys, _first_places(keys, groups * domain)
        held = keys[firsts]
    else:
        numbers, firsts = _number(keys)
        held = np.arange(len(firsts))
    sums = _sums(numbers, counts)[held]
    ends = np.zeros(groups + 1, np.int64)
    np.bincount(of[firsts], minlength=groups).cumsum(out=ends[1:])
    return ends, values[firsts], sums


def _first_places(keys: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Where each key occurs first, in that order; all are below ``size``."""
    first = np.full(size, -1)
    first[keys[::-1]] = np.arange(len(keys) - 1, -1, -1)  # of equal places the last is kept
    first = first[first >= 0]
    first.sort()
    return first


def _sums(numbers: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """What is counted for each number; exact, as no table holds 2**53 rows."""
    return np.bincount(numbers, counts).astype(np.int64)


merge: Any = Sparing(_merge, lambda *given: _effort(given[3]), _SORTED, _sort_values)


class Grouping(NamedTuple):
    """Entries in order of their groups.

    Their keys travel with them: reading these in order is many times faster than looking them up.

    Attributes:
        keys: (entries, words) the packed codes of all columns.
        held: what an entry counts for or stands for: its rows, or its number.
        whose: what tells the entries of a group apart: their number, label, owner or person.
        starts: where each group starts, and where the last one ends.
    """

    keys: NDArray[np.uint64]
    held: NDArray[Any]
    whose: NDArray[np.int32]
    starts: NDArray[np.int64]


class Refined(NamedTuple):
    """A grouping after one column more.

    Attributes:
        finer: the groups kept.
        sums: per group kept, the sum of what its entries hold.
        upto: per group before, how many groups had been kept ahead of it; the last entry is all.
        held: what the entries hold that left the walk; ``whose`` tells whose they are.
    """

    finer: Grouping
    sums: NDArray[np.int64]
    upto: NDArray[np.int64]
    held: NDArray[Any]
    whose: NDArray[np.int32]


def refine(
    grouping: Grouping,
    field: tuple[int, np.uint64, np.uint64],
    *,
    everyone: bool = False,
    further: bool = True,
) -> Refined:
    """Split every group by one column, given as the word, shift and mask of its codes.

    Entries keep their order. Groups whose entries are all of one (``whose``) leave the walk, as no
    further column can change them, but where ``everyone`` stays. Where the walk goes no
    ``further``, only what leaves is written.
    """
    out = _refine(grouping, field[0], field[1], field[2], everyone, further)
    return Refined(Grouping(*out[:4]), *out[4:])


@kernel
def _refine(
    g: Any,
    word: int,
    shift: np.uint64,
    mask: np.uint64,
    everyone: bool,  # noqa: FBT001
    further: bool,  # noqa: FBT001
) -> tuple[Any, ...]:
    keys, held, whose = g.keys, g.held, g.whose
    entries, groups, width = len(whose), len(g.starts) - 1, keys.shape[1]
    size = np.int64(mask) + 1
    room = entries if further else 0
    out_keys, out_whose = word_rows(room, width), narrow(room)
    out_held, lone_held = np.empty(room, held.dtype), np.empty(entries, held.dtype)
    lone_whose = narrow(entries)
    most = entries if everyone else entries // 2  # groups that stay hold two entries at least
    begins, sums, upto = integers(most + 1), integers(most), integers(groups + 1)
    count, total, several = zeros(size), zeros(size), zeros(size)
    place, first_of, touched = integers(size), narrow(size), narrow(size)
    filled = found = alone = 0
    begins[0] = 0
    for group in range(groups):
        first, end = g.starts[group], g.starts[group + 1]
        upto[group] = found
        seen = 0
        for i in range(first, end):
            code = np.int64((keys[i, word] >> shift) & mask)
            if count[code] == 0:
                touched[seen] = code
                seen += 1
                first_of[code] = whose[i]
                several[code] = everyone
            elif whose[i] != first_of[code]:
                several[code] = 1
            count[code] += 1
            total[code] += held[i]
        for j in range(seen):
            code = touched[j]
            if several[code]:
                place[code] = filled
                filled += count[code]
                sums[found] = total[code]
                found += 1
                begins[found] = filled
            else:
                place[code] = -1
            count[code] = 0
            total[code] = 0
        for i in range(first, end):
            code = np.int64((keys[i, word] >> shift) & mask)
            to = place[code]
            if to < 0:  # all of one: no further column tells them apart
                lone_held[alone] = held[i]
                lone_whose[alone] = whose[i]
                alone += 1
            elif further:
                for w in range(width):
                    out_keys[to, w] = keys[i, w]
                out_held[to] = held[i]
                out_whose[to] = whose[i]
                place[code] = to + 1
    upto[groups] = found
    filled = min(filled, room)
    return (
        out_keys[:filled],
        out_held[:filled],
        out_whose[:filled],
        begins[: found + 1],
        sums[:found],
        upto,
        lone_held[:alone],
        lone_whose[:alone],
    )


@kernel
def _bits(table: NDArray[np.float64], n: int) -> Any:
    """The value of n log2 n, looked up while the table reaches that far."""
    return table[n] if n < len(table) else n * np.log2(n)


@kernel
def residual_bits(
    g: Any, sums: NDArray[np.int64], upto: NDArray[np.int64], domain: int,
    bits: NDArray[np.float64],
) -> float:  # fmt: skip
    """The sum over groups of n log n minus the sum of c log c over their labels.

    The groups are refined ones: ``sums`` are their rows, ``upto`` tells which come from one group.
    ``bits[n]`` is n log2 n, as far as it reaches.
    """
    count, touched = zeros(domain), narrow(domain)
    total = 0.0
    for group in range(len(upto) - 1):
        for h in range(upto[group], upto[group + 1]):
            total += _bits(bits, sums[h])
        for h in range(upto[group], upto[group + 1]):
            seen = 0
            for i in range(g.starts[h], g.starts[h + 1]):
                label = g.whose[i]
                if count[label] == 0:
                    touched[seen] = label
                    seen += 1
                count[label] += g.held[i]
            for j in range(seen):
                total -= _bits(bits, count[touched[j]])
                count[touched[j]] = 0
    return total


@kernel
def residuals_by_column(
    g: Any,
    fields: tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]],
    domain: int,
    bits: NDArray[np.float64],
    count: NDArray[Any],
) -> tuple[Any, Any, Any]:
    """Per column, what ``refine`` and ``residual_bits`` would find, without a finer grouping.

    ``count`` is room for a counter of rows per code and label, all 0, and is left so.

    Returns the sums, the rows in groups of one label, and how many groups hold several labels.
    """
    keys, rows, labels, starts = g.keys, g.held, g.whose, g.starts
    words, shifts, masks = fields
    groups, columns = len(starts) - 1, len(words)
    widest = np.int64(0)
    for column in range(columns):
        widest = max(widest, np.int64(masks[column]) + 1)
    totals = reals(columns, 0.0)
    pure, several = zeros(columns), zeros(columns)
    touched = narrow(len(count))
    size, kinds = zeros(widest), zeros(widest)
    held = narrow(widest)
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


@bare
def note_minimal(
    lone: NDArray[np.int32],
    mask: NDArray[np.int64],
    heads: NDArray[np.int64],
    links: NDArray[np.int64],
    masks: NDArray[np.int64],
    used: int,
) -> int:
    """Note column set ``mask`` for each unit of ``lone`` that no noted subset singles out.

    A set is a row of words with a bit per column, as wide as ``masks``. The sets of a unit form a
    list: ``heads[unit]`` is its newest entry and ``links`` the one before. Returns how many entries
    are in use; the caller leaves room for ``len(lone)`` more.
    """
    for i in range(len(lone)):
        unit = lone[i]
        entry = heads[unit]
        while entry >= 0:
            inside = True
            for w in range(len(mask)):
                inside &= (masks[entry, w] & mask[w]) == masks[entry, w]
            if inside:
                break
            entry = links[entry]
        if entry < 0:
            for w in range(len(mask)):  # as a whole it takes seconds to compile
                masks[used, w] = mask[w]
            links[used] = heads[unit]
            heads[unit] = used
            used += 1
    return used


@kernel
def tally_people(g: Any, everybody: int) -> tuple[Any, int, int]:
    """Count people in groups whose units stand in order of person.

    Returns how many people each group holds, the rows of groups of one person, and the sum over
    people of the squared number of groups that they stand in.
    """
    rows, people, starts = g.held, g.whose, g.starts
    held, times = zeros(len(starts) - 1), zeros(everybody)
    alone = 0
    for g in range(len(held)):
        total = 0
        last = -1
        for i in range(starts[g], starts[g + 1]):
            total += rows[i]
            if people[i] != last:
                last = people[i]
                held[g] += 1
                times[last] += 1
        if held[g] == 1:
            alone += total
    squares = 0
    for person in range(everybody):
        squares += times[person] * times[person]
    return held, alone, squares
