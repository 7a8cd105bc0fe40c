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
from scipy.stats import entropy

import halfmask as hm
from halfmask.engines.counting.tuples import count_tuples, group_tuples
from halfmask.engines.stored import Storage
from halfmask.errors import EngineError, InputError, ParameterError, SchemaError

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
    options = {"table": "people"} if kind == "duckdb" else {"engine": "duckdb"}
    found = hm.assess(hm.read(sources / f"people.{kind}", SCHEMA, **options), fraction=0.2)
    same(read, found)
    assert "500 rows" in found.notes[0]
    assert found.rows == 500


PROMISES = (
    hm.KAnonymity(3),
    hm.LDiversity(2, "ill", kind="entropy"),
    hm.TCloseness(0.4, "ill"),
    hm.BetaLikeness(2, "ill"),
    hm.AverageRisk(0.2),
    hm.SampleUniques(0.1),
)


@pytest.mark.parametrize("kind", ["parquet", "csv", "duckdb"])
def test_promises_are_checked_on_counted_rows(sources, kind):
    options = {"table": "people"} if kind == "duckdb" else {"engine": "duckdb"}
    found = hm.check(hm.read(sources / f"people.{kind}", SCHEMA, **options), *PROMISES)
    assert found == hm.check(hm.read(sources / "people.csv", SCHEMA), *PROMISES)


@pytest.mark.parametrize("partition", [None, {"likely": ["flu"], "rare": ["gout", "cold"]}])
def test_discrimination_rates_are_measured_on_counted_rows(sources, partition):
    keys = ["age", "zip"]
    read = hm.read(sources / "people.csv", SCHEMA)
    expected = hm.discrimination_rate(read, "ill", keys, partition, values=True)
    found = hm.discrimination_rate(
        hm.read(sources / "people.parquet", schema=SCHEMA, engine="duckdb"),
        "ill",
        keys,
        partition,
        values=True,
    )
    assert found.rate == pytest.approx(expected.rate, abs=1e-12)
    assert (found.kind, found.rows, found.identified_rows) == (
        expected.kind, expected.rows, expected.identified_rows,
    )  # fmt: skip
    assert dict(found) == pytest.approx(dict(expected))
    assert {v.value: v.count for v in found.details} == {v.value: v.count for v in expected.details}


