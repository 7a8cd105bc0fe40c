"""Tables from files and frames: ``hm.read``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from halfmask.errors import SchemaError
from halfmask.table import text_file
from halfmask.table.bind import bind, typed
from halfmask.table.decimal_comma import require_mark
from halfmask.table.normalize import normalize
from halfmask.table.raw_rows import raw_rows
from halfmask.table.schema import Schema
from halfmask.table.table import Table


def read(
    source: object,
    schema: Schema | Mapping[str, object] | str | os.PathLike[str] | None = None,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    missing: Sequence[str] | None = None,
) -> Table:
    """Read a table and bind it to its schema.

    Args:
        source: the name of a CSV, Parquet, Arrow or Feather file (or an open binary file), a
            pandas, Polars, Arrow or DuckDB table, anything with ``__arrow_c_stream__``, or a Table.
        schema: a Schema, a mapping of the schema file's shape, or the path of a schema file;
            ``None``: the TOML file beside the data that has its name, if there is one.
        delimiter: what stands between the fields of a text file; ``None``: detected.
        encoding: the character encoding of a text file; ``None``: detected.
        decimal: the decimal mark of a text file, ``","`` or ``"."``; ``None``: a point.
        missing: the texts that mean a missing value; ``None``: the empty text in text files.

    Returns:
        The table; its ``origin`` says what came in.

    Raises:
        InputError: the source cannot be read.
        SchemaError: the schema and the table do not fit; lists every fault.
    """
    require_mark(decimal)
    if isinstance(source, Table):
        if schema is None:
            return source
        return bind(source.arrow, as_schema(schema), source.origin, source.given)
    declared = declared_schema(source, schema)
    declared = declared if decimal is None else replace(declared, decimal=decimal)
    texts = missing if missing is not None else declared.missing
    arrow, origin, given = raw_rows(
        source,
        delimiter=delimiter or declared.delimiter,
        encoding=encoding or declared.encoding,
        missing=texts,
    )
    if origin == "csv":
        return bind(typed(arrow, declared), declared, origin)
    return bind(normalize(arrow, texts or ()), declared, origin, given)


def rows_of(source: object) -> Table:
    """A table as it is, or the rows of a frame or file: for tables whose roles do not matter."""
    return source if isinstance(source, Table) else read(source)


def declared_schema(source: object, schema: object = None) -> Schema:
    """The given schema, or that of the file beside the data, if there is one."""
    return as_schema(schema if schema is not None else _beside(source))


def as_schema(schema: object) -> Schema:
    """A schema from what was given for one; empty where nothing was."""
    if schema is None:
        return Schema()
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str | os.PathLike):
        return Schema.read(text_file.file_named(schema))
    if isinstance(schema, Mapping):
        return Schema.from_dict(schema)
    raise SchemaError("A schema is a Schema, a mapping or the path of a TOML file.")


def _beside(source: object) -> Path | None:
    if not isinstance(source, str | os.PathLike) or "://" in os.fspath(source):
        return None
    path = text_file.file_named(source)
    name = path.name.removesuffix(path.suffix) if path.suffix == ".gz" else path.name
    file = path.with_name(Path(name).stem + ".toml")
    return file if file.is_file() and file != path else None
