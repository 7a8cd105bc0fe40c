"""Risk figures on tables small enough to count by hand."""

from __future__ import annotations

import pytest

import halfmask as hm
from halfmask.errors import InputError, SchemaError

QUASI = {"age": "quasi", "club": "quasi", "salary": "sensitive"}


def players():
    """The six footballers: four are alone by (age, club), two share 32-OM."""
    return {
        "age": [35, 32, 20, 27, 32, 32],
        "club": ["PSG", "PSG", "PSG", "PSG", "OM", "OM"],
        "salary": [1160, 1500, 1730, 3060, 500, 500],
    }


def table(columns, schema):
    import pyarrow as pa

    return hm.read(pa.table(columns), schema=schema)


def test_footballers_by_hand():
    found = hm.assess(table(players(), QUASI))
    assert (found.rows, found.people, found.classes, found.smallest) == (6, 6, 5, 1)
    assert found.unique_rows == 4
    assert found.unique_share == pytest.approx(4 / 6)
    assert found.highest_risk == 1.0
    assert found.mean_risk == pytest.approx(5 / 6)
    assert found.sizes == (("1", 4, 4), ("2", 1, 2))


def test_two_classes_of_two_have_a_risk_of_a_half():
    ages = {"age": ["30-39", "30-39", "20-29", "20-29"]}
    found = hm.assess(table(ages, {"age": "quasi"}))
    assert (found.highest_risk, found.mean_risk, found.unique_rows) == (0.5, 0.5, 0)


def test_columns_by_themselves():
    age, club = hm.assess(table(players(), QUASI)).columns
    assert (age.name, age.distinct, age.missing, age.unique_rows) == ("age", 4, 0, 3)
    assert (club.name, club.distinct, club.unique_rows) == ("club", 2, 0)


def test_a_missing_value_is_a_value_of_its_own():
    found = hm.assess(table({"age": [30, 30, None]}, {"age": "quasi"}))
    assert found.unique_rows == 1
    assert (found.columns[0].distinct, found.columns[0].missing) == (1, 1)


def test_two_rows_of_one_person_hide_nobody():
    rows = {"id": ["a", "a", "b", "c"], "age": [30, 30, 40, 40]}
    schema = {"table": {"person": "id"}, "columns": {"id": "identifier", "age": "quasi"}}
    found = hm.assess(table(rows, schema))
    assert found.smallest == 1
    assert found.unique_rows == 2
    assert found.people == 3


def test_plain_values_for_json():
    document = hm.assess(table(players(), QUASI)).to_dict()
    assert document["sizes"] == [
        {"people": "1", "classes": 4, "rows": 4},
        {"people": "2", "classes": 1, "rows": 2},
    ]
    assert document["columns"][0]["name"] == "age"


def test_without_quasi_identifiers_there_is_nothing_to_say():
    with pytest.raises(SchemaError, match="quasi"):
        hm.assess(table({"age": [1]}, {"age": "other"}))


def test_an_empty_table_is_refused():
    import pyarrow as pa

    empty = pa.table({"age": pa.array([], pa.int64())})
    with pytest.raises(InputError, match="no rows"):
        hm.assess(hm.read(empty, schema={"age": "quasi"}))
