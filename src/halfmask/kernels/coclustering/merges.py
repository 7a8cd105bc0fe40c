"""Greedy merges over all variables of a grid, from where it stands down to one cell.

Only non-empty cells are kept. For each pair of parts of a variable ``together`` holds what the
cells' likelihood gains by merging them; a merge updates it from the cells it touches.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import (
    ascend,
    bare,
    constants,
    count_up,
    integer_rows,
    integers,
    kernel,
    real_rows,
    reals,
    unsigned,
    zeros,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


class GridCells(NamedTuple):
    """The non-empty cells of a grid, of which a merge leaves fewer.

    Attributes:
        codes: (cells, variables) their parts; changed.
        counts: their counts; changed.
        mix: one odd constant per variable.
        lf: log n!.
    """

    codes: NDArray[np.int32]
    counts: NDArray[np.int64]
    mix: NDArray[np.uint64]
    lf: NDArray[np.float64]


class GridVariables(NamedTuple):
    """The variables of a grid.

    Attributes:
        parts: the number of parts per variable.
        ordered: whether only neighbours may merge.
        totals: (variables, parts) observations per part; changed.
        helds: (variables, parts) values per part; changed.
        priors: (variables, parts + 1) the cost of each number of parts.
        frozen: variables that keep their parts.
        stop_at: the number of parts below which a variable does not go.
    """

    parts: NDArray[np.int64]
    ordered: NDArray[np.bool_]
    totals: NDArray[np.int64]
    helds: NDArray[np.int64]
    priors: NDArray[np.float64]
    frozen: NDArray[np.bool_]
    stop_at: NDArray[np.int64]


class Pairs(NamedTuple):
    """The pairs of parts of one variable: ``together`` has ``wide`` numbers per part."""

    ordered: bool
    following: NDArray[np.int64]
    together: NDArray[np.float64]
    wide: int


@bare
def _both(u: int, v: int, lf: NDArray[np.float64]) -> float:
    return lf[u + v] - lf[u] - lf[v] if u > 0 and v > 0 else 0.0


@kernel
def _keys(cells: Any, n: int, skip: int) -> Any:
    """One number per cell for its place in all variables but ``skip``."""
    # A sum of products with odd constants, modulo 2**64: two places practically never agree.
    codes, mix = cells.codes, cells.mix
    keys = unsigned(n)
    for i in range(n):
        key = np.uint64(0)
        for k in range(codes.shape[1]):
            if k != skip:
                key += np.uint64(codes[i, k] + 1) * mix[k]
        keys[i] = key
    return keys


@kernel
def _group(keys: Any, codes: Any, side: int, dims: int) -> Any:
    """An order of the cells in which equal keys stand together."""
    if dims > 2:
        return ascend(keys)
    other = 1 - side  # two variables: the key is the other's part, counted in one pass
    top = 0
    for i in range(len(keys)):
        top = max(top, codes[i, other] + 1)
    fill = zeros(top + 1)
    for i in range(len(keys)):
        fill[codes[i, other] + 1] += 1
    for j in range(top):
        fill[j + 1] += fill[j]
    order = integers(len(keys))
    for i in range(len(keys)):
        order[fill[codes[i, other]]] = i
        fill[codes[i, other]] += 1
    return order


@kernel
def first_pairs(cells: Any, n: int, side: int, pairs: Any) -> None:
    """Fill ``together`` of one variable from all cells."""
    codes, counts, lf = cells.codes, cells.counts, cells.lf
    ordered, following, together, wide = pairs
    keys = _keys(cells, n, side)
    order = _group(keys, codes, side, codes.shape[1])
    at = zeros(len(following))
    i = 0
    while i < n:
        j = i
        while j < n and keys[order[j]] == keys[order[i]]:
            at[codes[order[j], side]] = counts[order[j]]
            j += 1
        for p in range(i, j):
            a = codes[order[p], side]
            if ordered:
                b = following[a]
                if b >= 0 and at[b] > 0:
                    together[a] += _both(at[a], at[b], lf)
            else:
                for q in range(p + 1, j):
                    b = codes[order[q], side]
                    gain = _both(at[a], at[b], lf)
                    together[a * wide + b] += gain
                    together[b * wide + a] += gain
        for p in range(i, j):
            at[codes[order[p], side]] = 0
        i = j


@bare
def _more(left: Any, right: Any, x: int, y: int, lf: Any) -> float:
    """What joining x and y gains more once the cells at their left and right are one."""
    apart = _both(left[x], left[y], lf) + _both(right[x], right[y], lf)
    return _both(left[x] + right[x], left[y] + right[y], lf) - apart


@kernel
def other_pairs(
    cells: Any, touched: Any, n: int, side: int, a: int, other: int, pairs: Any
) -> None:
    """Update ``together`` of ``other`` for the merge of two parts of ``side``.

    The first ``n`` of ``touched`` are the cells of both parts.
    """
    codes, counts, mix, lf = cells
    ordered, following, together, wide = pairs
    keys = unsigned(n)
    for i in range(n):
        keys[i] = 0
        for k in range(codes.shape[1]):
            if k != side and k != other:
                keys[i] += np.uint64(codes[touched[i], k] + 1) * mix[k]
    order = ascend(keys) if codes.shape[1] > 2 else count_up(n)
    left, right = zeros(len(following)), zeros(len(following))
    present = integers(n)
    i = 0
    while i < n:
        j, m = i, 0
        while j < n and keys[order[j]] == keys[order[i]]:
            t = touched[order[j]]
            x = codes[t, other]
            if left[x] == 0 and right[x] == 0:
                present[m] = x
                m += 1
            if codes[t, side] == a:
                left[x] += counts[t]
            else:
                right[x] += counts[t]
            j += 1
        for p in range(m):
            x = present[p]
            if ordered:
                y = following[x]
                if y >= 0:
                    together[x] += _more(left, right, x, y, lf)
            else:
                for q in range(p + 1, m):
                    y = present[q]
                    gain = _more(left, right, x, y, lf)
                    together[x * wide + y] += gain
                    together[y * wide + x] += gain
        for p in range(m):
            left[present[p]], right[present[p]] = 0, 0
        i = j


@kernel
def own_pairs(
    cells: Any, n: int, side: int, a: int, b: int, pairs: Any, before: int, after: int
) -> int:
    """Update ``together`` of ``side`` itself, give b's cells to a; returns how many cells stay."""
    codes, counts, lf = cells.codes, cells.counts, cells.lf
    ordered, together, wide = pairs.ordered, pairs.together, pairs.wide
    keys = _keys(cells, n, side)
    order = _group(keys, codes, side, codes.shape[1])
    if ordered:
        together[a] = 0.0
        if before >= 0:
            together[before] = 0.0
    drop = zeros(n)
    i = 0
    while i < n:
        j = i
        own, gone, n_before, n_after = -1, -1, 0, 0
        while j < n and keys[order[j]] == keys[order[i]]:
            x = codes[order[j], side]
            if x == a:
                own = order[j]
            elif x == b:
                gone = order[j]
            elif x == before:
                n_before = counts[order[j]]
            elif x == after:
                n_after = counts[order[j]]
            j += 1
        if own >= 0 or gone >= 0:
            n_a = counts[own] if own >= 0 else 0
            n_b = counts[gone] if gone >= 0 else 0
            if ordered:
                together[a] += _both(n_a + n_b, n_after, lf)
                if before >= 0:
                    together[before] += _both(n_before, n_a + n_b, lf)
            elif gone >= 0:
                for p in range(i, j):
                    x = codes[order[p], side]
                    if x != a and x != b:
                        m = counts[order[p]]
                        gain = _both(n_a + n_b, m, lf) - _both(n_a, m, lf)
                        together[a * wide + x] += gain
                        together[x * wide + a] += gain
            if gone >= 0:
                if own >= 0:
                    counts[own] += n_b
                    drop[gone] = 1
                else:
                    codes[gone, side] = a
        i = j
    kept = 0
    for i in range(n):
        if drop[i] == 0:
            if kept != i:
                for k in range(codes.shape[1]):
                    codes[kept, k] = codes[i, k]
                counts[kept] = counts[i]
            kept += 1
    return kept


