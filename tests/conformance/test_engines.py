"""One meaning, several engines: every answer equals that of the plain-Python reference."""

from __future__ import annotations

import datetime
import math
import random
from contextlib import nullcontext
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from effort import turn

import halfmask as hm
from halfmask.engines.reference import Reference
from halfmask.errors import LedgerError, QueryError
from halfmask.table.hierarchies import Tree
from halfmask.table.schema import QueryRules

HIERARCHY = Tree(
    {
        "North": {"N1": ["Lille", "Calais"], "N2": ["Arras"]},
        "South": {"S1": ["Nice", "Toulon"], "S2": ["Pau"]},
    }
)
PEOPLE = hm.Schema(
    columns={
        "id": hm.Column("identifier"),
        "city": hm.Column("quasi", hierarchy=HIERARCHY),
        "age": hm.Column("quasi"),
        "height": hm.Column("quasi"),
        "married": hm.Column("quasi"),
        "born": hm.Column("quasi"),
        "salary": hm.Column("sensitive"),
        "bonus": hm.Column("sensitive"),
        "disease": hm.Column("sensitive"),
        "rate": hm.Column("sensitive"),
    },
    person="id",
    policy={"k": "k_i", "l": "l_i"},
)
VISITS = hm.Schema(
    columns={
        "id": hm.Column("identifier"),
        "ward": hm.Column("quasi"),
        "cost": hm.Column("sensitive"),
    },
    person="id",
)
REGIONS = hm.Schema(columns={"city": hm.Column("quasi"), "region": hm.Column("quasi")})


COAST = hm.Schema(columns={"town": hm.Column("other"), "sea": hm.Column("other")})


def people(n: int = 160, seed: int = 7) -> pa.Table:
    rng = random.Random(seed)
    cities = ["Lille", "Calais", "Arras", "Nice", "Toulon", "Pau", None]
    rows = [
        {
            "id": i,
            "city": rng.choice(cities),
            "age": rng.choice([None, *range(-3, 60)]),
            "height": rng.choice([None, 1.5, 1.62, 1.7, 1.85, 2.01]),
            "married": rng.choice([True, False, None]),
            "born": datetime.date(1960 + rng.randrange(40), 1 + rng.randrange(12), 5),
            "salary": rng.randrange(1000, 1040),
            "bonus": rng.choice([None, None, 1, 2, 3, 5]),
            "disease": rng.choice(["flu", "asthma", "gout", "angina", None]),
            "rate": Decimal(rng.randrange(0, 900)) / 100,
            "k_i": rng.choice([2, 2, 3, 5, 8, 40]),
            "l_i": rng.choice([1, 2, 3]),
        }
        for i in range(n)
    ]
    types = {
        "born": pa.date32(),
        "rate": pa.decimal128(10, 2),
        "age": pa.int64(),
        "bonus": pa.int64(),
        "salary": pa.int64(),
        "id": pa.int64(),
    }
    return pa.table({n: pa.array([r[n] for r in rows], types.get(n)) for n in rows[0]})


def visits(n: int = 160, seed: int = 8) -> pa.Table:
    rng = random.Random(seed)
    owners = [i for i in range(n) for _ in range(rng.choice([0, 1, 1, 2, 4]))]
    return pa.table(
        {
            "id": pa.array(owners, pa.int64()),
            "ward": [rng.choice(["a", "b", "c"]) for _ in owners],
            "cost": pa.array([rng.randrange(10, 60) for _ in owners], pa.int64()),
        }
    )


