"""Spark Connect: a client without Java, and a server that counts, writes and is not trusted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from places import MODELS, SCHEMA, multiset, people, same

import halfmask as hm
from halfmask.engines import spark

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark
PLAIN = {"columns": {**SCHEMA["columns"], "k_i": "drop"}}
ASKED = "SELECT zip, COUNT(*) AS n FROM the_table GROUP BY zip GUARANTEE k = 2"


@pytest.fixture(scope="module")
def visits(connect: Any) -> Any:
    frame = connect.createDataFrame(people())
    frame.createOrReplaceTempView("visits")
    return frame


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize("method", ["optimal", "mondrian"])
def test_connect_gives_the_release_of_memory(
    connect: Any, visits: Any, tmp_path: Path, method: str
) -> None:
    models, settings = MODELS, {"method": method, "suppression": 0.05}
    if method == "mondrian":  # of rows in another order: other classes
        models, settings = (hm.KAnonymity(3),), {"method": method}
    with hm.anonymize(hm.read(visits, SCHEMA), *models, **settings) as release:
        if method == "optimal":
            same(hm.anonymize(hm.read(people(), SCHEMA), *models, **settings), release)
        left = multiset(release.to_arrow())
        for name in ("out/", "one.parquet"):
            release.write(f"{tmp_path}/{name}")
            assert multiset(pq.read_table(tmp_path / name)) == left
            assert all(one.holds for one in hm.check(f"{tmp_path}/{name}"))
    assert {one.name for one in tmp_path.iterdir()} == {"out", "one.parquet"}
    assert [one.name for one in connect.catalog.listTables()] == ["visits"]  # nothing of ours stays


@pytest.mark.usefixtures("in_place")
def test_what_is_counted_stays_at_the_server(connect: Any, visits: Any) -> None:
    memory, there = hm.read(people(), PLAIN), hm.read(connect, PLAIN, table="visits")
    assert hm.check(there, *MODELS) == hm.check(memory, *MODELS)
    assert str(hm.assess(there)) == str(hm.assess(memory))
    expected = hm.query(memory, ASKED).to_arrow()
    assert multiset(hm.query(there, ASKED).to_arrow()) == multiset(expected)
    assert str(hm.describe(there)) == str(hm.describe(people()))
    masked = hm.mask(there, "round age base=5")
    assert multiset(masked.to_arrow()) == multiset(hm.mask(memory, "round age base=5").to_arrow())


@pytest.mark.usefixtures("in_place")
def test_a_server_without_a_kind_of_table_is_told_so(visits: Any) -> None:
    with (
        hm.anonymize(hm.read(visits, PLAIN), hm.KAnonymity(3), method="mondrian") as release,
        pytest.raises(hm.errors.InputError, match="writes no delta tables"),
    ):
        release.write("delta", table="visits_public")


def test_a_table_that_the_server_does_not_have(connect: Any) -> None:
    with pytest.raises(hm.errors.InputError, match="no table or Parquet files called"):
        hm.read(connect, PLAIN, table="visits_of_nobody")


def command(folder: Path, address: str, *words: str) -> subprocess.CompletedProcess[str]:
    """halfmask in a process that has no session but the one that ``SPARK_REMOTE`` names."""
    return subprocess.run(  # noqa: S603
        [sys.executable, "-m", "halfmask", *words],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "SPARK_REMOTE": address,
        },
    )


def test_the_command_line_goes_where_spark_remote_says(remote: str, tmp_path: Path) -> None:
    pq.write_table(people().drop_columns(["k_i"]), tmp_path / "people.parquet")
    (tmp_path / "people.toml").write_text(
        '[columns]\nage = "quasi"\nsex = "quasi"\nill = "sensitive"\n'
        'zip = { role = "quasi", hierarchy = { mask = { length = 5 } } }\n'
        'pay = "other"\nname = "identifier"\n'
    )
    given = ("people.parquet", "--engine", "spark", "--schema", "people.toml", "--k", "3")
    options = ("--method", "optimal", "--suppression", "0.05", "-o", "out/", "--json")
    done = command(tmp_path, remote, "anonymize", *given, *options)
    assert done.returncode == 0, done.stderr[-2000:]
    assert any("stayed in spark" in note for note in json.loads(done.stdout)["notes"])
    assert all(one.holds for one in hm.check(f"{tmp_path}/out/", hm.KAnonymity(3)))


@pytest.mark.usefixtures("remote")
def test_a_server_that_does_not_answer_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark itself would try for ten minutes, and quote the address, which may hold a token."""
    monkeypatch.setattr(spark, "_PATIENCE", 0.2)
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1/;token=secret")
    with pytest.raises(hm.errors.EngineError, match="SPARK_REMOTE names does not answer") as told:
        hm.read("visits", PLAIN, engine="spark")
    assert "secret" not in str(told.value)


def test_without_its_client_spark_connect_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    with pytest.raises(hm.errors.EngineUnavailableError, match=r"halfmask\[connect\]"):
        hm.read("visits", PLAIN, engine="spark")
