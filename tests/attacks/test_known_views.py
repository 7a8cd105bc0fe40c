"""A view computes for the rows that a question leaves: one that fails for Ada alone finds her."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import psycopg
import pyarrow as pa
import pytest
from tests.attacks.conftest import SALARY, SCHEMA, UNMEETABLE, Asker, make_rows

import halfmask as hm
from halfmask.engines.postgres import Postgres
from halfmask.errors import HalfmaskError
from halfmask.query.planning.views import require_plain_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

COMPUTING = {
    "a cast": "SELECT *, CAST(raw AS INTEGER) AS score FROM stored",
    "a condition": "SELECT * FROM stored WHERE CAST(raw AS INTEGER) > 0 OR age > 0",
    "an overflow": "SELECT *, salary * 1000000 AS score FROM stored",
    "a view of a view": "SELECT score FROM inner_view",
    "in a choice": "SELECT *, CASE WHEN age > 0 THEN CAST(raw AS INTEGER) END AS score FROM stored",
    "in a sum": "SELECT id, SUM(CAST(raw AS INTEGER)) AS score FROM stored GROUP BY id",
    "in a join": "SELECT a.id, a.age FROM stored a JOIN stored b ON CAST(a.raw AS INTEGER) = b.id",
    "in a subquery": "SELECT * FROM (SELECT id, CAST(raw AS INTEGER) AS score FROM stored) d",
    "in a date": "SELECT id FROM stored WHERE CAST(raw AS DATE) > '2000-01-01'",
    "in a union": "SELECT raw FROM stored UNION ALL SELECT CAST(kwh AS TEXT) FROM stored",
}
PLAIN = {
    "all": "SELECT * FROM stored",
    "renamed": "SELECT id AS who, city AS town, raw FROM stored",
    "filtered": "SELECT * FROM stored WHERE age >= 18 AND city = 'Lille' AND raw IS NOT NULL",
    "joined": "SELECT a.id, b.salary FROM stored a JOIN stored b ON a.id = b.id",
    "dated": "SELECT id, COALESCE(born, '1970-01-01') AS born FROM stored WHERE "
    "born > '1930-02-01' AND seen < '2021-01-01 10:00:00' AND DATE '2000-01-01' <> born",
    "using": "SELECT id, a.age FROM stored a LEFT JOIN stored b USING (id)",
    "chosen": "SELECT CASE WHEN age > 65 THEN 'old' ELSE city END AS x, COALESCE(k_i, 2) AS k FROM "
    "stored",
    "counted": "SELECT id, COUNT(*) AS n, MAX(raw) AS m, SUM(age) AS s FROM stored GROUP BY id",
    "distinct": "SELECT DISTINCT city, age FROM stored",
    "a view of a view": "SELECT city FROM plain_view WHERE age BETWEEN 20 AND 90",
}


def _rows() -> list[tuple[Any, ...]]:
    """Ada's text is the only one that is no number."""
    rows = list(zip(*make_rows().values(), strict=True))
    return [(*row, "n/a" if row[-1] == UNMEETABLE else "7") for row in rows]


def _fill(run: Callable[[str], object]) -> None:
    values = ", ".join(str(row) for row in _rows())
    run(
        "CREATE TABLE stored (id INT, age INT, city VARCHAR, disease VARCHAR, salary INT, "
        "kwh DOUBLE PRECISION, k_i INT, raw VARCHAR, born DATE DEFAULT '1980-01-01', "
        "seen TIMESTAMP DEFAULT '2020-01-01')"
    )
    names = "id, age, city, disease, salary, kwh, k_i, raw"
    run(f"INSERT INTO stored ({names}) VALUES {values}")
    run("CREATE VIEW inner_view AS SELECT id, CAST(raw AS INTEGER) AS score FROM stored")
    run("CREATE VIEW plain_view AS SELECT * FROM stored")


class Place:
    """A database in which views can be made."""

    def __init__(self, source: str, run: Callable[[str], object]) -> None:
        self.source, self.run = source, run

    def asker(self, view: str) -> Asker:
        self.run("DROP VIEW IF EXISTS people")
        self.run(f"CREATE VIEW people AS {view}")
        return Asker(self.source, {"schema": {"people": SCHEMA}, "tables": ["people"]})


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    if request.param == "duckdb":
        path = str(tmp_path_factory.mktemp("views") / "people.duckdb")

        def run(text: str) -> None:
            with duckdb.connect(path) as connection:
                connection.execute(text)

        _fill(run)
        yield Place(path, run)
        return
    address = request.getfixturevalue("postgres")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA views_")
        connection.execute("SET search_path = views_")
        _fill(connection.execute)
        within = "options=-c%20search_path%3Dviews_"
        yield Place(f"{address}{'&' if '?' in address else '?'}{within}", connection.execute)
        connection.execute("DROP SCHEMA views_ CASCADE")


