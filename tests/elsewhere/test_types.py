"""Wide types mean the same wherever the rows are: random tables against plain Python."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import THOROUGH

import halfmask as hm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LARGE = Decimal(10) ** 37
AUTUMN = datetime(2024, 10, 27, 0, 30, tzinfo=UTC)  # an hour that Berlin has twice
# Per kind its type in files and in PostgreSQL, and values that are easily taken for each other.
KINDS: dict[str, tuple[pa.DataType, str, list[Any]]] = {
    "int8": (pa.int8(), "smallint", [-128, 0, 127]),
    "int64": (pa.int64(), "bigint", [-(2**63), 2**63 - 1, 2**53, 2**53 + 1]),
    "uint64": (pa.uint64(), "numeric(20, 0)", [0, 2**63, 2**64 - 2, 2**64 - 1]),
    "double": (pa.float64(), "double precision", [0.1, -0.0, 0.0, float("nan"), 1e300]),
    "wide": (pa.decimal128(38, 0), "numeric(38, 0)", [LARGE, LARGE + 1, Decimal(-1)]),
    "scaled": (pa.decimal128(38, 10), "numeric(38, 10)", [Decimal("1e-10"), Decimal("2e-10")]),
    "day": (pa.date32(), "date", [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)]),
    "moment": (
        pa.timestamp("us"),
        "timestamp",
        [datetime(2024, 3, 31, 2, 30), datetime(2024, 3, 31, 2, 30, 0, 1), datetime(1900, 1, 1)],
    ),
    "zoned": (
        pa.timestamp("us", tz="Europe/Berlin"),
        "timestamptz",
        [AUTUMN, AUTUMN + timedelta(hours=1), AUTUMN - timedelta(microseconds=1)],
    ),
    "flag": (pa.bool_(), "boolean", [True, False]),
    "text": (pa.large_string(), "text", ["", " a", "a ", "a", "é", "e\u0301"]),
}
NAMES = ("v", "w", "ill", "more")


def invent(seed: int) -> tuple[pa.Table, list[str]]:
    """Rows of four columns of random kinds, and which kinds these are."""
    drawn = random.Random(seed)
    kinds = drawn.sample(list(KINDS), len(NAMES))
    columns = {}
    for name, kind in zip(NAMES, kinds, strict=True):
        arrow, _, values = KINDS[kind]
        cells = [drawn.choice([*values, None]) for _ in range(90)]
        columns[name] = pa.array(cells, arrow)
    return pa.table(columns), kinds


def meaning(value: Any) -> Any:
    """What a cell says: zero has one sign, no number is none, a moment has one clock."""
    if isinstance(value, float):
        return None if value != value else value + 0.0
    return value.astimezone(UTC) if getattr(value, "tzinfo", None) else value


def cells(rows: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(map(meaning, row.values())) for row in rows.select(NAMES).to_pylist()]


@pytest.fixture(
    params=[
        "memory",
        "file",
        "database",
        "postgres",
        pytest.param("spark", marks=pytest.mark.spark),
    ]
)
def put(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., hm.Table]:
    """Puts rows with their kinds somewhere, and reads them there."""

    def to_postgres(rows: pa.Table, kinds: list[str], schema: Any) -> hm.Table:
        address = request.getfixturevalue("postgres")
        named = zip(NAMES, kinds, strict=True)
        columns = ", ".join(f"{name} {KINDS[kind][1]}" for name, kind in named)
        with psycopg.connect(address) as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS types; CREATE TABLE types ({columns})")
            with cursor.copy("COPY types FROM STDIN") as copy:
                for row in rows.to_pylist():
                    copy.write_row(list(row.values()))
        return hm.read(address, schema, table="types")

    def placed(rows: pa.Table, kinds: list[str], schema: Any) -> hm.Table:
        if request.param == "memory":
            return hm.read(rows, schema)
        if request.param == "postgres":
            return to_postgres(rows, kinds, schema)
        pq.write_table(rows, tmp_path / "types.parquet")
        if request.param == "spark":
            request.getfixturevalue("spark")
            return hm.read(str(tmp_path / "types.parquet"), schema, engine="spark")
        if request.param == "file":
            return hm.read(tmp_path / "types.parquet", schema, engine="duckdb")
        (tmp_path / "types.duckdb").unlink(missing_ok=True)
        with duckdb.connect(str(tmp_path / "types.duckdb")) as connection:
            connection.execute(f"CREATE TABLE types AS FROM '{tmp_path}/types.parquet'")
        return hm.read(tmp_path / "types.duckdb", schema, table="types")

    return placed


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize("seed", range(12 if THOROUGH else 4))
def test_every_type_means_what_python_means(put: Callable[..., hm.Table], seed: int) -> None:
    rows, kinds = invent(seed)
    schema = {"columns": {"v": "quasi", "w": "quasi", "ill": "sensitive", "more": "other"}}
    told = cells(rows)
    sizes = Counter(row[:2] for row in told)
    held: dict[Any, set[Any]] = {}
    for one, two, ill, _ in told:
        held.setdefault((one, two), set()).update({ill} - {None})
    table = put(rows, kinds, schema)
    alike, diverse = hm.check(table, hm.KAnonymity(2), hm.LDiversity(2, "ill"))
    assert (alike.achieved, diverse.achieved) == (
        min(sizes.values()),
        min(map(len, held.values())),
    )
    exact = hm.Recoding.of(hm.read(rows, schema), [{"v": 0, "w": 0}])
    with exact.apply(table, hm.KAnonymity(3), suppression=1.0) as release:
        left = Counter(cells(release.to_arrow()))
    assert left == Counter(row for row in told if sizes[row[:2]] >= 3)


@pytest.mark.usefixtures("in_place")
def test_what_cannot_be_grouped_is_told_by_every_verb(tmp_path: Path, postgres: str) -> None:
    """Texts that are equal without being the same would count together, and hide who is alone."""
    folded = "provider = icu, locale = 'und-u-ks-level2', deterministic = false"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS own")
        connection.execute(f"CREATE COLLATION IF NOT EXISTS no_case ({folded})")
        connection.execute("CREATE TABLE own (n int, folded text COLLATE no_case, doc json)")
        connection.execute("INSERT INTO own SELECT i % 2, 'a', '{}' FROM generate_series(1, 20) i")
        connection.execute("INSERT INTO own VALUES (1, 'A', NULL)")
    for name in ("folded", "doc"):
        other = {"folded": "doc", "doc": "folded"}[name]
        schema = {"columns": {"n": "quasi", name: "quasi", other: "drop"}}
        table = hm.read(postgres, schema, table="own")
        for ask in (
            lambda t: hm.check(t, hm.KAnonymity(2)),
            hm.assess,
            hm.row_risks,
            hm.cocluster,
            lambda t: hm.tabulate(t, "n", threshold=2) and hm.tabulate(t, t.schema.quasi),
            lambda t: hm.anonymize(t, hm.KAnonymity(2), method="optimal"),
            lambda t: hm.mask(t, "sample share=0.5"),
        ):
            with pytest.raises(hm.errors.InputError, match=f"'{name}' .*of the database's own"):
                ask(table)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE own")
        connection.execute("DROP COLLATION no_case")


@pytest.mark.usefixtures("in_place")
def test_names_of_a_database_stay_texts(tmp_path: Path) -> None:
    """An ENUM and a UUID of a DuckDB file are texts that leave as they are."""
    drawn = [("b", "a", "B")[i % 3] for i in range(30)]
    keys = [str(uuid.UUID(int=i % 3)) for i in range(30)]
    pq.write_table(pa.table({"v": drawn, "w": keys}), tmp_path / "rows.parquet")
    with duckdb.connect(str(tmp_path / "own.duckdb")) as connection:
        connection.execute("CREATE TYPE kinds AS ENUM ('b', 'B', 'a')")
        connection.execute("CREATE TABLE own (v kinds, w UUID)")
        connection.execute(f"INSERT INTO own FROM '{tmp_path}/rows.parquet'")
    table = hm.read(tmp_path / "own.duckdb", {"v": "quasi", "w": "other"}, table="own")
    with hm.anonymize(table, hm.KAnonymity(5), method="optimal") as release:
        release.write(tmp_path / "out.parquet")
    left = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert Counter((row["v"], str(row["w"])) for row in left) == Counter(
        zip(drawn, keys, strict=True)
    )
