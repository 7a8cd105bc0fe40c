"""Uniqueness counted in a table and its population, by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm


def test_sample_and_population_by_hand():
    schema = {"age": "quasi"}
    people = hm.read(pa.table({"age": [30, 40, 50, 50]}), schema=schema)
    everybody = hm.read(pa.table({"age": [30, 30, 40, 50, 50, 60, 70, 70]}), schema=schema)
    found = hm.assess(people, population=everybody).rarity
    # Alone here: 30 and 40. Alone there: 40 and 60. Both: 40.
    assert found.sample == pytest.approx(2 / 4)
    assert found.population == pytest.approx(2 / 8)
    assert found.both == pytest.approx(1 / 2)
    # f / F: 1/2, 1, 1, 1; 1 / F: 1/2, 1, 1/2, 1/2.
    assert found.mean_share == pytest.approx(3.5 / 4)
    assert found.mean_chance == pytest.approx(2.5 / 4)