@pytest.mark.parametrize(
    "ask",
    [
        "SELECT SUM(score) AS s FROM people WHERE salary >= {} GUARANTEE k = 3",
        "SELECT COUNT(*) AS n FROM people WHERE score > 3 AND salary >= {} GUARANTEE k = 3",
        "SELECT COUNT(score) AS s FROM people WHERE salary >= {} WITH EPSILON 0.5",
    ],
)
def test_a_cast_in_a_view_finds_no_salary(place: Place, ask: str) -> None:
    asker = place.asker(COMPUTING["a cast"])

    def fails(guess: int) -> bool:
        return asker.rows(ask.format(guess)) is None

    low, high = 0, 1 << 17
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(middle) else (low, middle)
    assert low != SALARY


def _said(place: Place, asker: Asker, ask: str) -> str:
    try:
        hm.query(place.source, ask, **asker.options)
    except HalfmaskError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", COMPUTING)
def test_a_view_that_computes_is_refused_by_its_definition(place: Place, name: str) -> None:
    asker = place.asker(COMPUTING[name])
    said = _said(place, asker, "SELECT COUNT(*) AS n FROM people GUARANTEE k = 3")
    assert "make a table of it" in said
    assert "n/a" not in said


@pytest.mark.parametrize("name", PLAIN)
def test_a_view_that_takes_rows_as_they_are_is_asked(place: Place, name: str) -> None:
    asker = place.asker(PLAIN[name])
    asker.options["schema"] = {"people": {"columns": {}}}
    assert not _said(place, asker, "SELECT COUNT(*) AS n FROM people GUARANTEE k = 3")


def test_a_text_compared_with_a_number_is_a_cast(tmp_path: Path) -> None:
    """DuckDB casts it without being asked."""
    path = str(tmp_path / "a.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS id, '2' AS raw, 3::DECIMAL(9, 2) AS d")
        connection.execute("CREATE VIEW a AS SELECT id, raw = 7 AS score FROM t")
        connection.execute("CREATE VIEW b AS SELECT t.id FROM t JOIN t u ON t.raw = u.id")
        connection.execute("CREATE VIEW c AS SELECT id FROM t WHERE d = 100000000000")
        connection.execute("CREATE MACRO m(x) AS CAST(x AS INTEGER)")
        connection.execute("CREATE VIEW e AS SELECT id, m(raw) AS score FROM t")
    for name in "abce":
        with pytest.raises(HalfmaskError, match="make a table of it"):
            hm.query(path, f"SELECT COUNT(*) AS n FROM {name} GUARANTEE k = 3", tables=[name])


def test_a_view_that_is_read_as_the_table_is_looked_at_too(tmp_path: Path) -> None:
    path = str(tmp_path / "a.duckdb")
    with duckdb.connect(path) as connection:
        connection.register("rows", pa.table(make_rows()))
        connection.execute("CREATE TABLE t AS SELECT * FROM rows")
        connection.execute("CREATE VIEW good AS SELECT * FROM t")
        connection.execute("CREATE VIEW bad AS SELECT *, CAST(city AS INTEGER) AS score FROM t")
    ask = "SELECT COUNT(*) AS n FROM people GUARANTEE k = 3"
    hm.query(hm.read(path, SCHEMA, table="good"), ask)
    with pytest.raises(HalfmaskError, match="bad computes CAST"):
        hm.query(hm.read(path, SCHEMA, table="bad"), ask)


def test_rows_that_a_table_computes_or_fetches_are_refused(postgres: str) -> None:
    """Row rules run for each row too, and another server may fail for one."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE FOREIGN DATA WRAPPER elsewhere")
        connection.execute("CREATE SERVER elsewhere FOREIGN DATA WRAPPER elsewhere")
        connection.execute("CREATE TABLE parts (id INT) PARTITION BY LIST (id)")
        connection.execute(
            "CREATE FOREIGN TABLE part PARTITION OF parts FOR VALUES IN (1) SERVER elsewhere"
        )
        connection.execute("CREATE VIEW seen AS SELECT * FROM parts")
        engine = Postgres(postgres)
        try:
            for name in ("part", "parts", "seen"):
                with pytest.raises(HalfmaskError, match="the rows of another server"):
                    require_plain_rows(engine, name)
        finally:
            engine.close()
            connection.execute(
                "DROP TABLE parts CASCADE; DROP FOREIGN DATA WRAPPER elsewhere CASCADE"
            )
