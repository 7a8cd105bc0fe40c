"""Find the engine for what was given: a table, files, a database, a cluster."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from halfmask.engines.request import Engine

_HOME = "halfmask.engines"
# An engine over tables in memory is one line here: its module, and a class made of named tables.
# None: it reads no tables in memory, and has an address instead.
ENGINES: dict[str, tuple[str, str] | None] = {
    "duckdb": ("duckdb", "DuckDB"),
    "postgres": None,
    "spark": ("spark", "Spark"),
    "reference": ("reference", "Reference"),
}
DEFAULT = "duckdb"


def open_tables(tables: Mapping[str, pa.Table], engine: str | None) -> Engine:
    """An engine over tables in memory.

    Raises:
        ParameterError: no engine has that name, or it does not read tables in memory.
    """
    name = DEFAULT if engine is None else engine
    if name not in ENGINES:
        raise ParameterError("engine", engine, f"one of {', '.join(ENGINES)}")
    place = ENGINES[name]
    if place is None:
        raise ParameterError("engine", engine, f"a {name}:// address in place of the table")
    # Loaded when it is asked for: an engine may be an extra that is not installed.
    module, kind = place
    made: Engine = getattr(import_module(f"{_HOME}.{module}"), kind)(tables=tables)
    return made


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
