"""The parts of one variable, the others held fixed: best intervals, and moves of single values.

``profile`` gives each value its sparse counts over the cells of the other variables; a move changes
the criterion only through the two parts concerned, so that no cost is ever computed anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import (
    Sparing,
    bare,
    constants,
    integer_rows,
    integers,
    kernel,
    narrow,
    real_rows,
    zeros,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def best_intervals(
    starts: NDArray[np.int64],
    cells: NDArray[np.int32],
    counts: NDArray[np.int64],
    level: NDArray[np.float64],
    lf: NDArray[np.float64],
    n_cells: int,
) -> tuple[Any, float]:
    """The interval of each value at the least cost, and that cost without constant terms.

    Dynamic programming over the number of intervals: exact for the given elementary values, up to
    ``len(level) - 1`` intervals; ``level`` is the cost of each number of intervals.
    """
    size = len(starts) - 1
    cost = real_rows(size, size, 0.0)
    inside = zeros(n_cells)
    for i in range(size):
        total, cell_cost = 0, 0.0
        for j in range(i, size):
            for e in range(starts[j], starts[j + 1]):
                c, n = cells[e], counts[e]
                cell_cost += lf[inside[c] + n] - lf[inside[c]]
                inside[c] += n
                total += n
            cost[i, j] = lf[total] - cell_cost
        for e in range(starts[i], starts[size]):
            inside[cells[e]] = 0
    limit = min(len(level) - 1, size)
    # best[k, j]: the values up to j in k intervals; the last of them begins at cut[k, j].
    best = real_rows(limit + 1, size, np.inf)
    cut = integer_rows(limit + 1, size, 0)
    for j in range(size):
        best[1, j] = cost[0, j]
    parts, least = 1, best[1, size - 1] + level[1]
    for k in range(2, limit + 1):
        for j in range(k - 1, size):
            for i in range(k - 1, j + 1):
                here = best[k - 1, i - 1] + cost[i, j]
                if here < best[k, j]:
                    best[k, j], cut[k, j] = here, i
        if best[k, size - 1] + level[k] < least:
            parts, least = k, best[k, size - 1] + level[k]
    out = narrow(size)
    j = size - 1
    for k in range(parts, 0, -1):
        i = cut[k, j]
        for v in range(i, j + 1):
            out[v] = k - 1
        j = i - 1
    return out, least


class ValueCounts(NamedTuple):
    """The counts of each value of a variable over the cells of the others (CSR).

    Attributes:
        starts: per value, where its cells begin; one more for the end.
        cells: the cells, with their ``counts``.
        size: how many cells there are.
    """

    starts: NDArray[np.int64]
    cells: NDArray[np.int32]
    counts: NDArray[np.int64]
    size: int


@kernel
def _profile(
    starts: NDArray[np.int64],
    order: NDArray[np.int64],
    cell: NDArray[np.int32],
    weights: NDArray[np.int64],
    cells: int,
) -> tuple[Any, Any, Any]:
    """The counts of each value over ``cells`` (CSR); ``order`` lists the tuples of each value."""
    size = len(starts) - 1
    out_starts = zeros(size + 1)
    out_cells, out_counts = narrow(len(order)), integers(len(order))
    place = constants(cells, -1)
    filled = 0
    for v in range(size):
        first = filled
        for o in range(starts[v], starts[v + 1]):
            t = order[o]
            c = cell[t]
            if place[c] < first:
                place[c] = filled
                out_cells[filled] = c
                out_counts[filled] = weights[t]
                filled += 1
            else:
                out_counts[place[c]] += weights[t]
        out_starts[v + 1] = filled
    return out_starts, out_cells[:filled], out_counts[:filled]


def _plain_profile(
    starts: NDArray[np.int64],
    order: NDArray[np.int64],
    cell: NDArray[np.int32],
    weights: NDArray[np.int64],
    cells: int,
) -> tuple[Any, Any, Any]:
    """The same by sorting; the cells of a value stand as they are first met."""
    value = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    keys = value * cells + cell[order]
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    met = np.sort(first)
    counts = np.zeros(len(met), np.int64)
    np.add.at(counts, np.searchsorted(met, first)[place.reshape(-1)], weights[order])
    ends = np.searchsorted(value[met], np.arange(len(starts)))
    return ends.astype(np.int64), cell[order[met]], counts


# compiling takes as long as sorting so many tuples
profile = Sparing(_profile, lambda _, order, *__: len(order), 2_500_000, _plain_profile)


class _Tally(NamedTuple):
    """What is in each part while values move.

    Attributes:
        part: the part of each value; changed in place.
        weight: the observations of each value.
        inside: (cells, parts) the counts of values that have a part; ``logs`` of one more, which
            ``log`` gives per count.
        total: per part, its count; ``held`` its values.
        gain: per part, what the value that is looked at would bring.
        joined: per part, what a value of ``asked`` observations adds to it; -1: not known.
        step: 1; 0 where all counts of values are alike, so that only the first is read.
    """

    part: NDArray[np.int32]
    weight: NDArray[np.int64]
    inside: NDArray[np.int64]
    logs: NDArray[np.float64]
    log: NDArray[np.float64]
    total: NDArray[np.int64]
    held: NDArray[np.int64]
    gain: NDArray[np.float64]
    joined: NDArray[np.float64]
    asked: NDArray[np.int64]
    step: int


def _tally(values: ValueCounts, part: NDArray[np.int32], room: int) -> _Tally:
    owner = np.repeat(np.arange(len(part)), np.diff(values.starts))
    weight = np.zeros(len(part), np.int64)
    total, held = np.zeros(room, np.int64), np.zeros(room, np.int64)
    np.add.at(weight, owner, values.counts)
    placed = part >= 0
    np.add.at(held, part[placed], 1)
    np.add.at(total, part[placed], weight[placed])
    known = placed[owner]
    cell = values.cells[known].astype(np.int64) * room + part[owner[known]]
    held_in = np.bincount(cell, values.counts[known], values.size * room)
    inside = held_in.reshape(values.size, room).astype(np.int64)
    logs, gain, joined = np.empty(inside.shape), np.empty(room), np.empty(room)
    most = int(np.bincount(values.cells, values.counts, 1).max())
    log, asked = np.empty(most + 1), np.full(room, -1)
    step = int((values.counts[1:] != values.counts[:-1]).any())
    return _Tally(part, weight, inside, logs, log, total, held, gain, joined, asked, step)


@bare
def _part_cost(count: int, held: int, lf: NDArray[np.float64]) -> float:
    """Log C(count + held - 1, held - 1) + log count! in its short form."""
    return lf[count + held - 1] - lf[held - 1] if held > 0 else 0.0


@bare
def _join_cost(w: int, count: int, held: int, lf: NDArray[np.float64]) -> Any:
    """What a value with ``w`` observations adds to the cost of a part's own counts."""
    return lf[count + held + w] - lf[held] + lf[held - 1] - lf[count + held - 1]


