"""The asker reads tables that nobody gave, promises next to nothing, asks for one person's sum."""

# ruff: noqa: E501 - questions in one line, made of parts

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import QueryError, SchemaError

if TYPE_CHECKING:
    from pathlib import Path

VISITS = {"g": "quasi", "a": "sensitive"}


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = str(tmp_path / "clinic.duckdb")
    with duckdb.connect(path) as made:
        made.execute("CREATE TABLE visits AS SELECT i % 2 AS g, i AS a FROM range(20) t(i)")
        made.execute("CREATE TABLE secret AS SELECT i % 2 AS g, i AS a FROM range(20) t(i)")
    return path


def complaint(database: str, name: str, **given: object) -> str:
    sql = f"SELECT g, COUNT(*) AS n FROM {name} GROUP BY g GUARANTEE k = 3"
    with pytest.raises(QueryError) as error:
        hm.query(database, sql, **given)  # type: ignore[arg-type]
    return str(error.value).replace(name, "...").replace("^", "")


@pytest.mark.parametrize(
    "given",
    [
        {"tables": ["visits"]},
        {"schema": {"visits": VISITS}},
        {"schema": {"columns": VISITS, "query": {"tables": ["visits"]}}},
        {"schema": {"columns": VISITS, "query": {"tables": ["visits"]}}, "tables": ["visits", "secret"]},
    ],
    ids=["the argument", "schemas by name", "the schema's list", "both: none is widened"],
)  # fmt: skip
def test_unlisted_tables_of_a_database_do_not_exist(
    database: str, given: dict[str, object]
) -> None:
    sql = "SELECT g, COUNT(*) AS n FROM visits GROUP BY g GUARANTEE k = 3"
    assert len(hm.query(database, sql, **given)) == 2  # type: ignore[arg-type]
    nowhere = complaint(database, "nowhere", **given)
    for name in ("secret", "pg_class", "duckdb_tables", "hm_places"):
        assert complaint(database, name, **given) == nowhere


def test_a_joined_or_looked_up_table_must_be_listed_too(database: str) -> None:
    join = "SELECT v.g, COUNT(*) AS n FROM visits v JOIN secret s ON v.a = s.a GROUP BY v.g"
    looked = "SELECT g, COUNT(*) AS n FROM visits WHERE a IN (SELECT a FROM secret) GROUP BY g"
    for sql in (join, looked):
        with pytest.raises(QueryError, match="there is no table secret"):
            hm.query(database, sql + " GUARANTEE k = 3", tables=["visits"])


def test_system_tables_cannot_be_listed(database: str) -> None:
    assert "there is no table" in complaint(database, "pg_class", tables=["pg_class", "visits"])


def test_a_database_without_a_list_says_what_to_set(database: str) -> None:
    with pytest.raises(SchemaError, match=r'tables = \["visits"\] under \[query\]'):
        hm.query(database, "SELECT COUNT(*) AS n FROM visits GUARANTEE k = 3")


def test_given_tables_can_be_kept_from_being_asked() -> None:
    tables = {"visits": pa.table({"g": [1] * 4}), "secret": pa.table({"g": [1] * 4})}
    sql = "SELECT COUNT(*) AS n FROM {} GUARANTEE k = 3"
    assert len(hm.query(tables, sql.format("visits"), tables=["visits"])) == 1
    with pytest.raises(QueryError, match="there is no table secret; there are: visits"):
        hm.query(tables, sql.format("secret"), tables=["visits"])


ONE_EACH = pa.table(
    {"name": ["Alice", "Bob", "Carol", "Carol", "Carol"], "salary": [1, 2, 3, 4, 5]}
)
SQL = "SELECT name, SUM(salary) AS s FROM t GROUP BY name GUARANTEE k = 1"


def shown(**given: object) -> list[str]:
    names: list[str] = hm.query(ONE_EACH, SQL, **given).to_arrow()["name"].to_pylist()  # type: ignore[arg-type]
    return names


def test_nobody_is_shown_alone_unless_the_controller_says_so() -> None:
    answer = hm.query(ONE_EACH, SQL)
    assert answer.to_arrow()["name"].to_pylist() == ["Carol"]
    assert answer.levels[0].k == 3
    assert any("k was raised to 3" in note for note in answer.notes)
    assert shown(floor=1) == ["Alice", "Bob", "Carol"]
    assert shown(floor=4) == []


