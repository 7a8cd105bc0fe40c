"""Refinement of groupings: one column more splits every group; what cannot split leaves.

A grouping is a list of entries (distinct tuples, or these person by person) ordered by group, with
the place where each group starts. Groups that no further column can change are handed out as soon
as they arise, which makes a walk over many column sets cheap. All walks refine by one kernel; they
differ in what tells the entries of a group apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compiler import integers, kernel, narrow, reals, word_rows, zeros

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    most = entries if everyone else entries // 2
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
            if to < 0:
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


@kernel
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
