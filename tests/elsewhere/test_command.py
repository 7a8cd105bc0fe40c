"""The command line from a database to a database, and from a pattern to a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pyarrow.parquet as pq
import pytest
from places import SCHEMA, load, people

import halfmask as hm
from halfmask.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path


def main(words: list[str]) -> int:
    with pytest.raises(SystemExit) as stop:
        run(words)
    assert isinstance(stop.value.code, int)
    return stop.value.code


@pytest.fixture
def schema(tmp_path: Path) -> str:
    place = tmp_path / "visits.toml"
    place.write_text(hm.Schema.from_dict(SCHEMA).to_toml(), encoding="utf-8")
    return str(place)


@pytest.mark.usefixtures("in_place")
def test_from_table_to_table(
    postgres: str, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    load(postgres, "visits", people(150))
    where = f"{postgres}&password=s3cretword"
    words = ["anonymize", where, "--table", "visits", "--schema", schema, "--k", "3",
             "--method", "optimal", "--suppression", "0.1"]  # fmt: skip
    assert main([*words, "-o", where, "--output-table", "visits_public"]) == 0
    shown = capsys.readouterr()
    assert "s3cretword" not in shown.out + shown.err
    with psycopg.connect(postgres) as connection:
        (rows,) = connection.execute("SELECT COUNT(*) FROM visits_public").fetchone() or (0,)
        (said,) = connection.execute(
            "SELECT obj_description('visits_public'::regclass)"
        ).fetchone() or ("",)
    assert 135 <= rows <= 150
    assert "s3cretword" not in said
    assert "k-anonymity" in said
    assert main([*words, "-o", where, "--output-table", "visits"]) != 0  # no release of ours
    assert main([*words, "-o", where]) != 0
    with psycopg.connect(postgres) as connection:
        connection.execute("DROP TABLE visits, visits_public")


@pytest.mark.usefixtures("in_place")
def test_from_a_pattern_to_a_folder(tmp_path: Path, schema: str) -> None:
    for i in range(3):
        pq.write_table(people(150).slice(50 * i, 50), tmp_path / f"{i}.parquet")
    given = ["anonymize", f"{tmp_path}/*.parquet", "--schema", schema, "--memory-limit", "200MB"]
    more = ["--k", "3", "--suppression", "0.1", "-o", f"{tmp_path}/out/"]
    assert main([*given, *more]) == 0
    assert main(["check", f"{tmp_path}/out/", "--k", "3"]) == 0


@pytest.mark.usefixtures("in_place")
def test_a_table_is_masked_into_a_table_or_a_folder(postgres: str, tmp_path: Path) -> None:
    load(postgres, "visits", people(150))
    columns = {**SCHEMA["columns"], "k_i": "drop"}
    schema = tmp_path / "masks.toml"
    schema.write_text(hm.Schema.from_dict({"columns": columns}).to_toml(), encoding="utf-8")
    words = ["mask", postgres, "--table", "visits", "--schema", str(schema)]
    words += ["--step", "round age base=10"]
    assert main([*words, "-o", postgres, "--output-table", "visits_masked"]) == 0
    assert main([*words, "-o", f"{tmp_path}/out/"]) == 0
    assert main([*words, "-o", postgres, "--output-table", "visits"]) != 0
    with psycopg.connect(postgres) as connection:
        held = connection.execute("SELECT DISTINCT age FROM visits_masked").fetchall()
        assert {age for (age,) in held} == {20, 30, 40, 50, 60, None}
        connection.execute("DROP TABLE visits, visits_masked")
    assert pq.read_table(tmp_path / "out").num_rows == 150


@pytest.mark.usefixtures("in_place")
def test_a_table_of_a_database_is_described_and_its_risks_are_written(
    postgres: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(postgres, "visits", people(150))
    where, schema = [postgres, "--table", "visits"], str(tmp_path / "visits.toml")
    assert main(["describe", *where, "-o", schema]) == 0
    assert hm.Schema.read(schema) == hm.describe(hm.read(people(150))).to_schema()
    assert main(["describe", *where, "--public"]) == 0
    assert "domain" in capsys.readouterr().out
    words = ["risks", *where, "--schema", schema, "-o", str(tmp_path / "risks.parquet")]
    assert main(words) == 0
    assert pq.read_table(tmp_path / "risks.parquet")["risk_people"].null_count == 0
    with psycopg.connect(postgres) as connection:
        connection.execute("DROP TABLE visits")
