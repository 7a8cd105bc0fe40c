"""Tuples with counts are measured as the rows that they stand for."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.metrics.partition_measures import published_measures
from halfmask.metrics.risk.attack import targets
from halfmask.metrics.risk.differencing import differencing
from halfmask.metrics.risk.disclosure import attribution, minimality
from halfmask.metrics.risk.distances import row_distances
from halfmask.metrics.risk.linkage import linkage
from halfmask.metrics.risk.singling_out import singling_out
from halfmask.metrics.sides import finding_chance, sides, tightest_class
from halfmask.metrics.utility.distributions import column_distance, joint_distances, pairs_of
from halfmask.metrics.utility.queries import counting_queries
from halfmask.metrics.utility.tables import class_mean_error, class_utility, moments
from halfmask.metrics.weighted import deviation, entries_of, pairs, quantiles, weighted_mean
from halfmask.table.tuples import Tuples

SCHEMA = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 20]}},
    "work": {"role": "quasi", "hierarchy": {"tree": {"out": ["farm", "road"], "in": ["desk"]}}},
    "pay": "sensitive",
}
LABELS = {
    "labels": (["20-24", "25-29", "30-34"], ["out", "in"]),
    "mixed": (["20-24", "22", "20-39", "*", "21-31"], ["out", "desk", "*", None]),
    "values": ([20, 21, 22, 31], ["farm", "road", "desk"]),
    "new": ([20, 23, 44, 57], ["farm", "mine"]),
}


def tuples(random, ages, works, size):
    """Distinct tuples and their counts."""
    rows = {
        (ages[random.integers(len(ages))], works[random.integers(len(works))],
         1000 + 500 * int(random.integers(3)))
        for _ in range(size)
    }  # fmt: skip
    age, work, pay = zip(*sorted(rows, key=str), strict=True)
    table = pa.table({"age": age, "work": pa.array(work, pa.string()), "pay": pay})
    return table, random.integers(1, 5, len(rows))


def both_ways(seed, kind):
    """The same tables as tuples with counts and as rows."""
    random = np.random.default_rng(seed)
    own, counts = tuples(random, list(range(20, 36)), ["farm", "road", "desk"], 12)
    published, held = tuples(random, *LABELS[kind], 8)
    if seed % 2:  # as many rows as the original: nothing seems to be left out
        held[0] += max(0, int(counts.sum() - held.sum()))
    counted = (
        Tuples(hm.read(own, SCHEMA), counts), Tuples(hm.read(published, {}), held)
    )  # fmt: skip
    shuffled = [random.permutation(np.repeat(np.arange(len(n)), n)) for n in (counts, held)]
    rows = (
        hm.read(own.take(pa.array(shuffled[0])), SCHEMA),
        hm.read(published.take(pa.array(shuffled[1])), {}),
    )
    return counted, rows, shuffled


def figures(both, earlier):
    """Every measure that draws nothing."""
    link = linkage(both)
    return {
        "classes": class_utility(both).to_dict(),
        "partition": published_measures(both).to_dict(),
        "distances": [asdict(column_distance(c, both.after)) for c in both.columns.values()],
        "joint": [one.to_dict() for one in joint_distances(both)],
        "pairs": [one.to_dict() for one in pairs_of(both)],
        "moments": [one.to_dict() for one in moments(both)],
        "class_means": class_mean_error(both, "pay").to_dict(),
        "counting": counting_queries(both, queries=20).to_dict(),
        "attribution": attribution(both).to_dict(),
        "minimality": minimality(both).to_dict(),
        "differencing": differencing(both, earlier).to_dict(),
        "interval": link.interval.to_dict(),
        "notes": list(both.notes),
    }


def same(one, two, at=""):
    if isinstance(one, dict):
        assert one.keys() == two.keys()
        for key in one:
            same(one[key], two[key], f"{at}/{key}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(two), at
        for place, pair in enumerate(zip(one, two, strict=True)):
            same(*pair, f"{at}/{place}")
    elif isinstance(one, float | int) and two is not None:
        assert one == pytest.approx(two, rel=1e-9, abs=1e-9), at
    else:
        assert one == two, at


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(LABELS)))
def test_counts_and_repeated_rows_give_the_same_figures(seed, kind):
    counted, rows, (order, _) = both_ways(seed, kind)
    earlier = hm.read(pa.table({"age": ["20-39"], "work": ["*"], "pay": [1000]}), {})
    one, two = sides(*counted), sides(*rows)
    assert (one.before, one.after) == (two.before, two.after)
    same(
        figures(one, sides(counted[0], earlier)),
        figures(two, sides(rows[0], earlier)),
    )
    assert finding_chance(one.quasi)[order] == pytest.approx(finding_chance(two.quasi))
    assert (tightest_class(one.quasi)[order] < 0).tolist() == (
        tightest_class(two.quasi) < 0
    ).tolist()


@settings(max_examples=examples(50), deadline=None)
@given(
    st.lists(st.tuples(st.floats(-50, 50), st.integers(0, 5)), min_size=1, max_size=12).filter(
        lambda held: any(count for _, count in held)
    )
)
def test_weighted_statistics_are_those_of_repeated_numbers(held):
    numbers, counts = (np.array(one) for one in zip(*held, strict=True))
    rows = np.repeat(numbers, counts)
    shares = np.linspace(0, 1, 9)
    assert quantiles(numbers, counts, shares) == pytest.approx(np.quantile(rows, shares))
    assert weighted_mean(numbers, counts) == pytest.approx(rows.mean())
    assert deviation(numbers, counts) == pytest.approx(rows.std(), abs=1e-6)
    every = entries_of(np.arange(len(rows)), counts)
    assert every.tolist() == np.repeat(np.arange(len(counts)), counts).tolist()


def test_among_rows_that_are_as_near_each_has_the_same_chance():
    # Two labels are as near to everybody; the first stands for one row, the second for nine.
    own = hm.read(pa.table({"a": ["x"] * 3000}), {"a": {"role": "quasi"}})
    release = Tuples(hm.read(pa.table({"a": ["y", "z"]}), {}), np.array([1, 9]))
    found, far = row_distances(sides(own, release).quasi).nearest(np.arange(3000), k=2)
    assert (far == 1).all()
    assert (found[:, 0] != found[:, 1]).all()
    for place in (0, 1):
        hits = np.bincount(found[:, place], minlength=10)
        assert hits.min() > 230  # 300 each, give or take four deviations
        assert hits.max() < 370


def test_one_row_of_a_class_is_found_as_often_as_it_is_large():
    # Classes of four rows, told apart by nothing inside them: one in four is right.
    rows = pa.table({"a": [f"{i}" for i in range(500)]})
    held = Tuples(hm.read(rows, {"a": "quasi"}), np.full(500, 4))
    found = linkage(sides(held, held), sample=300)
    assert found.distance.value == pytest.approx(0.25, abs=0.1)
    assert found.second.value == pytest.approx(0.25, abs=0.1)
    assert found.assignment.value == pytest.approx(0.25, abs=0.1)
    assert found.assignment.n == 300
    assert found.baseline == 1 / 2000


def test_a_tuple_of_several_rows_is_nobody_alone():
    rows = pa.table({"a": ["x", "y"], "b": ["u", "v"]})
    table = hm.read(rows, {"a": "quasi", "b": "quasi"})
    for counts, hit in (([1, 1], 1.0), ([2, 3], 0.0)):
        held = Tuples(table, np.array(counts))
        assert singling_out(targets(held, held, attacks=50)).attack.value == hit


def test_people_are_drawn_as_rows():
    table = hm.read(pa.table({"a": ["x", "y"]}), {"a": "quasi"})
    held = Tuples(table, np.array([10, 990]))
    whom = targets(held, held, attacks=900)
    assert len(whom.members) == 900
    assert 1 <= (whom.members == 0).sum() <= 10  # without replacement: there are ten


@pytest.mark.parametrize("size", [3, 1000])
def test_pairs_that_no_row_holds_are_not_observed(size):
    """By counters and by sorting alike."""
    left, right = np.array([2, 0, 1, 0]), np.array([1, 2, 0, 2])
    found = pairs(left, right, size, size, np.array([3, 1, 0, 4]))
    assert [one.tolist() for one in found] == [[0, 2], [2, 1], [5, 3]]