def visits(size=400):
    """Rows of people with up to five rows each, some of them equal, with their own demands."""
    random = np.random.default_rng(1)
    person = random.integers(0, size // 3, size)
    return pa.table(
        {
            "age": 20 + person % 7 + (random.random(size) < 0.1),
            "sex": np.array(["f", "m"])[person % 2],
            "ill": random.choice(["flu", "gout"], size),
            "who": [f"person {i}" for i in person],
            "own_k": 2 + person % 3,
        }
    )


VISITS = {
    "table": {"person": "who"},
    "columns": {"age": "quasi", "sex": "quasi", "ill": "sensitive"},
    "policy": {"k": "own_k"},
}


def test_people_with_several_rows_count_once(tmp_path):
    pq.write_table(visits(), tmp_path / "visits.parquet")
    read = hm.read(tmp_path / "visits.parquet", VISITS)
    same(
        hm.assess(read),
        hm.assess(hm.read(tmp_path / "visits.parquet", schema=VISITS, engine="duckdb")),
    )
    promises = (hm.KAnonymity(5), hm.PersonalKAnonymity())
    found = hm.check(
        hm.read(tmp_path / "visits.parquet", schema=VISITS, engine="duckdb"), *promises
    )
    assert found == hm.check(read, *promises)


def test_equal_rows_of_one_person_are_one_person(tmp_path):
    rows = pa.table({"age": [30, 30, 41], "who": [1, 1, 2]})
    pq.write_table(rows, tmp_path / "two.parquet")
    schema = {"table": {"person": "who"}, "columns": {"age": "quasi"}}
    found = hm.assess(hm.read(tmp_path / "two.parquet", schema=schema, engine="duckdb"))
    assert (found.rows, found.people, found.unique_rows) == (3, 2, 3)


def test_demands_from_a_file_are_joined(tmp_path):
    rows = visits()
    pq.write_table(rows.drop_columns(["own_k"]), tmp_path / "visits.parquet")
    demands = rows.select(["who", "own_k"]).group_by(["who", "own_k"]).aggregate([])
    csv.write_csv(demands, tmp_path / "demands.csv")
    (tmp_path / "visits.toml").write_text(
        '[table]\nperson = "who"\n[policy]\nfile = "demands.csv"\nk = "own_k"\n'
        '[columns]\nage = "quasi"\nsex = "quasi"\n'
    )
    found = hm.check(hm.read(tmp_path / "visits.parquet", engine="duckdb"), hm.PersonalKAnonymity())
    assert found == hm.check(hm.read(tmp_path / "visits.parquet"), hm.PersonalKAnonymity())


def test_a_population_goes_with_counted_rows(sources):
    everybody = hm.read(rows(3000, seed=5), SCHEMA)
    read = hm.read(sources / "people.parquet", SCHEMA)
    stored = hm.read(sources / "people.parquet", SCHEMA, engine="duckdb")
    same(hm.assess(read, population=everybody), hm.assess(stored, population=everybody))
    promise = hm.KMap(3, population=everybody)
    assert hm.check(stored, promise) == hm.check(read, promise)


def test_postgres_counts_where_the_rows_are(postgres, sources, capfd):
    import psycopg

    table = rows(500)
    with psycopg.connect(postgres) as database, database.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS counted_people")
        cursor.execute(
            "CREATE TABLE counted_people (age int, sex text, zip text, ill text, note int)"
        )
        with cursor.copy("COPY counted_people FROM STDIN") as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)
    read = hm.read(table, SCHEMA)
    stored = hm.read(postgres, SCHEMA, table="counted_people")
    found = hm.assess(stored, fraction=0.2)
    same(hm.assess(read, fraction=0.2), found)
    assert "postgres" in found.notes[0]
    assert hm.check(stored, *PROMISES) == hm.check(read, *PROMISES)
    assert hm.discrimination_rate(stored, "ill", "age") == pytest.approx(
        hm.discrimination_rate(read, "ill", "age")
    )
    assert command(
        "check", postgres, "--table", "counted_people", "--quasi", "age,sex", "--k", "3", "--json"
    ) == (
        2
        if not hm.check(hm.read(table, {"age": "quasi", "sex": "quasi"}), hm.KAnonymity(3))[0].holds
        else 0
    )
    assert json.loads(capfd.readouterr().out)["verdicts"]
    with pytest.raises(InputError, match="no table called"):
        hm.assess(hm.read(postgres, schema=SCHEMA, table="nowhere"))


def command(*words):
    from halfmask.cli.main import run

    with pytest.raises(SystemExit) as stop:
        run(list(words))
    return stop.value.code


def test_a_declared_delimiter_and_encoding_hold(tmp_path, capfd):
    (tmp_path / "odd.csv").write_bytes("age;city\n30;M\xfcnster, West\n30;Bonn\n".encode("latin-1"))
    schema = {"age": "quasi", "city": "quasi"}
    how = {"delimiter": ";", "encoding": "latin-1"}
    found = hm.assess(hm.read(tmp_path / "odd.csv", schema, engine="duckdb", **how))
    assert (found.rows, found.classes) == (2, 2)
    code = command(
        "check", str(tmp_path / "odd.csv"), "--engine", "duckdb", "--quasi", "age", "--k", "2",
        "--delimiter", ";", "--encoding", "latin-1",
    )  # fmt: skip
    assert code == 0
    assert "holds" in capfd.readouterr().out


def test_how_a_file_is_written_may_stand_in_the_schema(tmp_path):
    # Commas and semicolons would both do: a schema tells which is meant.
    (tmp_path / "odd.csv").write_bytes("age,x;city\n30,1;M\xfcnster\n30,1;Bonn\n".encode("latin-1"))
    schema = {
        "table": {"delimiter": ";", "encoding": "latin-1"},
        "columns": {"age,x": "quasi", "city": "quasi"},
    }
    found = hm.assess(hm.read(tmp_path / "odd.csv", schema=schema, engine="duckdb"))
    same(hm.assess(hm.read(tmp_path / "odd.csv", schema)), found)
    assert [(one.name, one.distinct) for one in found.columns] == [("age,x", 1), ("city", 2)]


