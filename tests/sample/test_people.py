"""The sample is deterministic, of any size, and correlated as a table of people is."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pytest

from halfmask.errors import ParameterError
from halfmask.sample import people


@pytest.fixture(scope="module")
def table():
    return people(20_000, seed=1)


def test_the_same_seed_gives_the_same_table():
    assert people(500, seed=7).equals(people(500, seed=7))
    assert not people(500, seed=7).equals(people(500, seed=8))


@pytest.mark.parametrize("rows", [1, 2, 1_001])
def test_any_number_of_rows(rows):
    assert people(rows).num_rows == rows


def test_no_rows_is_refused():
    with pytest.raises(ParameterError, match="at least 1"):
        people(0)


def test_every_row_is_another_person(table):
    assert pc.count_distinct(table["id"]).as_py() == 20_000


def test_postcodes_are_text_with_leading_zeros(table):
    codes = table["postcode"].cast("string")
    assert pc.all(pc.equal(pc.utf8_length(codes), 5)).as_py()
    assert pc.any(pc.starts_with(codes, "0")).as_py()


def test_demands_follow_the_stated_shares(table):
    k, counts = np.unique(table["k_i"].to_numpy(), return_counts=True)
    assert k.tolist() == [3, 5, 10]
    assert np.allclose(counts / 20_000, [0.6, 0.3, 0.1], atol=0.03)


def test_some_values_are_missing_but_no_demand_is(table):
    missing = {name: table[name].null_count for name in table.column_names}
    assert 400 < missing["education"] < 800
    assert missing["occupation"] > 0
    assert missing["salary"] > 0
    assert missing["k_i"] == missing["l_i"] == missing["age"] == 0


def test_age_disease_and_schooling_hang_together(table):
    age = table["age"].to_numpy()
    ill = np.array(table["disease"].cast("string").to_pylist())
    assert age[ill == "heart failure"].mean() > age[ill == "asthma"].mean() + 20
    school = np.array(table["education"].cast("string").fill_null("").to_pylist())
    salary = table["salary"].to_numpy()
    adult = (age > 25) & (age < 60)
    high = np.nanmean(salary[adult & (school == "master")])
    low = np.nanmean(salary[adult & (school == "primary")])
    assert high > 1.4 * low
