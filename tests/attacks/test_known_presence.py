"""Whether somebody whose demand cannot be met stands in the table in FROM shows in no total."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.attacks.conftest import SCHEMA, UNMEETABLE, WHO, make_rows

import halfmask as hm
from halfmask.engines.postgres import Postgres

CLINIC = {"table": {"person": "pid"}, "columns": {"cost": "sensitive"}}
MODEST = 5  # asked for by the first sixteen, whom a guarantee of 3 does not meet


def _tables(*, present: bool, k: int = UNMEETABLE, demand: str = "k_i") -> dict[str, Any]:
    rows = make_rows(k=2)
    rows["k_i"] = [MODEST if i < 16 else 2 for i in rows["id"]]
    rows["l_i"] = [1] * len(rows["id"])
    if demand in rows:
        rows[demand][WHO] = k
    people = [i for i in range(40) if i != WHO] + [WHO] * present
    return {
        "people": pa.table({n: pa.array(v) for n, v in rows.items()}),
        "clinic": pa.table({"pid": people, "cost": [5 + i % 3 for i in people]}),
    }


JOINS = {
    "joined": "FROM clinic JOIN people ON pid = id",
    "left": "FROM clinic LEFT JOIN people ON pid = id",
    "ahead": "FROM people JOIN clinic ON id = pid",
}
STATED: dict[str, dict[str, Any]] = {
    "k": {},
    "a huge k": {"k": 2**60},
    "l": {"demand": "l_i"},
    "policies": {"demand": "given"},
}


def _seen(join: str, stated: str, *, present: bool, engine: Any = None) -> tuple[Any, ...]:
    tables = _tables(present=present, **STATED[stated])
    schema = {**SCHEMA, "policy": {"k": "k_i", "l": "l_i"}}
    policies = {"people": {str(WHO): {"k": UNMEETABLE}}} if stated == "policies" else None
    ask = f"SELECT COUNT(*) AS n, SUM(cost) AS s {JOINS[join]} GUARANTEE k = 3"
    options: dict[str, Any] = {"policies": policies, "engine": engine}
    schemas = {"people": schema, "clinic": CLINIC}
    if isinstance(engine, Postgres):
        for name, rows in tables.items():
            engine.add(name, rows)
        answer = hm.query("clinic", ask, schema=schemas, tables=list(tables), **options)
    else:
        given = {name: hm.read(rows, schemas[name]) for name, rows in tables.items()}
        answer = hm.query(given, ask, **options)
    return answer.to_arrow().to_pylist(), answer.withheld, answer.notes, str(answer)


@pytest.mark.parametrize("engine", [None, "reference"])
@pytest.mark.parametrize("stated", STATED)
@pytest.mark.parametrize("join", JOINS)
def test_who_is_in_the_table_in_from_does_not_show(
    join: str, stated: str, engine: str | None
) -> None:
    there, absent = (_seen(join, stated, present=p, engine=engine) for p in (True, False))
    assert there == absent
    assert there[0]  # rows are shown


@pytest.mark.parametrize("stated", STATED)
def test_nor_on_postgres(stated: str, postgres: str) -> None:
    seen = []
    for present in (True, False):
        engine = Postgres(postgres)
        seen.append(_seen("joined", stated, present=present, engine=engine))
        engine.close()
    assert seen[0] == seen[1]


def test_the_total_is_said_where_it_reaches_what_anybody_asks() -> None:
    """Of sixteen people who ask for five, all are counted."""
    tables = {
        name: hm.read(rows, {"people": SCHEMA, "clinic": CLINIC}[name])
        for name, rows in _tables(present=True, k=2).items()
    }
    answer = hm.query(tables, f"SELECT COUNT(*) AS n {JOINS['joined']} GUARANTEE k = 3")
    assert answer.withheld["no level satisfies their demands"] == 16