_HUGE_GRID = 2.0**30  # above it the count is approximated, as Khiops does


@bare
def compositions(total: int, cells: float) -> float:
    """Log of the ways to spread so many over so many cells."""
    if cells <= 1.0:
        return 0.0
    if cells > _HUGE_GRID:
        return total * math.log(cells) - math.lgamma(total + 1.0)
    return math.lgamma(total + cells) - math.lgamma(cells) - math.lgamma(total + 1.0)


@bare
def _neighbours(a: int, b: int, total: Any, lf: Any, shared: float) -> Any:
    """What merging two intervals changes, without the terms that only count parts."""
    return lf[total[a] + total[b]] - lf[total[a]] - lf[total[b]] - shared


@bare
def _pair(a: int, b: int, total: Any, held: Any, lf: Any, shared: float) -> Any:
    """The same for two groups of values."""
    m = held[a] + held[b]
    return (
        lf[total[a] + total[b] + m - 1]
        - lf[m - 1]
        - lf[total[a] + held[a] - 1]
        + lf[held[a] - 1]
        - lf[total[b] + held[b] - 1]
        + lf[held[b] - 1]
        - shared
    )


@bare
def _scan_row(
    a: int, pairs: Any, alive: Any, total: Any, held: Any, lf: Any, partner: Any, value: Any
) -> None:
    """Find the best partner behind ``a`` among categorical parts."""
    value[a], partner[a] = np.inf, -1
    for b in range(a + 1, pairs.wide):
        if alive[b]:
            here = _pair(a, b, total, held, lf, pairs.together[a * pairs.wide + b])
            if here < value[a]:
                value[a], partner[a] = here, b


