"""What cannot be done where the rows are: one sentence each, and nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import SCHEMA, load, people, stored

import halfmask as hm
from halfmask.release.doors import stored_rows

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = {"columns": {**SCHEMA["columns"], "k_i": "drop"}}


def ways(table: hm.Table) -> list[Any]:
    return [
        lambda: hm.anonymize(table, hm.KAnonymity(3), method="optimal", suppression=0.1),
        lambda: hm.mask(table, "sample share=0.5"),
    ]


def test_a_column_that_cannot_be_grouped(tmp_path: Path) -> None:
    rows = people(50).set_column(4, "pay", pa.array([[1.0, 2.0]] * 50))
    for ask in ways(stored(tmp_path, rows, PLAIN)):
        with pytest.raises(hm.errors.InputError, match=r"column 'pay' \(list.*Cast them"):
            ask()
    assert [one.name for one in tmp_path.iterdir()] == ["people.parquet"]


def test_a_memory_limit_that_is_too_small(tmp_path: Path) -> None:
    rows = pa.table({"a": [f"{i:012}" for i in range(60_000)], "b": [1] * 60_000})
    pq.write_table(rows, tmp_path / "people.parquet")
    schema = {"a": {"role": "quasi", "hierarchy": {"mask": {"length": 12}}}, "b": "quasi"}
    table = hm.read(tmp_path / "people.parquet", schema, engine="duckdb", memory_limit="1MB")
    told: list[str] = []
    for ask in ways(table):
        with pytest.raises(hm.errors.HalfmaskError, match="memory_limit") as refused:
            ask()
        told.append(str(refused.value))
    assert all(len(one.splitlines()) == 1 for one in told), told
    assert [one.name for one in tmp_path.iterdir()] == ["people.parquet"]


def test_who_may_not_make_tables_is_told_before(postgres: str) -> None:
    load(postgres, "visits", people(50))
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("GRANT SELECT ON visits TO reader")
    reader = postgres.replace("halfmask@", "reader@")
    with (
        hm.anonymize(
            hm.read(reader, PLAIN, table="visits"),
            hm.KAnonymity(2),
            method="optimal",
            suppression=0.5,
        ) as release,
        pytest.raises(hm.errors.InputError, match="ask for the right CREATE"),
    ):
        release.write(reader, table="visits_public")
    with psycopg.connect(postgres, autocommit=True) as connection:
        found = connection.execute("SELECT TO_REGCLASS('visits_public')").fetchone()
        assert found == (None,)
        connection.execute("REVOKE CREATE ON DATABASE postgres FROM PUBLIC")
        connection.execute("REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC")
        try:
            with pytest.raises(hm.errors.EngineError, match="right TEMPORARY"):
                hm.mask(hm.read(reader, PLAIN, table="visits"), "round age base=5")
        finally:
            connection.execute("GRANT TEMPORARY ON DATABASE postgres TO PUBLIC")
            connection.execute("DROP TABLE visits")
            connection.execute("DROP ROLE reader")


def test_a_view_that_changes_is_seen_as_it_was(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(postgres, "visits", people(100))
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE VIEW lately AS SELECT * FROM visits WHERE age > 30")
        (before,) = connection.execute("SELECT COUNT(*) FROM lately").fetchone() or (0,)
    honest = stored_rows.propose_labeling

    def late(*given: Any) -> Any:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute("UPDATE visits SET age = 20, sex = 'm'")
        return honest(*given)

    monkeypatch.setattr(stored_rows, "propose_labeling", late)
    table = hm.read(postgres, PLAIN, table="lately")
    with hm.anonymize(table, hm.KAnonymity(2), method="optimal", suppression=0.5) as release:
        assert release.rows + release.suppressed == before
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP VIEW lately")
        connection.execute("DROP TABLE visits")


@pytest.mark.parametrize(
    "engine", ["duckdb", "postgres", pytest.param("spark", marks=pytest.mark.spark)]
)
def test_more_rows_than_the_limit_are_not_read(
    tmp_path: Path, request: pytest.FixtureRequest, engine: str
) -> None:
    """Where rows are needed one by one, the limit holds whoever has them."""
    given: dict[str, Any] = {"memory_limit": "20MB"}
    place: Any = tmp_path / "people.parquet"
    if engine == "postgres":
        place, given["table"] = request.getfixturevalue("postgres"), "limited"
        load(place, "limited", people())
    elif engine == "spark":
        place = request.getfixturevalue("spark").createDataFrame(people())
    else:
        stored(tmp_path, people())
    for wrong in ("lots", *(["80%"] if engine != "duckdb" else [])):
        with pytest.raises(hm.errors.ParameterError, match="a size such as 500MB"):
            hm.read(place, PLAIN, **given | {"memory_limit": wrong})
    table = hm.read(place, PLAIN, **given)
    vars(table.stored)["_count"] = 10**6
    for ask in (
        lambda: hm.anonymize(table, hm.KAnonymity(3), method="local", labels="sets"),
        lambda: hm.anonymize(table, hm.KMap(3, hm.read(people(), PLAIN)), method="optimal"),
        lambda: hm.describe(table, hierarchies="auto"),
    ):
        with pytest.raises(hm.errors.InputError, match="more than memory_limit = '20MB'"):
            ask()
