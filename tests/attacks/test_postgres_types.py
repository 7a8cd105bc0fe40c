"""Types that only PostgreSQL has: whatever Ada's values are, nobody can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from effort import turn

import halfmask as hm
from halfmask.engines.postgres import Postgres
from halfmask.errors import HalfmaskError, InternalError

if TYPE_CHECKING:
    from collections.abc import Iterator

COLUMNS = {
    "amount": "numeric",
    "price": "numeric(12, 2)",
    "code": "char(6)",
    "mood": "mood",
    "born": "date",
    "seen": "timestamptz",
    "mail": "varchar(40)",
    "small": "smallint",
    "share": "real",
    "who": "uuid",
    "note": "jsonb",
    "tags": "text[]",
    "span": "interval",
    "raw": "bytea",
    "at": "time",
}
# Per world, what Ada has: of each column something ordinary, large, small or missing.
ADA: tuple[tuple[Any, ...], ...] = (
    (
        *("7", "7.00", "ab", "happy", "1980-01-01", "2000-01-01 00:00+00", "a@b", 1, 1.5),
        *("00000000-0000-0000-0000-000000000001", "{}", "{a}", "1 day", "\\x01", "10:00"),
    ),
    (
        *("NaN", "9999999999.99", "zzzzzz", "grim", "infinity", "infinity", "x' OR 1=1 --", 32767),
        *("Infinity", "ffffffff-ffff-ffff-ffff-ffffffffffff", '{"a": [1, 2]}', "{}", "900 years"),
        *("\\x00ff", "23:59:59.999999"),
    ),
    (
        *("1" + "0" * 300, "-0.01", "", "sad", "4713-01-01 BC", "-infinity", "é\u0301\U0001f600"),
        *(-32768, "-Infinity", None, "null", "{NULL}", "-1 month", "", "24:00"),
    ),
)
SCHEMA: dict[str, Any] = {
    "table": {"person": "id"},
    "policy": {"k": "k_i"},
    "columns": {"id": "identifier", "city": "quasi", **dict.fromkeys(COLUMNS, "sensitive")},
}
FIGURES = (
    *("COUNT({c})", "COUNT(DISTINCT {c})", "SUM({c})", "MAX({c})", "SUM(1 / {c})"),
    *("MAX(CAST({c} AS TEXT))", "SUM(CAST({c} AS BIGINT))"),
)


@pytest.fixture(scope="module")
def worlds(postgres: str) -> Iterator[dict[str, Postgres]]:
    import psycopg

    names = [f"people_{i}" for i in range(len(ADA))]
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('sad', 'happy', 'grim')")
        kinds = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        marks = ", ".join(["%s"] * (len(COLUMNS) + 3))
        for name, ada in zip(names, ADA, strict=True):
            connection.execute(f"CREATE TABLE {name} (id int, city text, k_i int, {kinds})")
            for i in range(30):
                ordinary = (
                    *(i, i + 0.5, f"c{i % 5}", ("sad", "happy")[i % 2], f"19{60 + i}-02-03"),
                    *(f"20{10 + i % 10}-01-01 12:00+00", f"m{i}@x", i % 9, i / 4),
                    *(f"00000000-0000-0000-0000-0000000000{10 + i}", "{}", "{b}", f"{i} days"),
                    *(f"\\x{10 + i}", f"{i % 24:02d}:00"),
                )
                row = ada if i == 17 else ordinary
                values = (i, "xy"[i % 2], 1_000_000 if i == 17 else 2, *row)
                connection.execute(f"INSERT INTO {name} VALUES ({marks})", values)
        engine = Postgres(postgres)
        yield dict.fromkeys(names, engine)
        engine.close()
        for name in names:
            connection.execute(f"DROP TABLE {name}")
        connection.execute("DROP TYPE mood")


def seen(engine: Postgres, table: str, sql: str) -> Any:
    """All that an asker sees; tables of other worlds have other names."""
    try:
        answer = hm.query(engine, sql.format(t=table), schema=SCHEMA, tables=[table])
    except InternalError:
        raise
    except HalfmaskError as error:
        return type(error).__name__, str(error).replace(table, "t")
    return repr(answer.to_arrow().to_pylist()), str(answer.to_arrow().schema), answer.notes


@pytest.mark.parametrize("column", COLUMNS)
def test_no_type_tells_what_ada_has(worlds: dict[str, Postgres], column: str) -> None:
    some = turn(FIGURES, [*COLUMNS].index(column), 4)
    figures = dict.fromkeys(figure.format(c=column) for figure in some)
    asked = [f"SELECT {figure} AS x FROM {{t}} GUARANTEE k = 3" for figure in figures]
    asked.append(
        f"SELECT {column} AS x, COUNT(*) AS n FROM {{t}} GROUP BY {column} GUARANTEE k = 3"
    )
    for sql in asked:
        first, *others = (seen(engine, table, sql) for table, engine in worlds.items())
        assert all(other == first for other in others), (sql, first, others)


SLEEP = " OR 1 = (SELECT COUNT(*) FROM (SELECT PG_SLEEP(0)) s) OR city = "
QUOTED = [
    "city <> '\\' AND mail <> 'x'",
    f"city <> '\\' AND mail <> '{SLEEP}'",
    "city <> 'it''s \\' AND mail NOT LIKE '%''; --%'",
]


@pytest.mark.parametrize("where", QUOTED)
def test_a_text_stays_a_text_whatever_the_server_takes_for_a_quote(
    worlds: dict[str, Postgres], postgres: str, where: str
) -> None:
    """Where a server reads backslashes, a second text of the question would run as SQL."""
    assert worlds
    lax = f"{postgres}&options=-c%20standard_conforming_strings%3Doff"
    sql = f"SELECT COUNT(*) AS n FROM people_0 WHERE {where} GUARANTEE k = 3"
    seen_there = []
    for address in (postgres, lax):
        engine = Postgres(address)
        try:
            seen_there.append(seen(engine, "people_0", sql))
        finally:
            engine.close()
    assert seen_there[0] == seen_there[1]
    assert seen_there[0][0] == "[{'n': 29, 'level': 0, 'guarantee': 'k>=3, l>=1'}]"