TABLES = {
    "people": people(),
    "visits": visits(),
    "regions": pa.table(
        {
            "city": ["Lille", "Calais", "Arras", "Nice", "Toulon", "Pau"],
            "region": ["north", "north", "north", "south", "south", "west"],
        }
    ),
    "coast": pa.table({"town": ["Calais", "Nice", "Toulon", "Arras"], "sea": [2, 3, 3, 1]}),
}
SCHEMAS = {"people": PEOPLE, "visits": VISITS, "regions": REGIONS, "coast": COAST}
CHAIN = (
    "GUARANTEE k = 3, l = 2 THEN age -> 10 GUARANTEE k = 5, l = 2 THEN age -> 20 "
    "GUARANTEE k = 5, l = 3 THEN city -> up GUARANTEE k = 6, l = 3 THEN city -> up "
    "GUARANTEE k = 8, l = 3 THEN age -> del GUARANTEE k = 9, l = 3"
)
# fmt: off
# ruff: noqa: E501
QUERIES = {
    "a mean over a chain": f"SELECT city, age, AVG(salary) AS x FROM people GROUP BY city, age {CHAIN}",
    "complete": f"SELECT city, age, SUM(salary) AS x FROM people GROUP BY city, age {CHAIN} "
    "SEMANTICS complete",
    "complete, greedily": f"SELECT city, age, SUM(salary) AS x FROM people GROUP BY city, age {CHAIN} "
    "SEMANTICS complete-greedy",
    "many aggregates": "SELECT city, COUNT(*) AS n, SUM(salary) AS s, AVG(rate) AS r, MIN(salary) AS a, "
    "MAX(rate) AS b, SUM(rate) AS t, VARIANCE(salary) AS v, STDDEV_POP(salary) AS p "
    "FROM people GROUP BY city GUARANTEE k = 8, l = 3",
    "aggregates that do not merge": "SELECT city, MEDIAN(salary) AS m, COUNT(DISTINCT disease) AS d "
    "FROM people GROUP BY city GUARANTEE k = 3, l = 2 "
    "THEN city -> up GUARANTEE k = 8, l = 3",
    "missing values do not count": "SELECT city, AVG(bonus) AS b, COUNT(bonus) AS n FROM people "
    "GROUP BY city GUARANTEE k = 8, l = 3 THEN city -> del "
    "GUARANTEE k = 10, l = 3",
    "a condition and an expression": "SELECT CASE WHEN age < 30 THEN 'young' ELSE 'old' END AS band, "
    "SUM(salary * 2) AS x FROM people WHERE age IS NOT NULL AND "
    "city IN ('Lille', 'Nice', 'Pau') GROUP BY band "
    "GUARANTEE k = 8, l = 3",
    "dates": "SELECT YEAR(born) AS y, COUNT(*) AS n FROM people GROUP BY y "
    "GUARANTEE k = 3 THEN y -> 10 GUARANTEE k = 8",
    "truth and fractions": "SELECT married, height, AVG(salary) AS x FROM people GROUP BY married, height "
    "GUARANTEE k = 5, l = 3 THEN height -> 1 GUARANTEE k = 8, l = 3 "
    "THEN married -> del GUARANTEE k = 9, l = 3",
    "having, order and limit": "SELECT city, AVG(salary) AS x FROM people GROUP BY city "
    "HAVING COUNT(*) > 12 ORDER BY x DESC LIMIT 3 "
    "GUARANTEE k = 8, l = 3",
    "everybody at once": "SELECT AVG(salary) AS x, COUNT(DISTINCT id) AS n FROM people "
    "GUARANTEE k = 8, l = 3",
    "diversity of a named column": "SELECT city, COUNT(*) AS n FROM people GROUP BY city "
    "GUARANTEE k = 4, l = 2 OF disease THEN city -> up "
    "GUARANTEE k = 8, l = 4",
    "people with several rows": "SELECT ward, AVG(cost) AS x, COUNT(*) AS n FROM visits GROUP BY ward "
    "GUARANTEE k = 5, l = 3",
    "a lookup": "SELECT r.region, AVG(p.salary) AS x FROM people p JOIN regions r ON p.city = r.city "
    "GROUP BY r.region GUARANTEE k = 8, l = 3",
    "a query in FROM": "WITH grown AS (SELECT city, age, salary, MONTH(born) AS m FROM people WHERE age >= 18) "
    "SELECT CASE WHEN m <= 6 THEN 'first' ELSE 'second' END AS half, MEDIAN(salary) AS x, COUNT(*) AS n "
    "FROM grown WHERE city <> 'Pau' GROUP BY half HAVING AVG(salary) > 1000 ORDER BY n "
    "GUARANTEE k = 8, l = 3",
    "a value looked up": "SELECT city, SUM(salary) AS x FROM people WHERE city IN (SELECT town FROM coast WHERE sea > 1) "
    "AND age > (SELECT MIN(sea) FROM coast) GROUP BY city GUARANTEE k = 8, l = 3 THEN city -> up GUARANTEE k = 8, l = 3",
    "a bounded join": "SELECT p.city, v.ward, SUM(v.cost) AS x FROM people p LEFT JOIN visits v "
    "ON p.id = v.id GROUP BY p.city, v.ward GUARANTEE k = 5, l = 3 "
    "THEN ward -> del GUARANTEE k = 8, l = 3 AT MOST 4 ROWS PER PERSON",
    "demands of a table that is joined by more than the person": "SELECT v.ward, AVG(v.cost) AS x, COUNT(*) AS n "
    "FROM visits v LEFT JOIN people p ON p.id = v.id AND p.age = v.cost GROUP BY v.ward GUARANTEE k = 8, l = 3",
    "conditional figures": "SELECT city, COUNT(*) AS n, SUM(salary) FILTER (WHERE salary > 1012) AS x, "
    "COUNT(bonus) AS b, SUM(CASE WHEN salary < 1020 THEN 1 ELSE 0 END) AS y FROM people GROUP BY city "
    "GUARANTEE k = 3 THEN city -> up GUARANTEE k = 8",
    "conditional figures of values": "SELECT city, SUM(ABS(salary - 1020)) AS x, SUM(GREATEST(salary, 1030)) AS y, "
    "MEDIAN(CASE WHEN salary > 1015 THEN salary END) AS m FROM people GROUP BY city GUARANTEE k = 8, l = 2 "
    "THEN city -> del GUARANTEE k = 8, l = 3",
    "steps": "SELECT SUM(FLOOR(salary / 20)) AS x, COUNT(DISTINCT salary % 3) AS y, SUM(COALESCE(bonus, 0)) AS z "
    "FROM people GUARANTEE k = 8",
    "conditional figures of several rows": "SELECT ward, SUM(CASE WHEN cost > 30 THEN cost ELSE 0 END) AS x, "
    "MAX(cost) FILTER (WHERE cost < 50) AS y, COUNT(*) AS n FROM visits GROUP BY ward GUARANTEE k = 5, l = 3",
}
# fmt: on
POLICIES: dict[str, Any] = {
    "people with several rows": {"k": 3},
    "conditional figures of several rows": {"k": 3},
}


