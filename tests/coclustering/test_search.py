"""The search finds nothing dearer than Khiops does, in either form of the cost.

Khiops 11.0.1 searched these tables (`benchmarks/coclustering_khiops.py` makes more of them and runs
it); what its grids cost in both forms is written down here.
"""

from __future__ import annotations

import itertools
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from halfmask.coclustering import optimize
from halfmask.coclustering.criterion import GridCriterion
from halfmask.coclustering.observations import Variable, observe, sum_duplicates
from halfmask.coclustering.optimize import optimize_grid
from halfmask.coclustering.search import GridSearch, visiting_orders

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# kind, seed, and what the grid of Khiops costs in its own form and in the published one
KNOWN = [
    ("rare values", 0, 10091.693857, 10131.486938),
    ("rare values", 4, 9955.979779, 10027.868652),
    ("sparser", 1, 4062.125133, 4064.205679),
    ("two categories", 1, 7862.7365, 7869.943538),
    ("four categories", 0, 15438.344864, 15438.617703),
    ("category, number", 0, 9071.605852, 9075.40255),
    ("two categories, number", 2, 16247.959649, 16250.232175),
    ("two categories, number", 4, 17812.913971, 17818.224008),
]


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return import_module("coclustering_khiops").KINDS


@pytest.mark.parametrize(("kind", "seed", "own", "published"), KNOWN)
def test_no_grid_is_dearer_than_that_of_khiops(kind, seed, own, published, tables):
    observed = tables[kind](seed)
    for form, cost in (("khiops11", own), ("published", published)):
        assert optimize_grid(observed, criterion=form).cost <= cost + 1e-5


def test_an_interrupt_ends_the_searches_beside_it(tables):
    """Who interrupts waits for them: they end at their next look at the clock."""
    judge = GridCriterion(tables["two categories"](1), "published")
    search = GridSearch.of(judge, 0)
    forks = search.fork(2)

    def interrupt(number, _):
        assert not any(fork.late for fork in forks)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimize._search(search, 1, interrupt)
    assert all(fork.late for fork in forks)


def test_values_move_into_a_garbage_group_and_out_of_it(tables):
    """The sorting finds nothing that any move of one value would make cheaper."""
    judge = GridCriterion(tables["rare values"](4), "khiops11")
    search = GridSearch.of(judge, 0)
    random = np.random.default_rng(0)
    start = tuple(
        np.r_[np.zeros(size - 6), random.integers(1, 3, 6)].astype(np.int32)
        for size in judge.observations.sizes
    )
    assert judge.best_garbage(start) == (0, 0)
    found = search.sort_garbage(start)
    for _ in range(9):
        found = search.sort_garbage(found)
    cost = judge.least(found)
    assert cost < judge.least(start)
    for side, assigned in enumerate(found):
        for value in range(len(assigned)):
            for part in range(3):
                moved = assigned.copy()
                moved[value] = part
                if len(np.unique(moved)) == 3:
                    other = (*found[:side], moved, *found[side + 1 :])
                    assert judge.least(other) > cost - 1e-6


def test_the_best_garbage_group_costs_least_of_all_choices():
    random = np.random.default_rng(2)
    observed = observe(
        [Variable(name, "categorical", 12) for name in "ab"],
        list(random.integers(0, 12, (2, 60)).astype(np.int32)),
    )
    judge = GridCriterion(observed, "khiops11")
    for _ in range(20):
        grid = tuple(random.permutation(np.r_[:3, random.integers(0, 3, 9)]) for _ in range(2))
        grid = tuple(side.astype(np.int32) for side in grid)
        choices = itertools.product((None, 0, 1, 2), repeat=2)
        assert judge.least(grid) == pytest.approx(
            min(judge.cost(grid, garbage=choice) for choice in choices)
        )


def test_every_value_is_looked_at_once_in_a_sweep():
    orders = visiting_orders(1300, 3, np.random.default_rng(0))
    assert all(sorted(order) == list(range(1300)) for order in orders.tolist())
    assert (orders[0] != orders[1]).any()
    # Neighbors stand near each other, so that memory is read once.
    assert all(len(set((order[:512] // 512).tolist())) <= 2 for order in orders)


def test_sums_by_counting_are_those_by_sorting():
    random = np.random.default_rng(1)
    codes = random.integers(0, 9, (400, 2)).astype(np.int32)
    weights = random.integers(1, 5, 400)
    far = codes * np.int32(10_000)  # too far apart to be counted
    distinct, summed = sum_duplicates(codes, weights)
    again, sums = sum_duplicates(far, weights)
    assert (distinct * 10_000).tolist() == again.tolist()
    assert summed.tolist() == sums.tolist()
    assert distinct.dtype == again.dtype
    assert summed.dtype == sums.dtype
