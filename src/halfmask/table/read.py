"""Tables from files and frames: ``hm.read``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, SchemaError
from halfmask.table import text_file
from halfmask.table.csv_file import TEXT, read_csv
from halfmask.table.decimal_comma import (
    are_comma_numbers,
    comma_hint,
    has_comma,
    pointed,
    require_mark,
)
from halfmask.table.dictionary import ascending, dictionary_of
from halfmask.table.frames import from_frame
from halfmask.table.incoming import Incoming, incoming
from halfmask.table.infer import date_type, inferred, number_type, retyped, used_values
from halfmask.table.moments import ALLOWED
from halfmask.table.normalize import normalize
from halfmask.table.numbers import is_text
from halfmask.table.policies import join_policies, whole_demands
from halfmask.table.schema import Column, Schema
from halfmask.table.table import Table

_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}


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
        return bind(source.arrow, _schema(schema), source.origin, source.given)
    declared = declared_schema(source, schema)
    declared = declared if decimal is None else replace(declared, decimal=decimal)
    texts = missing if missing is not None else declared.missing
    arrow, origin, given = _rows(
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
    return _schema(schema if schema is not None else _beside(source))


def bind(
    arrow: pa.Table, schema: Schema, origin: str, given: Mapping[str, Incoming] | None = None
) -> Table:
    """Check ``schema`` against the rows, convert what it declares, and make the table.

    Raises:
        SchemaError: with every fault.
    """
    if schema.policy_file is not None and not set(schema.policy.values()) <= set(
        arrow.column_names
    ):
        policies = _rows(schema.folder / schema.policy_file)[0]
        policies = normalize(policies, ("",))
        arrow = join_policies(arrow, policies, schema)
    faults = schema.unknown(arrow.column_names)
    before = arrow.schema
    for name, column in schema.columns.items():
        if name in arrow.column_names:
            arrow = _declared(arrow, name, column, faults)
    if all(name in arrow.column_names for name in schema.policy.values()):
        arrow, more = whole_demands(arrow, schema)
        faults += more
    same = {  # what the schema calls numbers or dates is that from now on
        name: was
        for name, was in (given or {}).items()
        if arrow.schema.field(name).type == before.field(name).type
    }
    table = Table(arrow, _with_orders(schema), origin, same)
    faults += _encoding_faults(table)
    if faults:
        raise SchemaError(*faults)
    return table


def _schema(schema: object) -> Schema:
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
    if not isinstance(source, str | os.PathLike):
        return None
    path = text_file.file_named(source)
    name = path.name.removesuffix(path.suffix) if path.suffix == ".gz" else path.name
    file = path.with_name(Path(name).stem + ".toml")
    return file if file.is_file() and file != path else None


def _rows(
    source: Any,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    missing: Sequence[str] | None = None,
) -> tuple[pa.Table, str, dict[str, Incoming]]:
    """The rows of a source, what kind it is, and what its columns were."""
    if isinstance(source, str | os.PathLike):
        path = text_file.file_named(source)
        pipe = path.exists() and not path.is_file() and not path.is_dir()
        place: Path | bytes = path.read_bytes() if pipe else path  # a pipe is read only once
    elif isinstance(source, bytes) or hasattr(source, "read"):
        place = source if isinstance(source, bytes) else _content(source)
    else:
        return from_frame(source)
    kind = file_kind(place)
    if kind in ("parquet", "arrow"):
        arrow = _arrow_file(place, kind)
        return arrow, kind, incoming(arrow)
    texts = ("",) if missing is None else tuple(missing)
    return read_csv(place, delimiter=delimiter, encoding=encoding, missing=texts), "csv", {}


def _content(source: Any) -> bytes:
    data = source.read()
    return data.encode() if isinstance(data, str) else bytes(data)


def file_kind(place: Path | bytes) -> str:
    """parquet, arrow or csv: by the first bytes, whatever the file is called."""
    with text_file.open_stream(place) as stream:
        try:
            start = stream.read(8)
        except (OSError, pa.ArrowInvalid):
            raise InputError(f"{text_file.name_of(place)} cannot be unpacked.") from None
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            return kind
    if start[:4] == b"\xff\xff\xff\xff":
        return "arrow"
    return "csv"


def _arrow_file(place: Path | bytes, kind: str) -> pa.Table:
    source = pa.BufferReader(place) if isinstance(place, bytes) else str(place)
    try:
        if kind == "parquet":
            import pyarrow.parquet as pq

            return pq.read_table(source)
        with pa.memory_map(source) if isinstance(source, str) else source as file:
            try:
                return pa.ipc.open_file(file).read_all()
            except pa.ArrowInvalid:
                file.seek(0)
                return pa.ipc.open_stream(file).read_all()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
        raise InputError(
            f"{text_file.name_of(place)} is a damaged {kind.capitalize()} file."
        ) from None


def typed(arrow: pa.Table, schema: Schema) -> pa.Table:
    """Text columns as what their values are, unless the schema calls them nominal or ordinal."""
    columns = []
    for name, column in zip(arrow.column_names, arrow.columns, strict=True):
        text = pa.chunked_array([dictionary_of(column)])
        entry = schema.columns.get(name)
        kept = entry is not None and (entry.kind == "nominal" or entry.order is not None)
        if not kept:
            text = _with_commas(text, entry) if has_comma(schema) else inferred(text)
        column = text
        columns.append(ascending(column) if column.type == TEXT else column)
    return pa.table(columns, names=arrow.column_names)


def _with_commas(text: pa.ChunkedArray, entry: Column | None) -> pa.ChunkedArray:
    """A text column of a file in which numbers have a comma, and points between thousands."""
    if not are_comma_numbers(used_values(text)) and (entry is None or entry.kind != "numeric"):
        return inferred(text, points=False)
    column = pointed(text)
    kind, _ = number_type(used_values(column))
    return text if kind is None else retyped(column, kind)


def _declared(arrow: pa.Table, name: str, column: Column, faults: list[str]) -> pa.Table:
    """Convert a text column that the schema calls numbers or dates, or say why that fails."""
    data = arrow[name]
    kind = data.type.value_type if pa.types.is_dictionary(data.type) else data.type
    guess = {"numeric": number_type, "date": date_type}.get(column.kind or "")
    if guess is None or _is_kind(kind, column.kind):
        return arrow
    if not is_text(kind):
        faults.append(f"Column '{name}' is declared {column.kind} but holds {kind}.")
        return arrow
    values = used_values(data)
    found, bad = guess(values)
    if found is None:
        odd = pc.is_in(data.cast(pa.string()), value_set=values.filter(bad))
        rows = pc.sum(odd).as_py() or 0
        hint = comma_hint(values) if column.kind == "numeric" else ""
        count = f"{rows} row(s) hold" if rows else "it holds"
        faults.append(
            f"Column '{name}' is declared {column.kind} but {count} text that is no"
            f" {'number' if column.kind == 'numeric' else f'date ({ALLOWED})'}. Correct it,"
            f" list it under [table] missing, or change the kind.{hint}"
        )
        return arrow
    return arrow.set_column(arrow.column_names.index(name), name, retyped(data, found))


def _is_kind(kind: pa.DataType, declared: str | None) -> bool:
    if declared == "numeric":
        return bool(
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        )
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _with_orders(schema: Schema) -> Schema:
    """An ordered hierarchy without an order takes the column's, and the other way round."""
    from halfmask.table.hierarchies import Ordered

    columns = dict(schema.columns)
    for name, column in columns.items():
        if not isinstance(column.hierarchy, Ordered):
            continue
        if column.order and not column.hierarchy.order:
            hierarchy = replace(column.hierarchy, order=column.order)
            columns[name] = replace(column, hierarchy=hierarchy)
        elif column.hierarchy.order and column.order is None and column.kind in (None, "ordinal"):
            columns[name] = replace(column, order=tuple(column.hierarchy.order))
    return replace(schema, columns=columns)


def _encoding_faults(table: Table) -> list[str]:
    """Values that are not in a declared order, and people who demand several things."""
    schema, there = table.schema, set(table.arrow.column_names)
    looked = [name for name, column in schema.columns.items() if column.order is not None]
    if schema.person in there:
        looked += schema.policy.values()
    faults: list[str] = []
    for name in looked:
        if name not in there:
            continue
        try:
            table.encode(name)
        except SchemaError as error:
            faults += error.faults
    return faults
