"""Moves made of products: each keeps all sums and reaches its target, none dearer than one cube."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from halfmask.release.tabulation.cells import Axis, CellGrid
from halfmask.tabulate.attack import ProtectionProblem, ProtectionTarget
from halfmask.tabulate.move_products import MoveSet, ProductMoves
from halfmask.tabulate.suppression import find_pattern


def grid_of(shape):
    return CellGrid(
        tuple(
            Axis(f"c{i}", (*(str(v) for v in range(n)), "Total"), ((n, tuple(range(n))),))
            for i, n in enumerate(shape)
        )
    )


def problem_of(leaves, k=3, owner=None):
    """Every count below k must be able to rise to k; nothing can fall below 1."""
    full = leaves.astype(float)
    for side in range(full.ndim):
        full = np.concatenate([full, full.sum(axis=side, keepdims=True)], axis=side)
    grid, values = grid_of(leaves.shape), full.ravel()
    small = (values > 0) & (values < k)
    return grid, ProtectionProblem(
        grid.relations, small, values > 0, np.maximum(values, 1.0),
        np.where(small, k - values, 0.0), np.zeros(len(values)), np.full(len(values), np.inf),
        np.maximum(values - 1, 0.0), np.full(len(values), -1) if owner is None else owner, True,
    )  # fmt: skip


def is_move(problem, target, move):
    change = np.zeros(problem.size)
    change[move.cells] = move.amounts
    assert len(np.unique(move.cells)) == len(move.cells)
    assert not (problem.relations @ change).any()
    assert change[target.cell] * target.sign >= target.amount
    assert (change <= problem.room_up).all()
    assert (-change <= problem.room_down).all()
    assert (change == np.round(change)).all()
    assert (problem.free | problem.primary)[move.cells].all()
    return True


def cheapest_cube(shape, problem, target, price):
    """The price of the cheapest box with the target in one corner, by trying all of them."""
    cells = np.arange(problem.size).reshape(shape)
    place = np.unravel_index(target.cell, shape)
    best = np.inf
    # A column moves against another category, or (its total with it) alone.
    for others in product(*(range(n) for n in shape)):
        if any(o == p for o, p in zip(others, place, strict=True)):
            continue
        cost = 0.0
        for corner in product((0, 1), repeat=len(shape)):
            at = tuple(o if c else p for c, o, p in zip(corner, others, place, strict=True))
            cell = cells[at]
            room = problem.room_down if sum(corner) % 2 else problem.room_up
            cost += price[cell] if room[cell] >= target.amount else np.inf
        best = min(best, cost)
    return best


@pytest.mark.parametrize("seed", range(6))
def test_a_move_keeps_all_sums_and_costs_no_more_than_the_cheapest_cube(seed):
    rng = np.random.default_rng(seed)
    leaves = rng.integers(0, 9, size=(4, 5, 3))
    grid, problem = problem_of(leaves)
    products = ProductMoves(grid, problem, rng)
    shape = tuple(n + 1 for n in leaves.shape)
    found = 0
    for target in problem.targets():
        move = products.cheapest(target)
        cube = cheapest_cube(shape, problem, target, products.price)
        if move is None:
            assert cube == np.inf
            continue
        found += is_move(problem, target, move)
        assert products.price[move.cells].sum() <= cube
    assert found > 3


@pytest.mark.parametrize("seed", range(4))
def test_a_spared_cell_is_in_no_move_any_more_and_a_refusal_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    grid, problem = problem_of(rng.integers(1, 9, size=(6, 6, 4)))
    held = MoveSet(ProductMoves(grid, problem, rng), problem.targets())
    for place, target in enumerate(held.targets):
        held.put(place, held.products.cheapest(target))
    outcomes = set()
    for cell in np.flatnonzero((held.used > 0) & ~problem.primary).tolist():
        if not held.used[cell]:
            continue
        cost, used = held.cost, held.used.copy()
        before = held.spare(cell, cost, rng)
        outcomes.add(before is None)
        if before is None:
            assert held.cost == pytest.approx(cost)
            assert (held.used == used).all()
        else:
            assert not held.used[cell]
            assert held.cost <= cost
        assert set(held.moves) == set(range(len(held.targets)))
        counted = np.zeros(problem.size, dtype=int)
        for place, move in held.moves.items():
            is_move(problem, held.targets[place], move)
            counted[move.cells] += 1
        assert (counted == held.used).all()
        kept = (counted > 0) & ~problem.primary
        assert held.cost == pytest.approx(problem.weight[kept].sum())
    assert outcomes == {True, False}


def test_who_knows_own_cells_is_not_offered_them_as_a_move():
    leaves = np.array([[2, 7, 7], [7, 7, 7], [7, 7, 7]])
    owner = np.full(16, -1)
    owner[[0, 1]] = [4, 9]  # 9 alone stands in the cell beside that of 4
    grid, problem = problem_of(leaves, owner=owner)
    target = ProtectionTarget(0, 1, 1.0)
    move = ProductMoves(grid, problem, np.random.default_rng(0)).cheapest(target)
    assert move is not None
    assert 1 not in move.cells
    assert is_move(problem, target, move)


def test_the_pattern_of_a_large_table_has_a_move_for_everybody_and_a_bound_below_its_cost():
    leaves = np.random.default_rng(5).poisson(5, size=(9, 9, 6))
    grid, problem = problem_of(leaves)
    pattern = find_pattern(grid, problem, time_limit=2)
    assert set(pattern.moves) == set(problem.targets())
    for target, move in pattern.moves.items():
        assert is_move(problem, target, move)
        assert pattern.withheld[move.cells].all()
    assert pattern.withheld[problem.primary].all()
    assert 0 < pattern.bound <= pattern.cost == problem.weight[pattern.withheld].sum()
