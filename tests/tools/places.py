"""One table in memory, in a file and in a database, and what must be the same of its releases."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

import halfmask as hm

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: dict[str, Any] = {
    "policy": {"k": "k_i"},
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
        "sex": "quasi",
        "zip": {"role": "quasi", "hierarchy": {"mask": {"length": 5}}},
        "ill": "sensitive",
        "pay": "other",
        "name": "identifier",
    },
}
MODELS = (hm.KAnonymity(3), hm.LDiversity(2, "ill"))
FIGURES = ("rows", "verdicts", "loss", "levels", "columns", "classes", "risk", "steps", "gap")


def people(rows: int = 300) -> pa.Table:
    random = np.random.default_rng(7)
    return pa.table(
        {
            "age": pa.array(random.integers(20, 60, rows), mask=random.random(rows) < 0.03),
            "sex": random.choice(["f", "m", "F"], rows, p=[0.5, 0.45, 0.05]),
            "zip": random.choice([f"{n:05}" for n in range(100, 115)], rows),
            "ill": pa.array(random.choice(["flu", "gout", "o'hara", None], rows).tolist()),
            "pay": (random.random(rows) * 100).round(1),
            "name": [f"n{i}" for i in range(rows)],
            "k_i": random.choice([2, 3, 6], rows),
        }
    )


def load(address: str, name: str, rows: pa.Table) -> None:
    kinds = {pa.int64(): "bigint", pa.string(): "text", pa.float64(): "double precision"}
    columns = ", ".join(f'"{f.name}" {kinds[f.type]}' for f in rows.schema)
    with psycopg.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(f'DROP TABLE IF EXISTS "{name}"')
        cursor.execute(f'CREATE TABLE "{name}" ({columns})')
        with cursor.copy(f'COPY "{name}" FROM STDIN') as copy:
            for row in rows.to_pylist():
                copy.write_row(list(row.values()))


def multiset(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in rows.to_pylist())


def stored(place: Path, rows: pa.Table, schema: dict[str, Any] = SCHEMA) -> hm.Table:
    pq.write_table(rows, place / "people.parquet")
    return hm.read(place / "people.parquet", schema, engine="duckdb", memory_limit="200MB")


def same(memory: hm.Release, other: hm.Release) -> None:
    first, second = memory.to_dict(), other.to_dict()
    for figure in FIGURES:
        assert first[figure] == second[figure], figure
    assert first["demands"] == second["demands"]
    assert len(memory) == len(other)
    assert multiset(memory.to_arrow()) == multiset(other.to_arrow())
