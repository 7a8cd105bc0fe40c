"""A frontier of rows that an engine counts is the frontier of the rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfmask as hm
from halfmask.assessment.frontier_settings import sort_tuples
from halfmask.sample import write
from halfmask.table.tuples import Tuples

PROMISES = (
    [hm.KAnonymity(2), hm.KAnonymity(4)],
    [hm.LDiversity(2, "disease"), hm.TCloseness(0.5, "disease")],
)
FIGURES = (
    "name", "risk", "highest_risk", "inference", "loss", "distance", "suppressed", "classes",
    "best", "gap",
)  # fmt: skip


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return write(tmp_path_factory.mktemp("counted"), 200)


def rows(found):
    return [tuple(getattr(point, name) for name in FIGURES) for point in found.points]


def same(one, other):
    assert len(one.points) == len(other.points)
    for left, right in zip(rows(one), rows(other), strict=True):
        assert left[0] == right[0]
        assert list(left[1:]) == pytest.approx(list(right[1:]), abs=1e-12)
    assert sorted(one.impossible) == sorted(other.impossible)


def test_duckdb_counts_a_file(sample):
    read = hm.frontier(hm.read(sample), *PROMISES, methods=["optimal"], suppression=[0.0, 0.1])
    stored = hm.read(sample, engine="duckdb", memory_limit="200MB")
    found = hm.frontier(stored, *PROMISES, methods=["optimal"], suppression=[0.0, 0.1])
    same(read, found)
    assert found.rows == 200
    assert any("counted by duckdb" in note for note in found.notes)


def test_a_heuristic_that_looks_at_the_order_of_rows_sees_them_sorted(sample):
    table = hm.read(sample)
    held = [table.arrow[name].to_pylist() for name in table.schema.quasi]
    order = sorted(range(len(table)), key=lambda i: [(one[i] is None, one[i] or 0) for one in held])
    by_value = hm.Table(table.arrow.take(order), table.schema)
    options = {"methods": ["local"], "suppression": [0.0, 0.1]}
    read = hm.frontier(by_value, *PROMISES, **options)
    same(read, hm.frontier(hm.read(sample, engine="duckdb"), *PROMISES, **options))


def test_people_of_several_rows_and_their_own_demands_are_counted(tmp_path, sample):
    table = hm.read(sample).arrow
    first = pa.array([i // 2 * 2 for i in range(len(table))])
    for name in ("id", "k_i", "l_i"):  # every two rows are of one person
        place = table.column_names.index(name)
        table = table.set_column(place, name, table[name].take(first))
    pq.write_table(table, tmp_path / "people.parquet")
    schema = sample.with_suffix(".toml")
    read = hm.frontier(
        hm.read(tmp_path / "people.parquet", schema=schema), hm.PersonalKAnonymity(),
        methods=["optimal"], suppression=[0.2, 0.5],
    )  # fmt: skip
    found = hm.frontier(
        hm.read(tmp_path / "people.parquet", schema=schema, engine="duckdb"),
        hm.PersonalKAnonymity(),
        methods=["optimal"],
        suppression=[0.2, 0.5],
    )
    assert read.points
    same(read, found)


def test_a_small_file_is_read(sample):
    how = {"methods": ["optimal"]}
    same(hm.frontier(sample, *PROMISES, **how), hm.frontier(hm.read(sample), *PROMISES, **how))
    found = hm.frontier(sample, hm.KAnonymity(3), methods=["mondrian"])
    assert len(found.points) == 1


@pytest.mark.parametrize(
    "options",
    [{"methods": ["mondrian"]}, {"releases": "the rows"}],
    ids=["divisions", "finished tables"],
)
def test_what_needs_rows_has_them_collected(sample, options):
    table = hm.read(sample)
    given = {"releases": {"given": table}} if "releases" in options else options
    stored = hm.read(sample, engine="duckdb")
    found = hm.frontier(stored, hm.KAnonymity(3), suppression=[0.0], **given)
    same(hm.frontier(table, hm.KAnonymity(3), suppression=[0.0], **given), found)
    assert not any("counted by" in note for note in found.notes)


def test_automatic_hierarchies_are_found_from_collected_rows(tmp_path):
    rows = pa.table({"a": [1, 2, 11, 12] * 20, "b": ["x", "x", "y", "y"] * 20})
    pq.write_table(rows, tmp_path / "t.parquet")
    schema = {"a": {"role": "quasi", "hierarchy": "auto"}, "b": "quasi"}
    read, stored = (
        hm.frontier(hm.read(tmp_path / "t.parquet", schema, engine=engine), hm.KAnonymity(2))
        for engine in ("memory", "duckdb")
    )
    same(read, stored)


def test_postgres_counts_where_the_rows_are(postgres):
    psycopg = pytest.importorskip("psycopg")
    people = hm.read(
        {"age": [30, 30, 31, 41, 41, 42, 43, 57], "ill": list("ababbcca")},
        schema={"age": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}}, "ill": "sensitive"},
    )
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS tried")
        connection.execute("CREATE TABLE tried (age bigint, ill text)")
        with connection.cursor().copy("COPY tried FROM STDIN") as copy:
            for row in zip(*(c.to_pylist() for c in people.arrow.columns), strict=True):
                copy.write_row(row)
    ks = [hm.KAnonymity(2), hm.KAnonymity(4)]
    options = {"methods": ["optimal"], "suppression": [0.0, 0.3]}
    found = hm.frontier(hm.read(postgres, schema=people.schema, table="tried"), ks, **options)
    same(hm.frontier(people, ks, **options), found)
    assert any("counted by postgres" in note for note in found.notes)


def test_tuples_are_put_in_order_with_their_counts():
    table = hm.read({"a": [2, 1, 1], "b": ["x", "y", "x"]}, {"a": "quasi", "b": "quasi"})
    found = sort_tuples(Tuples(table, np.array([5, 6, 7])))
    assert found.table.arrow.to_pylist() == [
        {"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"},
    ]  # fmt: skip
    assert found.counts.tolist() == [7, 6, 5]
