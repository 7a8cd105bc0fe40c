"""Releases of people with several rows, counted by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm

SCHEMA = {"table": {"person": "who"}, "columns": {"age": "quasi", "ill": "sensitive"}}
ROWS = {
    "who": ["a", "a", "b", "b", "c", "d"],
    "age": [20, 20, 31, 31, 31, 48],
    "ill": ["x", "y", "x", "x", "y", "z"],
}


@pytest.fixture
def people():
    return hm.read(pa.table(ROWS), schema=SCHEMA)


def compared(people, age, **more):
    rows = pa.table({"age": age, "ill": ROWS["ill"]})
    return hm.compare(people, hm.read(rows), learn=False, **more)


def test_a_copy_is_at_the_risk_of_the_original(people):
    found = compared(people, ROWS["age"])
    assert found.after.prosecutor == found.before.prosecutor == 1
    assert found.after.marketer == found.before.marketer == pytest.approx(3 / 4)
    # a by each of two rows, b by two of three, c by one of three, d by one.
    assert found.finding.found == pytest.approx((1 + 1 + 2 / 3 + 2 / 3 + 1 / 3 + 1) / 6)
    assert found.finding.highest == 1


def test_a_class_holds_the_people_of_its_rows(people):
    found = compared(people, ["20-31"] * 5 + ["*"])
    assert found.after.prosecutor == 1  # d alone behind the star, which fits nobody more tightly
    whole = compared(people, ["*"] * 6)
    assert whole.after.prosecutor == pytest.approx(1 / 4)
    assert whole.finding.found == pytest.approx((2 / 6 * 4 + 1 / 6 * 2) / 6)


def test_a_control_changes_nothing(people):
    others = hm.read(pa.table({"age": [20, 50], "ill": ["x", "z"]}), schema=SCHEMA["columns"])
    found = compared(people, ROWS["age"], control=others)
    assert found.after.marketer == pytest.approx(3 / 4)
    assert found.finding.highest == 1


def test_rows_that_fit_nobody_count_as_rows(people):
    rows = pa.table({"age": [70, 70, 80], "ill": ["x", "y", "z"]})
    found = hm.compare(people, hm.read(rows), learn=False)
    assert found.after.marketer == pytest.approx(2 / 3)
    assert found.finding.found == 0


def test_people_who_were_left_out_change_no_class():
    # The last people stand alone and are left out: classes of three people stay so.
    rows = {"id": [f"P{i}" for i in range(8)], "g": list("bbbaaacd")}
    schema = {"table": {"person": "id"}, "columns": {"id": "identifier", "g": "quasi"}}
    people = hm.read(rows, schema=schema)
    release = hm.anonymize(people, hm.KAnonymity(3), suppression=0.3, method="optimal")
    found = hm.compare(people, release, learn=False)
    assert (found.suppressed, found.after.prosecutor) == (2, pytest.approx(1 / 3))
