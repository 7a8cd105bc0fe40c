"""Policies of somebody who is written otherwise than in the table, which nobody would keep."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.attacks.conftest import SCHEMA, UNMEETABLE, WHO, make_rows

import halfmask as hm
from halfmask.errors import SchemaError

SQL = "SELECT COUNT(*) AS n FROM people GUARANTEE k = 3"


@pytest.fixture
def table() -> hm.Table:
    return hm.read(pa.table(make_rows(k=2)), SCHEMA)


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize("key", [f"{WHO}.0", f" {WHO}", f"0{WHO}", f"P{WHO}", "600"])
@pytest.mark.parametrize("how", ["mapping", "rows"])
def test_a_demand_of_nobody_is_no_silent_one(
    table: hm.Table, key: str, how: str, engine: str
) -> None:
    given: Any = {"people": {key: {"k": UNMEETABLE}}}
    if how == "rows":
        given = pa.table({"person": [key], "k": [UNMEETABLE]})
    with pytest.raises(SchemaError, match=r"name 1 person\(s\) who are not in the table") as error:
        hm.query(table, SQL, given, engine=engine)
    assert key not in str(error.value)
    with pytest.raises(SchemaError, match="name 1 person"):
        hm.explain(table, SQL, given, engine=engine)


def test_whoever_is_in_any_table_has_a_say_whatever_is_asked(table: hm.Table) -> None:
    """It does not depend on the question who is missing, so that no question tells it."""
    visits = hm.read(
        pa.table({"id": list(range(50, 70)), "cost": list(range(20))}),
        {"table": {"person": "id"}, "columns": {"id": "identifier", "cost": "sensitive"}},
    )
    tables = {"people": table, "visits": visits}
    for sql in (SQL, SQL.replace("people", "people LEFT JOIN visits ON people.id = visits.id")):
        for key, known in ((str(WHO), True), ("65", True), ("70", False)):
            given = {"people": {key: {"k": UNMEETABLE}}}
            if known:
                assert len(hm.query(tables, sql, given)) == 1
            else:
                with pytest.raises(SchemaError, match="name 1 person"):
                    hm.query(tables, sql, given)
