"""Propensity and clusters: what chance gives, what a full difference gives."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.sides import sides
from halfmask.metrics.utility.distributions import likeness, propensity
from halfmask.metrics.utility.prediction import features

pytest.importorskip("sklearn")


def people(seed, low=0.0):
    random = np.random.default_rng(seed)
    x = (low + random.normal(size=600)).round(3)
    rows = pa.table({"x": x, "g": random.choice(["a", "b"], 600)})
    return hm.read(rows, schema={"x": "quasi", "g": "quasi"})


def pmse_ratio(original, release):
    both = sides(original, release)
    every = np.arange(600)
    left, right = features(list(both.columns.values()), every, every)
    return propensity(left, right)[1]


def test_rows_of_the_same_kind_score_what_chance_gives():
    found = likeness(sides(people(0), people(1)))
    assert found.pmse.value < 0.01
    assert 0.05 < found.pmse_ratio < 4  # its mean under chance is 1
    assert found.area.value == pytest.approx(0.5, abs=0.06)


def test_the_mean_ratio_is_one_for_rows_drawn_from_the_original_and_two_for_other_people():
    random = np.random.default_rng(0)
    drawn, others = [], []
    for turn in range(25):
        table = people(turn)
        again = hm.read(table.arrow.take(random.integers(0, 600, 600)), table.schema)
        drawn.append(pmse_ratio(table, again))
        others.append(pmse_ratio(table, people(100 + turn)))
    assert np.mean(drawn) == pytest.approx(1, abs=0.5)
    assert np.mean(others) == pytest.approx(2, abs=0.8)


def test_rows_that_share_nothing_are_told_apart_for_sure():
    found = likeness(sides(people(0), people(1, low=50.0)))
    assert found.pmse.value == pytest.approx(0.25, abs=0.02)  # every chance is 0 or 1
    assert found.area.value > 0.99
    assert found.pmse_ratio > 50
