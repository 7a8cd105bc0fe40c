"""Tuples with counts are rows again inside DuckDB."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import sqlglot

from halfmask.engines.counting.tuples import Possible, expand_tuples
from halfmask.table.tuples import ones


def ask(engine, text):
    return engine.run(sqlglot.parse_one(text, dialect="duckdb")).to_pylist()


def test_every_tuple_stands_for_its_rows():
    columns = {"a": pa.chunked_array([["x", "y", None]]), 'b"c': pa.chunked_array([[1, 2, 3]])}
    with expand_tuples("people", columns, np.array([3000, 1, 1024])) as engine:
        found = ask(engine, 'SELECT a, count(*) AS n, sum("b""c") AS s FROM people GROUP BY a')
    assert {(row["a"], row["n"], int(row["s"])) for row in found} == {
        ("x", 3000, 3000), ("y", 1, 2), (None, 1024, 3072),
    }  # fmt: skip


def test_rows_take_possible_values_alike_and_repeatably():
    # The first entry may be any of three values, the second is certain.
    held = Possible(pa.array([10, 20, 30, 99]), np.array([0, 3]), np.array([3, 1]))
    columns = {"v": held, "g": pa.chunked_array([["many", "one"]])}
    question = "SELECT g, v, count(*) AS n FROM people GROUP BY ALL ORDER BY v"
    seen = []
    for seed in (1, 1, 2):
        with expand_tuples("people", columns, np.array([9000, 50]), seed=seed) as engine:
            seen.append(ask(engine, question))
    assert seen[0] == seen[1] != seen[2]
    assert [row["v"] for row in seen[0]] == [10, 20, 30, 99]
    assert seen[0][-1]["n"] == 50
    for row in seen[0][:-1]:
        assert row["n"] == pytest.approx(3000, abs=200)  # four deviations


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_columns_and_seeds_are_drawn_apart(size):
    one = np.zeros(6000, dtype=np.int64)
    held = Possible(pa.array(np.arange(size)), one, one + size)
    counted = "SELECT a, b, c, count(*) AS n FROM people GROUP BY ALL"
    with expand_tuples(
        "people", {"a": held, "b": held, "c": held}, ones(6000), seed=size
    ) as engine:
        found = ask(engine, counted)
        column = ask(engine, "SELECT a FROM people")
    assert len(found) == size**3  # every combination, each about as often
    expected = 6000 / size**3
    assert all(abs(row["n"] - expected) < 5 * expected**0.5 + 1 for row in found)
    with expand_tuples("people", {"a": held}, ones(6000), seed=size + 1) as engine:
        again = ask(engine, "SELECT a FROM people")
    same = np.mean([x["a"] == y["a"] for x, y in zip(column, again, strict=True)])
    assert same == pytest.approx(1 / size, abs=0.05)
