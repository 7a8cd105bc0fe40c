"""Rows that an engine counts give the figures of rows that are read."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import halfmask as hm
from halfmask.errors import InputError, ParameterError, SchemaError

SCHEMA = {
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
        "sex": "quasi",
        "zip": {"role": "quasi", "kind": "nominal", "hierarchy": {"mask": 2}},
        "ill": "sensitive",
    }
}


def rows(size, seed=0):
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "age": pa.array(random.integers(20, 70, size), mask=random.random(size) < 0.05),
            "sex": random.choice(["f", "m"], size),
            "zip": random.choice(["01", "02", "13"], size),
            "ill": random.choice(["flu", "gout", "cold"], size, p=[0.7, 0.2, 0.1]),
            "note": np.arange(size),
        }
    )


def same(one, two):
    one, two = one.to_dict(), two.to_dict()
    one.pop("notes"), two.pop("notes")
    assert json.loads(json.dumps(one), parse_float=lambda x: round(float(x), 9)) == json.loads(
        json.dumps(two), parse_float=lambda x: round(float(x), 9)
    )


@pytest.fixture
def sources(tmp_path):
    import duckdb

    table = rows(500)
    pq.write_table(table, tmp_path / "people.parquet")
    csv.write_csv(table, tmp_path / "people.csv")
    with duckdb.connect(str(tmp_path / "people.duckdb")) as database:
        database.register("arrow", table)
        database.execute("CREATE TABLE people AS SELECT * FROM arrow")
    return tmp_path


@pytest.mark.parametrize("kind", ["parquet", "csv", "duckdb"])
def test_figures_agree_with_those_of_rows_in_memory(sources, kind):
    read = hm.assess(hm.read(sources / "people.csv", SCHEMA), fraction=0.2)
    options = {"source_table": "people"} if kind == "duckdb" else {"engine": "duckdb"}
    found = hm.assess(sources / f"people.{kind}", schema=SCHEMA, fraction=0.2, **options)
    same(read, found)
    assert "500 rows" in found.notes[0]
    assert found.rows == 500


def test_a_small_file_is_read(sources):
    same(
        hm.assess(sources / "people.csv", schema=SCHEMA),
        hm.assess(hm.read(sources / "people.csv", SCHEMA)),
    )


def test_the_command_counts_with_roles_from_options(sources, capfd):
    from halfmask.cli.main import run

    with pytest.raises(SystemExit) as stop:
        run(["assess", str(sources / "people.parquet"), "--engine", "duckdb", "--quasi", "age,sex",
             "--sensitive", "ill", "--memory-limit", "100MB", "--json"])  # fmt: skip
    assert stop.value.code == 0
    assert json.loads(capfd.readouterr().out)["rows"] == 500


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"engine": "abacus"}, ParameterError, "duckdb"),
        ({"engine": "duckdb", "memory_limit": "lots"}, ParameterError, "500MB"),
        ({"engine": "duckdb", "schema": {"nothing": "quasi"}}, InputError, "nothing"),
        ({"engine": "duckdb", "schema": {"age": "other"}}, SchemaError, "quasi"),
        (
            {
                "engine": "duckdb",
                "schema": {"table": {"person": "note"}, "columns": {"age": "quasi"}},
            },
            InputError,
            "several rows",
        ),
    ],
)
def test_faults_say_what_to_do(sources, options, error, words):
    with pytest.raises(error, match=words):
        hm.assess(sources / "people.parquet", **({"schema": SCHEMA} | options))


def test_a_database_needs_the_name_of_a_table(sources):
    with pytest.raises(ParameterError, match="table"):
        hm.assess(sources / "people.duckdb", schema=SCHEMA)


def test_too_many_distinct_tuples_are_refused(sources):
    from halfmask.engines.large import counted_tuples, open_large

    with (
        open_large(str(sources / "people.parquet")) as (engine, name),
        pytest.raises(InputError, match="more than 10 distinct"),
    ):
        counted_tuples(engine, name, ["age", "zip"], most=10)


PROGRAM = """
import json, resource, sys
import halfmask as hm
schema = {name: "quasi" for name in ("a", "b", "c", "d")} | {"s": "sensitive"}
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
hm.assess(hm.read({name: [1, 2] for name in "abcds"}, schema))  # compile first
import duckdb, tempfile
before = peak()
found = hm.assess(sys.argv[1], schema=schema, engine=sys.argv[2], memory_limit="60MB")
print(json.dumps({"grown": peak() - before, "rows": found.rows, "unique": found.unique_rows,
                  "rate": found.disclosures[0].discrimination, "mean": found.mean_risk}))
"""


@pytest.mark.slow
def test_a_table_larger_than_the_memory_limit_is_counted_in_bounded_memory(tmp_path):
    path = tmp_path / "large.parquet"
    random = np.random.default_rng(0)
    names = ("a", "b", "c", "d", "s", "u", "v", "w")
    with pq.ParquetWriter(path, pa.schema([(n, pa.int64()) for n in names])) as writer:
        for _ in range(12):
            part = {n: random.integers(0, 12, 250_000) for n in names[:5]}
            part |= {n: random.integers(0, 1 << 60, 250_000) for n in names[5:]}
            writer.write_table(pa.table(part))
    found = {}
    for engine in ("duckdb", "memory"):
        ran = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-c", PROGRAM, str(path), engine],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        found[engine] = json.loads(ran.stdout)
    counted, read = found["duckdb"], found["memory"]
    assert counted["rows"] == read["rows"] == 3_000_000
    assert counted["unique"] == read["unique"]
    assert counted["mean"] == pytest.approx(read["mean"])
    assert counted["rate"] == pytest.approx(read["rate"])
    size = 3_000_000 * 8 * 8 / 2**20  # 183 MB in memory, three times the limit
    assert counted["grown"] < size
    assert counted["grown"] < read["grown"]
