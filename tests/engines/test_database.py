"""A DuckDB file is asked by the names of its tables, and never written to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import duckdb
import pytest
from click.testing import CliRunner

import halfmask as hm
from halfmask.cli.query import query_command
from halfmask.errors import InputError, QueryError

if TYPE_CHECKING:
    from pathlib import Path

ASK = "SELECT city, SUM(n) AS s, MEDIAN(n) AS m FROM people GROUP BY city GUARANTEE k = 3, l = 2"
SCHEMA = {"query": {"tables": ["people"]}, "columns": {"city": "quasi", "n": "sensitive"}}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS SELECT 'x' AS city, i AS n FROM range(6) t(i)")
    return path


def test_a_file_is_answered_by_table_name(database: Path) -> None:
    before = database.read_bytes()
    for given in (database, str(database)):
        answer = hm.query(given, ASK, schema=SCHEMA)
        assert answer.to_arrow()["s"].to_pylist() == [15]
        assert answer.to_arrow()["m"].to_pylist() == [2.5]
    assert database.read_bytes() == before
    assert os.listdir(database.parent) == [database.name]


def test_two_files_with_the_same_table_stay_apart(database: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.duckdb"
    with duckdb.connect(str(other)) as connection:
        connection.execute("CREATE TABLE rest AS SELECT 1 AS n")
    with pytest.raises(QueryError, match="no table people"):
        hm.query(other, ASK, tables=["people"])
    assert len(hm.query(database, ASK, schema=SCHEMA)) == 1


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.duckdb"
    broken.write_text("not a database")
    for path in (broken, tmp_path / "absent.duckdb"):
        with pytest.raises(InputError, match=path.name):
            hm.query(path, ASK)


def test_from_the_command_line_with_a_page(database: Path, tmp_path: Path) -> None:
    schema, page = tmp_path / "s.toml", tmp_path / "a.html"
    schema.write_text('[columns.city]\nrole = "quasi"\n[columns.n]\nrole = "sensitive"\n')
    found = CliRunner().invoke(
        query_command, [str(database), ASK, "--schema", str(schema), "--report", str(page)]
    )
    assert "--tables" in str(found.exception)
    named = ["--table", "people"]
    found = CliRunner().invoke(
        query_command, [str(database), ASK, "--schema", str(schema), "--report", str(page), *named]
    )
    assert found.exit_code == 0, found.output
    text = page.read_text()
    assert "Answer to a query" in text
    assert "GUARANTEE k = 3" in text
    assert "http://" not in text.split("<script>")[0]
