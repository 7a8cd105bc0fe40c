"""Measures of synthetic rows on tables small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest

from halfmask.metrics.attribution import attribution
from halfmask.metrics.hellinger import hellinger, joint, joint_of_sets
from halfmask.metrics.indistinguishability import indistinguishability
from halfmask.metrics.nearest import nearest, nearest_rows
from halfmask.metrics.wp29 import attacks, inference, linkability, singling_out


def rows(*values):
    return np.array(values, dtype=np.int32)


def test_the_copy_of_a_table_can_be_attributed_to_one_row_each():
    table = rows((0, 0), (0, 1), (1, 0), (1, 1), (1, 1))
    found = attribution(table, table)
    assert found.ratio == 1 / 5
    assert found.copies == 1
    assert found.unique_copies == 1
    assert found.absent == 0


def test_disjoint_tables_have_nothing_to_attribute():
    found = attribution(rows((0, 0), (0, 1)), rows((2, 2), (2, 3), (2, 4)))
    assert found.ratio == 1
    assert found.copies == 0
    assert found.absent == 1


def test_attribution_by_hand():
    # hidden a: (b, b) known; synthetic a, a, b, c: a, a, c left over = 3 of 4
    # hidden b: a and one b known: a, c left = 2, and b is explained by the b that is known
    found = attribution(rows((0,), (1,), (1,)), rows((0,), (0,), (1,), (2,)))
    assert found.ratio == pytest.approx((3 + 2 + 2) / 3 / 4)


def test_nearest_rows_are_found_and_ties_go_to_the_first():
    place, distance = nearest_rows(
        rows((0, 0, 1), (2, 2, 2)), rows((0, 0, 0), (0, 0, 2), (2, 2, 2))
    )
    assert place.tolist() == [0, 2]
    assert distance.tolist() == [pytest.approx(1 / 3), 0]


def test_a_copy_is_nearer_than_originals_are_to_each_other():
    table = np.arange(60, dtype=np.int32).reshape(20, 3)
    found = nearest(table, table, np.random.default_rng(0))
    assert found.synthetic == 0
    assert found.original == 1
    assert found.synthetic_zero == 1


def correlated(random, size):
    first = random.integers(0, 6, size)
    return np.column_stack([first, first, random.integers(0, 3, size)]).astype(np.int32)


def test_a_forest_sees_what_naive_bayes_cannot():
    pytest.importorskip("sklearn", reason="the extra measures is not installed")
    random = np.random.default_rng(0)
    table = correlated(random, 3000)
    again = correlated(random, 3000)
    apart = np.column_stack([random.permutation(again[:, k]) for k in range(3)])
    same = indistinguishability(table, again, random)
    split = indistinguishability(table, apart, random)
    assert same["random_forest"] == pytest.approx(0.5, abs=0.05)
    assert split["naive_bayes"] == pytest.approx(0.5, abs=0.06)
    assert split["random_forest"] > 0.8


def test_attacks_succeed_on_a_copy_and_fail_on_noise():
    random = np.random.default_rng(0)
    table = random.integers(0, 30, (400, 6)).astype(np.int32)
    noise = random.integers(0, 30, (400, 6)).astype(np.int32)
    assert linkability(table, table, random).rate > 0.5
    assert linkability(table, noise, random).rate < 0.1
    assert inference(table, table, table, 2).rate > 0.9
    assert inference(table, table, noise, 2).rate < 0.15
    assert singling_out(table, table, random).rate == 1
    assert singling_out(table, noise, random).rate < 0.1


def test_rates_have_intervals_and_a_baseline():
    random = np.random.default_rng(0)
    table = random.integers(0, 3, (100, 3)).astype(np.int32)
    found = attacks(table, table, random)
    for attack in (found["singling_out"], found["linkability"], *found["inference"].values()):
        assert 0 <= attack["low"] <= attack["rate"] <= attack["high"] <= 1
        assert 0 <= attack["baseline"] <= 1


def test_hellinger_by_hand():
    assert hellinger(np.array([0.5, 0.5]), np.array([0.9, 0.1])) == pytest.approx(
        0.324920, abs=1e-6
    )
    assert hellinger(np.array([1, 0]), np.array([0, 1])) == 1
    assert hellinger(np.array([3, 5]), np.array([6, 10])) == pytest.approx(0, abs=1e-7)


def test_a_label_shares_its_rows_among_what_it_stands_for():
    sets = [
        np.array([[True, True, False], [False, False, True]]),
        np.array([[True, False], [True, True]]),
    ]
    found = joint_of_sets(np.array([4, 6]), sets)
    assert found.reshape(3, 2).tolist() == [[2, 0], [2, 0], [3, 3]]
    assert joint(rows((0, 0), (2, 1)), (3, 2)).tolist() == [1, 0, 0, 0, 0, 1]
