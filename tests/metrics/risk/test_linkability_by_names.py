"""Linkability by names: of people with several rows, and of rows that equal some by chance."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.risk.attack import targets
from halfmask.metrics.risk.linkability import linkability_by_names
from halfmask.metrics.risk.linkage import linkage
from halfmask.metrics.sides import sides

SCHEMA = {"x": "quasi", "c": "quasi"}


def drawn(seed, rows=2000):
    random = np.random.default_rng(seed)
    return hm.read(
        {"x": random.integers(0, 60, rows), "c": random.integers(0, 12, rows)}, schema=SCHEMA
    )


def judged(original, release, control=None, **options):
    whom = targets(original, release, control, attacks=500)
    return linkability_by_names(linkage(sides(original, release), **options), whom)


@pytest.mark.parametrize("times", [2, 20])
def test_any_row_of_a_person_is_the_right_one(times):
    people = pa.table({"x": np.arange(100), "c": np.arange(100) % 7, "who": np.arange(100)})
    visits = people.take(np.repeat(np.arange(100), times))
    original = hm.read(visits, schema={"table": {"person": "who"}, "columns": SCHEMA})
    release = hm.read(visits.drop_columns(["who"]), schema=SCHEMA)
    whose = targets(original, release).people
    found = linkage(sides(original, release), people=whose)
    assert found.distance.value == 1
    assert linkage(sides(original, release)).distance.value == pytest.approx(1 / times, abs=0.1)


def test_rows_of_a_class_of_two_people_are_their_own_half_the_time():
    visits = pa.table({"x": np.repeat(np.arange(100), 6), "who": np.repeat(np.arange(200), 3)})
    original = hm.read(visits, {"table": {"person": "who"}, "columns": {"x": "quasi"}})
    release = hm.read(visits.drop_columns(["who"]), schema={"x": "quasi"})
    found = linkage(sides(original, release), people=targets(original, release).people)
    assert found.distance.low <= 0.5 <= found.distance.high


def test_rows_drawn_anew_are_judged_by_what_they_tell_of_other_people():
    original, anew, control = drawn(1), drawn(2), drawn(3)
    (alone,) = judged(original, anew)
    assert alone.outcome == "not met"  # nothing tells a copy from a row that is equal by chance
    (found,) = judged(original, anew, control)
    assert found.risk.low == 0
    assert found.outcome != "not met"


def test_true_rows_are_judged_without_the_control():
    original, control = drawn(1), drawn(3)
    (found,) = judged(original, original, control)
    assert (found.control, found.notes, found.outcome) == (None, (), "not met")


def test_copies_among_false_rows_are_not_hidden_by_the_control():
    original, control = drawn(1, rows=300), drawn(3, rows=300)
    x = original.arrow["x"].to_numpy().copy()
    x[:60] += 1  # the rest is as it was
    release = hm.read({"x": x, "c": original.arrow["c"].to_numpy()}, schema=SCHEMA)
    (found,) = judged(original, release, control)
    assert found.control is not None
    assert found.outcome == "not met"
    (paired,) = judged(original, release, control, same_order=True)
    assert paired.control is None
