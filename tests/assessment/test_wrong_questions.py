"""What cannot be asked is refused in words, and what is doubtful is noted."""

from __future__ import annotations

import math
import warnings

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.cli.options import read_beside
from halfmask.errors import InputError, ParameterError, SchemaError

ROWS = {"age": [20, 20, 21, 21] * 3, "city": ["Ux", "Vx"] * 6, "ill": ["a", "b", "c"] * 4}
SCHEMA = {"age": "quasi", "city": "quasi", "ill": "sensitive"}


@pytest.fixture
def people():
    return hm.read(ROWS, schema=SCHEMA)


WRONG = [
    {"fraction": "x"},
    {"fraction": 0},
    {"fraction": 1.5},
    {"size": "x"},
    {"size": 2.5},
    {"size": 0},
]


@pytest.mark.parametrize(
    "asked", [*WRONG, {"limit": None}, {"limit": 0}, {"limit": 1}, {"k": 2.5}], ids=str
)
def test_assess_refuses(asked, people):
    with pytest.raises(ParameterError, match=next(iter(asked))):
        hm.assess(people, **asked)


@pytest.mark.parametrize("asked", WRONG, ids=str)
def test_row_risks_refuse(asked, people):
    with pytest.raises(ParameterError, match=next(iter(asked))):
        hm.row_risks(people, **asked)


@pytest.mark.parametrize("asked", [{"limit": None}, {"attacks": "x"}, {"seed": 0.5}], ids=str)
def test_compare_refuses(asked, people):
    with pytest.raises(ParameterError, match=next(iter(asked))):
        hm.compare(people, people, **asked)


def test_a_population_smaller_than_the_table_is_refused(people):
    for size in (5, 11):
        few = hm.read({name: values[:size] for name, values in ROWS.items()})
        for verb in (hm.assess, hm.row_risks):
            with pytest.raises(InputError, match=f"{size} rows and the table 12 people"):
                verb(people, population=few)
    assert hm.assess(people, population=people).uniqueness.fraction == 1


def test_a_population_without_the_table_s_classes_is_noted(people):
    others = hm.read({"age": [20] * 30, "city": ["Ux", "Vx"] * 15})
    (note,) = [n for n in hm.assess(people, population=others).notes if "is not everybody" in n]
    assert "in 2 classes" in note  # age 21, in two cities
    assert "6 people" in note
    for times in (1, 2):
        whole = hm.read({name: ROWS[name] * times for name in ("age", "city")})
        assert not any("everybody" in n for n in hm.assess(people, population=whole).notes)


def test_no_quasi_identifier_is_said_in_one_sentence():
    bare = hm.read(ROWS, schema={"ill": "sensitive"})
    said = set()
    for verb in (
        hm.assess,
        hm.row_risks,
        lambda t: hm.check(t, hm.KAnonymity(2)),
        lambda t: hm.compare(t, t),
        lambda t: hm.frontier(t, hm.KAnonymity(2)),
    ):
        with pytest.raises(SchemaError) as caught:
            verb(bare)
        said.add(caught.value.faults[0])
    (sentence,) = said
    assert sentence.startswith("No column is declared a quasi-identifier")


def test_linkage_tells_how_perturbed_rows_are_paired(people):
    moved = pa.table({**ROWS, "age": [age + 0.5 for age in ROWS["age"]]})
    found = hm.compare(people, hm.read(moved), learn=False)
    assert "same_order=True" in found.linkage.distance.reason


def test_a_partition_of_no_column_is_named(people):
    with pytest.raises(InputError, match="under nix"):
        hm.discrimination_rate(people, "ill", ["age"], partition={"nix": [["a"], ["b"]]})


def test_a_query_on_an_unknown_column_says_so(people, tmp_path):
    file = tmp_path / "queries.sql"
    file.write_text("select city as place, count(*) from people where hight > 2 group by place")
    with pytest.raises(InputError, match=r"names 1 column.*There: 'age', 'city', 'ill'"):
        hm.compare(people, people, queries=file, learn=False)


def test_infinite_numbers_stand_at_the_ends():
    rows = {"age": [1.0, 2.0, math.inf, -math.inf, 2.0, 1.0], "ill": ["a", "b"] * 3}
    people = hm.read(rows, schema={"age": "quasi", "ill": "sensitive"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = hm.anonymize(people, hm.KAnonymity(2), method="mondrian")
        found = hm.compare(people, release, learn=False)
    assert math.isfinite(found.distances[0].hellinger)
    assert math.isfinite(found.partition.dbil)


@pytest.mark.parametrize("name", ["control", "earlier", "weaker"])
def test_a_table_of_a_source_that_is_not_given_is_refused(name):
    option = f"{name}_table"
    with pytest.raises(InputError, match=f"{option} names a table of {name}, which is not"):
        read_beside(option, None, {option: "x"})
    with pytest.raises(ParameterError, match=option):
        read_beside(option, "all.duckdb", {option: None, "engine": None, "memory_limit": None})