@pytest.mark.parametrize(
    ("said", "classes", "missing"),
    [
        ({}, 3, 2),
        ({"missing": ["NA"]}, 3, 1),
        ({"missing": ["", "NA"]}, 2, 3),
        ({"missing": []}, 3, 0),
    ],
)
def test_what_is_missing_in_a_text_file_is_what_the_schema_says(tmp_path, said, classes, missing):
    (tmp_path / "people.csv").write_text('age,city\n30,""\n30,\n30,NA\n30,Bonn\n')
    schema = {"table": said, "columns": {"age": "quasi", "city": "quasi"}}
    found = hm.assess(hm.read(tmp_path / "people.csv", schema=schema, engine="duckdb"))
    same(hm.assess(hm.read(tmp_path / "people.csv", schema)), found)
    assert (found.classes, found.columns[1].missing) == (classes, missing)


def test_columns_that_must_not_leave_are_not_counted_along(sources):
    schema = {"age": "quasi", "note": "identifier"}
    stored = hm.read(sources / "people.parquet", schema, engine="duckdb")
    found = count_tuples(stored, lambda _: ["age"], ["note", "ill", "nothing"])
    assert found.table.arrow.column_names == ["age", "ill"]
    assert found.left_out == ("sex", "zip", "note")
    assert found.private == ("note",)


def test_the_memory_limit_also_holds_for_a_database(sources):
    with pytest.raises(ParameterError, match="500MB"):
        hm.assess(
            hm.read(sources / "people.duckdb", schema=SCHEMA, table="people", memory_limit="lots")
        )


def test_a_memory_limit_has_duckdb_count(sources):
    found = hm.assess(hm.read(sources / "people.parquet", schema=SCHEMA, memory_limit="100MB"))
    assert "counted by duckdb" in found.notes[0]
    with pytest.raises(ParameterError, match="counts its own rows"):
        hm.assess(hm.read(sources / "people.duckdb", schema=SCHEMA, engine="memory"))


def test_a_database_is_only_read(sources):
    import duckdb

    with (
        Storage(str(sources / "people.duckdb"), "people").open() as (engine, _),
        pytest.raises(duckdb.Error, match="read-only"),
    ):
        engine._connection.execute("CREATE TABLE given.more (a INT)")


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "broken.duckdb").write_text("canary")
    with pytest.raises(EngineError, match="cannot read") as caught:
        hm.check(hm.read(tmp_path / "broken.duckdb", schema=SCHEMA, table="t"), hm.KAnonymity(2))
    assert "canary" not in str(caught.value)


def test_a_line_that_duckdb_cannot_read_is_not_told(tmp_path):
    (tmp_path / "broken.csv").write_bytes(b"age,sex\ncanary,f\n31\xff,m\n")
    with pytest.raises(EngineError, match="cannot read") as caught:
        hm.assess(hm.read(tmp_path / "broken.csv", schema={"age": "quasi"}, engine="duckdb"))
    assert "canary" not in str(caught.value)


def test_checks_name_what_the_schema_lacks(sources):
    with pytest.raises(SchemaError, match="quasi"):
        hm.check(hm.read(sources / "people.parquet", engine="duckdb"), hm.KAnonymity(2))
    with pytest.raises(InputError, match="nothing"):
        hm.discrimination_rate(
            hm.read(sources / "people.parquet", engine="duckdb"), "nothing", "age"
        )


def test_a_small_file_is_read(sources, monkeypatch):
    found = hm.assess(hm.read(sources / "people.csv", schema=SCHEMA))
    same(found, hm.assess(hm.read(sources / "people.csv", SCHEMA)))
    assert not any("counted by" in note for note in found.notes)
    monkeypatch.setattr("halfmask.engines.read.LARGE", 1000)
    large = hm.assess(hm.read(sources / "people.csv", schema=SCHEMA))
    same(found, large)
    assert "counted by duckdb" in large.notes[0]


def test_the_command_counts_with_roles_from_options(sources, capfd):
    code = command(
        "assess", str(sources / "people.parquet"), "--engine", "duckdb", "--quasi", "age,sex",
        "--sensitive", "ill", "--memory-limit", "100MB", "--json",
    )  # fmt: skip
    assert code == 0
    assert json.loads(capfd.readouterr().out)["rows"] == 500


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"engine": "abacus"}, ParameterError, "duckdb"),
        ({"engine": "postgres"}, ParameterError, "postgres://"),
        ({"memory_limit": "lots"}, ParameterError, "500MB"),
        ({"engine": "duckdb", "memory_limit": "lots"}, ParameterError, "500MB"),
        ({"engine": "duckdb", "schema": {"nothing": "quasi"}}, InputError, "nothing"),
        ({"engine": "duckdb", "schema": {"age": "other"}}, SchemaError, "quasi"),
    ],
)
def test_faults_say_what_to_do(sources, options, error, words):
    with pytest.raises(error, match=words):
        hm.assess(hm.read(sources / "people.parquet", **({"schema": SCHEMA} | options)))


