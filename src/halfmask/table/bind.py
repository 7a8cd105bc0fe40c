"""Rows and a schema become a table: what is declared is converted, and every fault is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import SchemaError
from halfmask.table.csv_file import TEXT
from halfmask.table.decimal_comma import are_comma_numbers, comma_hint, has_comma, pointed
from halfmask.table.demands import join_policies, read_policies, whole_demands
from halfmask.table.dictionary import ascending, dictionary_of
from halfmask.table.infer import date_type, inferred, number_type, retyped, used_values
from halfmask.table.moments import ALLOWED
from halfmask.table.normalize import normalize
from halfmask.table.numbers import is_text
from halfmask.table.raw_rows import raw_rows
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from halfmask.table.incoming import Incoming
    from halfmask.table.schema import Column, Schema


def bind(
    arrow: pa.Table, schema: Schema, origin: str, given: Mapping[str, Incoming] | None = None
) -> Table:
    """Check ``schema`` against the rows, convert what it declares, and make the table.

    Raises:
        SchemaError: with every fault.
    """
    arrow, schema = _with_policy_file(arrow, schema)
    faults = schema.unknown(arrow.column_names)
    for source in schema.policies:
        faults += source.unknown(arrow.column_names)
    before = arrow.schema
    for name, column in schema.columns.items():
        if name in arrow.column_names:
            arrow = _declared(arrow, name, column, faults)
    entries = [schema.policy, *schema.policy_columns.values()]
    for source in schema.policies:
        entries += [source.general, *source.columns.values()]
    for entry in entries:
        arrow, more = whole_demands(arrow, entry)
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


def _with_policy_file(arrow: pa.Table, schema: Schema) -> tuple[pa.Table, Schema]:
    """The rows and the schema with what the policy file of the schema says."""
    if schema.policy_file is None:
        return arrow, schema
    path = schema.folder / schema.policy_file
    if path.suffix == ".toml":
        found = read_policies(path)
        more = () if found is None else (found,)
        return arrow, replace(schema, policies=(*schema.policies, *more))
    return join_policies(arrow, normalize(raw_rows(path)[0], ("",)), schema), schema


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
        looked += schema.policy_names
    faults: list[str] = []
    for name in looked:
        if name not in there:
            continue
        try:
            table.encode(name)
        except SchemaError as error:
            faults += error.faults
    return faults
