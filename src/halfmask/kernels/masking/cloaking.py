"""Inner loops of cloaking on a grid: boxes of cells that grow around people until enough share one.

Places stand in the order of a curve that fills the plane, in blocks of a few; over the blocks
stands a binary tree that knows where the places of each node lie, and how many have no cloak yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import (
    clear,
    constants,
    integer_rows,
    integers,
    kernel,
    zeros,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_BLOCK = 8
_STRIPS = 8  # of a radius: how finely a box grows
_PLENTY = 8  # times as many as are asked for, beyond which a square is made smaller
_LOOK = 16  # places on the curve at either side that are looked at before the tree
_CUTS = 64  # lines that are taken off a box again


class Near(NamedTuple):
    """Places around one: which, and their rows and columns of the grid."""

    row: Ints
    down: Ints
    across: Ints


class Places(NamedTuple):
    """Where people are on the grid, along the curve, and the tree over them.

    Attributes:
        down: per place, its row of the grid.
        across: its column.
        owner: whose it is.
        need: how many people must share its cloak.
        cloak: its cloak; -1: none yet.
        edges: (nodes, 4) the first row and column, the last row and column of each node.
        open: per node, how many places have no cloak.
        held: per node, how many places there are.
        seen: per owner, when last counted; the last entry counts the times.
    """

    down: Ints
    across: Ints
    owner: Ints
    need: Ints
    cloak: Ints
    edges: Ints
    open: Ints
    held: Ints
    seen: Ints


@kernel
def _plant(p: Any) -> None:
    """Fill the tree."""
    n, first = len(p.down), len(p.held) // 2
    for node in range(len(p.held)):
        p.edges[node, 0] = p.edges[node, 1] = 1 << 40
        p.edges[node, 2] = p.edges[node, 3] = -1
    for i in range(n):
        _widen(p.edges, first + i // _BLOCK, p.down[i], p.across[i])
        p.held[first + i // _BLOCK] += 1
    for node in range(first - 1, 0, -1):
        for child in range(2 * node, 2 * node + 2):
            if p.held[child]:
                p.held[node] += p.held[child]
                _widen(p.edges, node, p.edges[child, 0], p.edges[child, 1])
                _widen(p.edges, node, p.edges[child, 2], p.edges[child, 3])
    for node in range(len(p.held)):
        p.open[node] = p.held[node]


@kernel
def _widen(boxes: Any, at: int, down: int, across: int) -> None:
    """Let a box hold one more cell."""
    boxes[at, 0] = min(boxes[at, 0], down)
    boxes[at, 1] = min(boxes[at, 1], across)
    boxes[at, 2] = max(boxes[at, 2], down)
    boxes[at, 3] = max(boxes[at, 3], across)


@kernel
def _give(p: Any, i: int, number: int) -> None:
    """Give a place its cloak."""
    p.cloak[i] = number
    node = len(p.held) // 2 + i // _BLOCK
    while node:
        p.open[node] -= 1
        node //= 2


@kernel
def _open_within(p: Any, box: Any, stack: Any, near: Any, most: int) -> int:
    """Put the places without a cloak that a box holds into ``near``; how many, at least.

    It stops where there are more than ``most``.
    """
    n, first, edges = len(p.down), len(p.held) // 2, p.edges
    south, west, north, east = box[0], box[1], box[2], box[3]
    stack[0] = 1
    top, count = 1, 0
    while top and count <= most:
        top -= 1
        node = stack[top]
        if (
            not p.open[node]
            or edges[node, 0] > north or edges[node, 2] < south
            or edges[node, 1] > east or edges[node, 3] < west
        ):  # fmt: skip
            continue
        if node >= first:
            for i in range((node - first) * _BLOCK, min(n, (node - first + 1) * _BLOCK)):
                y, x = p.down[i], p.across[i]
                if p.cloak[i] < 0 and south <= y <= north and west <= x <= east:
                    near.row[count], near.down[count], near.across[count] = i, y, x
                    count += 1
        else:
            stack[top] = 2 * node
            stack[top + 1] = 2 * node + 1
            top += 2
    return count


@kernel
def _separation(p: Any, node: int, seed: int) -> int:
    """How many cells a node is away from a place."""
    edges, y, x = p.edges, p.down[seed], p.across[seed]
    return max(  # type: ignore[no-any-return]
        edges[node, 0] - y, y - edges[node, 2], edges[node, 1] - x, x - edges[node, 3], 0
    )


@kernel
def _nearest_cloak(p: Any, seed: int, stack: Any) -> int:
    """The cloak of the nearest place that has one; -1: there is none."""
    n, first = len(p.down), len(p.held) // 2
    found, best = -1, 1 << 40
    for i in range(max(0, seed - _LOOK), min(n, seed + _LOOK)):  # a bound: near on the curve
        far = max(abs(p.down[i] - p.down[seed]), abs(p.across[i] - p.across[seed]))
        if p.cloak[i] >= 0 and far < best:
            best, found = far, p.cloak[i]
    stack[0] = 1
    top = 1
    while top:
        top -= 1
        node = stack[top]
        if p.open[node] == p.held[node] or _separation(p, node, seed) >= best:
            continue
        if node >= first:
            for i in range((node - first) * _BLOCK, min(n, (node - first + 1) * _BLOCK)):
                far = max(abs(p.down[i] - p.down[seed]), abs(p.across[i] - p.across[seed]))
                if p.cloak[i] >= 0 and far < best:
                    best, found = far, p.cloak[i]
            continue
        near, other = 2 * node, 2 * node + 1
        if _separation(p, other, seed) < _separation(p, near, seed):
            near, other = other, near
        stack[top] = other
        stack[top + 1] = near
        top += 2
    return found


@kernel
def _several(p: Any) -> bool:
    """Whether somebody has several places."""
    return len(p.seen) - 1 < len(p.down)


@kernel
def _people_in(p: Any, near: Any, count: int, box: Any) -> int:
    """How many different people of the places ``near`` stand in a box."""
    ys, xs, row = near.down, near.across, near.row
    south, west, north, east = box[0], box[1], box[2], box[3]
    several, last = _several(p), len(p.seen) - 1
    p.seen[last] += 1
    time, found = p.seen[last], 0
    for at in range(count):
        if south <= ys[at] <= north and west <= xs[at] <= east:
            if several:
                owner = p.owner[row[at]]
                if p.seen[owner] == time:
                    continue
                p.seen[owner] = time
            found += 1
    return found


@kernel
def _area(box: Any) -> float:
    return float(box[2] - box[0] + 1) * float(box[3] - box[1] + 1)


@kernel
def _grow(p: Any, near: Any, count: int, seed: int, limit: Any, box: Any, gain: Any) -> None:
    """Bottom-up: from the cell of ``seed``, by the strip that brings most people for its area."""
    ys, xs = near.down, near.across
    box[0] = box[2] = p.down[seed]
    box[1] = box[3] = p.across[seed]
    wide = max(1, (limit[2] - limit[0]) // (2 * _STRIPS))
    here = _people_in(p, near, count, box)
    while here < p.need[seed]:
        south, west, north, east = box[0], box[1], box[2], box[3]
        clear(gain)
        for at in range(count):
            y, x = ys[at], xs[at]
            if west <= x <= east:
                gain[0] += south - wide <= y < south
                gain[2] += north < y <= north + wide
            elif south <= y <= north:
                gain[1] += west - wide <= x < west
                gain[3] += east < x <= east + wide
        chosen = 0
        for side in range(1, 4):
            high = north - south + 1 if side % 2 else east - west + 1
            low = north - south + 1 if chosen % 2 else east - west + 1
            if gain[side] * low > gain[chosen] * high:
                chosen = side
        for side in range(4):  # where no strip holds anybody, all of them
            if side == chosen or not gain[chosen]:
                to = box[side] - wide if side < 2 else box[side] + wide
                box[side] = max(to, limit[side]) if side < 2 else min(to, limit[side])
        if gain[chosen] and not _several(p):
            here += gain[chosen]
        else:
            here = _people_in(p, near, count, box)


@kernel
def _shrink(p: Any, near: Any, count: int, seed: int, box: Any, trial: Any, lost: Any) -> None:
    """Top-down: take off outer lines, those that free most area a person, while enough stay."""
    ys, xs = near.down, near.across
    here = _people_in(p, near, count, box)
    for _ in range(_CUTS):
        _fit(near, count, box)
        if here <= p.need[seed]:
            return
        south, west, north, east = box[0], box[1], box[2], box[3]
        clear(lost)
        trial[0], trial[1], trial[2], trial[3] = north, east, south, west
        for at in range(count):  # who stands on the outermost lines, and where the next ones are
            y, x = ys[at], xs[at]
            if south <= y <= north and west <= x <= east:
                lost[0] += y == south
                lost[1] += x == west
                lost[2] += y == north
                lost[3] += x == east
                if y > south:
                    trial[0] = min(trial[0], y)
                if x > west:
                    trial[1] = min(trial[1], x)
                if y < north:
                    trial[2] = max(trial[2], y)
                if x < east:
                    trial[3] = max(trial[3], x)
        best, chosen = 0.0, -1
        for side in range(4):
            own = p.down[seed] if side % 2 == 0 else p.across[seed]
            length = float(east - west + 1) if side % 2 == 0 else float(north - south + 1)
            freed = abs(trial[side] - box[side]) * length / max(lost[side], 1)
            if own != box[side] and here - lost[side] >= p.need[seed] and freed > best:
                best, chosen = freed, side
        if chosen < 0:
            return
        box[chosen] = trial[chosen]
        here = _people_in(p, near, count, box) if _several(p) else here - lost[chosen]


@kernel
def _keep(near: Any, count: int, box: Any) -> int:
    """Leave in ``near`` what a box holds; how many that are."""
    kept = 0
    for at in range(count):
        y, x = near.down[at], near.across[at]
        if box[0] <= y <= box[2] and box[1] <= x <= box[3]:
            near.row[kept], near.down[kept], near.across[kept] = near.row[at], y, x
            kept += 1
    return kept


@kernel
def _fit(near: Any, count: int, box: Any) -> None:
    """Take off lines that hold nobody."""
    ys, xs = near.down, near.across
    south, west, north, east = box[2], box[3], box[0], box[1]
    for at in range(count):
        y, x = ys[at], xs[at]
        if box[0] <= y <= box[2] and box[1] <= x <= box[3]:
            south, north = min(south, y), max(north, y)
            west, east = min(west, x), max(east, x)
    box[0], box[1], box[2], box[3] = south, west, north, east


@kernel
def _around(p: Any, seed: int, radius: int, limit: Any, stack: Any, near: Any, most: int) -> int:
    """Set ``limit`` to the square around a place; how many in it have no cloak, up to ``most``."""
    limit[0], limit[1] = p.down[seed] - radius, p.across[seed] - radius
    limit[2], limit[3] = p.down[seed] + radius, p.across[seed] + radius
    return _open_within(p, limit, stack, near, most)


@kernel
def grid_cloaks(p: Any, order: Ints, boxes: Ints) -> int:
    """Give every place a cloak, in falling ``need``; returns how many there are.

    A box grows around the next place until the people in it who have no cloak yet are as many as
    this place asks for, and these take it. Where the cloak of a neighbor, widened, costs less
    area, or too few are left, the place joins that one: whoever formed it asked for no less.
    """
    _plant(p)
    n = len(order)
    near, stack = Near(integers(n), integers(n), integers(n)), integers(128)
    box, limit, trial, sums = zeros(4), zeros(4), zeros(4), zeros(4)
    sizes = zeros(len(boxes))
    cloaks, radius = 0, 0
    for turn in range(n):
        seed = order[turn]
        if p.cloak[seed] >= 0:
            continue
        plenty, enough = _PLENTY * p.need[seed] if radius else n, False
        count = _around(p, seed, radius, limit, stack, near, plenty)
        while radius and count > plenty:
            radius //= 2
            plenty = plenty if radius else n
            count = _around(p, seed, radius, limit, stack, near, plenty)
        while p.open[1] >= p.need[seed]:
            everybody = count == p.open[1]
            if count >= p.need[seed]:
                enough = _people_in(p, near, count, limit) >= p.need[seed]
            if enough or everybody:
                break
            radius = 2 * radius + 1
            count = _around(p, seed, radius, limit, stack, near, n)
        own = np.inf
        if enough:
            _grow(p, near, count, seed, limit, box, sums)
            count = _keep(near, count, box)
            _shrink(p, near, count, seed, box, trial, sums)
            own = _area(box)
        joined = _nearest_cloak(p, seed, stack) if cloaks else -1
        if joined >= 0:
            for side in range(4):
                trial[side] = boxes[joined, side]
            trial[0], trial[1] = min(trial[0], p.down[seed]), min(trial[1], p.across[seed])
            trial[2], trial[3] = max(trial[2], p.down[seed]), max(trial[3], p.across[seed])
            size = float(sizes[joined])
            if _area(trial) * (size + 1) - _area(boxes[joined]) * size < own:
                _widen(boxes, joined, p.down[seed], p.across[seed])
                sizes[joined] += 1
                _give(p, seed, joined)
                continue
        if not enough:
            return -1
        for side in range(4):
            boxes[cloaks, side] = box[side]
        for at in range(count):
            y, x = near.down[at], near.across[at]
            if box[0] <= y <= box[2] and box[1] <= x <= box[3]:
                _give(p, near.row[at], cloaks)
                sizes[cloaks] += 1
        cloaks += 1
    return cloaks


def cloak_places(down: Ints, across: Ints, owner: Ints, need: Ints, order: Ints) -> tuple[Any, Any]:
    """Per place its cloak, and the first row and column, last row and column of each cloak.

    Args:
        down: per place, along a curve that fills the plane, its row of the grid.
        across: its column.
        owner: whose it is, from 0.
        need: how many people must share its cloak, 2 or more.
        order: all places, in falling ``need``.
    """
    n = len(down)
    leaves = 1
    while leaves * _BLOCK < n:
        leaves *= 2
    p = Places(
        down, across, owner, need,
        constants(n, -1), integer_rows(2 * leaves, 4, 0), zeros(2 * leaves), zeros(2 * leaves),
        zeros(int(owner.max(initial=-1)) + 2),
    )  # fmt: skip
    boxes = integer_rows(n // 2 + 1, 4, 0)
    found = grid_cloaks(p, order, boxes)
    return (p.cloak, boxes[:found]) if found >= 0 else (None, None)
