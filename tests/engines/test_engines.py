"""What engines refuse: files, system tables, and saying what stands in a cell or an address."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from sqlglot import parse_one

import halfmask as hm
from halfmask.engines.duckdb.engine import DuckDB
from halfmask.engines.postgres import Postgres
from halfmask.engines.reference import Reference
from halfmask.errors import EngineError, ParameterError, QueryError, UnsupportedByEngineError

CANARY = "Zzyzx-canary"
ROWS = pa.table({"city": [CANARY] * 6, "n": list(range(6))})
ASK = "SELECT city, SUM(n) AS s FROM {} GROUP BY city GUARANTEE k = 3"


def test_duckdb_reads_no_file_and_no_variable_by_name(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("city,n\nx,1\n")
    rows = ROWS  # noqa: F841 - DuckDB would find it by its name
    engine = DuckDB({"people": ROWS})
    assert engine.columns("people") is not None
    assert engine.columns(str(file)) is None
    assert engine.columns("rows") is None
    with pytest.raises(QueryError):
        hm.query("people", ASK.format(f'"{file}"'), engine=engine)
    engine.close()


def test_duckdb_tables_of_one_session_are_not_seen_by_another() -> None:
    first, second = DuckDB({"people": ROWS}), DuckDB({"other": ROWS})
    assert second.columns("people") is None
    first.close()
    assert second.columns("other") is not None
    second.close()


def test_an_engines_complaint_quotes_no_cell() -> None:
    engine = DuckDB({"people": ROWS})
    with pytest.raises(EngineError) as caught:
        engine.run(parse_one("SELECT CAST(city AS INT) FROM people"))
    assert CANARY not in str(caught.value)
    with pytest.raises(EngineError) as other:
        engine.run(parse_one("SELECT 1 FROM nothing"))
    assert str(caught.value) == str(other.value), "the reason may lie in a row"
    engine.close()


def test_files_are_read_by_the_engine_itself(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(ROWS, tmp_path / "a.parquet")
    engine = DuckDB({"people": str(tmp_path / "a.parquet")})
    answer = hm.query("people", ASK.format("people"), engine=engine)
    assert answer.to_arrow()["s"].to_pylist() == [15]
    engine.close()


def test_postgres_shows_no_system_table(postgres: str) -> None:
    with pytest.raises(QueryError):
        hm.query(postgres, "SELECT COUNT(*) FROM pg_stats GUARANTEE k = 2", tables=["pg_stats"])


def test_postgres_by_address(postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute("DROP TABLE IF EXISTS by_address")
        connection.execute("CREATE TABLE by_address (city text, n int)")
        connection.execute("INSERT INTO by_address SELECT 'x', i FROM generate_series(0, 5) i")
    schema = {"city": "quasi", "n": "sensitive"}
    answer = hm.query(postgres, ASK.format("by_address"), schema={"by_address": schema})
    assert answer.to_arrow()["s"].to_pylist() == [15]
    assert answer.engine == "postgres"


def test_postgres_that_is_not_there_hides_the_password() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(EngineError) as caught:
        Postgres("postgresql://somebody:secret@127.0.0.1:1/none")
    assert "secret" not in str(caught.value)


def test_unknown_engines() -> None:
    for engine in ("oracle", "postgres"):
        with pytest.raises(ParameterError):
            hm.query(ROWS, ASK.format("t"), engine=engine)


def test_the_reference_says_what_it_cannot_do() -> None:
    text = "SELECT DATE_TRUNC('month', n::date), COUNT(*) FROM t GROUP BY 1 GUARANTEE k = 3"
    with pytest.raises((UnsupportedByEngineError, QueryError)):
        hm.query("t", text, engine=Reference({"t": ROWS}))


def test_what_duckdb_spills_lies_in_a_private_folder() -> None:
    engine = DuckDB({})
    ((folder,),) = engine._connection.execute("SELECT current_setting('temp_directory')").fetchall()
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    assert not Path(folder).is_relative_to(Path.cwd())
