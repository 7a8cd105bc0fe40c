"""How far histograms of classes are from that of all rows, and rows from each other.

Rows: Manhattan over columns that each span their weight. A numeric column adds the difference of
two positions, a categorical one the height of the lowest common label. Heights of small hierarchies
stand in a table; those of large ones are counted as the levels at which two labels differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import (
    Sparing,
    ascend,
    bare,
    integer_rows,
    integers,
    kernel,
    real_rows,
    reals,
    zeros,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def equal_distances(
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
    total: NDArray[np.int64],
    rows: NDArray[np.int64],
    size: int,
) -> Any:
    """Per class, the sum of |c size - C n| over all values of the column; n are its ``rows``.

    Values that a class lacks contribute C n each: what is left of ``size`` once those that it
    holds are taken away.
    """
    classes = len(starts) - 1
    out = zeros(classes)
    for i in range(classes):
        n, missing = rows[i], size
        for e in range(starts[i], starts[i + 1]):
            everywhere = total[codes[e]]
            out[i] += abs(counts[e] * size - everywhere * n)
            missing -= everywhere
        out[i] += missing * n
    return out


@kernel
def ordered_distances(
    places: NDArray[np.int64],
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
    reached: NDArray[np.int64],
    rows: NDArray[np.int64],
    size: int,
) -> Any:
    """Per class, the sum over places of |size * running count - n * ``reached``|.

    A class that holds many of the places is written out. In others the running count stands still
    between two entries while ``reached`` rises, so that the sum is taken from prefix sums on either
    side of the place where the difference changes its sign.
    """
    last = len(reached)
    before = zeros(last + 1)
    for place in range(last):
        before[place + 1] = before[place] + reached[place]
    dense = zeros(last)
    out = zeros(len(starts) - 1)
    for i in range(len(out)):
        first, end, n = starts[i], starts[i + 1], rows[i]
        if first == end:
            continue
        if last <= 16 * (end - first):  # cheaper than to sort its entries and to search for signs
            for e in range(first, end):
                dense[places[e]] = counts[e]
            count = 0
            for place in range(last):
                count += dense[place]
                out[i] += abs(count * size - n * reached[place])
                dense[place] = 0
            continue
        order = ascend(places[first:end])
        moved, running = n * before[places[first + order[0]]], 0
        for j in range(len(order)):
            e = first + order[j]
            running += counts[e] * size
            here = places[e]
            until = places[first + order[j + 1]] if j + 1 < len(order) else last
            low, high = here, until
            while low < high:
                middle = (low + high) // 2
                if n * reached[middle] <= running:
                    low = middle + 1
                else:
                    high = middle
            moved += running * (low - here) - n * (before[low] - before[here])
            moved += n * (before[until] - before[low]) - running * (until - low)
        out[i] = moved
    return out


@kernel
def layered_distances(
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
    maps: NDArray[np.int32],
    totals: NDArray[np.int64],
    rows: NDArray[np.int64],
    size: int,
) -> Any:
    """``equal_distances`` of the labels of each level, summed over the levels of ``maps``."""
    inside, seen = zeros(totals.shape[1]), integers(totals.shape[1])
    out = zeros(len(starts) - 1)
    for i in range(len(out)):
        n = rows[i]
        for level in range(len(maps)):
            found = 0
            for e in range(starts[i], starts[i + 1]):
                label = maps[level, codes[e]]
                if inside[label] == 0:
                    seen[found] = label
                    found += 1
                inside[label] += counts[e]
            missing = size
            for f in range(found):
                label = seen[f]
                everywhere = totals[level, label]
                out[i] += abs(inside[label] * size - everywhere * n)
                missing -= everywhere
                inside[label] = 0
            out[i] += missing * n
    return out


class Points(NamedTuple):
    """Rows as the kernels see them.

    Attributes:
        numbers: (rows, numeric columns) positions, times the column's weight; NaN is missing.
        spans: per numeric column its weight, which is how far a missing value is from others.
        codes: (rows, categorical columns) places of values in their hierarchy.
        table: the distances between all places of a column, column after column.
        offsets: where each categorical column begins in ``table``.
        sizes: how many places each categorical column has.
        marks: (rows, levels) labels of large hierarchies, level after level.
        steps: what differing labels add, per level.
        slots: (columns, 3) per column of the table its kind (0 numeric, 1 categorical, 2 large),
            where it stands among those of its kind, and how many levels a large one takes.
    """

    numbers: NDArray[np.float64]
    spans: NDArray[np.float64]
    codes: NDArray[np.int32]
    table: NDArray[np.float64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    marks: NDArray[np.int32]
    steps: NDArray[np.float64]
    slots: NDArray[np.int64]


@bare
def distance(p: Any, i: int, j: int) -> float:
    """How far rows ``i`` and ``j`` are apart."""
    total = 0.0
    for c in range(p.numbers.shape[1]):
        x = abs(p.numbers[i, c] - p.numbers[j, c])
        if x != x:  # one is NaN; asked here, not before, as few are
            both = np.isnan(p.numbers[i, c]) and np.isnan(p.numbers[j, c])
            x = 0.0 if both else p.spans[c]
        total += x
    for c in range(p.codes.shape[1]):
        total += p.table[p.offsets[c] + p.codes[i, c] * p.sizes[c] + p.codes[j, c]]
    for m in range(p.marks.shape[1]):
        if p.marks[i, m] != p.marks[j, m]:
            total += p.steps[m]
    return total


@bare
def apart(p: Any, column: int, i: int, j: int) -> Any:
    """How far rows ``i`` and ``j`` are apart in one column."""
    kind, slot = p.slots[column, 0], p.slots[column, 1]
    if kind == 0:
        x = abs(p.numbers[i, slot] - p.numbers[j, slot])
        if x != x:
            both = np.isnan(p.numbers[i, slot]) and np.isnan(p.numbers[j, slot])
            x = 0.0 if both else p.spans[slot]
        return x
    if kind == 1:
        place = p.offsets[slot] + p.codes[i, slot] * p.sizes[slot] + p.codes[j, slot]
        return p.table[place]
    total = 0.0
    for m in range(slot, slot + p.slots[column, 2]):
        if p.marks[i, m] != p.marks[j, m]:
            total += p.steps[m]
    return total


@kernel
def distances_from(p: Any, origin: int, rows: Any, count: int, out: Any) -> None:
    """Write the distance from ``origin`` of each of the first ``count`` rows to ``out[row]``."""
    numbers, categories, levels = p.numbers.shape[1], p.codes.shape[1], p.marks.shape[1]
    begin = integers(categories)
    for c in range(categories):
        begin[c] = p.offsets[c] + p.codes[origin, c] * p.sizes[c]
    for a in range(count):
        row = rows[a]
        total = 0.0
        for c in range(numbers):
            x = abs(p.numbers[origin, c] - p.numbers[row, c])
            if x != x:
                both = np.isnan(p.numbers[origin, c]) and np.isnan(p.numbers[row, c])
                x = 0.0 if both else p.spans[c]
            total += x
        for c in range(categories):
            total += p.table[begin[c] + p.codes[row, c]]
        for m in range(levels):
            if p.marks[origin, m] != p.marks[row, m]:
                total += p.steps[m]
        out[row] = total


def plain_distances(p: Any, i: Any, j: NDArray[np.int64]) -> NDArray[np.float64]:
    """The ``distance`` of one row, or of each of several, to each of ``j``, by NumPy.

    The same to the last bit: columns are added in the order in which the kernel adds them.
    """
    total = np.zeros(len(j))
    for c in range(p.numbers.shape[1]):
        one, other = p.numbers[i, c], p.numbers[j, c]
        x = np.abs(one - other)
        lost = np.isnan(x)
        if lost.any():
            x = np.where(lost, np.where(np.isnan(other) & np.isnan(one), 0.0, p.spans[c]), x)
        total += x
    for c in range(p.codes.shape[1]):
        total += p.table[p.offsets[c] + p.codes[i, c] * p.sizes[c] + p.codes[j, c]]
    for m in range(p.marks.shape[1]):
        total += np.where(p.marks[j, m] != p.marks[i, m], p.steps[m], 0.0)
    return total


def plain_distances_from(p: Any, origin: int, rows: Any, count: int, out: Any) -> None:
    """What ``distances_from`` writes."""
    out[rows[:count]] = plain_distances(p, origin, rows[:count])


def matrix(p: Any, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """All distances between a few rows."""
    n = len(rows)
    return np.array([plain_distances(p, row, rows) for row in rows]).reshape(n, n)


@kernel
def _diameters(p: Any, order: NDArray[np.int64], starts: NDArray[np.int64]) -> Any:
    out = reals(len(starts) - 1, 0.0)
    for c in range(len(out)):
        widest = 0.0
        for a in range(starts[c], starts[c + 1]):
            for b in range(starts[c], a):
                widest = max(widest, distance(p, order[a], order[b]))
        out[c] = widest
    return out


def _plain_diameters(
    p: Any, order: NDArray[np.int64], starts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The same by NumPy: each row with the next one of its class, with the one behind it ..."""
    sizes = np.diff(starts)
    out, of = np.zeros(len(sizes)), np.repeat(np.arange(len(sizes)), sizes)
    at = np.arange(len(order))
    for step in range(1, int(sizes.max(initial=0))):
        at = at[at + step < len(order)]
        at = at[of[at] == of[at + step]]
        np.maximum.at(out, of[at], plain_distances(p, order[at], order[at + step]))
    return out


