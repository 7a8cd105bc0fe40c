"""What tests of rows elsewhere share: the places, and that no row may be collected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from places import load, stored

import halfmask as hm
from halfmask.engines.spark import SparkRows
from halfmask.engines.stored import Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa

    Place = Callable[[pa.Table, Any], hm.Table]


@pytest.fixture
def in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("rows were collected")

    monkeypatch.setattr(Storage, "collect", refuse)
    monkeypatch.setattr(SparkRows, "collect", refuse)


@pytest.fixture(params=["duckdb", "postgres", pytest.param("spark", marks=pytest.mark.spark)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Puts rows into a file, a database or Spark, and reads them there."""

    def put(rows: pa.Table, schema: Any) -> hm.Table:
        if request.param == "duckdb":
            return stored(tmp_path, rows, schema)
        if request.param == "postgres":
            address = request.getfixturevalue("postgres")
            load(address, "placed", rows)
            return hm.read(address, schema, table="placed")
        return hm.read(request.getfixturevalue("spark").createDataFrame(rows), schema)

    return put


@pytest.fixture(scope="session")
def remote(spark: Any) -> str:
    """The address at which the one Spark session of this run serves Spark Connect."""
    pytest.importorskip("grpc_status", reason="Spark Connect is not installed (halfmask[connect])")
    services = spark._jvm.org.apache.spark.sql.connect.service
    service = getattr(getattr(services, "SparkConnectService$"), "MODULE$")
    return f"sc://127.0.0.1:{service.localPort()}"


@pytest.fixture(scope="session")
def connect(remote: str) -> Iterator[Any]:
    """A session of Spark Connect: a client that talks to a server, with no Java of its own."""
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(remote).create()
    yield session
    session.stop()
