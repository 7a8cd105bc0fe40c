"""Criteria that no attack can vouch for are not met."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm

AGES = [20 + i % 4 for i in range(800)]
DISEASES = [f"d{i % 7}" for i in range(800)]
ROWS = {
    "id": [f"Canaria{i}" for i in range(800)],
    "age": AGES,
    "city": ["Ux", "Vx"] * 400,
    "disease": DISEASES,
}
SCHEMA = {"id": "identifier", "age": "quasi", "city": "quasi", "disease": "sensitive"}
SAFE = {**ROWS, "age": ["*"] * 800, "city": ["*"] * 800, "disease": ["*"] * 800}


@pytest.fixture
def people():
    return hm.read(ROWS, schema=SCHEMA)


def compared(people, rows):
    return hm.compare(people, hm.read(pa.table(rows)), learn=False)


def without(rows, *names):
    return {name: values for name, values in rows.items() if name not in names}


def outcomes(found):
    return {one.name: one.outcome for one in found.criteria}


def test_a_suppressed_table_meets_all_criteria(people):
    found = compared(people, without(SAFE, "id"))
    assert set(outcomes(found).values()) == {"met"}
    assert not found.notes


def test_identifiers_that_left_are_singling_out(people):
    found = compared(people, SAFE)
    assert outcomes(found)["singling out"] == "not met"
    assert outcomes(found)["linkability"] == "not met"
    assert outcomes(found)["inference"] == "undecided"
    assert "'id'" in found.notes[0]
    assert "Canaria" not in str(found.to_dict())


def test_identifiers_that_are_written_otherwise_have_left(people):
    found = compared(people, {**SAFE, "id": [f" canaria-{i}" for i in range(800)]})
    assert outcomes(found)["singling out"] == "not met"


def test_new_pseudonyms_under_the_same_name_withhold_every_criterion(people):
    found = compared(people, {**SAFE, "id": [f"p{i}" for i in range(800)]})
    assert set(outcomes(found).values()) == {"undecided"}
    assert "with other values" in found.notes[0]


@pytest.mark.parametrize("left", ["*", "", None])
def test_identifiers_of_which_nothing_is_left_are_no_matter(people, left):
    found = compared(people, {**SAFE, "id": pa.array([left] * 800, pa.string())})
    assert set(outcomes(found).values()) == {"met"}


def test_sensitive_labels_that_cannot_be_read_withhold_what_is_said_of_them(people):
    found = compared(people, {**without(SAFE, "id"), "disease": [d.upper() for d in DISEASES]})
    assert outcomes(found)["inference"] == "undecided"
    assert outcomes(found)["singling out, by any column"] == "undecided"
    assert outcomes(found)["singling out"] == "met"
    assert any("'disease'" in note and "cannot be read" in note for note in found.notes)


def test_empty_identifiers_name_nobody():
    people = hm.read({**ROWS, "id": ["", *ROWS["id"][1:]]}, schema=SCHEMA)
    found = compared(people, {**SAFE, "id": ["", *(f"p{i}" for i in range(799))]})
    assert outcomes(found)["singling out"] == "undecided"
    assert "with other values" in found.notes[0]


def test_a_column_that_nobody_looked_at_withholds_every_criterion(people):
    found = compared(people, {**without(SAFE, "id"), "record": list(range(800))})
    assert set(outcomes(found).values()) == {"undecided"}
    assert "record" in found.notes[0]


def test_labels_that_cannot_be_read_withhold_every_criterion(people):
    found = compared(people, {**without(SAFE, "id"), "city": ["Xx", "Yx"] * 400})
    assert "met" not in outcomes(found).values()
    assert "'city'" in found.notes[0]


def test_perturbed_numbers_are_read(people):
    moved = {**without(SAFE, "id"), "age": [age + 0.5 for age in AGES]}
    assert not any("cannot be read" in note for note in compared(people, moved).notes)


def test_a_sensitive_column_that_is_gone_is_named(people):
    found = compared(people, without(SAFE, "id", "disease"))
    assert any("disease" in note for note in found.notes)


def test_missing_cells_that_may_be_suppressed_are_named():
    rows = {**without(ROWS, "id"), "city": [None, *ROWS["city"][1:]]}
    people = hm.read(rows, schema=without(SCHEMA, "id"))
    found = compared(people, {**rows, "city": [None] * 200 + rows["city"][200:]})
    assert any("'city': more cells are missing" in note for note in found.notes)
    assert not any("more cells" in note for note in compared(people, rows).notes)


def test_missing_cells_where_none_were_missing_are_suppressed_without_a_word(people):
    found = compared(people, {**without(SAFE, "id"), "city": [None] * 200 + ["*"] * 600})
    assert not found.notes
    assert set(outcomes(found).values()) == {"met"}


def test_what_is_not_met_stays_so_beside_a_doubt(people):
    rows = {**without(ROWS, "id"), "record": list(range(800))}
    rows["disease"] = [f"d{a}{c}" for a, c in zip(AGES, ROWS["city"], strict=True)]
    told = hm.read({**ROWS, "disease": rows["disease"]}, schema=SCHEMA)
    found = compared(told, rows)
    assert outcomes(found)["inference"] == "not met"  # age and city give the disease away
    assert "met" not in outcomes(found).values()


def test_an_identifier_that_only_the_schema_knows_is_taken_as_one(people):
    unseen = hm.Table(people.arrow.drop_columns(["id"]), people.schema)
    found = compared(unseen, SAFE)
    assert outcomes(found)["singling out"] == "not met"
    assert "'id'" in found.notes[0]
