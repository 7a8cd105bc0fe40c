"""Inner loops of secondary suppression: cheap moves for a cell, made of products.

A product of one move per column keeps all sums of a table. So does the sum of several: a cell that
a product would have to withhold is spared by another product through it that takes its change back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import ascend, bare, integers, kernel, reals, zeros

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]
    Real = NDArray[np.float64]

TINY = 1e-12  # of a change: what is left of two that undo each other
SWEEPS = 3  # over the cells of a move, to spare them


class ColumnMoves(NamedTuple):
    """The moves of single columns that products are made of.

    Attributes:
        shape: how many categories each column has.
        begins: per category of every column, the first of its moves; one more for the end.
        widths: per column, how many categories a move changes at most.
        nodes: the categories that moves change, -1: none.
        signs: by how much they change them.
    """

    shape: Whole
    begins: Whole
    widths: Whole
    nodes: Whole
    signs: Whole


class CellRoom(NamedTuple):
    """What cells may do.

    Attributes:
        price: per cell, what it costs to change it.
        up: how far each may rise; ``down`` how far it may fall.
        held: how far each has changed already.
    """

    price: Real
    up: Real
    down: Real
    held: Real


class Changes(NamedTuple):
    """Room for cells and by how much each changes."""

    cells: Whole
    amounts: Real


class Goal(NamedTuple):
    """What a move is for.

    Attributes:
        cell: the cell that changes, by ``amount`` (negative: falls).
        half: the part of the amount for a second product, 0: none.
        spared: the cell of an earlier move that must not be used, -1: there is none.
    """

    cell: int
    amount: float
    half: float
    spared: int


@bare
def price_of_change(cell: int, change: float, room: Any) -> float:
    """What it costs to change one cell; infinite where it must not change so far."""
    after = room.held[cell] + change
    if abs(after) <= TINY * abs(change):
        after = 0.0
    if after > room.up[cell] or -after > room.down[cell]:
        return np.inf
    if after == 0.0 or room.held[cell] != 0.0:
        return 0.0
    asked: float = room.price[cell]
    return asked


@kernel
def cheapest_product(
    cell: int, amount: float, limit: float, visits: int, moves: Any, room: Any, product: Any
) -> int:
    """Fill ``product`` with the cheapest one; how many cells, 0: there is none.

    Moves of one column are tried in the order of their price along the cell's own line. That line
    is part of every product, so whatever costs as much as the best product is not looked at.

    Args:
        cell: the cell that changes, by ``amount`` (negative: falls).
        amount: by how much.
        limit: products of this price or above are not wanted.
        visits: how many products are looked at, at most.
        moves: those of single columns.
        room: what cells may do.
        product: room for its cells.
    """
    shape, begins, widths, nodes, signs = moves
    columns = len(shape)
    places, strides = integers(columns), integers(columns)
    rest, step, total = cell, 1, 1
    for i in range(columns - 1, -1, -1):
        places[i], strides[i] = rest % shape[i], step
        rest //= shape[i]
        step *= shape[i]
        total *= widths[i]
    first, last, base, wide = integers(columns), integers(columns), 0, 0
    offset = integers(columns)
    for i in range(columns):
        first[i], last[i] = begins[base + places[i]], begins[base + places[i] + 1]
        offset[i] = wide
        base += shape[i]
        wide += last[i] - first[i]
    order, line = integers(wide), reals(wide, 0.0)
    at = zeros(columns + 1)  # where the nodes of each column begin
    base = 0
    for i in range(columns):
        at[i + 1] = at[i] + (begins[base + shape[i]] - begins[base]) * widths[i]
        base += shape[i]
    base = 0
    for i in range(columns):
        count = last[i] - first[i]
        own = reals(count, 0.0)
        for j in range(count):
            here = at[i] + (first[i] + j - begins[base]) * widths[i]
            for w in range(widths[i]):
                node = nodes[here + w]
                if node >= 0 and node != places[i]:
                    own[j] += price_of_change(
                        cell + (node - places[i]) * strides[i], amount * signs[here + w], room
                    )
        ranked = ascend(own)
        for j in range(count):
            order[offset[i] + j] = ranked[j]
            line[offset[i] + j] = own[ranked[j]]
        base += shape[i]
    path, sign, ends = integers(total), integers(total), zeros(columns + 1)
    path[0], sign[0], ends[0] = cell, 1, 1
    cost, turn = reals(columns + 1, 0.0), zeros(columns)
    cost[0] = price_of_change(cell, amount, room)
    best, found, depth, seen = limit, 0, 0, 0
    while depth >= 0:
        count = last[depth] - first[depth]
        if (
            turn[depth] >= count
            or line[offset[depth] + turn[depth]] >= best
            or cost[depth] >= best
            or seen > visits
        ):
            turn[depth] = 0
            depth -= 1
            continue
        chosen = order[offset[depth] + turn[depth]]
        turn[depth] += 1
        seen += 1
        base = 0
        for i in range(depth):
            base += shape[i]
        here = at[depth] + (first[depth] + chosen - begins[base]) * widths[depth]
        size, now = ends[depth], cost[depth]
        for w in range(widths[depth]):
            node = nodes[here + w]
            if node < 0 or node == places[depth]:
                continue
            for j in range(ends[depth]):  # the product so far once more, at this category
                path[size] = path[j] + (node - places[depth]) * strides[depth]
                sign[size] = sign[j] * signs[here + w]
                now += price_of_change(path[size], amount * sign[size], room)
                size += 1
            if now >= best:
                break
        if now >= best:
            continue
        depth += 1
        ends[depth], cost[depth] = size, now
        if depth == columns:
            best, found = now, size
            for j in range(size):
                product.cells[j], product.amounts[j] = path[j], amount * sign[j]
            depth -= 1
    return found


@bare
def add_product(product: Any, size: int, held: Real, move: Whole, count: int) -> int:
    """Add a product to the move that ``held`` keeps; how many cells ``move`` lists then."""
    for j in range(size):
        cell, change = product.cells[j], product.amounts[j]
        if held[cell] == 0.0:
            if count >= len(move):
                return -1
            move[count] = cell
            count += 1
        after = held[cell] + change
        held[cell] = 0.0 if abs(after) <= TINY * abs(change) else after
        if held[cell] == 0.0:
            for k in range(count):
                if move[k] == cell:
                    count -= 1
                    move[k] = move[count]
                    break
    return count


@bare
def cost_of_move(move: Whole, count: int, price: Real) -> float:
    """What is withheld for a move beyond what is withheld anyhow."""
    found = 0.0
    for k in range(count):
        found += price[move[k]]
    return found


@bare
def drop_move(move: Whole, count: int, held: Real) -> None:
    """Forget a move."""
    for k in range(count):
        held[move[k]] = 0.0


@kernel
def cheapest_move(
    goal: Any, earlier: Any, visits: int, moves: Any, room: Any, product: Any, found_move: Any
) -> int:
    """Fill ``found_move`` with a cheap move of a cell; how many cells, 0: there is none.

    Tried are one product, two that share the amount, and the ``earlier`` move without the cell that
    is spared; the cheapest is taken, and then cells of it are spared one by one while that saves
    something. What cells hold is zeros, and zeros again afterwards; ``product`` is scratch.
    """
    cell, amount, half, spared = goal
    price, room_up, room_down, held = room
    move, amounts = found_move
    best, count = np.inf, 0
    found = cheapest_product(cell, amount, np.inf, visits, moves, room, product)
    if found > 0:
        count = add_product(product, found, held, move, 0)
        best = cost_of_move(move, count, price)
        for k in range(count):
            amounts[k] = held[move[k]]
        drop_move(move, count, held)
    other = integers(len(move))
    if half != 0.0 and best > 0.0:
        found = cheapest_product(cell, amount - half, best, visits, moves, room, product)
        if found > 0:
            size = add_product(product, found, held, other, 0)
            left = best - cost_of_move(other, size, price)
            found = cheapest_product(cell, half, left, visits, moves, room, product)
            if found > 0:
                size = add_product(product, found, held, other, size)
                best, count = cost_of_move(other, size, price), size
                for k in range(size):
                    move[k], amounts[k] = other[k], held[other[k]]
            drop_move(other, size, held)
    kept = room_down[cell] if amount > 0 else room_up[cell]
    if amount > 0:  # whatever is added now, the cell must have moved far enough
        room_down[cell] = -amount
    else:
        room_up[cell] = amount
    if spared >= 0 and best > 0.0:
        size, back = 0, 0.0
        for k in range(len(earlier.cells)):
            one = earlier.cells[k]
            other[k], held[one] = one, earlier.amounts[k]
            if one != spared:
                back += price[one]
            size += 1
        found = cheapest_product(spared, -held[spared], best - back, visits, moves, room, product)
        if found > 0:
            more = add_product(product, found, held, other, size)
            if more > 0:
                size = more
                best, count = cost_of_move(other, size, price), size
                for k in range(size):
                    move[k], amounts[k] = other[k], held[other[k]]
        drop_move(other, size, held)
        for k in range(found):
            held[product.cells[k]] = 0.0
    for k in range(count):
        held[move[k]] = amounts[k]
    sweep = 0
    while best > 0.0 and sweep < SWEEPS and count > 0:
        sweep, saved = sweep + 1, False
        for k in range(count):
            other[k] = move[k]
        for k in range(count):
            one = other[k]
            if one == cell or price[one] == 0.0 or held[one] == 0.0:
                continue
            found = cheapest_product(one, -held[one], price[one], visits, moves, room, product)
            if found > 0 and count + found <= len(move):
                count = add_product(product, found, held, move, count)
                saved = True
        best = cost_of_move(move, count, price)
        if not saved:
            break
    for k in range(count):
        amounts[k] = held[move[k]]
    drop_move(move, count, held)
    if amount > 0:
        room_down[cell] = kept
    else:
        room_up[cell] = kept
    return count