def schemas(sql: str) -> dict[str, Any]:
    """What the tables are; visits alone are asked where nobody states a demand in people."""
    alone = "FROM visits" in sql and "people" not in sql
    return {"visits": SCHEMAS["visits"]} if alone else SCHEMAS


def rows_of(answer: Any) -> list[tuple[Any, ...]]:
    """The rows as comparable values: whole, decimal and fractional numbers alike."""

    def plain(v: Any) -> Any:
        if isinstance(v, bool) or v is None:
            return str(v)
        return f"{float(v):.6f}" if isinstance(v, int | float | Decimal) else str(v)

    rows = [tuple(plain(v) for v in r.values()) for r in answer.to_arrow().to_pylist()]
    return sorted(rows)


@cache
def expected(name: str) -> Any:
    """The answer of the plain engine, once for all others."""
    sql = QUERIES[name]
    return hm.query(TABLES, sql, POLICIES.get(name), engine=Reference(TABLES), schema=schemas(sql))


@pytest.mark.parametrize("name", QUERIES)
def test_reference_publishes_something(name: str) -> None:
    assert len(expected(name)) > 0
    assert all(
        math.isfinite(v)
        for r in expected(name).to_arrow().to_pylist()
        for v in r.values()
        if isinstance(v, float)
    )


@pytest.mark.parametrize("name", QUERIES)
def test_engines_agree(engine: Any, name: str) -> None:
    sql, right = QUERIES[name], expected(name)
    # What the door asks of rows is another query: in Spark, where it takes longest, of every other.
    way = "groups" if engine.name == "spark" and [*QUERIES].index(name) % 2 else "rows"
    answer = hm.query(
        TABLES, sql, POLICIES.get(name), engine=engine, schema=schemas(sql), recheck=way
    )
    assert rows_of(answer) == rows_of(right)
    assert answer.withheld == right.withheld
    assert (answer.people, answer.depth) == (right.people, right.depth)


@pytest.mark.parametrize("rule", [{"p": 900}, {"n": 3, "k": 30}], ids=str)
def test_engines_agree_on_who_makes_up_a_sum(engine: Any, rule: dict[str, float]) -> None:
    rules = hm.Schema(columns=VISITS.columns, person="id", query=QueryRules(dominance=rule))
    sql = (
        "SELECT ward, SUM(cost) AS x, AVG(cost / 7) AS y, COUNT(*) AS n FROM visits GROUP BY ward "
    )
    few = 1 if engine.name == "spark" else 2
    for where in turn(("WHERE cost > 57", "WHERE cost > 30", ""), len(rule), few):
        asked = sql.replace("GROUP", f"{where} GROUP") + "GUARANTEE k = 3"
        given = {"schema": {"visits": rules}}
        right = hm.query(TABLES, asked, engine=Reference(TABLES), **given)
        assert rows_of(hm.query(TABLES, asked, engine=engine, **given)) == rows_of(right)
        found = [row["x"] is None for row in right.to_arrow().to_pylist()]
        assert all(found) if where.endswith("57") else not any(found)


def test_every_query_has_a_plan_and_sql_that_names_no_person(engine: Any) -> None:
    # Another engine's plan differs in how its SQL is written, which is run above for every query.
    asked = [*QUERIES] if engine.name == "duckdb" else turn([*QUERIES], 0, 6)
    for name in asked:
        sql = QUERIES[name]
        plan = hm.explain(TABLES, sql, POLICIES.get(name), engine=engine, schema=schemas(sql))
        assert plan.engine == engine.name
        assert plan.levels[0]["level"] == 0
        assert all("SELECT" in text for text in plan.sql)


