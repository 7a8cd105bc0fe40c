"""Derived tables, WITH and lookups answer what the same query without them answers."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import QueryError
from halfmask.query.run import Session

ROWS = pa.table(
    {
        "id": list(range(40)),
        "city": ["Bourges", "Blois", "Tours", "Dijon"] * 10,
        "age": [20 + i % 30 for i in range(40)],
        "salary": [1000 + 10 * i for i in range(40)],
    }
)
SCHEMA = {
    "table": {"person": "id"},
    "columns": {"id": "identifier", "city": "quasi", "age": "quasi", "salary": "sensitive"},
}
REGIONS = pa.table({"town": ["Bourges", "Blois", None], "region": ["Centre", "Centre", "None"]})
OTHER = {"columns": {"town": "other", "region": "other"}}
CLAUSE = " GUARANTEE k = 3, l = 2"

SAME = {
    "a star": (
        "SELECT city, AVG(salary) AS m FROM (SELECT * FROM people) p GROUP BY city",
        "SELECT city, AVG(salary) AS m FROM people GROUP BY city",
    ),
    "a star of a table": (
        "SELECT q.city, AVG(q.salary) AS m FROM (SELECT p.*, age + 1 AS older FROM people p) q "
        "WHERE older > 30 GROUP BY q.city",
        "SELECT city, AVG(salary) AS m FROM people WHERE age + 1 > 30 GROUP BY city",
    ),
    "a join behind it": (
        "SELECT r.region, SUM(p.salary) AS s FROM (SELECT * FROM people WHERE age > 21) p "
        "JOIN regions r ON p.city = r.town GROUP BY r.region",
        "SELECT r.region, SUM(p.salary) AS s FROM people p JOIN regions r ON p.city = r.town "
        "WHERE p.age > 21 GROUP BY r.region",
    ),
    "a condition inside and outside": (
        "SELECT p.city, SUM(p.pay) AS s FROM (SELECT city, age, salary AS pay FROM people "
        "WHERE age > 22) AS p WHERE p.age < 45 GROUP BY p.city ORDER BY s DESC",
        "SELECT city, SUM(salary) AS s FROM people WHERE age > 22 AND age < 45 "
        "GROUP BY city ORDER BY s DESC",
    ),
    "an expression that is grouped and generalized": (
        "SELECT decade, COUNT(*) AS n, SUM(salary) AS s FROM "
        "(SELECT age - age % 10 AS decade, salary FROM people) GROUP BY decade",
        "SELECT age - age % 10 AS decade, COUNT(*) AS n, SUM(salary) AS s FROM people "
        "GROUP BY decade",
    ),
    "names that swap": (
        "SELECT age, SUM(salary) AS s FROM (SELECT city AS age, salary FROM people) GROUP BY age",
        "SELECT city AS age, SUM(salary) AS s FROM people GROUP BY city",
    ),
    "WITH, twice": (
        "WITH old AS (SELECT * FROM people WHERE age > 25), rich AS (SELECT city, salary FROM old "
        "WHERE salary > 1100) SELECT city, MAX(salary) AS m FROM rich GROUP BY city",
        "SELECT city, MAX(salary) AS m FROM people WHERE age > 25 AND salary > 1100 GROUP BY city",
    ),
    "OR keeps its brackets": (
        "SELECT city, SUM(salary) AS s FROM (SELECT * FROM people WHERE age > 40 OR age < 30) p "
        "WHERE salary > 1050 OR age = 21 GROUP BY city",
        "SELECT city, SUM(salary) AS s FROM people WHERE (age > 40 OR age < 30) "
        "AND (salary > 1050 OR age = 21) GROUP BY city",
    ),
    "a lookup": (
        "SELECT city, SUM(salary) AS s FROM people WHERE city IN "
        "(SELECT town FROM regions r WHERE r.region = 'Centre') GROUP BY city",
        "SELECT city, SUM(salary) AS s FROM people WHERE city IN ('Bourges', 'Blois') "
        "GROUP BY city",
    ),
    "a lookup that finds nothing": (
        "SELECT city, SUM(salary) AS s FROM people WHERE city NOT IN "
        "(SELECT town FROM regions WHERE region = 'x') GROUP BY city",
        "SELECT city, SUM(salary) AS s FROM people GROUP BY city",
    ),
    "a missing value in NOT IN": (
        "SELECT city, SUM(salary) AS s FROM people WHERE city NOT IN (SELECT town FROM regions) "
        "GROUP BY city",
        "SELECT city, SUM(salary) AS s FROM people WHERE FALSE GROUP BY city",
    ),
    "one value": (
        "SELECT city, SUM(salary) AS s FROM people WHERE city = (SELECT MAX(town) FROM regions) "
        "GROUP BY city",
        "SELECT city, SUM(salary) AS s FROM people WHERE city = 'Bourges' GROUP BY city",
    ),
}


def _answer(sql: str, engine: str | None = None) -> list[dict[str, object]]:
    tables = {"people": ROWS, "regions": REGIONS}
    found = hm.query(
        tables, sql + CLAUSE, schema={"people": SCHEMA, "regions": OTHER}, engine=engine
    )
    return sorted(found.to_arrow().to_pylist(), key=str)


@pytest.mark.parametrize("name", SAME)
def test_written_out_it_is_the_same(name: str) -> None:
    inside, plain = SAME[name]
    assert _answer(inside) == _answer(plain)


def test_a_derived_column_is_generalized_by_its_name() -> None:
    found = hm.query(
        hm.read(ROWS, SCHEMA),
        "SELECT a, COUNT(*) AS n FROM (SELECT age AS a, salary FROM people) p GROUP BY a "
        "GUARANTEE k = 3 THEN a -> 10 GUARANTEE k = 4",
    ).to_arrow()
    assert found.column_names[:2] == ["a", "n"]
    assert "[20, 30)" in found["a"].to_pylist()


def test_a_table_that_may_be_about_people_is_not_looked_up() -> None:
    for schema in ({}, {"columns": {"town": "quasi", "region": "other"}}):
        with (
            pytest.raises(QueryError, match="declare all its columns as other") as caught,
            Session(
                {"people": ROWS, "regions": REGIONS},
                schema={"people": SCHEMA, "regions": schema} if schema else {"people": SCHEMA},
            ) as session,
        ):
            session.prepare(SAME["a lookup"][0] + CLAUSE)
        assert "^" in str(caught.value)


def test_values_of_a_lookup_stand_in_one_order() -> None:
    """Whatever the engine's threads come up with first: EXPLAIN shows them."""
    towns = pa.table({"town": ["Tours", "Blois", "Dijon"], "region": ["a", "b", "c"]})
    sql = "SELECT COUNT(*) AS n FROM people WHERE city IN (SELECT town FROM regions)"
    tables = {"people": ROWS, "regions": towns}
    with Session(tables, schema={"people": SCHEMA, "regions": OTHER}) as session:
        where = session.prepare(f"{sql} GUARANTEE k = 3").plan.request.source.args["where"]
    assert "'Blois', 'Dijon', 'Tours'" in where.sql(dialect="duckdb")
