"""Invented demands: exact shares, and bands along the data."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import ParameterError, SchemaError


def people(rows: int) -> hm.Table:
    return hm.Table(pa.table({"age": np.arange(rows) % 70 + 17}), hm.Schema({"age": "quasi"}))


def demands(table: hm.Table) -> np.ndarray:
    return table.arrow["k_i"].to_numpy()


def test_shares_are_met_to_the_nearest_person():
    found = demands(hm.policies.generate(people(30_162), "personal", seed=1))
    assert np.unique(found, return_counts=True)[1].tolist() == [24_823, 5_067, 272]


@pytest.mark.parametrize("concern", hm.policies.CONCERNS)
def test_presets_sum_to_everybody(concern):
    assert sum(hm.policies.group_sizes(119, concern)) == 119


def test_the_same_seed_deals_the_same_demands():
    first, again, other = (
        demands(hm.policies.generate(people(500), "online", seed=s)).tolist() for s in (3, 3, 4)
    )
    assert first == again != other


def test_correlated_demands_grow_with_the_distance_to_the_origin():
    rows = pa.table({"age": [60, 20, 40, 30], "school": [1, 1, 1, 30]})
    table = hm.Table(rows, hm.Schema({"age": "quasi", "school": "quasi"}))
    found = hm.policies.generate(table, (25, 50, 25), k=(1, 2, 3), correlated=("age", "school"))
    assert demands(found).tolist() == [3, 1, 2, 2]
    flat = hm.policies.generate(
        table, (25, 50, 25), k=(1, 2, 3), correlated=("age", "school"), distance="manhattan"
    )
    assert demands(flat).tolist() == [3, 1, 2, 2]
    assert found.schema.policy == {"k": "k_i"}


def test_a_stated_policy_is_replaced():
    table = hm.policies.generate(people(50), "general", column="own")
    again = hm.policies.generate(table, "personal", k=(1, 1, 1))
    assert again.arrow.column_names == ["age", "k_i"]


def test_impossible_parameters_are_refused():
    with pytest.raises(ParameterError, match="concern"):
        hm.policies.generate(people(5), "nobody")
    with pytest.raises(ParameterError, match="sum to 100"):
        hm.policies.generate(people(5), (50, 30, 10))
    with pytest.raises(ParameterError, match="do not fall"):
        hm.policies.generate(people(5), k=(5, 3, 7))
    with pytest.raises(SchemaError, match="no column"):
        hm.policies.generate(people(5), correlated=("height",))
    with pytest.raises(SchemaError, match="already has"):
        hm.policies.generate(people(5), column="age")
