"""Refinement of groupings: one column more splits every group; what cannot split leaves.

A grouping is a list of units (distinct tuples) ordered by group, with the place where each group
starts. Groups that no further column can change are handed out as soon as they arise, which makes
a walk over many column sets cheap. Packed keys travel with the units, because reading them in
order is many times faster than looking them up.

Refinement of groupings by people: groups of one person's rows hide nobody.

A grouping is a list of units ordered by group, with the place where each group starts, as in
``refine``; here each unit also knows whose it is.

Classes as linked lists of rows, which rows enter and leave at no cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compiler import integers, kernel, narrow, reals, word_rows, zeros
from halfmask.kernels.distance import distance
from halfmask.kernels.divide import satisfied

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
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
    out_keys = word_rows(keys.shape[0], width)
    out_rows, out_ids = narrow(len(rows)), narrow(len(ids))
    begins, sums = integers(len(ids) // 2 + 1), integers(len(ids) // 2 + 1)
    lone = narrow(len(ids))
    count, total = zeros(size), zeros(size)
    place, touched = integers(size), narrow(size)
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


@kernel
def _bits(table: NDArray[np.float64], n: int) -> Any:
    """The value of n log2 n, looked up while the table reaches that far."""
    return table[n] if n < len(table) else n * np.log2(n)


@kernel
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
    out_keys = word_rows(keys.shape[0], width)
    out_rows, out_labels = narrow(len(rows)), narrow(len(labels))
    begins = integers(len(labels) // 2 + 1)
    first_label, several = narrow(wide), zeros(wide)
    size, members = zeros(wide), zeros(wide)
    place, held = integers(wide), narrow(wide)
    count, touched = zeros(domain), narrow(domain)
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
                several[code] = 0
            elif labels[i] != first_label[code]:
                several[code] = 1
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


@kernel
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
def minimal(
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
            masks[used] = mask
            links[used] = heads[unit]
            heads[unit] = used
            used += 1
    return used


_SEVERAL = -2


@kernel
def single_out(
    keys: NDArray[np.uint64],
    owners: NDArray[np.int32],
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    word: int,
    shift: np.uint64,
    mask: np.uint64,
    further: int,
) -> tuple[Any, Any, Any, Any, Any]:
    """Split every group by one column and keep the groups of several owners.

    A unit of several people has the owner -1 and nobody to single out. No group is kept where the
    walk goes no ``further``, by how many columns at most.

    Returns keys, owners, ids and starts of the groups kept, and the ids of the units in groups of
    one person.
    """
    groups, width = len(starts) - 1, keys.shape[1]
    size = np.int64(mask) + 1
    room = len(ids) if further > 0 else 0
    out_keys = word_rows(room, width)
    out_owners, out_ids = narrow(room), narrow(room)
    begins, lone = integers(len(ids) // 2 + 1), narrow(len(ids))
    count, place = zeros(size), integers(size)
    owner, touched = narrow(size), narrow(size)
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
                owner[code] = owners[i]
            elif owners[i] != owner[code]:
                owner[code] = _SEVERAL
            count[code] += 1
        for j in range(seen):
            code = touched[j]
            if owner[code] == _SEVERAL:
                place[code] = filled
                filled += count[code]
                found += 1
                begins[found] = filled
            else:
                place[code] = -1
            count[code] = 0
        for i in range(first, end):
            code = np.int64((keys[i, word] >> shift) & mask)
            to = place[code]
            if to < 0:
                if owners[i] >= 0:
                    lone[alone] = ids[i]
                    alone += 1
                continue
            if room == 0:
                continue
            for w in range(width):
                out_keys[to, w] = keys[i, w]
            out_owners[to] = owners[i]
            out_ids[to] = ids[i]
            place[code] = to + 1
    filled = min(filled, room)
    return (
        out_keys[:filled],
        out_owners[:filled],
        out_ids[:filled],
        begins[: found + 1],
        lone[:alone],
    )


@kernel
def divide(
    keys: NDArray[np.uint64],
    rows: NDArray[np.int64],
    people: NDArray[np.int32],
    starts: NDArray[np.int64],
    word: int,
    shift: np.uint64,
    mask: np.uint64,
) -> tuple[Any, Any, Any, Any]:
    """Split every group by one column; units keep their order, that of their people."""
    groups, width = len(starts) - 1, keys.shape[1]
    size = np.int64(mask) + 1
    out_keys = word_rows(keys.shape[0], width)
    out_rows, out_people = integers(len(rows)), narrow(len(people))
    begins = integers(len(people) + 1)
    count, place = zeros(size), integers(size)
    touched = narrow(size)
    filled = found = 0
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
        for j in range(seen):
            code = touched[j]
            place[code] = filled
            filled += count[code]
            count[code] = 0
            found += 1
            begins[found] = filled
        for i in range(first, end):
            code = np.int64((keys[i, word] >> shift) & mask)
            to = place[code]
            for w in range(width):
                out_keys[to, w] = keys[i, w]
            out_rows[to] = rows[i]
            out_people[to] = people[i]
            place[code] = to + 1
    return out_keys, out_rows, out_people, begins[: found + 1]


@kernel
def count_people(
    rows: NDArray[np.int64],
    people: NDArray[np.int32],
    starts: NDArray[np.int64],
    everybody: int,
) -> tuple[Any, int, int]:
    """Count people in groups whose units stand in order of person.

    Returns how many people each group holds, the rows of groups of one person, and the sum over
    people of the squared number of groups that they stand in.
    """
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


class Partition(NamedTuple):
    """Classes as linked lists of rows.

    Attributes:
        ids: the class of each row.
        head: per class its first row, -1 if it is empty.
        next: per row the one behind it in its class, -1 at the end.
        size: rows of each class.
        need: the highest demand in each class.
        diameter: the largest distance in each class.
        changed: per class, the sweep in which it changed last.
    """

    ids: NDArray[np.int64]
    head: NDArray[np.int64]
    next: NDArray[np.int64]
    size: NDArray[np.int64]
    need: NDArray[np.int64]
    diameter: NDArray[np.float64]
    changed: NDArray[np.int64]


def lists(p: Any, k: NDArray[np.int64], ids: NDArray[np.int64]) -> Partition:
    """The partition that ``ids`` states; every row must have a class."""
    n = len(ids)
    head, after = np.full((2, n), -1, np.int64)
    size, need, changed = np.zeros((3, n), np.int64)
    out = Partition(ids, head, after, size, need, np.zeros(n), changed)
    _fill_lists(p, k, out)
    return out


@kernel
def _fill_lists(p: Any, k: Any, s: Any) -> None:
    n = len(s.ids)
    for row in range(n - 1, -1, -1):
        c = s.ids[row]
        s.next[row] = s.head[c]
        s.head[c] = row
        s.size[c] += 1
        s.need[c] = max(s.need[c], k[row])
    for c in range(n):
        s.diameter[c] = diameter_of(p, s, c, -1)


@kernel
def diameter_of(p: Any, s: Any, c: int, without: int) -> float:
    """The largest distance in a class, one row left out; -1 leaves out none."""
    widest = 0.0
    a = s.head[c]
    while a >= 0:
        if a != without:
            b = s.next[a]
            while b >= 0:
                if b != without:
                    widest = max(widest, distance(p, a, b))
                b = s.next[b]
        a = s.next[a]
    return widest


@kernel
def need_of(k: Any, s: Any, c: int, without: int) -> int:
    """The highest demand in a class, one row left out; -1 leaves out none."""
    highest = 0
    a = s.head[c]
    while a >= 0:
        if a != without:
            highest = max(highest, k[a])
        a = s.next[a]
    return highest


@kernel
def reach_of(p: Any, s: Any, c: int, row: int, without: int) -> float:
    """The largest distance from ``row`` to a class, one row of it and itself left out."""
    widest = 0.0
    a = s.head[c]
    while a >= 0:
        if a != without and a != row:
            widest = max(widest, distance(p, a, row))
        a = s.next[a]
    return widest


@kernel
def unlink(s: Any, row: int) -> None:
    """Take a row out of its class; its size is left to the caller."""
    c = s.ids[row]
    if s.head[c] == row:
        s.head[c] = s.next[row]
        return
    a = s.head[c]
    while s.next[a] != row:
        a = s.next[a]
    s.next[a] = s.next[row]


@kernel
def link(s: Any, row: int, c: int) -> None:
    """Put a row at the head of a class; its size is left to the caller."""
    s.next[row] = s.head[c]
    s.head[c] = row
    s.ids[row] = c


@kernel
def settle(p: Any, k: Any, s: Any, c: int, sweep: int) -> None:
    """Bring what is known of a class up to date."""
    s.need[c] = need_of(k, s, c, -1)
    s.diameter[c] = diameter_of(p, s, c, -1)
    s.changed[c] = sweep


@kernel
def meets(d: Any, s: Any, c: int, without: int, added: int, rows: Any, counts: Any) -> bool:
    """Whether a class would meet all demands with one row less and another more."""
    if d.values.shape[1] == 0:
        return True  # demands for rows alone are checked by the caller
    size = 0
    a = s.head[c]
    while a >= 0:
        if a != without:
            rows[size] = a
            size += 1
        a = s.next[a]
    if added >= 0:
        rows[size] = added
        size += 1
    return size == 0 or satisfied(d, rows, 0, size, counts)