def test_a_database_needs_the_name_of_a_table(sources):
    with pytest.raises(ParameterError, match="table"):
        hm.assess(hm.read(sources / "people.duckdb", schema=SCHEMA))


def test_tuples_come_in_order_so_that_what_is_drawn_from_them_repeats(sources):
    with Storage(str(sources / "people.parquet")).open() as (engine, name):
        found, counts = group_tuples(engine, name, ["sex", "zip", "ill"])
    tuples = list(zip(*found.to_pydict().values(), strict=True))
    assert tuples == sorted(tuples)
    assert len(tuples) == 18
    assert counts.sum() == 500


def test_the_first_line_names_the_columns_for_an_engine_too(tmp_path):
    (tmp_path / "people.csv").write_text("1,2\n3,4\n3,5\n")  # looks like rows only
    schema = {"columns": {"1": "quasi", "2": "sensitive"}}
    read = hm.assess(hm.read(tmp_path / "people.csv", schema=schema))
    found = hm.assess(hm.read(tmp_path / "people.csv", schema=schema, engine="duckdb"))
    assert (found.rows, found.unique_rows) == (read.rows, read.unique_rows) == (2, 0)


def test_too_many_distinct_tuples_are_refused(sources):
    with (
        Storage(str(sources / "people.parquet")).open() as (engine, name),
        pytest.raises(InputError, match=r"more than 10 distinct.*fewer.*generalize.*at random"),
    ):
        group_tuples(engine, name, ["age", "zip"], most=10)


PROGRAM = """
import json, sys
from pathlib import Path
import halfmask as hm
schema = {name: "quasi" for name in ("a", "b", "c", "d")} | {"s": "sensitive"}
def peak():  # of this program alone, where getrusage would count what the parent held
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
hm.assess(hm.read({name: [1, 2] for name in "abcds"}, schema))  # compile first
import duckdb, tempfile
before = peak()
found = hm.assess(hm.read(sys.argv[1], schema, engine="duckdb", memory_limit="60MB"))
print(json.dumps({"grown": peak() - before, "rows": found.rows, "unique": found.unique_rows,
                  "rate": found.disclosures[0].discrimination, "mean": found.mean_risk}))
"""


@pytest.mark.slow
def test_a_table_larger_than_the_memory_limit_is_counted_in_bounded_memory(tmp_path):
    path = tmp_path / "large.parquet"
    random = np.random.default_rng(0)
    names = ("a", "b", "c", "d", "s", "u", "v", "w")
    tallies = np.zeros((12**4, 12), np.int64)  # of a to d, and s
    with pq.ParquetWriter(path, pa.schema([(n, pa.int64()) for n in names])) as writer:
        for _ in range(12):
            part = {n: random.integers(0, 12, 250_000) for n in names[:5]}
            places = np.ravel_multi_index(tuple(part.values()), [12] * 5)
            tallies += np.bincount(places, minlength=12**5).reshape(-1, 12)
            part |= {n: random.integers(0, 1 << 60, 250_000) for n in names[5:]}
            writer.write_table(pa.table(part))
    ran = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM, str(path)], check=True, capture_output=True, text=True
    )
    found = json.loads(ran.stdout)
    sizes = tallies.sum(axis=1)
    assert found["rows"] == tallies.sum() == 3_000_000
    assert found["unique"] == (sizes == 1).sum()
    assert found["mean"] == pytest.approx((sizes > 0).sum() / 3_000_000)
    # What is not known of s by the four columns, of what is not known of it at all.
    unknown = entropy(tallies, axis=1) @ sizes / 3_000_000 / entropy(tallies.sum(axis=0))
    assert found["rate"] == pytest.approx(1 - unknown)
    size = 3_000_000 * 8 * 8 / 2**20  # 183 MB in memory, three times the limit
    assert found["grown"] < size


WEIGHED = {"columns": {"age": "quasi", "sex": "quasi", "ill": "sensitive"}}


def weighed(size=300):
    random = np.random.default_rng(5)
    weights = random.choice([1.0, 2.5, 40.25, 7.0], size)
    return rows(size).append_column("w", pa.array(weights)), weights


