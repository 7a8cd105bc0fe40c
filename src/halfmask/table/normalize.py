"""Arrow data of any origin in the few types that the rest of halfmask knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError
from halfmask.table.dictionary import dictionary_of
from halfmask.table.moments import out_of_calendar, zone_known
from halfmask.table.names import check_names
from halfmask.table.numbers import is_text

if TYPE_CHECKING:
    from collections.abc import Sequence


def normalize(table: pa.Table, missing: Sequence[str]) -> pa.Table:
    """Text as int32 dictionaries, NaN as missing, no views, no index metadata.

    Raises:
        InputError: names occur twice, there are no rows, a column's type is none that can be
            grouped and written, or its dates lie outside the calendar.
    """
    check_names(table.column_names)
    if table.num_columns == 0:
        raise InputError("The table has no columns.")
    if table.num_rows == 0:
        raise InputError("The table has columns but no rows.")
    require_flat(table.schema)
    columns = [_column(column, missing) for column in table.columns]
    _refuse_times(table.column_names, columns)
    return pa.table(columns, names=table.column_names)


def require_flat(schema: pa.Schema) -> None:
    """Refuse columns whose type can not be grouped and written."""
    faults = [f"column '{field.name}' ({field.type})" for field in schema if not _flat(field.type)]
    if faults:
        raise InputError(
            f"Columns of these types cannot be used: {', '.join(faults)}. Cast them to text or"
            " numbers, unnest or drop them."
        )


def _refuse_times(names: Sequence[str], columns: Sequence[pa.ChunkedArray]) -> None:
    faults = []
    for name, column in zip(names, columns, strict=True):
        outside = out_of_calendar(column)
        if outside:
            faults.append(
                f"Column '{name}': {outside} row(s) hold dates outside the years 1 to 9999."
                " Correct them, or leave them missing."
            )
        if not zone_known(column.type):
            faults.append(f"Column '{name}': its time zone is unknown here. Convert it to UTC.")
    if faults:
        raise InputError("\n".join(faults))


def _flat(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _flat(kind.value_type)
    return bool(
        is_text(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_date(kind)
        or pa.types.is_time(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_null(kind)
    )


def _column(column: pa.ChunkedArray, missing: Sequence[str]) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        column = pa.chunked_array([pc.run_end_decode(c) for c in column.chunks], kind.value_type)
        kind = column.type
    if pa.types.is_dictionary(kind) and not is_text(kind.value_type):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_null(kind):
        return column.cast(pa.string()).dictionary_encode()
    if is_text(kind) or pa.types.is_dictionary(kind):
        return text_column(column, missing)
    if pa.types.is_date64(kind):
        return column.cast(pa.date32())
    return _numbers(column) if pa.types.is_floating(kind) else column


def text_column(column: pa.ChunkedArray, missing: Sequence[str]) -> pa.ChunkedArray:
    """One dictionary of distinct texts for the whole column; ``missing`` texts become null."""
    if not pa.types.is_dictionary(column.type):
        if pa.types.is_string_view(column.type):
            column = column.cast(pa.large_string())
        column = column.dictionary_encode()
    array = dictionary_of(column)
    texts = array.dictionary.cast(pa.string())
    codes = array.indices.cast(pa.int32())
    absent = pc.is_in(texts, value_set=pa.array(list(missing), pa.string()))
    absent = pc.or_(absent, pc.is_null(texts))
    if pc.any(absent).as_py():
        ranks = pa.array(np.arange(len(texts), dtype=np.int32))
        codes = pc.if_else(absent, pa.scalar(None, pa.int32()), ranks).take(codes)
    used = len(pc.unique(codes.drop_null()))
    if used < len(texts) or pc.count_distinct(texts).as_py() < len(texts):
        return pa.chunked_array([pc.take(texts, codes).dictionary_encode()])
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, texts)])


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """NaN is missing, and zero has one sign."""
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    zero = pa.scalar(0.0, column.type)
    column = pc.add(column, zero)
    empty = pa.scalar(None, column.type)
    return pc.if_else(pc.is_nan(column), empty, column)
