"""``hm.read``: the one way in, whether the rows come into memory or stay where they are."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from halfmask.engines.request import memory_bytes
from halfmask.engines.sources import is_address, is_database, is_pieces, is_spark
from halfmask.engines.stored import Storage, require_table_name
from halfmask.errors import ParameterError, SchemaError
from halfmask.table.columns import ROW_NAMES
from halfmask.table.files.rows import file_kind
from halfmask.table.files.text_file import file_named
from halfmask.table.read import declared_schema, read_rows
from halfmask.table.table import Table, require_table
from halfmask.table.values import is_text, require_mark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from halfmask.table.schema import Schema

COUNTERS = ("duckdb", "postgres", "spark", "memory")  # who may count rows that are read
LARGE = 2 << 30  # files of more bytes are counted by the engine without being asked


def read(
    source: object,
    schema: Schema | Mapping[str, object] | str | os.PathLike[str] | None = None,
    *,
    engine: str | None = None,
    table: str | None = None,
    memory_limit: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    missing: Sequence[str] | None = None,
) -> Table:
    """Read a table and bind it to its schema.

    Rows of a database, of a file above 2 GB, or where ``engine`` or ``memory_limit`` say so, stay
    where they are: an engine counts them there, and they come into memory only for what needs
    them one by one.

    Args:
        source: the name of a CSV (also packed as .gz, .zip, .zst, .xz), Parquet, Arrow, Feather,
            Excel (.xlsx, .xls, .ods), Stata, SPSS, SAS or SQLite file (or an open binary file), the
            address of a PostgreSQL database, a DuckDB database (.duckdb, .ddb), a folder of Parquet
            or CSV files or a pattern such as ``"parts/*.parquet"`` (folders named ``year=2024`` are
            columns), a pandas, Polars, Arrow or DuckDB table, a Spark frame or (with ``table``)
            session, whose rows stay in Spark, anything with ``__arrow_c_stream__``, or a Table.
        schema: a Schema, a mapping of the schema file's shape, or the path of a schema file;
            ``None``: the TOML file beside the data that has its name, if there is one.
        engine: ``"duckdb"`` leaves a CSV or Parquet file where it is and counts it within
            ``memory_limit``, spilling to disk; ``"spark"`` has Spark count Parquet files, or the
            table of this name, in the session that there is or that ``SPARK_REMOTE`` names;
            ``"memory"`` reads it whatever its size.
        table: which table of a database or SQLite file, or sheet of a workbook.
        memory_limit: how much memory DuckDB may take, such as ``"500MB"``; ``None``: 1 GB. Of every
            engine, how much may come into memory where rows are needed one by one; ``None``: all.
        delimiter: what stands between the fields of a text file; ``None``: detected.
        encoding: the character encoding of a text file; ``None``: detected.
        decimal: the decimal mark of a text file, ``","`` or ``"."``; ``None``: found per column.
        missing: the texts that mean a missing value; ``None``: the empty text in text files.

    Returns:
        The table; its ``origin`` says what came in.

    Raises:
        InputError: the source cannot be read.
        SchemaError: the schema and the table do not fit; lists every fault.

    Example:
        >>> import halfmask as hm
        >>> hm.read({"age": [30, 41], "ill": ["flu", "gout"]}, schema={"age": "quasi"})
        Table(2 rows; age: quasi)
    """
    require_mark(decimal)
    _require_limit(memory_limit, source, engine)
    place = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    if place is not None and engine == "spark":
        if is_address(place):
            raise ParameterError("engine", "spark", "nothing: a database counts its own rows")
        return _stay_in_spark(place, schema, table, memory_limit, missing)
    if place is not None and stays_stored(place, engine, memory_limit):
        written = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
        found = _stay_stored(place, schema, table, memory_limit, missing, written)
        return found.collect() if engine == "memory" else found
    if is_spark(source) and engine in (None, "spark", "memory"):
        found = _stay_in_spark(source, schema, table, memory_limit, missing)
        return found.collect() if engine == "memory" else found
    if place is None and engine not in (None, "memory"):
        raise ParameterError("engine", engine, "nothing: these rows are in memory already")
    read = read_rows(
        source,
        schema,
        delimiter=delimiter,
        encoding=encoding,
        decimal=decimal,
        missing=missing,
        table=table,
    )
    return read if place is None else replace(read, place=_place_of(place, table))


def _require_limit(limit: str | None, source: object, engine: str | None) -> None:
    """Refuse a limit that is no size: else it would bind nothing where rows come into memory."""
    if limit is None or memory_bytes(limit) is not None:
        return
    elsewhere = engine == "spark" or is_spark(source)
    server = isinstance(source, str) and is_address(source) and not is_database(source)
    if elsewhere or server or not limit.strip().endswith("%"):  # DuckDB knows shares
        raise ParameterError("memory_limit", limit, "a size such as 500MB or 4GB")


def _place_of(place: str, table: str | None) -> tuple[str, str | None]:
    """Where rows were read from: no link, no user, no password, and which table."""
    named = None if table is None else table.removeprefix("public.")
    if "://" in place:
        parts = urlsplit(place)
        host = parts.netloc.rpartition("@")[2].lower().removesuffix(":5432")
        return host + parts.path, named
    return os.path.realpath(file_named(place)), named


def _stay_stored(
    place: str,
    schema: object,
    table: str | None,
    memory_limit: str | None,
    missing: Sequence[str] | None,
    written: Mapping[str, str | None],
) -> Table:
    """A table whose rows a file or database keeps; ``written``: how a text file is."""
    if is_address(place):
        require_table_name(table)
    declared = declared_schema(place, schema)
    stored = Storage(
        place,
        table,
        memory_limit,
        written["delimiter"] or declared.delimiter,
        written["encoding"] or declared.encoding,
    )
    if written["decimal"] is not None:
        declared = replace(declared, decimal=written["decimal"])
    if missing is not None:
        declared = replace(declared, missing=tuple(missing))
    notes = (ROW_NAMES,) if stored.has_row_names else ()
    return _require_columns(Table(stored, declared, place=_place_of(place, table), notes=notes))


def _stay_in_spark(
    source: Any,
    schema: object,
    table: str | None,
    memory_limit: str | None,
    missing: Sequence[str] | None,
) -> Table:
    """A table whose rows Spark keeps and counts; the limit is that of what comes over."""
    from halfmask.engines.spark import SparkRows, find_frame

    declared = declared_schema(source if isinstance(source, str) else None, schema)
    if missing is not None:
        declared = replace(declared, missing=tuple(missing))
    frame = find_frame(source, table)
    place = _place_of(source, table) if isinstance(source, str) else None
    rows = SparkRows("", table, memory_limit, frame=frame)
    return _require_columns(Table(rows, declared, place=place))


def stays_stored(place: str, engine: str | None = None, memory_limit: str | None = None) -> bool:
    """Whether the rows of a file or database stay where they are and are counted by an engine.

    A database counts its own rows, DuckDB those of a large file or where a memory limit is given.

    Raises:
        ParameterError: there is no such engine, or it does not go with the source.
    """
    if engine is not None and engine not in COUNTERS:
        raise ParameterError("engine", engine, f"{', '.join(COUNTERS[:-1])} or {COUNTERS[-1]}")
    if is_address(place):
        if engine == "memory":
            raise ParameterError("engine", "memory", "nothing: a database counts its own rows")
        return True
    if is_pieces(place):
        return True
    if engine == "spark":
        return True
    if engine == "postgres":
        raise ParameterError("engine", "postgres", "a postgres:// address in place of the file")
    if engine is None and memory_limit is None:
        path = file_named(place)
        # DuckDB reads no others.
        large = path.is_file() and path.stat().st_size > LARGE
        return large and file_kind(path) in ("csv", "parquet")
    return engine != "memory"


def as_table(source: object) -> Table:
    """A table as it is, or what a file name or address stands for; frames need a schema first."""
    if isinstance(source, Table):
        return source
    return read(source) if isinstance(source, str | os.PathLike) else require_table(source)


def is_typed(table: Table) -> bool:
    """Whether stored rows are what their schema says without being read: texts are converted."""
    stored, schema = table.stored, table.schema
    if stored is None or stored.are_texts or schema.missing:
        return False
    if any(one.missing for one in schema.columns.values()):
        return False
    converted = [
        n
        for n, one in schema.columns.items()
        if one.kind in ("numeric", "date") or one.decimal or one.format
    ]
    kinds = stored.columns()
    return not any(name in kinds and is_text(kinds[name]) for name in converted)


def as_rows(source: object) -> Table:
    """A table, frame or file with its rows in memory: where the roles of columns do not matter."""
    return (source if isinstance(source, Table) else read(source)).collect()


def _require_columns(table: Table) -> Table:
    """Refuse a schema that names columns which stored rows do not have."""
    schema, there = table.schema, table.column_names
    apart = schema.policy_names if schema.policy_file is not None else ()
    faults = schema.unknown([*there, *(name for name in apart if name not in there)])
    if faults:
        raise SchemaError(*faults)
    return table
