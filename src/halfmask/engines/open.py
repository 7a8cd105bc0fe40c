"""Find the engine for what was given: a table, files, a database, a cluster."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from halfmask.engines.request import Engine

NAMES = ("duckdb", "postgres", "spark", "reference")


def open_tables(tables: Mapping[str, pa.Table], engine: str | None) -> Engine:
    """An engine over tables in memory.

    Raises:
        ParameterError: no engine has that name, or it does not read tables in memory.
    """
    if engine in (None, "duckdb"):
        from halfmask.engines.duckdb import DuckDB

        return DuckDB(tables)
    if engine == "reference":
        from halfmask.engines.reference import Reference

        return Reference(tables)
    if engine == "spark":
        from halfmask.engines.spark import Spark

        return Spark(tables=tables)
    if engine == "postgres":
        raise ParameterError("engine", engine, "a postgres:// address in place of the table")
    raise ParameterError("engine", engine, f"one of {', '.join(NAMES)}")


def open_address(address: str) -> Engine:
    """An engine over a database that is named by its address or is a file."""
    if is_database(address):
        from halfmask.engines.duckdb import open_database

        return open_database(address)
    from halfmask.engines.postgres import Postgres

    return Postgres(address)


def is_address(given: object) -> bool:
    """Tell whether something is the address of a database."""
    if isinstance(given, str) and given.startswith(("postgres://", "postgresql://")):
        return True
    return is_database(given)


def is_database(given: object) -> bool:
    """Tell whether something names a file that DuckDB keeps tables in."""
    return isinstance(given, str | PathLike) and str(given).lower().endswith((".duckdb", ".ddb"))


def is_spark(given: Any) -> bool:
    """Tell whether something is a Spark session or frame, without importing Spark."""
    return type(given).__module__.startswith("pyspark.")
