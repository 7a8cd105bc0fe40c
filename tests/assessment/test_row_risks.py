"""The risk of every row, counted by hand."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

import halfmask as hm
from halfmask.errors import InputError, ParameterError, SchemaError

SCHEMA = {"columns": {"age": "quasi", "city": "quasi", "home": "other"}}
ROWS = {
    "age": [30, 30, 30, 41, 41, 50],
    "city": ["Canaria", "Canaria", "B", "B", "B", "B"],
    "home": ["x", "y", "x", "y", "z", "z"],
}


@pytest.fixture
def people():
    return hm.read(ROWS, schema=SCHEMA)


def test_every_row_has_its_class_and_its_smallest_set(people):
    found = hm.row_risks(people)
    assert found.people.tolist() == [2, 2, 1, 2, 2, 1]
    assert found.prosecutor.tolist() == [0.5, 0.5, 1.0, 0.5, 0.5, 1.0]
    # Row 2 is alone by age and city together only, row 5 by its age.
    assert found.special_size.tolist() == [0, 0, 2, 0, 0, 1]
    assert (found.special_score > 0).tolist() == [False, False, True, False, False, True]
    assert found.given == ("people", "prosecutor", "special_score", "special_size")


def test_people_with_several_rows_count_once():
    rows = {"id": [1, 1, 2], "age": [30, 30, 41]}
    schema = {"table": {"person": "id"}, "columns": {"age": "quasi"}}
    assert hm.row_risks(hm.read(rows, schema=schema)).prosecutor.tolist() == [1.0, 1.0, 1.0]


def test_population_fraction_and_household(people):
    everybody = {name: values * 2 for name, values in ROWS.items() if name != "home"}
    population = hm.read(everybody, schema={"age": "quasi", "city": "quasi"})
    found = hm.row_risks(people, population=population, fraction=0.5, household="home")
    assert found.journalist.tolist() == [0.25, 0.25, 0.5, 0.25, 0.25, 0.5]
    assert ((found.individual > 0.25) & (found.individual < found.prosecutor)).all()
    assert found.household == pytest.approx([0.625, 0.4375, 0.625, 0.4375, 0.625, 0.625])


def test_people_whom_the_population_lacks_hide_among_those_of_the_table(people):
    others = {"age": [30] * 8, "city": ["B"] * 8}
    found = hm.row_risks(people, population=hm.read(others))
    # Eight of the population are 30 and live in B; nobody shares any other class.
    assert found.journalist.tolist() == [0.5, 0.5, 1 / 8, 0.5, 0.5, 1.0]


def test_rows_above_a_limit_can_be_filtered(people):
    found = hm.row_risks(people)
    assert np.flatnonzero(found.above(0.5)).tolist() == [2, 5]
    assert found.to_pandas().query("prosecutor > 0.5")["row"].tolist() == [2, 5]
    assert found.summary(0.5) == [
        {"risk": "prosecutor", "highest": 1.0, "mean": pytest.approx(4 / 6), "above": 2}
    ]
    with pytest.raises(ParameterError, match="prosecutor"):
        found.above(0.5, "nobody")


def test_figures_are_written_and_no_value_is(people, tmp_path):
    found = hm.row_risks(people)
    found.write(tmp_path / "risks.csv")
    found.write(tmp_path / "risks.parquet")
    assert pq.read_table(tmp_path / "risks.parquet").equals(found.to_arrow())
    text = (tmp_path / "risks.csv").read_text()
    assert len(text.splitlines()) == 7
    assert "Canaria" not in text + repr(found)
    with pytest.raises(InputError, match="which kind"):
        found.write(tmp_path / "risks.txt")


def test_what_is_missing_is_named(people):
    with pytest.raises(SchemaError, match="'nobody'"):
        hm.row_risks(people, household="nobody")
    with pytest.raises(SchemaError, match="quasi"):
        hm.row_risks(hm.read(ROWS, schema={"age": "other"}))
    with pytest.raises(InputError, match="read it first"):
        hm.row_risks(ROWS)
