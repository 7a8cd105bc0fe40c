"""Rows in several files: folders, patterns, partitions; what cannot be read is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import halfmask as hm
from halfmask.engines.spark import SparkRows
from halfmask.engines.stored import Storage

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {"columns": {"age": "quasi", "ill": "sensitive", "year": "quasi"}}


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    for year, ages in ((2024, [1, 1, 3]), (2025, [4, 4, 4])):
        folder = tmp_path / "parts" / f"year={year}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"age": ages, "ill": ["a", "b", "a"]}), folder / "0.parquet")
        (folder / "_SUCCESS").write_text("")
        (folder / ".part").write_text("half a file")
    return tmp_path / "parts"


@pytest.mark.parametrize("pattern", ["", "*/*.parquet", "**/*.parquet"])
def test_partitions_are_columns(parts: Path, pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Storage, "collect", None)  # nothing may come into memory
    table = hm.read(f"{parts}/{pattern}", SCHEMA, engine="duckdb", memory_limit="200MB")
    assert len(table) == 6
    (verdict,) = hm.check(table, hm.KAnonymity(2))
    assert (verdict.achieved, verdict.classes) == (1, 3)  # (1, 2024) x 2, (3, 2024), (4, 2025) x 3


def test_pieces_come_into_memory_where_asked(parts: Path) -> None:
    table = hm.read(parts, SCHEMA, engine="memory")
    assert table.stored is None
    assert sorted(table.arrow["age"].to_pylist()) == [1, 1, 3, 4, 4, 4]
    assert sorted(table.arrow["year"].to_pylist()) == [2024] * 3 + [2025] * 3


def test_texts_of_pieces_become_what_they_are(tmp_path: Path) -> None:
    for i, ages in enumerate((["30", ""], ["41", "30"])):
        rows = pa.table({"age": ages, "code": ["01", "1"]})
        csv.write_csv(rows, tmp_path / f"{i}.csv")
    table = hm.read(tmp_path / "*.csv", {"columns": {"age": "quasi", "code": "quasi"}})
    assert len(table) == 4
    assert sorted(table.arrow["age"].to_pylist(), key=str) == [30, 30, 41, None]


def test_what_is_no_table_of_pieces(tmp_path: Path) -> None:
    with pytest.raises(hm.errors.InputError, match="names no Parquet or CSV file"):
        hm.read(tmp_path)
    with pytest.raises(hm.errors.InputError, match="names no Parquet or CSV file"):
        hm.read(tmp_path / "*.parquet")
    (tmp_path / "a.csv").write_text("age\n1\n")
    pq.write_table(pa.table({"age": [1]}), tmp_path / "a.parquet")
    with pytest.raises(hm.errors.InputError, match="several kinds"):
        hm.read(tmp_path)


def test_a_file_with_a_bracket_in_its_name_is_a_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": [1]}), tmp_path / "a[1].parquet")
    assert hm.read(tmp_path / "a[1].parquet").stored is None


def test_a_spark_session_is_no_table() -> None:
    session = type("SparkSession", (), {"__module__": "pyspark.sql.session"})()
    with pytest.raises(hm.errors.InputError, match="A Spark session is no table"):
        hm.read(session)


def test_a_spark_frame_is_read_without_python_workers() -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("this would start Python workers")

    made = {"age": [1, 2]}
    methods = {
        "__module__": "pyspark.sql.dataframe",
        "createOrReplaceTempView": refuse,
        "__arrow_c_stream__": refuse,
        "toArrow": lambda _: pa.table(made),
    }
    rows = SparkRows("", frame=type("DataFrame", (), methods)())
    assert rows.collect(hm.Schema()).arrow.to_pydict() == made
