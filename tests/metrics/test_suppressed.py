"""Suppressed cells that another program wrote are read as such where that is said."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfmask as hm
from halfmask.errors import ParameterError
from halfmask.metrics.sides import star_suppressed

AGES = [20.5, 21.5, 22.5, None] * 50
CITIES = ["Ux", "Vx"] * 100
ROWS = {"age": AGES, "city": CITIES, "ill": [f"d{i % 3}" for i in range(200)]}
SCHEMA = {"age": "quasi", "city": "quasi", "ill": "sensitive"}


def released(cell):
    """Every second age suppressed, written as ``cell``."""
    ages = [cell if i % 2 else age for i, age in enumerate(AGES)]
    if isinstance(cell, str):
        ages = [age if age is None or age == cell else f"{age}" for age in ages]
    return pa.table({**ROWS, "age": ages})


@pytest.fixture
def people():
    return hm.read(ROWS, schema=SCHEMA)


def figures(found):
    document = found.to_dict()
    return {name: document[name] for name in ("loss", "finding", "criteria", "joint", "counting")}


@pytest.mark.parametrize(("cell", "word"), [(None, "missing"), ("NA", "NA"), ("-9", "-9")])
def test_suppressed_cells_count_as_stars(cell, word, people):
    # An age of the original is missing in every fourth row, all of them suppressed here.
    plain = hm.compare(people, hm.read(released("*")), learn=False, attacks=50)
    found = hm.compare(people, hm.read(released(cell)), suppressed=word, learn=False, attacks=50)
    assert figures(found) == figures(plain)
    assert found.loss == pytest.approx(1.5**0.5 - 1)  # half of one column of two


def test_an_engine_reads_them_alike(people, tmp_path):
    for name, rows in (("a", pa.table(ROWS)), ("b", released(None))):
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    found = hm.compare(
        hm.read(tmp_path / "a.parquet", schema=SCHEMA, engine="duckdb"),
        hm.read(tmp_path / "b.parquet", engine="duckdb"),
        suppressed="missing",
        learn=False,
        attacks=50,
    )
    assert found.loss == pytest.approx(1.5**0.5 - 1)


def test_without_a_word_missing_cells_are_values_and_a_note_tells_how(people):
    found = hm.compare(people, hm.read(released(None)), learn=False, attacks=50)
    assert found.loss == 0
    assert any('suppressed="missing"' in note for note in found.notes)


def test_numbers_beside_a_word_are_read_as_numbers():
    rows = pa.table({"age": ["20", "NA", None], "city": ["NA", "NA", "Ux"]})
    found = star_suppressed(rows, ["age"], "NA")
    assert found["age"].to_pylist() == ["20", "*", None]
    assert found["city"].to_pylist() == ["NA", "NA", "Ux"]


def test_whole_numbers_that_became_floats_keep_their_text():
    found = star_suppressed(pa.table({"age": [20.0, None]}), ["age"], "missing")
    assert found["age"].to_pylist() == ["20", "*"]


@pytest.mark.parametrize("word", ["", 3, ["NA"]])
def test_what_is_no_word_is_refused(word, people):
    with pytest.raises(ParameterError, match="suppressed"):
        hm.compare(people, hm.read(released("*")), suppressed=word)


def test_an_earlier_release_is_read_alike(people):
    release = hm.read(released("*"))
    found = [
        hm.compare(people, release, earlier=earlier, suppressed="NA", learn=False, attacks=50)
        for earlier in (hm.read(released("NA")), release)
    ]
    assert found[0].differencing == found[1].differencing
    assert found[0].differencing.alone.trusted


def test_only_quasi_identifiers_are_suppressed(people):
    rows = released("NA")
    ills = ["NA" if one == "d0" else one for one in rows["ill"].to_pylist()]
    named = hm.read({**ROWS, "ill": ills}, schema=SCHEMA)
    shown = hm.read(rows.set_column(2, "ill", pa.array(ills)))
    found = hm.compare(named, shown, suppressed="NA", learn=False, attacks=50)
    assert [one.distance for one in found.kept] == [0]  # an illness called NA stays one
