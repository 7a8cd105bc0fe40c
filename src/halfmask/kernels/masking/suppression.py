"""Inner loops of local suppression.

A suppressed cell matches anything. An entry is a row, or many rows that are alike and safe. Its key
holds the codes of its columns in bit fields of one or several words; ``seen`` has the bits of the
columns that are shown. Two entries match where their keys agree in all bits that both show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import (
    ascend,
    clear,
    integer_rows,
    integers,
    kernel,
    reals,
    zeros,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]
    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

_NONE, _MANY = -1, -2
_FALL = 0.8


class Entries(NamedTuple):
    """Rows that lack matches, and behind them entries that are safe.

    Attributes:
        keys: (entries, words) the codes of their columns.
        seen: (entries, words) the bits of the columns that are shown.
        fields: (columns, words) the bits of each column.
        weight: how many rows each entry stands for.
        matches: per row that may lack some, how many rows match it, itself among them.
    """

    keys: Words
    seen: Words
    fields: Words
    weight: Ints
    matches: Ints


@kernel
def _difference(entries: Any, i: int, j: int) -> int:
    """The one column by which two entries differ; ``_NONE``: they match, ``_MANY``: several."""
    keys, seen, fields = entries.keys, entries.seen, entries.fields
    column = _NONE
    for w in range(keys.shape[1]):
        bits = (keys[i, w] ^ keys[j, w]) & seen[i, w] & seen[j, w]
        if bits == 0:
            continue
        if column != _NONE:
            return _MANY
        for c in range(fields.shape[0]):
            if bits & fields[c, w]:
                if bits & ~fields[c, w]:
                    return _MANY
                column = c
                break
    return column


@kernel
def count_matches(keys: Words, seen: Words, weight: Ints, rows: int) -> Ints:
    """For each of the first ``rows`` entries, how many rows match it, itself among them."""
    found = zeros(rows)
    entries, words = keys.shape
    for i in range(rows):
        total = 0
        for j in range(entries):
            apart = np.uint64(0)
            for w in range(words):
                apart |= (keys[i, w] ^ keys[j, w]) & seen[i, w] & seen[j, w]
            if apart == 0:
                total += weight[j]
        found[i] = total
    return found


@kernel
def _gains(entries: Any, k: int, i: int, found: Ints) -> None:
    """Per column, how many rows would match ``i`` without it, and how many of them still lack."""
    weight, matches = entries.weight, entries.matches
    rows = len(matches)
    for c in range(found.shape[1]):
        found[0, c] = found[1, c] = 0
    for j in range(len(weight)):
        c = _difference(entries, i, j)
        if c >= 0:
            found[0, c] += weight[j]
            if j < rows and matches[j] < k:
                found[1, c] += 1


@kernel
def _suppress(entries: Any, i: int, column: int) -> None:
    """Suppress one cell, and count the new matches on both sides."""
    seen, weight, matches = entries.seen, entries.weight, entries.matches
    rows = len(matches)
    for j in range(len(weight)):
        if _difference(entries, i, j) == column:
            matches[i] += weight[j]
            if j < rows:
                matches[j] += 1
    for w in range(seen.shape[1]):
        seen[i, w] &= ~entries.fields[column, w]


@kernel
def suppress_cells(entries: Any, k: int, cost: Floats) -> None:
    """Suppress cells of the first rows until each matches ``k`` rows; greedy, in falling gain.

    The gain of a cell is what it takes from the shortfall of all rows, over its cost. Rows that no
    single cell helps lose the cell after which most rows differ in one column less.
    """
    matches = entries.matches
    rows, columns = len(matches), len(cost)
    found = integer_rows(2, columns, 0)
    own, others = found[0], found[1]
    stale = reals(rows, 0.0)
    threshold = 0.0
    for i in range(rows):
        if matches[i] < k:
            _gains(entries, k, i, found)
            stale[i] = 0.0
            for c in range(columns):
                if own[c] > 0:
                    gain = (min(own[c], k - matches[i]) + others[c]) / cost[c]
                    stale[i] = max(stale[i], gain)
            threshold = max(threshold, stale[i])
    while threshold > 0:
        following = 0.0
        for i in range(rows):
            if stale[i] < threshold:
                following = max(following, stale[i])
                continue
            while True:
                lack = k - matches[i]
                if lack <= 0:
                    stale[i] = 0.0
                    break
                _gains(entries, k, i, found)
                best, column = 0.0, -1
                for c in range(columns):
                    gain = (min(own[c], lack) + others[c]) / cost[c]
                    if own[c] > 0 and gain > best:
                        best, column = gain, c
                stale[i] = best
                if column < 0 or best < threshold:
                    break
                _suppress(entries, i, column)
            following = max(following, stale[i])
        # Falling in steps: gains that are nearly the best are as good, and looked at less often.
        threshold = min(following, _FALL * threshold)
    _serve_the_rest(entries, k, cost)


@kernel
def _serve_the_rest(entries: Any, k: int, cost: Floats) -> None:
    """Rows that differ from too many others in several columns: the cheapest set of columns."""
    keys, seen, fields, weight, matches = entries
    rows, columns = len(matches), len(cost)
    sets = 1 << columns
    price = reals(sets, 0.0)
    for s in range(sets):
        for c in range(columns):
            if s >> c & 1:
                price[s] += cost[c]
    order, reach = ascend(price), zeros(sets)
    for i in range(rows):
        if matches[i] >= k:
            continue
        clear(reach)
        for j in range(keys.shape[0]):
            differ = 0
            for c in range(columns):
                for w in range(keys.shape[1]):
                    if (keys[i, w] ^ keys[j, w]) & seen[i, w] & seen[j, w] & fields[c, w]:
                        differ |= 1 << c
            reach[differ] += weight[j]
        for c in range(columns):  # sums over subsets
            for s in range(sets):
                if s >> c & 1:
                    reach[s] += reach[s ^ (1 << c)]
        for o in range(sets):
            s = order[o]
            if reach[s] >= k:
                for c in range(columns):
                    if s >> c & 1:
                        _suppress(entries, i, c)
                break


@kernel
def restore_cells(entries: Any, whole: Words, k: int, order: Ints) -> int:
    """Show cells again that nobody needs suppressed; returns how many.

    ``whole`` has, per entry, the bits of the columns that it had; ``order`` the cells, as row times
    columns plus column, those first that are worth most.
    """
    keys, seen, fields, weight, matches = entries
    rows, columns = len(matches), fields.shape[0]
    shown = 0
    losing = integers(keys.shape[0])
    for o in range(len(order)):
        cell = order[o]
        i, c = cell // columns, cell % columns
        hidden = False
        for w in range(keys.shape[1]):
            hidden = hidden or (whole[i, w] & ~seen[i, w] & fields[c, w]) != 0
        if not hidden:
            continue
        for w in range(keys.shape[1]):
            seen[i, w] |= whole[i, w] & fields[c, w]
        lost, count, needed = 0, 0, False
        for j in range(keys.shape[0]):
            if j != i and _difference(entries, i, j) == c:
                lost += weight[j]
                if j < rows:
                    if matches[j] <= k:
                        needed = True
                        break
                    losing[count] = j
                    count += 1
        if needed or matches[i] - lost < k:
            for w in range(keys.shape[1]):
                seen[i, w] &= ~fields[c, w]
            continue
        matches[i] -= lost
        for p in range(count):
            matches[losing[p]] -= 1
        shown += 1
    return shown
