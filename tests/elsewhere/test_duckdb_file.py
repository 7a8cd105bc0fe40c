"""A release as a table of a DuckDB database: by one commit, or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from places import MODELS, SCHEMA, multiset, people, stored

import halfmask as hm
from halfmask.engines.duckdb import publication as duckdb_file
from halfmask.release import record

if TYPE_CHECKING:
    import pyarrow as pa

SETTINGS = {"method": "local", "suppression": 0.05}


def held(place: Path, table: str = "public") -> pa.Table:
    with duckdb.connect(str(place), read_only=True) as connection:
        return connection.sql(f"SELECT * FROM {table}").to_arrow_table()  # noqa: S608


def names(place: Path) -> list[str]:
    with duckdb.connect(str(place), read_only=True) as connection:
        found = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    return sorted(name for (name,) in found)


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    place = tmp_path / "visits.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.register("given", people())
        connection.execute("CREATE TABLE visits AS SELECT * FROM given")
    return place


def test_rows_of_a_database_go_to_a_new_one_and_replace_a_release(
    visits: Path, tmp_path: Path
) -> None:
    there = hm.read(visits, SCHEMA, table="visits", memory_limit="200MB")
    public = tmp_path / "public.duckdb"
    with hm.anonymize(there, *MODELS, **SETTINGS) as release:
        release.write(public, table="public")
        assert multiset(held(public)) == multiset(release.to_arrow())
        release.write(public, table="public")
        release.write(public, table="second")
        release.write(visits, table="public")  # where the rows themselves are
        assert multiset(held(visits)) == multiset(release.to_arrow())
        with pytest.raises(hm.errors.InputError, match="no release of ours"):
            release.write(visits, table="VISITS")
    assert names(public) == ["public", "second"]
    assert names(visits) == ["public", "visits"]
    with duckdb.connect(str(public), read_only=True) as connection:
        (said,) = connection.execute(
            "SELECT comment FROM duckdb_tables() WHERE table_name = 'public'"
        ).fetchone() or ("",)
    assert said.startswith("halfmask release")
    assert "k-anonymity" in said
    assert sorted(one.name for one in tmp_path.iterdir()) == ["public.duckdb", "visits.duckdb"]


def test_rows_in_memory_and_masked_rows_go_there_too(tmp_path: Path) -> None:
    place = tmp_path / "public.ddb"
    release = hm.anonymize(hm.read(people(), SCHEMA), *MODELS, **SETTINGS)
    release.write(place, table="public")
    assert multiset(held(place)) == multiset(release.to_arrow())
    plain = {"columns": {**SCHEMA["columns"], "k_i": "drop"}}
    with hm.mask(stored(tmp_path, people(), plain), "round age base=5") as masked:
        masked.write(place, table="masked")
        assert multiset(held(place, "masked")) == multiset(masked.to_arrow())


def test_what_is_in_the_way_is_said_before(tmp_path: Path) -> None:
    release = hm.anonymize(hm.read(people(), SCHEMA), *MODELS, **SETTINGS)
    with pytest.raises(hm.errors.ParameterError, match="table"):
        release.write(tmp_path / "a.duckdb")
    other = tmp_path / "b.duckdb"
    other.write_text("no database", encoding="utf-8")
    with pytest.raises(hm.errors.InputError, match="cannot be opened"):
        release.write(other, table="public")
    with pytest.raises(hm.errors.InputError, match="does not exist"):
        release.write(tmp_path / "none" / "c.duckdb", table="public")
    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
        connection.execute("CREATE VIEW public AS SELECT 1 AS a")
    with pytest.raises(hm.errors.InputError, match="no release of ours"):
        release.write(tmp_path / "d.duckdb", table="public")
    assert not (tmp_path / "a.duckdb").exists()


def test_who_may_not_write_is_told_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(hm.errors.InputError, match="may not write"):
        duckdb_file.require_file_place(str(tmp_path / "a.duckdb"), "public")


def test_other_rows_that_arrive_are_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "public.duckdb"
    release = hm.anonymize(hm.read(people(), SCHEMA), *MODELS, **SETTINGS)
    honest = record._both_sides

    def other(cursor, name, *rest):  # type: ignore[no-untyped-def]
        first = f"SELECT MIN(rowid) FROM {name}"  # noqa: S608
        cursor.execute(f"UPDATE {name} SET sex = 'x' WHERE rowid IN ({first})")  # noqa: S608
        return honest(cursor, name, *rest)

    monkeypatch.setattr(record, "_both_sides", other)
    with pytest.raises(hm.errors.InternalError, match="nothing was released"):
        release.write(place, table="public")
    assert list(tmp_path.iterdir()) == []


_KILLED = """
import os, sys
import halfmask as hm
from halfmask.engines.duckdb import publication as duckdb_file
sys.path.insert(0, sys.argv[3])
from places import MODELS, SCHEMA, people
release = hm.anonymize(hm.read(people(), SCHEMA), *MODELS, method="local", suppression=0.05)
duckdb_file.reach = lambda point: os._exit(9) if point == sys.argv[2] else None
release.write(sys.argv[1], table="public")
"""


@pytest.mark.parametrize("point", ["before the commit", "before publishing"])
def test_a_killed_process_leaves_no_table(visits: Path, tmp_path: Path, point: str) -> None:
    place = visits if point == "before the commit" else tmp_path / "fresh.duckdb"
    tools = str(Path(__file__).parents[1] / "tools")
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", _KILLED, str(place), point, tools],
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 9
    assert names(visits) == ["visits"]
    assert not (tmp_path / "fresh.duckdb").exists()
