"""A demand for noise that stands in another table than the one that is asked."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import QueryError

N = 40
PEOPLE = pa.table({"id": range(N), "own": [0.01] * 10 + [None] * 30, "k_i": [2] * N})
VISITS = pa.table(
    {"id": [i % N for i in range(3 * N)], "ward": ["a", "b", "c"] * N, "k_v": [1] * 3 * N}
)
EPSILON: dict[str, Any] = {
    "table": {"person": "id"},
    "policy": {"epsilon": "own", "levels": {"epsilon": [0.01, 0.1, 1]}},
    "columns": {"id": "identifier"},
}
OWNED: dict[str, Any] = {"table": {"person": "id"}, "columns": {"id": "identifier"}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "a person column": {"people": EPSILON, "visits": OWNED},
    "demands of its own": {"people": EPSILON, "visits": {**OWNED, "policy": {"k": "k_v"}}},
    "no person column": {"people": EPSILON, "visits": {"columns": {"id": "identifier"}}},
    "no schema": {"people": EPSILON},
}


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize(
    "clause", ["WITH EPSILON 5", "WITH EPSILON 0.5", "WITH PERSONAL EPSILON", "GUARANTEE k = 3"]
)
def test_rows_are_not_read_without_what_their_people_demand(schema: str, clause: str) -> None:
    tables = {"people": PEOPLE, "visits": VISITS}
    for sql in ("SELECT COUNT(*) AS n FROM visits", "SELECT COUNT(*) AS n FROM visits AS people"):
        with pytest.raises(QueryError, match="demand"):
            hm.query(tables, f"{sql} {clause}", schema=SCHEMAS[schema])


@pytest.mark.parametrize(
    "source",
    [
        "visits v JOIN people p ON v.id = p.id",
        "people p JOIN visits v ON v.id = p.id",
        "visits v LEFT JOIN people p ON v.id = p.id",
        "(SELECT * FROM visits) v",
        "visits WHERE id IN (SELECT id FROM people)",
    ],
)
def test_noise_is_of_one_table(source: str) -> None:
    tables, schema = {"people": PEOPLE, "visits": VISITS}, SCHEMAS["a person column"]
    with pytest.raises(QueryError, match="refused under EPSILON"):
        hm.query(tables, f"SELECT COUNT(*) AS n FROM {source} WITH EPSILON 5", schema=schema)


@pytest.mark.parametrize(("schema", "rows"), [("a person column", 90), ("demands of its own", 120)])
def test_who_states_only_an_epsilon_is_left_out_of_exact_figures(schema: str, rows: int) -> None:
    """Thirty of forty people state none; each has three visits. Who states a k too counts."""
    sql = "SELECT COUNT(*) AS n FROM visits v {} JOIN people p ON v.id = p.id GUARANTEE k = 3"
    tables = {"people": PEOPLE, "visits": VISITS}
    for kind in ("", "LEFT"):
        answer = hm.query(tables, sql.format(kind), schema=SCHEMAS[schema])
        assert answer.to_arrow()["n"].to_pylist() == [rows]


def test_the_smallest_epsilon_of_all_own_rows_counts() -> None:
    """Also where WHERE keeps only the row that allows more."""
    rows = pa.table(
        {
            "id": [*range(400), *range(200)],
            "own": [1.0] * 400 + [0.01] * 200,
            "x": [1] * 400 + [2] * 200,
        }
    )
    schema = {**EPSILON, "columns": {"id": "identifier", "x": "sensitive"}}
    table = hm.read(rows, schema)
    found = hm.query(
        table, "SELECT COUNT(*) AS n FROM t WHERE x = 1 WITH EPSILON 1", rows_per_person=1
    )
    assert abs(found.to_arrow()["n"][0].as_py() - 200) < 40