@bare
def _fill_logs(tally: Any, parts: int) -> None:
    """Log(inside + 1): what one more observation brings."""
    for n in range(len(tally.log)):
        tally.log[n] = np.log(n + 1.0)
    for c in range(len(tally.inside)):
        for j in range(parts):
            tally.logs[c, j] = tally.log[tally.inside[c, j]]


@bare
def _gains(values: Any, v: int, tally: Any, parts: int, lf: Any) -> None:
    """Fill ``gain`` with what the cells' likelihood gains by value ``v`` in each part."""
    inside, logs, gain = tally.inside, tally.logs, tally.gain
    for j in range(parts):
        gain[j] = 0.0
    for e in range(values.starts[v], values.starts[v + 1]):
        c, n = values.cells[e], values.counts[e * tally.step]
        if n == 1:  # most: the logarithms of a row stand side by side
            for j in range(parts):
                gain[j] += logs[c, j]
        else:
            for j in range(parts):
                gain[j] += lf[inside[c, j] + n] - lf[inside[c, j]]


@bare
def _gain_at_home(values: Any, v: int, tally: Any, a: int, lf: Any) -> float:
    """What ``gain`` would be in the part ``a`` that value ``v`` is in, had it been taken out."""
    inside, gain = tally.inside, 0.0
    for e in range(values.starts[v], values.starts[v + 1]):
        c, n = values.cells[e], values.counts[e * tally.step]
        if n == 1:
            gain += tally.log[inside[c, a] - 1]
        else:
            gain += lf[inside[c, a]] - lf[inside[c, a] - n]
    return gain


