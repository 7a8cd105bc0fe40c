"""Chances to find people, by plain Python on small random tables."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.metrics.risk.individual import rarity
from halfmask.metrics.risk.reidentification import reidentification
from halfmask.table.classes import classes_of
from halfmask.table.tuples import Tuples
from halfmask.table.weights import widen

ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=20)


def table(rows):
    a, b = zip(*rows, strict=True)
    return hm.read(pa.table({"a": a, "b": b}), schema={"a": "quasi", "b": "quasi"})


def classes_with(rows, everybody):
    population = table(everybody)
    return classes_of(
        Tuples.of(widen(table(rows), population, ["a", "b"])), ["a", "b"], population=population
    )


@given(ROWS, ROWS)
def test_prosecutor_marketer_and_both_journalists(rows, more):
    everybody = rows + more
    classes = classes_with(rows, everybody)
    found = reidentification(classes.rows, classes.people, classes.population)
    own, all_ = Counter(rows), Counter(everybody)
    assert found.prosecutor == pytest.approx(max(1 / own[row] for row in rows))
    assert found.marketer == pytest.approx(sum(1 / own[row] for row in rows) / len(rows))
    miss = Fraction(1)
    for size in own.values():
        miss *= 1 - Fraction(1, size)
    assert found.journalist_any_hit == pytest.approx(float(1 - miss))
    assert found.journalist_population == pytest.approx(max(1 / all_[row] for row in rows))
    assert found.journalist_sample_share == pytest.approx(max(own[r] / all_[r] for r in rows))
    for one in found.thresholds:
        assert one.rows == sum(1 / own[row] > one.limit for row in rows)
        assert one.share == pytest.approx(one.rows / len(rows))
    for one in found.distribution:
        assert one.rows == sum(one.low < 1 / own[row] <= one.high for row in rows)


@given(ROWS, ROWS)
def test_rarity_by_counting(rows, more):
    everybody = rows + more
    found = rarity(classes_with(rows, everybody))
    own, all_ = Counter(rows), Counter(everybody)
    alone = [row for row in rows if own[row] == 1]
    assert found.sample == pytest.approx(len(alone) / len(rows))
    assert found.population == pytest.approx(
        sum(all_[row] == 1 for row in everybody) / len(everybody)
    )
    if alone:
        assert found.both == pytest.approx(sum(all_[row] == 1 for row in alone) / len(alone))
    else:
        assert found.both is None
    assert found.mean_share == pytest.approx(sum(own[r] / all_[r] for r in rows) / len(rows))
    assert found.mean_chance == pytest.approx(sum(1 / all_[r] for r in rows) / len(rows))


@pytest.mark.parametrize("sizes", [(2, 3), (2, 2, 4), (3,)], ids=str)
def test_any_hit_is_the_share_of_guesses_with_a_hit(sizes):
    # The right row of each class is its first; every combination of guesses is as likely.
    guesses = list(product(*(range(size) for size in sizes)))
    hit = sum(0 in guess for guess in guesses) / len(guesses)
    held = np.array(sizes)
    assert reidentification(held, held).journalist_any_hit == pytest.approx(hit)


@given(ROWS)
def test_what_to_do_next_by_counting(rows):
    found = hm.assess(table(rows))
    for one in found.advice:
        place = "ab".index(one.column)
        rest = Counter(row[1 - place] for row in rows)
        assert one.removed == sum(rest[row[1 - place]] == 1 for row in rows)
        assert one.one_level == one.removed  # a column without a hierarchy has one level: nothing
        assert one.unique_rows == sum(count == 1 for count in Counter(rows).values())


def test_the_marketer_finds_people_and_not_rows():
    # Three rows of one person and one row each of two others.
    found = reidentification(np.array([3, 2]), np.array([1, 2]))
    assert found.marketer == pytest.approx(2 / 3)
