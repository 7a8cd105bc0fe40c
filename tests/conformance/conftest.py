"""Every engine that is held to the reference, over the ``TABLES`` of the module that asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from halfmask.engines.duckdb.engine import DuckDB
from halfmask.engines.postgres import Postgres
from halfmask.engines.spark import Spark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from halfmask.engines.request import Engine


@pytest.fixture(
    scope="module", params=["duckdb", "postgres", pytest.param("spark", marks=pytest.mark.spark)]
)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "duckdb":
        found: Engine = DuckDB()
    elif request.param == "postgres":
        found = Postgres(request.getfixturevalue("postgres"))
    else:
        found = Spark(request.getfixturevalue("spark"))
    for name, rows in request.module.TABLES.items():
        found.add(name, rows)
    yield found
    found.close()
