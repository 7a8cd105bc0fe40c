"""Costs written by hand or printed by Khiops; see also test_khiops.py."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfmask.coclustering.criterion import GridCriterion
from halfmask.coclustering.observations import (
    Variable,
    log_compositions,
    log_partitions,
    observe,
    universal,
)


def partition(*sides):
    return tuple(np.array(side, dtype=np.int32) for side in sides)


@pytest.mark.parametrize(
    ("values", "parts", "expected"),
    [(3, 2, math.log(4)), (4, 4, math.log(15)), (15, 8, 20.986842), (150, 3, 163.000084)],
)
def test_partitions_are_counted(values, parts, expected):
    assert log_partitions(values, values)[parts] == pytest.approx(expected, abs=1e-6)


def stirling(n, k):
    if n == k:
        return 1
    if k == 0 or k > n:
        return 0
    return k * stirling(n - 1, k) + stirling(n - 1, k - 1)


@given(st.integers(1, 14), st.data())
def test_partitions_agree_with_stirling_numbers(values, data):
    parts = data.draw(st.integers(1, values))
    exact = sum(stirling(values, i) for i in range(1, parts + 1))
    assert log_partitions(values, values)[parts] == pytest.approx(math.log(exact), abs=1e-9)


def test_many_values_give_finite_rising_counts():
    counts = log_partitions(30_000, 30_000)
    assert np.isfinite(counts[1:]).all()
    assert (np.diff(counts[1:]) >= -1e-6).all()


@pytest.mark.parametrize(("n", "expected"), [(1, 1.052607), (2, 1.745754), (4, 3.132048)])
def test_integers_have_a_universal_code(n, expected):
    assert universal(n) == pytest.approx(expected, abs=1e-6)


def test_compositions_are_binomials():
    assert log_compositions(4, 3) == pytest.approx(math.log(math.comb(6, 2)))
    assert log_compositions(5, 1) == 0


@pytest.mark.parametrize(
    ("table", "null", "apart"),
    [
        ([[2, 0], [0, 2]], 8.188689, 8.119696),
        ([[10, 0], [0, 10]], 31.728922, 22.378680),
        ([[5, 5], [5, 5]], 31.728922, 33.437538),
    ],
)
def test_costs_of_two_by_two_tables(table, null, apart, contingency):
    judge = GridCriterion(contingency(table))
    assert judge.null() == pytest.approx(null, abs=1e-6)
    assert judge.cost(partition([0, 1], [0, 1])) == pytest.approx(apart, abs=1e-6)


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        ([0, 0, 0, 0], [0, 0, 0], 91.316397),
        ([0, 0, 1, 1], [0, 0, 1], 80.171543),
        ([0, 0, 1, 1], [0, 1, 2], 80.618732),
        ([0, 1, 2, 3], [0, 1, 2], 83.048672),
    ],
)
def test_costs_of_a_four_by_three_table(rows, columns, expected, contingency):
    judge = GridCriterion(contingency([[8, 1, 0], [7, 2, 0], [0, 1, 9], [1, 0, 6]]))
    assert judge.cost(partition(rows, columns)) == pytest.approx(expected, abs=1e-6)


def test_two_numeric_variables_by_hand():
    sides = [Variable("x", "numeric", 4), Variable("y", "numeric", 4)]
    observed = observe(sides, [np.arange(4, dtype=np.int32)] * 2)
    f = math.lgamma
    grid = partition([0, 0, 1, 1], [0, 0, 1, 1])
    expected = 2 * math.log(4) + math.log(math.comb(7, 3)) + f(5) - 2 * f(3) + 4 * f(3)
    assert GridCriterion(observed).cost(grid) == pytest.approx(expected)


def test_a_number_that_repeats_costs_the_rows_and_not_its_values():
    sides = [Variable("x", "numeric", 2), Variable("c", "categorical", 2)]
    observed = observe(sides, [np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1])])
    f = math.lgamma
    own = math.log(5) + f(4) + f(3)  # intervals of 3 and 2 rows
    other = 2 * math.log(2) + f(3) + f(4) - f(3) - f(4)  # values of 2 and 3 rows, each apart
    cells = math.log(math.comb(8, 3)) + f(6) - 2 * f(3)  # 2, 1, 0 and 2 rows
    assert GridCriterion(observed).cost(partition([0, 1], [0, 1])) == pytest.approx(
        own + other + cells
    )


def test_a_weight_counts_as_repeated_rows():
    sides = [Variable("a", "categorical", 3), Variable("b", "numeric", 3)]
    codes = [np.array([0, 1, 2, 2]), np.array([0, 1, 1, 2])]
    weights = np.array([3, 1, 2, 4])
    once = observe(sides, codes, weights)
    often = observe(sides, [np.repeat(c, weights) for c in codes])
    for rows in itertools.product(range(2), repeat=3):
        grid = partition(np.unique(rows, return_inverse=True)[1], [0, 1, 1])
        assert GridCriterion(once).cost(grid) == GridCriterion(often).cost(grid)


def test_a_garbage_group_costs_what_khiops_counts(contingency):
    table = np.ones((9, 2), dtype=int)
    table[0, 0] = table[1, 1] = 20
    judge = GridCriterion(contingency(table), "khiops11")
    grid = partition([0, 1, 2, 2, 2, 2, 2, 2, 2], [0, 1])
    plain, garbage = judge.cost(grid), judge.cost(grid, garbage=(2, None))
    from halfmask.coclustering.observations import universal_bounded as bounded

    by_hand = bounded(1, 7) + 2 * math.log(9) - math.log(2) + bounded(1, 1) + math.log(2)
    without = bounded(2, 8) + log_partitions(9, 9)[3]
    assert garbage - plain == pytest.approx(by_hand - without)
    assert judge.best_garbage(grid) == ((2, None) if garbage < plain else (None, None))


def test_melted_iris_costs_as_published(melted, grid):
    assert GridCriterion(melted.observations).null() == pytest.approx(5966.412356, abs=1e-6)
    assert GridCriterion(melted.observations).cost(grid.partition) == pytest.approx(grid.cost)
    assert GridCriterion(melted.observations, "khiops11").null() == pytest.approx(
        5959.386818, abs=1e-6
    )
