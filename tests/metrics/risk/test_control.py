"""A control must hold other people."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.risk.attack import targets
from halfmask.metrics.risk.singling_out import same_people

SCHEMA = {"a": "quasi", "s": "sensitive"}


def people(seed, values):
    random = np.random.default_rng(seed)
    rows = {"a": random.integers(0, values, 400), "s": random.choice(["p", "q"], 400)}
    return hm.read(pa.table(rows), schema=SCHEMA)


@pytest.mark.parametrize("values", [5, 300, 100_000])
def test_other_people_are_taken_for_others_however_alike_they_are(values):
    table = people(0, values)
    assert same_people(targets(table, table, people(1, values))) == ()
    assert same_people(targets(table, table)) == ()


def test_people_of_the_original_are_noticed():
    table = people(0, 100_000)
    half = pa.concat_tables([table.arrow.slice(0, 100), people(1, 100_000).arrow.slice(0, 100)])
    assert same_people(targets(table, table, hm.read(half, schema=SCHEMA)))


def test_a_copy_with_itself_as_control_meets_nothing():
    table = people(0, 100_000)
    found = hm.compare(table, table, control=table, learn=False)
    assert "met" not in {one.outcome for one in found.criteria}
    assert any("same people" in note for note in found.notes)
