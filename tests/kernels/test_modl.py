"""The compiled steps change the cost by exactly what the criterion says."""

from __future__ import annotations

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from halfmask.coclustering.criterion import GridCriterion
from halfmask.coclustering.hierarchy import merge_parts, renumber
from halfmask.coclustering.observations import Variable, observe
from halfmask.coclustering.search import GridSearch
from halfmask.kernels.coclustering import merge_path, one_variable
from halfmask.kernels.coclustering.one_variable import anneal_values, best_intervals, move_values


def case(seed, kinds):
    """Random observations with weights, and a random grid over them."""
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 9, len(kinds))
    rows = int(random.integers(1, 60))
    codes = [random.integers(0, size, rows).astype(np.int32) for size in sizes]
    sides = [Variable(f"v{k}", kind, int(sizes[k])) for k, kind in enumerate(kinds)]
    observed = observe(sides, codes, random.integers(1, 4, rows))
    grid = []
    for kind, size in zip(kinds, sizes, strict=True):
        parts = random.integers(0, random.integers(1, size + 1), size)
        grid.append(renumber(np.sort(parts) if kind == "numeric" else parts))
    return observed, tuple(grid)


kinds = st.lists(st.sampled_from(["categorical", "numeric"]), min_size=2, max_size=4)
forms = st.sampled_from(["published", "khiops11"])


@settings(max_examples=examples(100))
@given(st.integers(0, 10**6), kinds, forms)
def test_every_merge_of_a_path_changes_the_cost_as_said(seed, kinds, form):
    observed, grid = case(seed, kinds)
    judge = GridCriterion(observed, form)
    path = merge_parts(judge, grid)
    exact = [judge.cost(path.partition(step)) for step in range(len(path.steps) + 1)]
    assert path.costs == pytest.approx(exact, abs=1e-8)
    assert all(int(side.max()) == 0 for side in path.partition(len(path.steps)))


@settings(max_examples=examples(60))
@given(st.integers(0, 10**6), kinds, forms)
def test_the_first_merge_is_the_best_of_all_pairs(seed, kinds, form):
    observed, grid = case(seed, kinds)
    judge = GridCriterion(observed, form)
    path = merge_parts(judge, grid)
    costs = []
    for side, assigned in enumerate(grid):
        for a in range(int(assigned.max()) + 1):
            for b in range(a + 1, int(assigned.max()) + 1):
                if kinds[side] == "categorical" or b == a + 1:
                    joined = renumber(np.where(assigned == b, a, assigned))
                    costs.append(judge.cost((*grid[:side], joined, *grid[side + 1 :])))
    if costs:
        assert path.costs[1] == pytest.approx(min(costs), abs=1e-8)


@settings(max_examples=examples(60))
@given(st.integers(0, 10**6), kinds.map(lambda rest: ["categorical", *rest]), forms)
def test_moves_change_the_cost_as_said_and_leave_no_better_move(seed, kinds, form):
    observed, grid = case(seed, kinds)
    judge = GridCriterion(observed, form)
    search = GridSearch.of(judge, 0)
    values = search.profile(0, grid)
    part, parts = grid[0].copy(), int(grid[0].max()) + 1
    level = search.levels(0, grid, len(part))
    order = np.arange(len(part))
    parts, change = move_values(values, part, parts, order, level, search.factorials, 99, 1e-9)
    assert int(part.max()) + 1 == parts == len(np.unique(part))
    after = judge.cost((part, *grid[1:]))
    assert after - judge.cost(grid) == pytest.approx(change, abs=1e-8)
    for value in range(len(part)):
        for target in range(min(parts + 1, len(part))):
            moved = part.copy()
            moved[value] = target
            assert judge.cost((renumber(moved), *grid[1:])) >= after - 1e-7


@settings(max_examples=examples(60))
@given(st.integers(0, 10**6), kinds.map(lambda rest: ["numeric", *rest]), forms)
def test_intervals_are_the_best_of_all(seed, kinds, form):
    observed, grid = case(seed, kinds)
    judge = GridCriterion(observed, form)
    search = GridSearch.of(judge, 0)
    starts, cells, counts, n_cells = search.profile(0, grid)
    size = len(grid[0])
    level = search.levels(0, grid, size)
    found, _ = best_intervals(starts, cells, counts, level, search.factorials, n_cells)
    costs = []
    for bits in range(2 ** (size - 1)):
        cuts = [(bits >> i) & 1 for i in range(size - 1)]
        side = np.concatenate([[0], np.cumsum(cuts)]).astype(np.int32)
        costs.append(judge.cost((side, *grid[1:])))
    assert judge.cost((found, *grid[1:])) == pytest.approx(min(costs), abs=1e-8)


def test_annealing_keeps_parts_without_gaps_and_repeats_for_a_seed():
    observed, grid = case(7, ["categorical", "categorical"])
    search = GridSearch.of(GridCriterion(observed), 0)
    values = search.profile(0, grid)
    parts = int(grid[0].max()) + 1
    level = search.levels(0, grid, parts)
    heat = np.geomspace(2, 0.2, 30)
    random = np.random.default_rng(5)
    orders = random.permuted(np.tile(np.arange(len(grid[0])), (30, 1)), axis=1)
    draws = random.random((30, len(grid[0])))
    found = []
    for _ in range(2):
        part = grid[0].copy()
        left = anneal_values(
            values,
            part,
            parts,
            level,
            search.factorials,
            heat,
            orders,
            draws,
        )
        assert len(np.unique(part)) == left == int(part.max()) + 1
        found.append(part)
    assert np.array_equal(*found)


@settings(max_examples=examples(60))
@given(st.integers(0, 10**6), kinds, forms, st.booleans())
def test_numpy_merges_as_the_kernel_does(seed, kinds, form, some):
    observed, grid = case(seed, kinds)
    frozen = [some and k == 1 for k in range(len(kinds))]
    stop_at = [1 + (seed + k) % 2 for k in range(len(kinds))]
    found = []
    for merge in (merge_path.plain_merge_path, merge_path.merge_compiled):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(merge_path, "merge_path", merge)
            judge = GridCriterion(observed, form)
            found.append(merge_parts(judge, grid, frozen=frozen, stop_at=stop_at))
    assert np.array_equal(found[0].steps, found[1].steps)
    assert np.array_equal(found[0].change, found[1].change)  # to the last bit
    assert not some or not (found[0].steps[:, 0] == 1).any()


@settings(max_examples=examples(60))
@given(st.integers(0, 10**6), kinds)
def test_numpy_profiles_as_the_kernel_does(seed, kinds):
    observed, grid = case(seed, kinds)
    search = GridSearch.of(GridCriterion(observed), 0)
    for side in range(len(kinds)):
        cell, cells = search.cells_of_others(side, grid)
        given = (*search.index[side], cell, observed.weights, cells)
        for one, other in zip(
            one_variable._profile(*given), one_variable._plain_profile(*given), strict=True
        ):
            assert np.array_equal(one, other)
            assert one.dtype == other.dtype


def test_chances_are_exponentials():
    asked = -np.concatenate([[0.0], np.geomspace(1e-9, 700, 2000)])
    found = [one_variable._chance(x) for x in asked]
    near = asked > -40  # less is nothing beside the likeliest, whose chance is 1
    assert np.allclose(np.array(found)[near], np.exp(asked[near]), rtol=3e-13, atol=0)
    assert max(np.array(found)[~near]) < 1e-17
    assert one_variable._chance(-1e9) < 1e-300
