"""A demand that is hard to read must leave its person out, and change nothing else.

Ada states an odd demand in a table that nobody reads before it is asked. Whether a question fails
must not tell whether she meets its WHERE: by halving, an asker would read any of her values.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.attacks.conftest import AGE, SALARY, SCHEMA, Asker, make_rows

import halfmask as hm
from halfmask.engines.duckdb.engine import DuckDB
from halfmask.engines.postgres import Postgres
from halfmask.engines.reference import Reference
from halfmask.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

ODD = {
    "bigint": "9007199254740993",
    "hugeint": "99999999999999999999",
    "uhugeint": "340282366920938463463374607431768211455",
    "ubigint": "18446744073709551615",
    "double": "'nan'",
    "float": "'inf'",
    "decimal(38, 0)": "99999999999999999999999999999999999999",
    "tinyint": "-3",
}
UNFIT = {"varchar": "'lots'", "boolean": "true", "date": "'2020-01-01'", "interval": "'3 days'"}


def schema_of(demand: str) -> dict[str, Any]:
    return {**SCHEMA, "policy": {demand: "k_i"}}


def question(guess: int) -> str:
    return (
        "SELECT city, COUNT(*) AS n, MAX(salary) AS m FROM people "
        f"WHERE NOT (age = {AGE} AND salary > {guess}) GROUP BY city GUARANTEE k = 3"
    )


def stored(kind: str, value: str) -> DuckDB:
    """Everybody's rows in DuckDB; all but Ada state nothing."""
    engine = DuckDB({"plain": pa.table(make_rows())})
    engine._connection.execute(
        f"CREATE TEMPORARY TABLE people AS SELECT * EXCLUDE (k_i), "
        f"CASE WHEN age = {AGE} THEN CAST({value} AS {kind}) END AS k_i FROM plain"
    )
    return engine


def asker_of(engine: Any, schema: dict[str, Any]) -> Asker:
    return Asker("people", {"engine": engine, "schema": {"people": schema}})


def seen(asker: Asker, question: Callable[[int], str] = question) -> list[dict[str, Any]]:
    """The answer, which is the same, and one, whether or not Ada's salary meets WHERE."""
    below, right = asker.rows(question(SALARY - 1)), asker.rows(question(SALARY))
    assert below == right
    assert right is not None
    return right


def without_her(asker: Asker) -> bool:
    return [row["n"] for row in seen(asker)] == [29, 30]


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_demand_tells_nothing(kind: str) -> None:
    engine = stored(kind, ODD[kind])
    for demand in ("k", "l", "t", "epsilon") if kind in ("uhugeint", "double") else ("k",):
        assert without_her(asker_of(engine, schema_of(demand)))


@pytest.mark.parametrize("kind", UNFIT)
def test_a_column_that_holds_no_numbers_is_refused_by_its_type(kind: str) -> None:
    for value in (UNFIT[kind], "NULL"):
        with pytest.raises(SchemaError, match="holds no numbers"):
            hm.query(
                "people",
                question(0),
                engine=stored(kind, value),
                schema={"people": schema_of("k")},
            )


@pytest.mark.parametrize(
    "demands",
    [
        pa.array([float("nan")], pa.float64()),
        pa.array([2**64 - 1], pa.uint64()),
        pa.array([Decimal(10) ** 37], pa.decimal128(38, 0)),
    ],
    ids=["NaN", "uint64", "decimal"],
)
@pytest.mark.parametrize("demand", ["k", "t"])
def test_every_engine_reads_demands_alike(demands: pa.Array, demand: str) -> None:
    rows = pa.table(make_rows())
    who = rows["age"].to_pylist().index(AGE)
    hers = [demands[0].as_py() if i == who else None for i in range(60)]
    rows = rows.set_column(rows.column_names.index("k_i"), "k_i", pa.array(hers, demands.type))
    for engine in (Reference({"people": rows}), DuckDB({"people": rows})):
        assert without_her(asker_of(engine, schema_of(demand)))
    if demand == "k" and not pa.types.is_floating(demands.type):  # NaN, read, is an empty field
        assert without_her(Asker(hm.read(rows, SCHEMA)))


def test_too_large_a_demand_in_policies_leaves_out_and_does_not_fail() -> None:
    schema = {**SCHEMA, "policy": {}}
    rows = make_rows()
    person = str(rows["id"][rows["age"].index(AGE)])
    for odd in (2**53 + 1, 10**400, float("nan")):
        given = {"people": {person: {"k": odd}}}
        assert without_her(Asker(hm.read(pa.table(rows), schema), {"policies": given}))


