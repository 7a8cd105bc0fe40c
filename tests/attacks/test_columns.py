"""The asker hides which columns a query touches, to get round what people demand for a column."""

# ruff: noqa: E501 - questions in one line, made of parts

from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm

PEOPLE = hm.read(
    pa.table(
        {
            "id": list(range(12)),
            "city": ["Bourges", "Blois"] * 6,
            "age": [30 + i for i in range(12)],
            "disease": ["flu", "cancer", "none"] * 4,
            "salary": [1000 * (i + 1) for i in range(12)],
        }
    ),
    {
        "table": {"person": "id"},
        "columns": {"city": "quasi", "age": "quasi", "disease": "sensitive", "salary": "sensitive"},
    },
)
CITIES = hm.read(
    pa.table({"city": ["Bourges", "Blois"], "region": ["Centre", "Centre"]}),
    {"city": "other", "region": "other"},
)
TABLES = {"people": PEOPLE, "cities": CITIES}
PROMISE = " GUARANTEE k = 3"

TOUCHED = {
    "a key": "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
    "a position": "SELECT city, COUNT(*) AS n FROM people GROUP BY 1",
    "an alias": "SELECT city AS c, COUNT(*) AS n FROM people GROUP BY c",
    "an expression under an alias": "SELECT UPPER(city) AS c, COUNT(*) AS n FROM people GROUP BY c",
    "a filter": "SELECT COUNT(*) AS n FROM people WHERE city = 'Blois'",
    "a join key": "SELECT c.region, COUNT(*) AS n FROM people p JOIN cities c ON p.city = c.city "
    "GROUP BY c.region",
    "USING": "SELECT region, COUNT(*) AS n FROM people p JOIN cities c USING (city) GROUP BY region",
    "a left join": "SELECT region, COUNT(*) AS n FROM people p LEFT JOIN cities c "
    "ON c.city = p.city GROUP BY region",
    "a derived table": "SELECT x, COUNT(*) AS n FROM (SELECT city AS x FROM people) t GROUP BY x",
    "a filter in a derived table": "SELECT COUNT(*) AS n FROM (SELECT age FROM people "
    "WHERE city = 'Blois') t",
    "WITH": "WITH t AS (SELECT city AS x FROM people) SELECT x, COUNT(*) AS n FROM t GROUP BY 1",
    "an argument": "SELECT COUNT(DISTINCT city) AS n FROM people",
    "a condition": "SELECT COUNT(*) FILTER (WHERE city = 'Blois') AS n FROM people",
    "a choice": "SELECT SUM(CASE WHEN city = 'Blois' THEN 1 ELSE 0 END) AS n FROM people",
    "HAVING": "SELECT COUNT(*) AS n FROM people HAVING MAX(city) = 'Bourges'",
    "ORDER BY": "SELECT disease, COUNT(*) AS n FROM people GROUP BY disease ORDER BY MIN(city)",
    "ORDER BY of a position": "SELECT MIN(city) AS c, COUNT(*) AS n FROM people GROUP BY disease "
    "ORDER BY 1",
}  # fmt: skip


def people_of(sql: str, demand: dict[str, object], promise: str = PROMISE) -> int:
    return hm.query(TABLES, sql + promise, {"k": 1, "l": 1, "columns": demand}).people


@pytest.mark.parametrize("sql", TOUCHED.values(), ids=TOUCHED.keys())
def test_a_demand_for_a_column_holds_however_it_is_touched(sql: str) -> None:
    assert people_of(sql, {}) == (6 if "WHERE city" in sql and "FILTER" not in sql else 12)
    assert people_of(sql, {"salary": {"k": 100}}) >= 6
    assert people_of(sql, {"city": {"k": 100}}) == 0


def test_a_column_that_only_l_names_is_touched() -> None:
    sql = "SELECT COUNT(*) AS n FROM people"
    assert people_of(sql, {"disease": {"k": 100}}, " GUARANTEE k = 3, l = 2 OF disease") == 0
    assert people_of(sql, {"disease": {"k": 100}}) == 12


def test_a_column_of_a_derived_table_that_is_not_used_is_not_touched() -> None:
    sql = "SELECT COUNT(*) AS n FROM (SELECT city, age FROM people WHERE age > 0) t"
    assert people_of(sql, {"city": {"k": 100}}) == 12
