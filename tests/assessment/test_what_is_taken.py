"""Frames and files beside tables, and parameters that make no sense."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InputError, ParameterError

ROWS = {"age": [30, 30, 41, 41, 50, 50], "disease": ["a", "b", "a", "b", "a", "b"]}
SCHEMA = {"age": "quasi", "disease": "sensitive"}
FRAMES = pytest.mark.parametrize(
    "frame", [pd.DataFrame(ROWS), pl.DataFrame(ROWS), pa.table(ROWS)], ids=lambda f: str(type(f))
)


@pytest.fixture
def people():
    return hm.read(ROWS, schema=SCHEMA)


@FRAMES
def test_a_frame_with_its_schema_is_assessed(people, frame):
    assert hm.assess(hm.read(frame, schema=SCHEMA)).to_dict() == hm.assess(people).to_dict()
    with pytest.raises(InputError, match="read it first"):
        hm.assess(frame)


@FRAMES
def test_rows_beside_the_original_need_no_roles(people, frame):
    found = hm.compare(people, frame, control=frame, earlier=frame, learn=False)
    assert found.loss == 0
    assert hm.assess(people, population=frame).rarity is not None
    assert hm.row_risks(people, population=frame).journalist is not None


def test_a_frame_is_named_with_where_it_is_from():
    with pytest.raises(InputError, match="pyarrow Table is not a table"):
        hm.assess(pa.table(ROWS))


def test_one_target_may_stand_by_itself(people):
    pytest.importorskip("sklearn")
    with pytest.raises(InputError, match="'nobody'"):
        hm.compare(people, people, targets="nobody")


@pytest.mark.parametrize("given", [{"seed": -1}, {"attacks": 0}, {"limit": 1.0}])
def test_parameters_of_compare(people, given):
    with pytest.raises(ParameterError, match=next(iter(given))):
        hm.compare(people, people, learn=False, **given)


def test_needs_are_needs(people):
    with pytest.raises(InputError, match="Need"):
        hm.compare(people, people, learn=False, needs=["disease"])


def test_too_few_people_are_at_least_one(people):
    with pytest.raises(ParameterError, match="k"):
        hm.assess(people, fraction=0.1, k=0)


@pytest.mark.parametrize("rows", [1, 2])
def test_tables_of_a_row_or_two_are_compared(rows):
    few = hm.read({name: values[:rows] for name, values in ROWS.items()}, schema=SCHEMA)
    found = hm.compare(few, few, learn=False)
    sampled = [one for one in found.criteria if not one.name.endswith("by classes")]
    assert sampled
    assert "met" not in {one.outcome for one in sampled}


def test_a_release_of_twice_as_many_rows_counts_as_the_original_does(people):
    twice = pa.table({name: values * 2 for name, values in ROWS.items()})
    found = hm.compare(people, twice, learn=False)
    assert found.counting.error.value == pytest.approx(0)
    assert any("scaled" in note for note in found.notes)


def test_other_people_need_neither_names_nor_demands():
    rows = ROWS | {"who": [1, 1, 2, 3, 4, 5], "least": [2] * 6}
    schema = {"table": {"person": "who"}, "columns": SCHEMA, "policy": {"k": "least"}}
    people = hm.read(rows, schema=schema)
    found = hm.compare(people, pa.table(ROWS), control=pa.table(ROWS), learn=False)
    assert all(one.control.n == 6 for one in found.criteria if one.control is not None)
    assert any(one.control is not None for one in found.criteria)
