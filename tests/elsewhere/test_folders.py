"""Rows in several files: the same rows and columns for every engine, whatever files are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfmask as hm

if TYPE_CHECKING:
    from pathlib import Path


def write(file: Path, rows: pa.Table) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, file)


def rows(size: int, age: Any = 30) -> pa.Table:
    return pa.table({"age": [age] * size, "sex": ["f", "m"] * (size // 2)})


@pytest.fixture(params=["memory", "duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "spark":
        request.getfixturevalue("spark")
    return str(request.param)


def counted(place: str, engine: str, columns: list[str]) -> dict[Any, int]:
    """How many rows there are with each value of these columns."""
    found = hm.read(place, engine=engine)
    held = (found.collect() if found.stored is not None else found).arrow.select(columns)
    keys = [tuple(row.values()) for row in held.to_pylist()]
    return {key: keys.count(key) for key in keys}


def test_marks_of_patterns_in_names_stand_for_themselves(tmp_path: Path, engine: str) -> None:
    write(tmp_path / "a[1].parquet", rows(4))
    write(tmp_path / "a1.parquet", rows(6, 50))
    write(tmp_path / "f[1]" / "part.parquet", rows(8))
    write(tmp_path / "f1" / "part.parquet", rows(10, 50))
    given = {"a[1].parquet": {30: 4}, "a*.parquet": {30: 4, 50: 6}, "[a]1.parquet": {50: 6},
             "f[1]": {30: 8}, "f[1]/*.parquet": {50: 10}}  # fmt: skip
    for name, held in given.items():
        found = counted(f"{tmp_path}/{name}", engine, ["age"])
        assert found == {(age,): n for age, n in held.items()}, name


def test_folders_name_the_same_columns(tmp_path: Path, engine: str) -> None:
    for year, zip_code, size in ((2023, "007", 4), (2024, "7", 6), (2024, "08", 8)):
        write(tmp_path / f"year={year}" / f"zip={zip_code}" / "part.parquet", rows(size))
    every = {(2023, "007"): 4, (2024, "7"): 6, (2024, "08"): 8}
    late = {key: n for key, n in every.items() if key[0] == 2024}
    for place, held in (("", every), ("/*/*/*.parquet", every), ("/year=2024", late)):
        assert counted(f"{tmp_path}{place}", engine, ["year", "zip"]) == held, place


def test_columns_of_files_go_together_by_their_names(tmp_path: Path, engine: str) -> None:
    write(tmp_path / "more" / "a.parquet", rows(4).select(["sex", "age"]))
    write(tmp_path / "more" / "b.parquet", rows(4).append_column("job", pa.array(["x"] * 4)))
    assert counted(f"{tmp_path}/more", engine, ["age", "job"]) == {(30, None): 4, (30, "x"): 4}
    write(tmp_path / "kinds" / "a.parquet", rows(4))
    write(tmp_path / "kinds" / "b.parquet", rows(4, 30.5))
    if engine == "spark":  # it merges no such columns, and would fail at the second file
        with pytest.raises(hm.errors.InputError, match="one name with several types"):
            hm.read(f"{tmp_path}/kinds", engine=engine)
    else:
        assert counted(f"{tmp_path}/kinds", engine, ["age"]) == {(30.0,): 4, (30.5,): 4}


def test_a_release_may_be_called_like_a_pattern(tmp_path: Path) -> None:
    write(tmp_path / "p[1].parquet", rows(8))
    table = hm.read(tmp_path / "p[1].parquet", {"age": "quasi", "sex": "quasi"}, engine="duckdb")
    with hm.anonymize(table, hm.KAnonymity(3), method="optimal") as release:
        release.write(tmp_path / "out[1].parquet")
        release.write(f"{tmp_path}/out[2]/")
    for name in ("out[1].parquet", "out[2]"):
        (verdict,) = hm.check(str(tmp_path / name), hm.KAnonymity(3))
        assert (verdict.holds, verdict.achieved) == (True, 4)