def test_the_floor_of_the_schema_is_not_lowered() -> None:
    schema = {"columns": {"name": "quasi", "salary": "sensitive"}, "query": {"k": 4}}
    assert shown(schema=schema, floor=1) == []
    single = {**schema, "query": {"k": 1, "single_people": True}}
    assert shown(schema=single) == ["Alice", "Bob", "Carol"]
    assert shown(schema=single, floor=4) == []


def test_a_floor_of_one_needs_its_word() -> None:
    with pytest.raises(SchemaError, match="single_people = true"):
        hm.Schema.from_dict({"columns": {}, "query": {"k": 1}})


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize(
    ("rule", "hidden"),
    [
        ({"p": 10}, {"one makes it up", "two know each other"}),
        ({"n": 1, "k": 75}, {"one makes it up"}),
        ({"n": 2, "k": 85}, {"one makes it up", "two know each other"}),
        ({}, set()),
    ],
)
def test_a_sum_that_few_make_up_is_not_shown(engine: str, rule: object, hidden: set[str]) -> None:
    amounts = {
        "one makes it up": [900, 3, 3, 2],
        "two know each other": [500, 480, -2, 1],
        "everybody brings something": [5, 4, 5, -6],
        "nothing": [0, 0, 0, 0],
    }
    rows = [(g, i % 4, amounts[g][i % 4] / 2) for g in amounts for i in range(8)]
    table = pa.table(dict(zip(("g", "id", "a"), map(list, zip(*rows, strict=True)), strict=True)))
    schema = {
        "table": {"person": "id"},
        "columns": {"g": "quasi", "a": "sensitive"},
        "query": {"dominance": rule},
    }
    sql = "SELECT g, SUM(a) AS s, AVG(a) AS m, COUNT(*) AS n FROM t GROUP BY g GUARANTEE k = 3"
    found = hm.query(table, sql, engine=engine, schema=schema).to_arrow().to_pylist()
    assert {r["g"] for r in found if r["s"] is None} == hidden
    assert {r["g"] for r in found if r["m"] is None} == hidden
    assert {r["n"] for r in found} == {8}


def test_a_sum_without_end_is_made_up_by_somebody() -> None:
    rows = pa.table({"g": ["x"] * 4 + ["y"] * 4, "a": [float("inf"), 1.0, 2.0, 3.0] + [5.0] * 4})
    schema = {"columns": {"g": "quasi", "a": "sensitive"}, "query": {"dominance": {"p": 10}}}
    sql = "SELECT g, SUM(a) AS s FROM t GROUP BY g GUARANTEE k = 3"
    for engine in ("duckdb", "reference"):
        answer = hm.query(rows, sql, engine=engine, schema=schema).to_arrow()
        assert answer["s"].to_pylist() == [None, 20.0]


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize(
    "figure",
    [
        "SUM(a + 1000000)",
        "AVG(1000000 - a)",
        "SUM(a * 2 + 1000000)",
        "SUM((a + 1000000) / 2)",
        "SUM(a + 1000000) FILTER (WHERE a > -5)",
        "SUM(CASE WHEN a > -5 THEN a ELSE 1000000 END)",
        "VARIANCE(a)",
        "STDDEV_POP(a)",
        "STDDEV(a + 1000000)",
    ],
)
def test_a_constant_hides_nobody_who_makes_up_a_sum(engine: str, figure: str) -> None:
    amounts = {"one": [90_000, 300, 300, 200], "all": [500, 400, 500, 600]}
    rows = [(g, i, amounts[g][i]) for g in amounts for i in range(4)]
    table = pa.table(dict(zip(("g", "id", "a"), map(list, zip(*rows, strict=True)), strict=True)))
    schema = {"columns": {"g": "quasi", "a": "sensitive"}, "query": {"dominance": {"p": 10}}}
    sql = f"SELECT g, {figure} AS s, COUNT(*) AS n FROM t GROUP BY g GUARANTEE k = 3"
    found = hm.query(table, sql, engine=engine, schema=schema).to_arrow().to_pylist()
    assert {r["g"]: r["s"] is None for r in found} == {"one": True, "all": False}