@bare
def _put(values: Any, v: int, tally: Any, j: int, sign: int) -> None:
    """Add the observations of value ``v`` to a part, or take them out of it."""
    for e in range(values.starts[v], values.starts[v + 1]):
        c = values.cells[e]
        tally.inside[c, j] += sign * values.counts[e * tally.step]
        tally.logs[c, j] = tally.log[tally.inside[c, j]]


@bare
def _close(tally: Any, a: int, parts: int) -> int:
    """Give the place of the empty part ``a`` to the last one; returns how many parts are left."""
    part, total, held = tally.part, tally.total, tally.held
    inside, logs = tally.inside, tally.logs
    parts -= 1
    held[a], total[a] = held[parts], total[parts]
    held[parts], total[parts] = 0, 0
    for c in range(len(inside)):
        inside[c, a], logs[c, a] = inside[c, parts], logs[c, parts]
    for u in range(len(part)):
        if part[u] == parts:
            part[u] = a
    return parts


def move_values(
    values: ValueCounts,
    part: NDArray[np.int32],
    parts: int,
    order: NDArray[np.int64],
    level: NDArray[np.float64],
    lf: NDArray[np.float64],
    sweeps: int,
    tolerance: float,
) -> tuple[int, float]:
    """Move values to the part that lowers the cost most, until a sweep changes nothing.

    ``part`` is changed in place and stays without gaps; a value may open a new part as long as
    ``level`` (the cost of each number of parts) knows one more. ``level`` decides the room.

    Returns the number of parts and the change of the cost.
    """
    tally = _tally(values, part, len(level) - 1)
    return _move(values, tally, parts, order, level, lf, sweeps, tolerance)


@bare
def _move(
    values: Any, tally: Any, parts: int, order: Any, level: Any, lf: Any, sweeps: int,
    tolerance: float,
) -> tuple[int, float]:  # fmt: skip
    starts, cells = values.starts, values.cells
    part, inside, logs, gain = tally.part, tally.inside, tally.logs, tally.gain
    total, held = tally.total, tally.held
    room = len(gain)
    _fill_logs(tally, parts)
    change = 0.0
    for _ in range(sweeps):
        before = change
        for o in range(len(order)):
            v = order[o]
            a = part[v]
            w = tally.weight[v]
            _gains(values, v, tally, parts, lf)
            leaving, alone = 0.0, 0.0
            for e in range(starts[v], starts[v + 1]):
                c, n = cells[e], values.counts[e * tally.step]
                leaving += lf[inside[c, a]] - lf[inside[c, a] - n]
                alone += lf[n]
            single = held[a] == 1
            base = leaving - _part_cost(total[a], held[a], lf)
            base += _part_cost(total[a] - w, held[a] - 1, lf)
            shrink = level[parts - 1] - level[parts] if single else 0.0
            best, target = -tolerance, -1
            for j in range(parts):
                if j != a:
                    here = _join_cost(w, total[j], held[j], lf) + base + shrink - gain[j]
                    if here < best:
                        best, target = here, j
            if not single and parts < room:
                here = base + lf[w] - alone + level[parts + 1] - level[parts]
                if here < best:
                    best, target = here, parts
            if target < 0:
                continue
            change += best
            if target == parts:
                parts += 1
                for c in range(len(inside)):
                    inside[c, target] = 0
                    logs[c, target] = 0.0
            part[v] = target
            held[a] -= 1
            held[target] += 1
            total[a] -= w
            total[target] += w
            _put(values, v, tally, a, -1)
            _put(values, v, tally, target, 1)
            if held[a] == 0:
                parts = _close(tally, a, parts)
        if before - change <= tolerance:
            break
    return parts, change


