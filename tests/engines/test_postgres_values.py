"""What PostgreSQL holds equal is one key and one value, and odd types never give a traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import halfmask as hm
from halfmask.engines.postgres import Postgres
from halfmask.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = {
    "query": {"tables": ["odd_values"]},
    "columns": {
        "g": "quasi",
        "n": "quasi",
        "c": "quasi",
        "t": "quasi",
        "half": "quasi",
        "v": "sensitive",
        "w": "sensitive",
        "span": "sensitive",
        "odd": "sensitive",
        "who": "sensitive",
        "far": "sensitive",
        "own": "sensitive",
    },
}


@pytest.fixture(scope="module")
def engine(postgres: str) -> Iterator[Postgres]:
    found = Postgres(postgres)
    found._connection.execute("CREATE TYPE pg_temp.mood AS ENUM ('a', 'b')")
    found._connection.execute(
        "CREATE TEMPORARY TABLE odd_values AS SELECT "
        "CASE WHEN i % 2 = 0 THEN '-0'::float8 ELSE 0::float8 END AS g, "
        "CASE WHEN i % 2 = 0 THEN 1.0::numeric ELSE 1.00::numeric END AS n, "
        "'ab'::char(5) AS c, '2024-01-01 00:00:00+00'::timestamptz AS t, i % 2 AS half, i AS v, "
        "CASE WHEN i % 2 = 0 THEN 2.0::numeric ELSE 2.00::numeric END AS w, "
        "CASE i % 3 WHEN 0 THEN '1 month'::interval WHEN 1 THEN '30 days' ELSE '720:00' END "
        "AS span, CASE WHEN i = 3 THEN 'NaN'::numeric ELSE i END AS odd, "
        "('00000000-0000-0000-0000-00000000000' || i % 5)::uuid AS who, "
        "i + 1e60::numeric AS far, "
        "(CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END)::pg_temp.mood AS own "
        "FROM generate_series(0, 19) AS i"
    )
    yield found
    found.close()


@pytest.mark.parametrize("key", ["g", "n", "c", "t"])
def test_a_key_has_one_group_however_it_is_written(engine: Postgres, key: str) -> None:
    answer = hm.query(
        engine,
        f"SELECT {key}, COUNT(*) AS rows, MEDIAN(v) AS m, COUNT(DISTINCT v) AS d "  # noqa: S608
        f"FROM odd_values GROUP BY {key} GUARANTEE k = 5, l = 3",
        schema=SCHEMA,
        recheck="rows",
    )
    (row,) = answer.to_arrow().to_pylist()
    assert (row["rows"], row["m"], row["d"]) == (20, 9.5, 20)


def test_a_value_counts_once_however_it_is_written(engine: Postgres) -> None:
    text = (
        "SELECT half, SUM(w) AS s FROM odd_values GROUP BY half GUARANTEE k = 5, l = 2 "
        "THEN half -> del GUARANTEE k = 5, l = 2"
    )
    assert len(hm.query(engine, text, schema=SCHEMA)) == 0


def test_identifiers_of_any_type_are_counted(engine: Postgres) -> None:
    text = "SELECT g, COUNT(DISTINCT who) AS d FROM odd_values GROUP BY g GUARANTEE k = 5, l = 5"
    (row,) = hm.query(engine, text, schema=SCHEMA).to_arrow().to_pylist()
    assert row["d"] == 5


@pytest.mark.parametrize("column", ["span", "own"])
def test_values_without_a_type_here_are_refused(engine: Postgres, column: str) -> None:
    for call in (f"COUNT({column})", f"MAX({column})"):
        with pytest.raises(QueryError, match="CAST") as caught:
            hm.query(
                engine,
                f"SELECT g, {call} AS x FROM odd_values GROUP BY g GUARANTEE k = 5, l = 25",  # noqa: S608
                schema=SCHEMA,
            )
        assert "1000000" not in str(caught.value)


def test_numbers_of_any_digits_are_answered_as_doubles(engine: Postgres) -> None:
    """One of them is no number, others have 60 digits: no row makes a query fail."""
    (row,) = (
        hm.query(
            engine,
            "SELECT g, SUM(far) AS far, MAX(odd) AS odd, COUNT(odd) AS n FROM odd_values "
            "GROUP BY g GUARANTEE k = 5",
            schema=SCHEMA,
        )
        .to_arrow()
        .to_pylist()
    )
    assert row["far"] == pytest.approx(20e60)
    assert (row["odd"], row["n"]) == (1e100, 20)