def test_a_ledger_compares_answers_and_tells_a_table_from_a_changed_one(engine: Any) -> None:
    ledger = hm.Ledger()
    for more in ("", "WHERE age < 30", "WHERE age >= 30 AND salary <> 1001"):
        sql = f"SELECT SUM(salary) AS s FROM people {more} GUARANTEE k = 8, l = 3"
        refused = more.endswith("1001") or None
        with pytest.raises(LedgerError) if refused else nullcontext():
            hm.query(TABLES, sql, engine=engine, schema=SCHEMAS, ledger=ledger)
    assert len(ledger.entries) == 2
    prints = {e.fingerprint for e in ledger.entries}
    assert prints == {engine.fingerprint("people")}
    engine.add("changed", TABLES["people"].slice(1))
    assert engine.fingerprint("changed") not in prints


@pytest.mark.parametrize(
    ("missing", "people"),
    [({}, {"x": 5, "y": 3}), ({"missing": "refuse"}, {"x": 3})],
    ids=["no demand", "refused"],
)
def test_an_empty_demand_is_none_in_every_engine(
    engine: Any, missing: dict[str, str], people: dict[str, int]
) -> None:
    rows = pa.table(
        {
            "city": ["x"] * 6 + ["y"] * 4,
            "pay": [*range(10)],
            # In x: 3 | l alone | nothing, twice | 2 | 9; in y: 9 | nothing, three times.
            "k_i": pa.array([3, None, None, None, 2, 9, 9, None, None, None], pa.int64()),
            "l_i": pa.array([None, 2, None, None, 2, None, None, None, None, None], pa.int64()),
        }
    )
    engine.add("silent", rows)
    columns = {"city": hm.Column("quasi"), "pay": hm.Column("sensitive")}
    schema = {"silent": hm.Schema(columns=columns, policy={"k": "k_i", "l": "l_i"})}
    sql = "SELECT city, COUNT(pay) AS n FROM silent GROUP BY city GUARANTEE k = 3, l = 2"
    for asked in (engine, Reference({"silent": rows})):
        answer = hm.query({"silent": rows}, sql, missing, engine=asked, schema=schema)
        assert {r["city"]: r["n"] for r in answer.to_arrow().to_pylist()} == people


def _make_view(engine: Any, name: str, query: str) -> None:
    if engine.name == "spark":
        engine._session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query}")
        return
    engine._connection.execute(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query}")


def test_a_ledger_knows_rows_again_in_every_engine_join_and_view(engine: Any) -> None:
    """What the reference answered is compared with what another engine is asked in other words."""
    every = "SELECT SUM(salary) AS s FROM {} GUARANTEE k = 8, l = 3"
    ledger = hm.Ledger()
    hm.query(TABLES, every.format("people"), schema=SCHEMAS, ledger=ledger, engine="reference")
    known = len(ledger._numbers.ids)
    hm.query(TABLES, every.format("people"), schema=SCHEMAS, ledger=ledger, engine=engine)
    assert len(ledger._numbers.ids) == known
    _make_view(engine, "paid", "SELECT salary AS pay, city, k_i, l_i FROM people WHERE id >= 0")
    paid = hm.Schema(columns={"pay": hm.Column("sensitive")}, policy={"k": "k_i", "l": "l_i"})
    schemas = {**SCHEMAS, "paid": paid}
    for other in (
        "people p LEFT JOIN regions r ON p.city = r.city WHERE p.salary <> 1001",
        "(SELECT * FROM people) AS d WHERE d.salary <> 1001",
    ):
        sql = every.format(other)
        with pytest.raises(LedgerError):
            hm.query(TABLES, sql, schema=schemas, ledger=ledger, engine=engine)
    sql = every.replace("salary", "pay").format("paid WHERE pay <> 1001")
    with pytest.raises(LedgerError):
        hm.query(TABLES, sql, schema=schemas, ledger=ledger, engine=engine)


def test_a_view_that_computes_is_refused_by_every_engine(engine: Any) -> None:
    """By its definition: the engine would compute it for the rows that WHERE leaves."""
    if engine.name == "reference":
        pytest.skip("it has no views")
    _make_view(engine, "cast_view", "SELECT id, CAST(city AS INT) AS n FROM people")
    _make_view(engine, "over", "SELECT id FROM cast_view WHERE n > 3")
    _make_view(engine, "plain_view", "SELECT id, city FROM people WHERE city <> 'Lille'")
    ask = "SELECT COUNT(*) AS n FROM {} GUARANTEE k = 3"
    for name in ("cast_view", "over"):
        with pytest.raises(QueryError, match="make a table of it"):
            hm.query([name], ask.format(name), schema={name: {}}, tables=[name], engine=engine)
    hm.query(
        [],
        ask.format("plain_view"),
        schema={"plain_view": {}},
        tables=["plain_view"],
        engine=engine,
    )