def anneal_values(
    values: ValueCounts,
    part: NDArray[np.int32],
    parts: int,
    level: NDArray[np.float64],
    lf: NDArray[np.float64],
    temperatures: NDArray[np.float64],
    orders: NDArray[np.int64],
    draws: NDArray[np.float64],
) -> int:
    """Draw a part for each value with probability exp(-cost / temperature), sweep by sweep.

    A part may empty and vanish; none is opened. ``orders`` and ``draws`` are (sweeps, values): the
    order of the values and a number from 0 to 1 for each. ``part`` is changed in place; returns the
    number of parts.
    """
    tally = _tally(values, part, parts)
    left: int = _anneal(values, tally, parts, level, lf, temperatures, orders, draws)
    return left


@bare
def _chance(x: float) -> float:
    """Exp of what is at most 0, to 13 digits where it counts: faster than the library's."""
    if x < -700.0:  # below lies what floats cannot hold
        x = -700.0
    x *= 1 / 1024  # a short series, then squared ten times: exp(x) = exp(x / 1024) ** 1024
    y = 1 / 120 + x * (1 / 720 + x * (1 / 5040))
    y = 1.0 + x * (1.0 + x * (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * y))))
    y *= y
    y *= y
    y *= y
    y *= y
    y *= y
    y *= y
    y *= y
    y *= y
    y *= y
    y *= y
    return y


@bare
def _anneal(
    values: Any, tally: Any, parts: int, level: Any, lf: Any, temperatures: Any, orders: Any,
    draws: Any,
) -> int:  # fmt: skip
    part, total, held, gain = tally.part, tally.total, tally.held, tally.gain
    joined, asked = tally.joined, tally.asked
    _fill_logs(tally, parts)
    for s in range(len(temperatures)):
        cold = 1.0 / temperatures[s]
        for o in range(len(part)):
            v = orders[s, o]
            a, w = part[v], tally.weight[v]
            held[a] -= 1
            total[a] -= w
            asked[a] = -1
            _gains(values, v, tally, parts, lf)
            gain[a] = _gain_at_home(values, v, tally, a, lf)
            top = -np.inf
            for j in range(parts):
                if asked[j] != w:  # values of one weight are many, and parts change seldom
                    asked[j] = w
                    if held[j] > 0:
                        joined[j] = _join_cost(w, total[j], held[j], lf)
                    else:
                        joined[j] = lf[w] + level[parts] - level[parts - 1]
                gain[j] -= joined[j]
                if gain[j] > top:
                    top = gain[j]
            for j in range(parts):
                gain[j] = _chance((gain[j] - top) * cold)
            mass = 0.0
            for j in range(parts):
                mass += gain[j]
            draw = draws[s, o] * mass
            b = 0
            while b < parts - 1 and draw >= gain[b]:
                draw -= gain[b]
                b += 1
            part[v] = b
            held[b] += 1
            total[b] += w
            asked[b] = -1
            if a == b:
                continue
            _put(values, v, tally, a, -1)
            _put(values, v, tally, b, 1)
            if held[a] == 0:
                parts = _close(tally, a, parts)
                asked[a] = -1
    return parts


def place_values(
    values: ValueCounts, part: NDArray[np.int32], parts: int, lf: NDArray[np.float64]
) -> None:
    """Give each value without a part (-1) the part of those that have one that costs least."""
    _place(values, _tally(values, part, parts), parts, lf)


@bare
def _place(values: Any, tally: Any, parts: int, lf: Any) -> None:
    part, inside = tally.part, tally.inside
    for v in range(len(part)):
        if part[v] >= 0:
            continue
        best, target = np.inf, 0
        for j in range(parts):
            here = _join_cost(tally.weight[v], tally.total[j], tally.held[j], lf)
            for e in range(values.starts[v], values.starts[v + 1]):
                c, n = values.cells[e], values.counts[e]
                here -= lf[inside[c, j] + n] - lf[inside[c, j]]
            if here < best:
                best, target = here, j
        part[v] = target