@pytest.mark.parametrize("kind", ["parquet", "csv", "comma", "duckdb"])
def test_weights_are_added_up_by_the_engine(tmp_path, kind):
    import duckdb

    table, weights = weighed()
    schema, options = WEIGHED, {"engine": "duckdb"}
    path = tmp_path / f"people.{'csv' if kind == 'comma' else kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "csv":
        csv.write_csv(table, path)
    elif kind == "comma":
        texts = pa.array([str(one).replace(".", ",") for one in weights.tolist()])
        place = table.column_names.index("w")
        options |= {"delimiter": ";"}
        csv.write_csv(table.set_column(place, "w", texts), path, csv.WriteOptions(delimiter=";"))
        schema = {"table": {"decimal": ","}, **WEIGHED}
    else:
        options = {"table": "people"}
        with duckdb.connect(str(path)) as database:
            database.register("arrow", table)
            database.execute("CREATE TABLE people AS SELECT * FROM arrow")
    read = hm.assess(hm.read(table, WEIGHED), weights="w")
    found = hm.assess(hm.read(path, schema, **options), weights="w")
    assert found.survey.population == pytest.approx(weights.sum())
    same(read, found)


def test_people_of_an_engine_stand_for_their_weight_once(tmp_path):
    table = pa.table(
        {"id": [1, 1, 1, 2, 3], "age": [30, 30, 41, 30, 41], "w": [5.0, 5.0, 5.0, 2.0, 9.0]}
    )
    schema = {"table": {"person": "id"}, "columns": {"age": "quasi"}}
    pq.write_table(table, tmp_path / "people.parquet")
    read = hm.assess(hm.read(table, schema), weights="w")
    found = hm.assess(
        hm.read(tmp_path / "people.parquet", schema=schema, engine="duckdb"), weights="w"
    )
    assert found.survey.population == 16
    assert found.survey.plain.highest == pytest.approx(1 / 7)
    same(read, found)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["5", "", "5"], r"1 row\(s\) have no weight"),
        (["5", "Canaria", "Canaria"], r"2 row\(s\) have no weight"),
        (["5", "0.5", "-1"], r"2 weight\(s\) are below 1"),
        (["5", "inf", "5"], r"1 weight\(s\) are not finite"),
        (["5", "nan", "5"], r"1 weight\(s\) are not finite"),
        (["1e308", "1e308", "5"], r"2 weight\(s\) are not finite or above"),
    ],
    ids=["missing", "text", "below 1", "infinite", "not a number", "huge"],
)
def test_an_engine_refuses_what_is_no_weight(tmp_path, values, words):
    path = tmp_path / "people.csv"
    lines = [f"{age},{weight}" for age, weight in zip((30, 30, 41), values, strict=True)]
    path.write_text("\n".join(["age,w", *lines]) + "\n")
    with pytest.raises(SchemaError, match=words) as told:
        hm.assess(hm.read(path, schema={"age": "quasi"}, engine="duckdb"), weights="w")
    assert "Canaria" not in str(told.value)
    with pytest.raises(InputError, match="'nobody'"):
        hm.assess(hm.read(path, schema={"age": "quasi"}, engine="duckdb"), weights="nobody")


def test_an_engine_refuses_texts_of_a_typed_column(tmp_path):
    pq.write_table(pa.table({"age": [30, 41], "w": ["5", "5"]}), tmp_path / "people.parquet")
    with pytest.raises(SchemaError, match="holds text, not weights"):
        hm.assess(
            hm.read(tmp_path / "people.parquet", schema={"age": "quasi"}, engine="duckdb"),
            weights="w",
        )


@pytest.mark.parametrize("kind", ["numeric(8,2)", "real", "bigint"])
def test_postgres_adds_weights_up_where_the_rows_are(postgres, kind):
    import psycopg

    table = pa.table({"age": [30, 30, 41, 52], "w": [5, 7, 2, 9]})
    with psycopg.connect(postgres) as database, database.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS weighed_people")
        cursor.execute(f"CREATE TABLE weighed_people (age int, name text, w {kind})")
        for age, weight in zip(*(column.to_pylist() for column in table.columns), strict=True):
            cursor.execute("INSERT INTO weighed_people VALUES (%s, 'x', %s)", [age, weight])
    stored = hm.read(postgres, {"age": "quasi"}, table="weighed_people")
    same(hm.assess(hm.read(table, {"age": "quasi"}), weights="w"),
         hm.assess(stored, weights="w"))  # fmt: skip
    with pytest.raises(SchemaError, match="holds text, not weights"):
        hm.assess(stored, weights="name")
