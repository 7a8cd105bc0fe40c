"""Inner loops of microaggregation: optimal groups of one column, MDAV, and a local search.

Groups hold at least as many rows as any row in them asks for (``need``). The sum of squares inside
groups is that of all rows minus the sum over groups of |S|^2 / n, with S the sum of its rows: what
the search compares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.kernels.compilation.compiler import (
    ascend,
    clear,
    constants,
    integers,
    kernel,
    real_rows,
    reals,
    zeros,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@kernel
def _shortest_runs(owner: Ints, people: int, most: int) -> Ints:
    """Per end, where the shortest run before it begins that ``most`` people share; -1: none."""
    n = len(owner)
    held, found = zeros(people), constants(n + 1, -1)
    start, different = 0, 0
    for end in range(1, n + 1):
        one = owner[end - 1]
        different += held[one] == 0
        held[one] += 1
        while different > most or (different == most and held[owner[start]] > 1):
            one = owner[start]
            held[one] -= 1
            different -= held[one] == 0
            start += 1
        if different == most:
            found[end] = start
    return found


@kernel
def optimal_line(values: Floats, need: Ints, owner: Ints, most: int, widest: int) -> Ints:
    """Where the groups of sorted ``values`` begin that lose least, by the shortest path.

    A group is a run of values. An optimal one cannot be cut into two that each hold as many people
    as anybody asks for (``most``), which bounds its length; beyond ``widest`` rows, where somebody
    owns very many, only the shortest run and the whole line are tried. The end of the last group
    comes last; where not everybody can be served the first entry is -1.
    """
    n, people = len(values), int(owner.max()) + 1
    sums, squares = reals(n + 1, 0.0), reals(n + 1, 0.0)
    for i in range(n):
        sums[i + 1] = sums[i] + values[i]
        squares[i + 1] = squares[i] + values[i] * values[i]
    shortest = _shortest_runs(owner, people, most)
    best, before = reals(n + 1, np.inf), constants(n + 1, -1)
    seen = zeros(people)
    best[0] = 0.0
    for end in range(1, n + 1):
        run = shortest[end]
        last = -1 if run < 0 else shortest[run]  # what begins here or before falls into two
        stop = max(last, end - widest - 1)
        asked, different = 0, 0
        for start in range(end - 1, stop, -1):
            if need[start] > asked:
                asked = need[start]
            if seen[owner[start]] != end:
                seen[owner[start]] = end
                different += 1
            if different < asked or best[start] == np.inf:
                continue
            total = sums[end] - sums[start]
            lost = max(0.0, squares[end] - squares[start] - total * total / (end - start))
            if best[start] + lost < best[end]:
                best[end] = best[start] + lost
                before[end] = start
        if run < 0 or stop == last:
            continue
        for start in (0, run):
            if start <= stop and best[start] < np.inf:
                total = sums[end] - sums[start]
                lost = max(0.0, squares[end] - squares[start] - total * total / (end - start))
                if best[start] + lost < best[end]:
                    best[end] = best[start] + lost
                    before[end] = start
    count, at = 0, n
    while at > 0:
        at = before[at]
        if at < 0:
            return constants(1, -1)
        count += 1
    starts = integers(count + 1)
    starts[count] = n
    at = n
    for place in range(count - 1, -1, -1):
        at = before[at]
        starts[place] = at
    return starts


@kernel
def _distance(rows: Floats, i: int, point: Floats) -> float:
    total = 0.0
    for c in range(rows.shape[1]):
        apart = rows[i, c] - point[c]
        total += apart * apart
    return total


@kernel
def _farthest(rows: Floats, left: Ints, count: int, point: Floats) -> int:
    far, place = -1.0, 0
    for p in range(count):
        apart = _distance(rows, left[p], point)
        if apart > far:
            far, place = apart, p
    return place


@kernel
def _take_group(
    rows: Floats,
    need: Ints,
    left: Ints,
    count: int,
    center: Floats,
    limits: tuple[int, float],
    group: Ints,
    number: int,
) -> int:
    """Give the rows nearest to ``center`` the group ``number``; returns how many are left.

    As many as they ask for, at most the first of ``limits``; with the second, gamma, above 0
    (V-MDAV) also rows that are nearer to the group, times gamma, than to what is left.
    """
    most, gamma = limits
    wide = min(count, most)
    near, apart = integers(wide), reals(wide, 0.0)
    found = 0
    for p in range(count):  # the nearest so far, in order
        far = _distance(rows, left[p], center)
        if found == wide and far >= apart[wide - 1]:
            continue
        at = found if found < wide else wide - 1
        while at > 0 and apart[at - 1] > far:
            apart[at] = apart[at - 1]
            near[at] = near[at - 1]
            at -= 1
        apart[at] = far
        near[at] = p
        found = min(found + 1, wide)
    size, asked = 0, 0
    while size < wide:
        asked = max(asked, need[left[near[size]]])
        size += 1
        if size >= asked:
            break
    if size < asked:
        return count
    held = integers(size)
    for p in range(size):
        held[p] = left[near[p]]
        group[held[p]] = number
    kept = count
    order = ascend(near[:size])
    for p in range(size - 1, -1, -1):  # the last take the places that become free
        kept -= 1
        left[near[order[p]]] = left[kept]
    if gamma > 0.0:
        kept = _extend(rows, need, left, kept, group, number, held, gamma)
    return kept


@kernel
def _extend(
    rows: Floats,
    need: Ints,
    left: Ints,
    count: int,
    group: Ints,
    number: int,
    held: Ints,
    gamma: float,
) -> int:
    """V-MDAV: while a group is below twice its size, take the row nearest to any of it, if apt."""
    size, asked = len(held), 0
    apart = reals(count, np.inf)
    for m in range(size):
        asked = max(asked, need[held[m]])
        for p in range(count):
            apart[p] = min(apart[p], _distance(rows, left[p], rows[held[m]]))
    while size < 2 * asked - 1 and count > asked:
        place = 0
        for p in range(1, count):
            if apart[p] < apart[place]:
                place = p
        near = apart[place]
        other = np.inf
        for p in range(count):
            if p != place:
                other = min(other, _distance(rows, left[p], rows[left[place]]))
        if need[left[place]] > size + 1 or np.sqrt(near) >= gamma * np.sqrt(other):
            break
        new = rows[left[place]]
        group[left[place]] = number
        count -= 1
        left[place], apart[place] = left[count], apart[count]
        for p in range(count):
            apart[p] = min(apart[p], _distance(rows, left[p], new))
        size += 1
    return count


@kernel
def mdav_groups(
    rows: Floats, need: Ints, members: Ints, gamma: float, group: Ints, first: int
) -> int:
    """Group the rows ``members``; groups are numbered from ``first``, and the next is returned.

    The row farthest from the middle forms a group with those nearest to it, then the row farthest
    from that one. What is left at the end and too few is put to the group whose middle is nearest.
    """
    count = len(members)
    left = integers(count)
    for p in range(count):
        left[p] = members[p]
    width = rows.shape[1]
    most = 1
    for p in range(count):
        most = max(most, need[left[p]])
    number = first
    middle, far, other = reals(width, 0.0), reals(width, 0.0), reals(width, 0.0)
    while count > 0:
        if count < 2 * most:
            asked = 0
            for p in range(count):
                asked = max(asked, need[left[p]])
            if count >= asked:
                if count < 2 * asked or gamma == 0.0:
                    for p in range(count):
                        group[left[p]] = number
                    return number + 1
            else:
                break
        clear(middle)
        for p in range(count):
            for c in range(width):
                middle[c] += rows[left[p], c]
        for c in range(width):
            middle[c] /= count
        row = left[_farthest(rows, left, count, middle)]
        for c in range(width):
            far[c] = rows[row, c]
        kept = _take_group(rows, need, left, count, far, (most, gamma), group, number)
        if kept == count:
            break
        number += 1
        count = kept
        if count >= 2 * most or (count > 0 and gamma > 0.0 and count >= most):
            row = left[_farthest(rows, left, count, far)]
            for c in range(width):
                other[c] = rows[row, c]
            kept = _take_group(rows, need, left, count, other, (most, gamma), group, number)
            if kept < count:
                number += 1
                count = kept
    _join(rows, need, left, count, group, members, first, number)
    return number


@kernel
def _join(
    rows: Floats,
    need: Ints,
    left: Ints,
    count: int,
    group: Ints,
    members: Ints,
    first: int,
    number: int,
) -> None:
    """Put rows that are left over to the nearest group that, with them, has what they ask for."""
    if count == 0 or number == first:
        for p in range(count):
            group[left[p]] = first
        return
    width = rows.shape[1]
    sums = real_rows(number - first, width, 0.0)
    sizes, middle = zeros(number - first), reals(width, 0.0)
    for p in range(len(members)):
        g = group[members[p]] - first
        if g >= 0:
            sizes[g] += 1
            for c in range(width):
                sums[g, c] += rows[members[p], c]
    largest = 0
    for g in range(1, len(sizes)):
        if sizes[g] > sizes[largest]:
            largest = g
    for p in range(count):
        near, place = np.inf, largest
        for g in range(number - first):
            if sizes[g] + 1 < need[left[p]]:
                continue
            for c in range(width):
                middle[c] = sums[g, c] / sizes[g]
            apart = _distance(rows, left[p], middle)
            if apart < near:
                near, place = apart, g
        group[left[p]] = first + place
        sizes[place] += 1
        for c in range(width):
            sums[place, c] += rows[left[p], c]


@kernel
def improve_groups(
    rows: Floats,
    k: int,
    group: Ints,
    sums: Floats,
    slots: Ints,
    sizes: Ints,
    near: Ints,
) -> int:
    """One pass of moves and swaps between groups that lie near; returns how many were made.

    Args:
        rows: standardized.
        k: the fewest rows of a group.
        group: per row, its group.
        sums: per group, the sum of its rows.
        slots: (groups, room) the rows of each group.
        sizes: per group, how many it has.
        near: (groups, some) the groups whose middles are nearest.
    """
    n, width = rows.shape
    room = slots.shape[1]
    made = 0
    step = reals(width, 0.0)
    for i in range(n):
        g = group[i]
        ng = float(sizes[g])
        dot_g = 0.0
        own = 0.0
        for c in range(width):
            dot_g += sums[g, c] * rows[i, c]
            own += rows[i, c] * rows[i, c]
        norm_g = 0.0
        for c in range(width):
            norm_g += sums[g, c] * sums[g, c]
        leave = 0.0  # what |S|^2 / n of its own group changes by once the row is gone
        if ng > 1:
            leave = (norm_g - 2 * dot_g + own) / (ng - 1) - norm_g / ng
        best, best_h, best_j = 1e-12, -1, -1
        for place in range(near.shape[1]):
            h = near[g, place]
            if h == g or sizes[h] == 0:
                continue
            nh = float(sizes[h])
            if sizes[g] > k and sizes[h] < room:
                dot_h, norm_h = 0.0, 0.0
                for c in range(width):
                    dot_h += sums[h, c] * rows[i, c]
                    norm_h += sums[h, c] * sums[h, c]
                gain = leave + (norm_h + 2 * dot_h + own) / (nh + 1) - norm_h / nh
                if gain > best:
                    best, best_h, best_j = gain, h, -1
            for s in range(sizes[h]):
                j = slots[h, s]
                cross_g, cross_h, apart = 0.0, 0.0, 0.0
                for c in range(width):
                    d = rows[j, c] - rows[i, c]
                    cross_g += sums[g, c] * d
                    cross_h += sums[h, c] * d
                    apart += d * d
                # With d = j - i, S of one group becomes S + d, of the other S - d.
                gain = (2 * cross_g + apart) / ng + (apart - 2 * cross_h) / nh
                if gain > best:
                    best, best_h, best_j = gain, h, j
        if best_h < 0:
            continue
        made += 1
        h = best_h
        at = 0
        while slots[g, at] != i:
            at += 1
        if best_j < 0:
            sizes[g] -= 1
            slots[g, at] = slots[g, sizes[g]]
            slots[h, sizes[h]] = i
            sizes[h] += 1
            for c in range(width):
                sums[g, c] -= rows[i, c]
                sums[h, c] += rows[i, c]
        else:
            to = 0
            while slots[h, to] != best_j:
                to += 1
            slots[g, at], slots[h, to] = best_j, i
            group[best_j] = g
            for c in range(width):
                step[c] = rows[best_j, c] - rows[i, c]
                sums[g, c] += step[c]
                sums[h, c] -= step[c]
        group[i] = h
    return made
