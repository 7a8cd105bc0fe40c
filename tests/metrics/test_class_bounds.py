"""Bounds of losses hold for every way in which rows can stand in the published classes."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.metrics.partition import class_bounds
from halfmask.metrics.sides import sides
from halfmask.release.partition import RowPartition

SCHEMA = hm.Schema({"x": "quasi", "c": "quasi"})


@given(st.data())
def test_bounds_hold_for_every_assignment_that_fits(data):
    n = data.draw(st.integers(2, 6))
    xs = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    cs = data.draw(st.lists(st.sampled_from("ab"), min_size=n, max_size=n))
    ids = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    ids = np.unique(ids, return_inverse=True)[1].astype(np.int32)
    table = hm.Table(pa.table({"x": xs, "c": cs}), SCHEMA)
    released = RowPartition.of(table, ids, {"x": True, "c": False}).published(table, ids)
    both = sides(table, hm.Table(released, hm.Schema()))
    found = class_bounds(both, 10**6)
    labels = list(zip(*(released[name].to_pylist() for name in ("x", "c")), strict=True))

    def fits(row, label):
        ends = [int(end) for end in str(label[0]).split("-")]
        return ends[0] <= xs[row] <= ends[-1] and label[1] in (cs[row], "*")

    numbers = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    ways = {
        tuple(numbers[label] for label in order)
        for order in permutations(labels)
        if all(fits(row, label) for row, label in enumerate(order))
    }
    costs = (hm.partition_measures(table, way) for way in ways)
    seen = [(one.dbil, one.ebil) for one in costs]
    least, most = np.min(seen, axis=0), np.max(seen, axis=0)
    assert found.dbil[0] <= least[0] + 1e-9
    assert most[0] <= found.dbil[1] + 1e-9
    assert found.ebil[0] <= least[1] + 1e-9
    assert most[1] <= found.ebil[1] + 1e-9


def test_a_release_of_overlapping_classes_has_bounds_around_what_its_classes_cost():
    random = np.random.default_rng(0)
    rows = {"x": random.integers(0, 60, 200), "c": random.choice(list("abcd"), 200)}
    table = hm.Table(pa.table(rows), SCHEMA)
    # Neighbors in x stand together, but for a tenth of the rows, who stand anywhere.
    ids = np.argsort(np.argsort(rows["x"])) // 5
    ids = np.where(random.random(200) < 0.1, random.integers(0, 40, 200), ids)
    ids = np.unique(ids, return_inverse=True)[1].astype(np.int32)
    released = RowPartition.of(table, ids, {"x": True, "c": False}).published(table, ids)
    release = hm.Table(released.take(random.permutation(200)), hm.Schema())
    exact, seen = hm.partition_measures(table, ids), hm.partition_measures(table, release)
    assert seen.dbil is None
    assert seen.dbil_low <= exact.dbil <= seen.dbil_high + 1e-9 <= exact.sbil + 2e-9
    assert seen.ebil_low <= exact.ebil <= seen.ebil_high
    assert seen.dbil_high < 2 * seen.dbil_low + 200  # they say something
    assert exact.dbil_low is exact.dbil_high is None  # DBIL itself is known
    without = pa.array(ids > 0)
    less = hm.partition_measures(table, hm.Table(released.filter(without), hm.Schema()))
    gone = hm.partition_measures(table, np.where(ids > 0, ids, -1))
    assert less.dbil_low <= gone.dbil <= less.dbil_high + 1e-9
    assert less.ebil_low <= gone.ebil <= less.ebil_high


def test_rows_that_stand_for_nobody_have_no_bounds():
    table = hm.Table(pa.table({"x": [1, 2, 3], "c": ["a"] * 3}), SCHEMA)
    made = hm.Table(pa.table({"x": [2, 2, 2], "c": ["a"] * 3}), hm.Schema())
    assert class_bounds(sides(table, made), 10**6) is None
    assert class_bounds(sides(table, table), 2) is None  # too many pairs


def test_every_pair_of_rows_that_fit_counts_for_the_effort():
    table = hm.Table(pa.table({"x": [1, 2, 3], "c": ["a"] * 3}), SCHEMA)
    hidden = hm.Table(pa.table({"x": ["*"] * 3, "c": ["a"] * 3}), hm.Schema())
    both = sides(table, hidden)
    assert class_bounds(both, 8) is None  # three rows fit one class: nine pairs
    assert class_bounds(both, 9) is not None
