"""Moves of single values between the parts of one variable, the other variables held fixed.

``profile`` gives each value its sparse counts over the cells of the other variables; a move changes
the criterion only through the two parts concerned, so that no cost is ever computed anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def profile(
    starts: NDArray[np.int64],
    order: NDArray[np.int64],
    cell: NDArray[np.int32],
    weights: NDArray[np.int64],
    cells: int,
) -> tuple[Any, Any, Any]:
    """The counts of each value over ``cells`` (CSR); ``order`` lists the tuples of each value."""
    size = len(starts) - 1
    out_starts = np.zeros(size + 1, np.int64)
    out_cells = np.empty(len(order), np.int32)
    out_counts = np.empty(len(order), np.int64)
    place = np.full(cells, -1, np.int64)
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
    return out_starts, out_cells[:filled].copy(), out_counts[:filled].copy()


@njit(cache=True, nogil=True)
def _part_cost(count: int, held: int, lf: NDArray[np.float64]) -> float:
    """Log C(count + held - 1, held - 1) + log count! in its short form."""
    return lf[count + held - 1] - lf[held - 1] if held > 0 else 0.0


@njit(cache=True, nogil=True)
def move_values(
    starts: NDArray[np.int64],
    cells: NDArray[np.int32],
    counts: NDArray[np.int64],
    part: NDArray[np.int32],
    parts: int,
    order: NDArray[np.int64],
    level: NDArray[np.float64],
    lf: NDArray[np.float64],
    n_cells: int,
    sweeps: int,
    tolerance: float,
) -> tuple[int, float]:
    """Move values to the part that lowers the cost most, until a sweep changes nothing.

    ``part`` is changed in place and stays without gaps; a value may open a new part as long as
    ``level`` (the cost of each number of parts) knows one more. ``level`` decides the room.

    Returns the number of parts and the change of the cost.
    """
    room = len(level) - 1
    inside = np.zeros((n_cells, room), np.int64)
    logs = np.zeros((n_cells, room))  # log(inside + 1): what one more observation brings
    total = np.zeros(room, np.int64)
    held = np.zeros(room, np.int64)
    weight = np.zeros(len(part), np.int64)
    for v in range(len(part)):
        held[part[v]] += 1
        for e in range(starts[v], starts[v + 1]):
            inside[cells[e], part[v]] += counts[e]
            total[part[v]] += counts[e]
            weight[v] += counts[e]
    for c in range(n_cells):
        for j in range(parts):
            logs[c, j] = np.log(inside[c, j] + 1.0)
    gain = np.empty(room)
    change = 0.0
    for _ in range(sweeps):
        before = change
        for o in range(len(order)):
            v = order[o]
            a = part[v]
            first, last, w = starts[v], starts[v + 1], weight[v]
            gain[:parts] = 0.0
            leaving, alone = 0.0, 0.0
            for e in range(first, last):
                c, n = cells[e], counts[e]
                if n == 1:
                    for j in range(parts):
                        gain[j] += logs[c, j]
                else:
                    for j in range(parts):
                        gain[j] += lf[inside[c, j] + n] - lf[inside[c, j]]
                leaving += lf[inside[c, a]] - lf[inside[c, a] - n]
                alone += lf[n]
            single = held[a] == 1
            base = leaving - _part_cost(total[a], held[a], lf)
            base += _part_cost(total[a] - w, held[a] - 1, lf)
            shrink = level[parts - 1] - level[parts] if single else 0.0
            best, target = -tolerance, -1
            for j in range(parts):
                if j != a:
                    here = lf[total[j] + held[j] + w] - lf[held[j]]
                    here += lf[held[j] - 1] - lf[total[j] + held[j] - 1]
                    here += base + shrink - gain[j]
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
                for c in range(n_cells):
                    inside[c, target] = 0
                    logs[c, target] = 0.0
            part[v] = target
            held[a] -= 1
            held[target] += 1
            total[a] -= w
            total[target] += w
            for e in range(first, last):
                c, n = cells[e], counts[e]
                inside[c, a] -= n
                inside[c, target] += n
                logs[c, a] = np.log(inside[c, a] + 1.0)
                logs[c, target] = np.log(inside[c, target] + 1.0)
            if held[a] == 0:  # the last part takes the free place
                parts -= 1
                held[a], total[a] = held[parts], total[parts]
                held[parts], total[parts] = 0, 0
                for c in range(n_cells):
                    inside[c, a], logs[c, a] = inside[c, parts], logs[c, parts]
                for u in range(len(part)):
                    if part[u] == parts:
                        part[u] = a
        if before - change <= tolerance:
            break
    return parts, change


@njit(cache=True, nogil=True)
def anneal_values(
    starts: NDArray[np.int64],
    cells: NDArray[np.int32],
    counts: NDArray[np.int64],
    part: NDArray[np.int32],
    parts: int,
    level: NDArray[np.float64],
    lf: NDArray[np.float64],
    n_cells: int,
    temperatures: NDArray[np.float64],
    orders: NDArray[np.int64],
    draws: NDArray[np.float64],
) -> int:
    """Draw a part for each value with probability exp(-cost / temperature), sweep by sweep.

    A part may empty and vanish; none is opened. ``orders`` and ``draws`` are (sweeps, values): the
    order of the values and a number from 0 to 1 for each. ``part`` is changed in place; returns the
    number of parts.
    """
    inside = np.zeros((n_cells, parts), np.int64)
    logs = np.zeros((n_cells, parts))
    total = np.zeros(parts, np.int64)
    held = np.zeros(parts, np.int64)
    weight = np.zeros(len(part), np.int64)
    for v in range(len(part)):
        held[part[v]] += 1
        for e in range(starts[v], starts[v + 1]):
            inside[cells[e], part[v]] += counts[e]
            total[part[v]] += counts[e]
            weight[v] += counts[e]
    for c in range(n_cells):
        for j in range(parts):
            logs[c, j] = np.log(inside[c, j] + 1.0)
    gain = np.empty(parts)
    for s in range(len(temperatures)):
        heat = temperatures[s]
        for o in range(len(part)):
            v = orders[s, o]
            a = part[v]
            first, last, w = starts[v], starts[v + 1], weight[v]
            held[a] -= 1
            total[a] -= w
            for e in range(first, last):
                c = cells[e]
                inside[c, a] -= counts[e]
                logs[c, a] = np.log(inside[c, a] + 1.0)
            gain[:parts] = 0.0
            for e in range(first, last):
                c, n = cells[e], counts[e]
                if n == 1:
                    for j in range(parts):
                        gain[j] += logs[c, j]
                else:
                    for j in range(parts):
                        gain[j] += lf[inside[c, j] + n] - lf[inside[c, j]]
            top = -np.inf
            for j in range(parts):
                if held[j] > 0:
                    gain[j] -= lf[total[j] + held[j] + w] - lf[held[j]]
                    gain[j] -= lf[held[j] - 1] - lf[total[j] + held[j] - 1]
                else:
                    gain[j] -= lf[w] + level[parts] - level[parts - 1]
                top = max(top, gain[j])
            mass = 0.0
            for j in range(parts):
                gain[j] = np.exp((gain[j] - top) / heat)
                mass += gain[j]
            draw = draws[s, o] * mass
            b = 0
            while b < parts - 1 and draw >= gain[b]:
                draw -= gain[b]
                b += 1
            part[v] = b
            held[b] += 1
            total[b] += w
            for e in range(first, last):
                c = cells[e]
                inside[c, b] += counts[e]
                logs[c, b] = np.log(inside[c, b] + 1.0)
            if held[a] == 0 and a != b:
                parts -= 1
                held[a], total[a] = held[parts], total[parts]
                held[parts], total[parts] = 0, 0
                for c in range(n_cells):
                    inside[c, a], logs[c, a] = inside[c, parts], logs[c, parts]
                for u in range(len(part)):
                    if part[u] == parts:
                        part[u] = a
    return parts


@njit(cache=True, nogil=True)
def place_values(
    starts: NDArray[np.int64],
    cells: NDArray[np.int32],
    counts: NDArray[np.int64],
    part: NDArray[np.int32],
    parts: int,
    lf: NDArray[np.float64],
    n_cells: int,
) -> None:
    """Give each value without a part (-1) the part of those that have one that costs least."""
    inside = np.zeros((n_cells, parts), np.int64)
    total = np.zeros(parts, np.int64)
    held = np.zeros(parts, np.int64)
    for v in range(len(part)):
        if part[v] >= 0:
            held[part[v]] += 1
            for e in range(starts[v], starts[v + 1]):
                inside[cells[e], part[v]] += counts[e]
                total[part[v]] += counts[e]
    for v in range(len(part)):
        if part[v] >= 0:
            continue
        w = 0
        for e in range(starts[v], starts[v + 1]):
            w += counts[e]
        best, target = np.inf, 0
        for j in range(parts):
            here = lf[total[j] + held[j] + w] - lf[held[j]]
            here += lf[held[j] - 1] - lf[total[j] + held[j] - 1]
            for e in range(starts[v], starts[v + 1]):
                n = counts[e]
                here -= lf[inside[cells[e], j] + n] - lf[inside[cells[e], j]]
            if here < best:
                best, target = here, j
        part[v] = target
