"""Risk figures on tables small enough to count by hand."""

from __future__ import annotations

import pytest

import halfmask as hm
from halfmask.errors import InputError, SchemaError
from halfmask.table.tuples import Tuples

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


def test_the_three_criteria_and_what_to_do_next():
    found = hm.assess(table(players(), QUASI))
    by = {one.name: one for one in found.criteria}
    assert by["singling out, by classes"].attack.value == pytest.approx(4 / 6)
    assert by["singling out, by classes"].outcome == "not met"
    assert by["linkability, by classes"].attack.value == pytest.approx(5 / 6)
    assert by["linkability, by classes"].baseline.value == pytest.approx(1 / 6)
    assert (
        by["singling out, by classes"].baseline.value,
        by["linkability, by classes"].outcome,
    ) == (0, "not met")
    # Everybody's salary is certain; the most frequent salary is held by two of six.
    assert by["inference, by classes"].attack.value == 1
    assert by["inference, by classes"].baseline.value == pytest.approx(2 / 6)
    first = found.advice[0]
    # Without age two clubs of four and two are left; without club three ages are alone.
    assert (first.column, first.removed) == ("age", 0)
    assert {a.column: a.removed for a in found.advice} == {"age": 0, "club": 3}
    assert found.way[-1].unique_rows == 0


def test_disclosure_by_hand():
    rows = {
        "age": ["30-39"] * 2 + ["20-29"] * 2 + ["32"] * 2,
        "salary": [1160, 1500, 1730, 3060, 500, 500],
    }
    (one,) = hm.assess(table(rows, {"age": "quasi", "salary": "sensitive"})).disclosures
    assert one.homogeneity == pytest.approx(2 / 6)
    assert one.background == 1
    # In its class a salary of 500 is certain, in the table it is 2/6.
    assert one.skewness == pytest.approx(4 / 6)
    assert one.best_guess == pytest.approx((1 + 1 + 2) / 6)


def test_population_gives_the_journalists_risk():
    people = table({"age": [30, 40, 40]}, {"age": "quasi"})
    everybody = table({"age": [30, 30, 30, 30, 40, 40]}, {"age": "quasi"})
    found = hm.assess(people, population=everybody)
    assert found.reidentification.journalist_population == 0.5
    assert found.reidentification.journalist_sample_share == 1
    assert found.reidentification.prosecutor == 1
    assert found.uniqueness.fraction == 0.5


def test_the_document_holds_no_value_and_both_files_are_written(tmp_path):
    import json

    rows = {"age": ["canary", "o", "o"], "salary": ["canary2", "x", "y"]}
    found = hm.assess(table(rows, {"age": "quasi", "salary": "sensitive"}), fraction=0.5)
    found.report(tmp_path / "a.json")
    found.report(tmp_path / "a.html")
    assert json.loads((tmp_path / "a.json").read_text())["format"] == "halfmask.assessment/1"
    for file in ("a.json", "a.html"):
        assert "canary" not in (tmp_path / file).read_text()
    assert "canary" not in repr(found)


def noise(size=300):
    import numpy as np

    random = np.random.default_rng(0)
    return {
        "age": random.integers(0, 200, size),
        "club": random.integers(0, 3, size),
        "salary": random.choice(["low", "mid", "high"], size),
    }


def test_rates_stand_beside_what_chance_gives(tmp_path):
    # Ages say nothing about salaries; groups of one or two people make the rate high all the same.
    found = hm.assess(table(noise(), QUASI))
    ((target, sets),) = found.discrimination
    assert target == "salary"
    for one in sets:
        chance = one.inflation.chance
        assert one.inflation.rate == pytest.approx(one.rate)
        assert one.rate == pytest.approx(chance.value, abs=0.05)
        assert one.inflation.adjusted.value < 0.3
    assert sets[0].rate > 0.7
    written = found.to_dict()["discrimination"][0]["sets"][0]["inflation"]
    assert set(written) == {"rate", "chance", "adjusted"}
    found.report(tmp_path / "page.html")
    assert "random shuffles of salary" in (tmp_path / "page.html").read_text()


def test_a_real_dependence_goes_beyond_chance():
    columns = noise() | {"salary": ["low", "mid", "high"] * 100}
    columns["club"] = [0, 1, 2] * 100
    ((_, sets),) = hm.assess(table(columns, QUASI), size=1).discrimination
    assert sets[0].columns == ("club",)
    assert sets[0].inflation.chance.value < 0.05
    assert sets[0].inflation.adjusted.value == pytest.approx(1)


def test_chance_does_not_depend_on_the_order_of_rows():
    from halfmask.metrics.discrimination.rate import inflation

    one = table(noise(), QUASI)
    other = hm.read(one.arrow.take(list(range(299, -1, -1))), schema=QUASI)
    assert (
        inflation(Tuples.of(one), "salary", "age").chance
        == inflation(Tuples.of(other), "salary", "age").chance
    )


def test_a_sensitive_column_that_never_varies_is_undefined(tmp_path):
    found = hm.assess(table(noise() | {"salary": ["low"] * 300}, QUASI))
    found.report(tmp_path / "page.html")
    found.report(tmp_path / "page.json")
    assert found.to_dict()["discrimination"][0]["sets"][0]["rate"] is None
    assert "undefined" in (tmp_path / "page.html").read_text()
    assert "NaN" not in (tmp_path / "page.json").read_text()


def test_next_steps_name_a_way_where_no_step_is_enough():
    from halfmask.report.words import next_steps

    schema = {"columns": {name: {"role": "quasi", "hierarchy": {"intervals": [5, 50]}}
                          for name in ("a", "b", "c")}}  # fmt: skip
    import numpy as np

    random = np.random.default_rng(2)
    rows = {name: random.integers(0, 100, 400) for name in "abc"}
    first = next_steps(hm.assess(table(rows, schema)).to_dict())[0]
    assert first.startswith("No step alone is enough. Generalizing a to groups of 50")
    assert "(1 fewer)" not in first


def test_one_level_up_is_less_than_removing_the_column():
    tree = {"tree": {"young": ["21", "22"], "old": ["71", "72"]}}
    rows = {"age": ["21", "22", "71", "72"], "sex": list("fffm")}
    schema = {"age": {"role": "quasi", "hierarchy": tree}, "sex": "quasi"}
    age, sex = hm.assess(table(rows, schema)).advice
    # Old f and old m stay alone one level up; m without the age; everybody without the sex.
    assert (age.column, age.unique_rows, age.one_level, age.removed) == ("age", 4, 2, 1)
    assert (age.levels, sex.levels) == (2, 1)
    assert (sex.one_level, sex.removed) == (4, 4)


def test_any_number_of_quasi_identifiers_is_assessed():
    wide = hm.read(
        {f"c{i}": [1, 2] for i in range(63)}, dict.fromkeys((f"c{i}" for i in range(63)), "quasi")
    )
    assert hm.assess(wide).unique_rows == 2
