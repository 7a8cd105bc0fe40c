"""Refinement of groupings by people: groups of one person's rows hide nobody.

A grouping is a list of units ordered by group, with the place where each group starts, as in
``refine``; here each unit also knows whose it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SEVERAL = -2


@njit(cache=True, nogil=True)
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
    out_keys = np.empty((room, width), np.uint64)
    out_owners = np.empty(room, np.int32)
    out_ids = np.empty(room, np.int32)
    begins = np.empty(len(ids) // 2 + 1, np.int64)
    lone = np.empty(len(ids), np.int32)
    count = np.zeros(size, np.int64)
    owner = np.empty(size, np.int32)
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


@njit(cache=True, nogil=True)
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
    out_keys = np.empty_like(keys)
    out_rows = np.empty_like(rows)
    out_people = np.empty_like(people)
    begins = np.empty(len(people) + 1, np.int64)
    count = np.zeros(size, np.int64)
    place = np.empty(size, np.int64)
    touched = np.empty(size, np.int32)
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


@njit(cache=True, nogil=True)
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
    held = np.zeros(len(starts) - 1, np.int64)
    times = np.zeros(everybody, np.int64)
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