def _pairs(p: Any, _: Any, starts: NDArray[np.int64]) -> int:
    """Pairs of rows, each as much as its columns are more than a few."""
    columns = p.numbers.shape[1] + p.codes.shape[1] + p.marks.shape[1]
    return int((np.diff(starts) ** 2).sum() * max(columns, 8) // 8)


# The largest distance inside each class; class c is order[starts[c]:starts[c + 1]].
diameters: Any = Sparing(_diameters, _pairs, 4_000_000, _plain_diameters)


@kernel
def column_widths(
    p: Any,
    places: NDArray[np.int32],
    column: int,
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
) -> Any:
    """How wide each class is in one column: the distance of its outermost places."""
    out = reals(len(starts) - 1, 0.0)
    for c in range(len(out)):
        low = high = order[starts[c]]
        for a in range(starts[c] + 1, starts[c + 1]):
            row = order[a]
            if places[row, column] < places[low, column]:
                low = row
            if places[row, column] > places[high, column]:
                high = row
        out[c] = apart(p, column, low, high)
    return out


@kernel
def pair_sums(
    p: Any, order: NDArray[np.int64], starts: NDArray[np.int64], held: NDArray[np.int64]
) -> Any:
    """The sum of all distances inside each class, every pair once; row i stands for ``held[i]``."""
    out = reals(len(starts) - 1, 0.0)
    for c in range(len(out)):
        for a in range(starts[c], starts[c + 1]):
            for b in range(starts[c], a):
                one, two = order[a], order[b]
                out[c] += distance(p, one, two) * held[one] * held[two]
    return out


@bare
def smallest_between(p: Any, ids: NDArray[np.int64]) -> float:
    """The smallest distance between rows of different classes; infinite if there is one class."""
    best = np.inf
    for i in range(len(ids)):
        for j in range(i):
            if ids[i] != ids[j]:
                best = min(best, distance(p, i, j))
    return best


_MIX = np.uint64(0x9E3779B97F4A7C15)
_UNIT = 1.0 / 2.0**64


class ComparedRows(NamedTuple):
    """Rows that are compared by columns.

    Attributes:
        codes: (rows, columns) their codes.
        numbers: (rows, columns) their scaled numbers where a column is numeric.
    """

    codes: NDArray[np.int32]
    numbers: NDArray[np.float64]


class ColumnDistances(NamedTuple):
    """How far values of two tables are from each other.

    Attributes:
        numeric: per column, whether the difference of the scaled numbers counts, at most 1.
        tables: else ``tables[offsets[c] + left code * widths[c] + right code]``.
    """

    numeric: NDArray[np.bool_]
    tables: NDArray[np.float32]
    offsets: NDArray[np.int64]
    widths: NDArray[np.int64]


@kernel
def nearest_rows(
    one: Any, other: Any, by: Any, starts: NDArray[np.int64], k: int, seed: int
) -> tuple[Any, Any]:
    """The ``k`` nearest rows of the entries ``other`` for each entry of ``one``, nearest first.

    Entry j of ``other`` stands for the rows ``starts[j]`` to ``starts[j + 1]``, each of which has
    the same chance among rows that are as near.
    """
    left, left_numbers, right, right_numbers = one.codes, one.numbers, other.codes, other.numbers
    numeric, tables, offsets, widths = by.numeric, by.tables, by.offsets, by.widths
    rows, columns = left.shape
    found = integer_rows(rows, k, -1)
    far = real_rows(rows, k, np.inf)
    order = reals(k, 0.0)
    for i in range(rows):
        for j in range(len(right)):
            total = 0.0
            limit = far[i, k - 1]
            for c in range(columns):
                if numeric[c]:
                    total += min(abs(left_numbers[i, c] - right_numbers[j, c]), 1.0)
                else:
                    total += tables[offsets[c] + left[i, c] * widths[c] + right[j, c]]
                if total > limit:
                    break
            if total > limit:
                continue
            held = starts[j + 1] - starts[j]
            chance = _mix(j, i + seed)
            turn: Any = 0.0
            for t in range(min(k, held)):
                # The smallest of `held` random numbers, then the second smallest ...
                part = np.float64(chance) * _UNIT
                left_over = held - t
                step = part if left_over == 1 else 1.0 - (1.0 - part) ** (1.0 / left_over)
                turn = turn + (1.0 - turn) * step
                place = k - 1
                if total == far[i, place] and found[i, place] >= 0 and turn >= order[place]:
                    break
                if total > far[i, place]:
                    break
                chance = _mix(chance >> np.uint64(2), t + 1)
                row = starts[j] + (_start(j, i + seed, held) + t) % held
                while place > 0 and (
                    total < far[i, place - 1]
                    or (total == far[i, place - 1] and turn < order[place - 1])
                ):
                    far[i, place] = far[i, place - 1]
                    found[i, place] = found[i, place - 1]
                    order[place] = order[place - 1]
                    place -= 1
                far[i, place] = total
                found[i, place] = row
                order[place] = turn
    return found, far


@bare
def _mix(one: Any, two: Any) -> Any:
    """A number that looks random but repeats."""
    chance = (np.uint64(one) + np.uint64(1)) * _MIX ^ (
        (np.uint64(two) + np.uint64(1)) * np.uint64(0xC2B2AE3D27D4EB4F)
    )
    return (chance ^ (chance >> np.uint64(31))) * _MIX


@bare
def _start(one: int, two: int, held: int) -> Any:
    """Which of ``held`` rows comes first."""
    return np.int64((_mix(two, one) >> np.uint64(11)) % np.uint64(held))


@bare
def _separation(
    numbers: Any, sought_numbers: Any, codes: Any, sought_codes: Any, i: int, s: int
) -> float:
    """How far a sought row is from a row."""
    apart = 0.0
    for c in range(codes.shape[1]):
        apart += codes[i, c] != sought_codes[s, c]
    for c in range(numbers.shape[1]):
        step = numbers[i, c] - sought_numbers[s, c]
        apart += step * step
    return apart


@bare
def nearest_share(
    numbers: NDArray[np.float64],
    sought_numbers: NDArray[np.float64],
    codes: NDArray[np.int64],
    sought_codes: NDArray[np.int64],
    own: NDArray[np.int64],
) -> float:
    """How many sought rows have their own row nearest; where r are, it counts 1 / r.

    Args:
        numbers: (rows, columns) of all rows, standardized.
        sought_numbers: the same of the rows that are linked.
        codes: (rows, columns) of categories.
        sought_codes: the same of the rows that are linked.
        own: per sought row, the place of its own.
    """
    hits = 0.0
    rows, categories, columns = numbers.shape[0], codes.shape[1], numbers.shape[1]
    for s in range(len(own)):
        best = _separation(numbers, sought_numbers, codes, sought_codes, own[s], s)
        ties = 0
        for i in range(rows):  # in place: a call for each pair of rows costs five times as much
            apart = 0.0
            for c in range(categories):
                if codes[i, c] != sought_codes[s, c]:
                    apart += 1.0
            if apart > best + 1e-12:
                continue
            for c in range(columns):
                step = numbers[i, c] - sought_numbers[s, c]
                apart += step * step
            if apart < best - 1e-12:  # somebody else is nearer
                ties = 0
                break
            ties += apart <= best + 1e-12
        if ties:
            hits += 1.0 / ties
    return hits