DATABASE = {
    "k_numeric": ("numeric", "'NaN'"),
    "k_far": ("numeric", "1e400"),
    "k_near": ("numeric", "1e-400"),
    "k_digits": ("numeric(10, 2)", "'NaN'"),
    "k_real": ("double precision", "'NaN'"),
}


@pytest.fixture(scope="module")
def database(postgres: str) -> Any:
    """Ada's row with values that only PostgreSQL has."""
    engine = Postgres(postgres)
    engine.add("plain", pa.table(make_rows()))
    hers = f"CASE WHEN age = {AGE} THEN CAST({{1}} AS {{0}}) END AS {{2}}"
    odd = ", ".join(hers.format(*how, name) for name, how in DATABASE.items())
    folded = "provider = icu, locale = 'und-u-ks-level2', deterministic = false"
    engine._connection.execute(f"CREATE COLLATION IF NOT EXISTS folded ({folded})")
    engine._connection.execute(
        f"CREATE TEMPORARY TABLE people AS SELECT *, {odd}, "
        f"CAST(CASE WHEN age = {AGE} THEN 'NaN' ELSE kwh END AS numeric(12, 2)) AS paid, "
        f"CAST(CASE WHEN age = {AGE} THEN 'LILLE' ELSE 'lille' END AS text) COLLATE folded AS town,"
        f"CAST(CASE WHEN age = {AGE} THEN 'x  ' ELSE 'x' END AS bpchar) AS padded FROM plain"
    )
    yield engine
    engine.close()


@pytest.mark.parametrize("column", DATABASE)
def test_a_demand_of_postgres_tells_nothing(database: Postgres, column: str) -> None:
    for demand in ("k", "t"):
        assert without_her(asker_of(database, {**SCHEMA, "policy": {demand: column}}))


@pytest.mark.parametrize("figure", ["MIN(paid)", "MAX(paid)", "SUM(paid)", "MEDIAN(paid)"])
def test_what_is_no_number_does_not_come_back(database: Postgres, figure: str) -> None:
    def paid(guess: int) -> str:
        return question(guess).replace("MAX(salary)", figure)

    assert seen(asker_of(database, SCHEMA), paid)
    # Nor where her demand is met: then she has no value there.
    met = asker_of(database, {**SCHEMA, "policy": {}})
    assert met.rows(paid(SALARY)) is not None


@pytest.mark.parametrize("column", ["town", "padded"])
def test_texts_that_are_alike_and_not_the_same_are_no_keys(database: Postgres, column: str) -> None:
    asker = asker_of(database, {**SCHEMA, "policy": {}})
    sql = f"SELECT {column}, COUNT(*) AS n, MEDIAN(salary) AS m FROM people "
    assert asker.rows(sql + f"GROUP BY {column} GUARANTEE k = 5") is None


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize("k", [2, 1_000_000])
def test_dominance_does_not_fail_on_a_row(engine: str, k: int) -> None:
    rows = make_rows(k=k)
    schema = {**SCHEMA, "query": {"k": 3, "dominance": {"p": 10}}}
    seen = []
    for value in (-(2**63), 2**63 - 1):
        rows["salary"][rows["age"].index(AGE)] = value
        asker = Asker(hm.read(pa.table(rows), schema), {"engine": engine})
        sql = "SELECT city, SUM(salary) AS s, STDDEV(salary - 5) AS d FROM people GROUP BY city"
        seen.append(asker.rows(f"{sql} GUARANTEE k = 3"))
    assert seen[0] == seen[1]
    assert seen[0] is not None
    assert (seen[0][0]["s"] is None) == (k == 2)


@pytest.mark.spark
def test_spark_refuses_text_by_its_type_and_reads_large_demands(spark: Any) -> None:
    rows = pa.table(make_rows(k=2**53 + 1))
    words = pa.array(["lots" if age == AGE else None for age in rows["age"].to_pylist()])
    frame = spark.createDataFrame(rows.append_column("k_text", words))
    named = question(SALARY).replace("FROM people", "FROM the_table")
    found = hm.query(frame, named, schema=SCHEMA).to_arrow().to_pylist()
    assert [row["n"] for row in found] == [29, 30]
    with pytest.raises(SchemaError, match="holds no numbers"):
        hm.query(frame, named, schema={**SCHEMA, "policy": {"k": "k_text"}})