@kernel
def merge_compiled(cells: Any, sides: Any, informative: NDArray[np.float64]) -> tuple[Any, Any]:
    """Merge the best pair of parts over all variables until one cell is left.

    ``informative`` is the cost of each number of variables with more than one part.

    Returns (steps, 3) int64 of variable, kept part, part merged into it, and the change of the
    cost at each step.
    """
    codes, counts, lf = cells.codes, cells.counts, cells.lf
    parts, ordered, totals, helds, priors, frozen, stop_at = sides
    dims = len(parts)
    n = len(counts)
    observed = width = every = 0
    for i in range(n):
        observed += counts[i]
    left, at = integers(dims), zeros(dims + 1)
    for k in range(dims):
        left[k] = parts[k]
        width, every = max(width, parts[k]), every + parts[k]
        at[k + 1] = at[k] + parts[k] * (1 if ordered[k] else parts[k])
    alive = integer_rows(dims, width, 0)
    following = integer_rows(dims, width, -1)
    preceding = integer_rows(dims, width, -1)
    partner = integer_rows(dims, width, -1)
    value = real_rows(dims, width, np.inf)
    all_together = reals(at[dims], 0.0)
    touched = integers(n)
    for k in range(dims):
        for a in range(parts[k]):
            alive[k, a] = 1
        for a in range(parts[k] - 1):
            following[k, a], preceding[k, a + 1] = a + 1, a
        if not frozen[k]:
            together = all_together[at[k] : at[k + 1]]
            first_pairs(cells, n, k, Pairs(ordered[k], following[k], together, parts[k]))
    steps = integer_rows(every, 3, 0)
    change = reals(every, 0.0)
    done = 0
    stale = constants(dims, 1)
    while True:
        grid, wide = 1.0, 0
        for k in range(dims):
            grid *= left[k]
            wide += left[k] > 1
        now = compositions(observed, grid)
        best, side, a, b = np.inf, -1, -1, -1
        for k in range(dims):
            if frozen[k] or left[k] <= stop_at[k]:
                continue
            together = all_together[at[k] : at[k + 1]]
            if stale[k]:
                pairs = Pairs(ordered[k], following[k], together, parts[k])
                for x in range(parts[k]):
                    if alive[k, x] and not ordered[k]:
                        _scan_row(x, pairs, alive[k], totals[k], helds[k], lf, partner[k], value[k])
                stale[k] = 0
            low, x_best, y_best = np.inf, -1, -1
            for x in range(parts[k]):
                if not alive[k, x]:
                    continue
                if ordered[k]:
                    y = following[k, x]
                    if y < 0:
                        continue
                    here = _neighbours(x, y, totals[k], lf, together[x])
                else:
                    y, here = partner[k, x], value[k, x]
                if here < low:
                    low, x_best, y_best = here, x, y
            if x_best < 0:
                continue
            step = compositions(observed, grid / left[k] * (left[k] - 1)) - now
            step += priors[k, left[k] - 1] - priors[k, left[k]] + low
            step += informative[wide - (left[k] == 2)] - informative[wide]
            if step < best:
                best, side, a, b = step, k, x_best, y_best
        if side < 0:
            break
        m = 0
        for i in range(n):
            if codes[i, side] == a or codes[i, side] == b:
                touched[m] = i
                m += 1
        for k in range(dims):
            if k != side and not frozen[k] and left[k] > 1:
                together = all_together[at[k] : at[k + 1]]
                pairs = Pairs(ordered[k], following[k], together, parts[k])
                other_pairs(cells, touched, m, side, a, k, pairs)
                stale[k] = 1
        before = preceding[side, a] if ordered[side] else -1
        after = following[side, b] if ordered[side] else -1
        together = all_together[at[side] : at[side + 1]]
        pairs = Pairs(ordered[side], following[side], together, parts[side])
        n = own_pairs(cells, n, side, a, b, pairs, before, after)
        totals[side, a] += totals[side, b]
        helds[side, a] += helds[side, b]
        alive[side, b] = 0
        following[side, a] = after
        if after >= 0:
            preceding[side, after] = a
        left[side] -= 1
        if not ordered[side]:
            for x in range(parts[side]):
                if not alive[side, x]:
                    continue
                if x == a or partner[side, x] == a or partner[side, x] == b:
                    _scan_row(
                        x, pairs, alive[side], totals[side], helds[side], lf, partner[side],
                        value[side],
                    )  # fmt: skip
                elif x < a:
                    here = _pair(x, a, totals[side], helds[side], lf, together[x * parts[side] + a])
                    if here < value[side, x]:
                        value[side, x], partner[side, x] = here, a
        steps[done, 0], steps[done, 1], steps[done, 2] = side, a, b
        change[done] = best
        done += 1
    return steps[:done], change[:done]
