"""The p% rule by people's own p: the largest that anybody states holds for every sum."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import HalfmaskError, SchemaError

SQL = "SELECT city, SUM(pay) AS s, COUNT(*) AS n FROM people GROUP BY city GUARANTEE k = 3"
SCHEMA = {
    "query": {"dominance": {"p": "own_p"}},
    "columns": {"city": "quasi", "pay": "sensitive"},
}
# In a, the rest behind the two largest is 30: 37.5% of the largest. In b 100 of 100.
PAY = [80, 20, 10, 20, 100, 100, 50, 50]


def rows(own: list[float | None]) -> pa.Table:
    return pa.table({"city": list("aaaabbbb"), "pay": PAY, "own_p": pa.array(own, pa.float64())})


def sums(own: list[float | None], engine: str = "duckdb") -> dict[str, int | None]:
    answer = hm.query(rows(own), SQL, schema=SCHEMA, engine=engine).to_arrow()
    return dict(zip(answer["city"].to_pylist(), answer["s"].to_pylist(), strict=True))


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize(
    ("own", "shown"),
    [
        ([None] * 8, {"a": 130, "b": 300}),
        ([37.0, *[None] * 7], {"a": 130, "b": 300}),
        ([38.0, *[None] * 7], {"a": None, "b": 300}),
        ([*[None] * 7, 38.0], {"a": None, "b": 300}),  # wherever this person stands
        ([5.0, *[1.0] * 6, 101.0], {"a": None, "b": None}),
        ([float("inf"), *[None] * 7], {"a": None, "b": None}),
        ([float("nan"), *[None] * 7], {"a": 130, "b": 300}),  # an empty field
    ],
)
def test_the_largest_p_that_anybody_states_holds(own, shown, engine):
    assert sums(own, engine) == shown


@pytest.mark.parametrize("listed", [True, False])
def test_rows_of_a_database_and_conditions_do_not_matter(tmp_path, listed):
    path, name = str(tmp_path / "people.duckdb"), 'Odd"Name'
    with duckdb.connect(path) as connection:
        given = rows([*[None] * 7, 38.0])  # noqa: F841 - read by name
        connection.execute('CREATE TABLE "Odd""Name" AS SELECT * FROM given')
    sql = SQL.replace("GROUP", "WHERE city = 'a' GROUP").replace("people", '"Odd""Name"')
    which = {"schema": SCHEMA, "tables": [name]} if listed else {"schema": {name: SCHEMA}}
    assert hm.query(path, sql, **which).to_arrow()["s"].to_pylist() == [None]


def test_decimals_beyond_all_doubles_let_no_sum_leave(postgres):
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS owners")
        connection.execute("CREATE TABLE owners (city text, pay int, own_p numeric)")
        for city, pay in zip("aaaabbbb", PAY, strict=True):
            connection.execute("INSERT INTO owners VALUES (%s, %s, 1e400)", (city, pay))
    sql = SQL.replace("people", "owners")
    answer = hm.query(postgres, sql, schema={"owners": SCHEMA}).to_arrow()
    assert answer["s"].to_pylist() == [None, None]


def test_the_column_is_no_answer():
    with pytest.raises(HalfmaskError, match="own_p"):
        hm.query(
            rows([1.0] * 8), "SELECT AVG(own_p) AS x FROM people GUARANTEE k = 3", schema=SCHEMA
        )


@pytest.mark.parametrize("column", ["nowhere", "city"])
def test_a_column_without_numbers_is_refused(column):
    schema = {**SCHEMA, "query": {"dominance": {"p": column}}}
    with pytest.raises(SchemaError, match="own p in percent"):
        hm.query(rows([1.0] * 8), SQL, schema=schema)
