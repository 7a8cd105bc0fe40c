"""The types of columns that leave, as their own values tell them.

The reader of a text file finds the type of a column by looking at all its rows: one ``7,5`` or
``unknown`` among whole numbers makes it text. Where that row does not leave, the type of the others
would tell that there was one. So the door finds the types again, from the rows that leave alone, of
every column that nobody declared and that leaves with values of the file.

Adversary: whoever reads the released file, its types and the schema beside it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.release.document import AS_IT_WAS
from halfmask.release.files import has_fraction, text_forms
from halfmask.table.files.rows import Incoming
from halfmask.table.read import form_written, is_declared
from halfmask.table.values import dictionary_of, infer_type, is_text, sort_dictionary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from halfmask.release.document import ColumnChange
    from halfmask.table.table import Table

_EXACT = 2.0**53  # up to here doubles are whole numbers, each of them


def types_of_rows(
    rows: pa.Table,
    table: Table,
    names: Sequence[str],
    written: Mapping[str, Incoming] | None = None,
) -> tuple[pa.Table, Mapping[str, Incoming]]:
    """Rows that leave a text file, of types that they tell themselves, and how they are written.

    Args:
        rows: what leaves.
        table: what was read.
        names: the columns that hold values of the file, not labels.
        written: how columns are written; by default as they were read.
    """
    given = dict(table.given if written is None else written)
    if table.origin != "csv":  # frames, typed files and databases state their types
        return rows, given
    for name in names:
        if name not in rows.column_names or is_declared(table.schema.columns.get(name)):
            continue
        column, form = _own_type(rows[name], name, table)
        if column is None:
            continue
        rows = rows.set_column(rows.column_names.index(name), name, column)
        kind = pa.string() if pa.types.is_dictionary(column.type) else column.type
        if form or name in given:
            given[name] = replace(given.get(name, Incoming(kind)), type=kind, form=form)
    return rows, given


def kept_columns(changes: Sequence[ColumnChange]) -> list[str]:
    """The columns that leave as they were."""
    return [one.name for one in changes if one.published and one.action == AS_IT_WAS]


def _own_type(
    column: pa.ChunkedArray, name: str, table: Table
) -> tuple[pa.ChunkedArray | None, str]:
    """The column of the type that its values tell, and their form; None where it is of that."""
    kind, schema = column.type, table.schema
    text = is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)
    if column.null_count == len(column):
        return (None if text else _dictionary(pa.nulls(len(column), pa.string()))), ""
    if _is_whole(column):
        return column.cast(pa.int64()), ""
    if pa.types.is_floating(kind) and not has_fraction(column):
        return None, ""
    texts = column if text else text_forms(pa.table({name: column}), table.given).get(name)
    if texts is None:  # whole numbers, decimals with a point, dates with the year in front
        return None, ""
    codes = _dictionary(texts)
    found = infer_type(codes, schema.decimal)
    if _is_whole(found):  # as above, whatever the reader took them for
        return found.cast(pa.int64()), ""
    if found.type == kind:
        return None, ""
    if found is codes:
        return sort_dictionary(codes), ""
    return found, form_written(codes, found.type, schema, name)[0]


def _dictionary(texts: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    whole = texts if isinstance(texts, pa.ChunkedArray) else pa.chunked_array([texts])
    return pa.chunked_array([dictionary_of(whole)])


def _is_whole(column: pa.ChunkedArray) -> bool:
    """Whether all are doubles that are whole numbers, each exactly."""
    if not pa.types.is_floating(column.type) or has_fraction(column):
        return False
    return all(abs(end) <= _EXACT for end in pc.min_max(column).as_py().values())
