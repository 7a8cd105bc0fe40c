"""Frames of other libraries as Arrow tables; none of these libraries is imported by us."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError
from halfmask.table.incoming import Incoming, incoming
from halfmask.table.names import check_names


def from_frame(source: Any) -> tuple[pa.Table, str, dict[str, Incoming]]:
    """The rows of a frame, which kind of frame it is, and what its columns were."""
    library = type(source).__module__.partition(".")[0]
    name = type(source).__name__
    if library == "pandas" and name == "DataFrame":
        return _from_pandas(source)
    if library == "polars":
        return _from_polars(source, name)
    origin = "duckdb" if library in ("duckdb", "_duckdb") else "arrow"
    arrow = _from_arrow(source)
    return arrow, origin, incoming(arrow)


def _from_arrow(source: Any) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    if hasattr(source, "__arrow_c_stream__"):
        return _from_stream(source)
    if isinstance(source, Mapping):
        return _from_columns(source)
    raise InputError(
        f"A {type(source).__name__} cannot be read: give a file name, a pandas, Polars,"
        " Arrow or DuckDB table, a mapping from names to columns, or anything with"
        " __arrow_c_stream__."
    )


def _from_columns(source: Mapping[Any, Any]) -> pa.Table:
    try:
        return pa.table(dict(source))
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(
            "The mapping is no table: give one list of values per column name, all of one length"
            " and each of one kind."
        ) from None


def _from_stream(source: Any) -> pa.Table:
    try:
        return pa.RecordBatchReader.from_stream(source).read_all()
    except Exception as error:  # noqa: BLE001 - each library has its own, and they quote cells
        raise _failed(source, error) from None


def _failed(source: object, error: Exception) -> InputError:
    return InputError(
        f"The {type(source).__name__} gave no rows: its library raised {type(error).__name__}."
        " Does it work on its own?"
    )


def _from_polars(source: Any, name: str) -> tuple[pa.Table, str, dict[str, Incoming]]:
    if name == "LazyFrame":
        try:
            source = source.collect()
        except Exception as error:  # noqa: BLE001 - Polars quotes cells in its messages
            raise _failed(source, error) from None
    if type(source).__name__ != "DataFrame":
        raise InputError(f"A Polars {name} is no table: give a DataFrame or a LazyFrame.")
    nested = [column for column, kind in source.schema.items() if type(kind).__name__ == "Object"]
    if nested:
        listed = ", ".join(f"'{column}'" for column in nested)
        raise InputError(f"Columns of Python objects cannot be used: {listed}. Cast or drop them.")
    try:
        arrow = pa.RecordBatchReader.from_stream(source).read_all()
    except pa.ArrowInvalid as error:
        raise _unknown_types(source, error) from None
    given = incoming(arrow, source.schema)
    return arrow, "polars", {name: _without_views(was) for name, was in given.items()}


def _unknown_types(source: Any, error: Exception) -> InputError:
    """Which columns of a Polars frame Arrow does not take, found one by one."""
    found = []
    for name, kind in source.schema.items():
        try:
            pa.RecordBatchReader.from_stream(source.select(name).head(0))
        except pa.ArrowInvalid:
            found.append(f"'{name}' ({kind})")
    if not found:
        return _failed(source, error)
    return InputError(
        f"Columns have types that Arrow does not know: {', '.join(found)}. Cast or drop them."
    )


def _without_views(was: Incoming) -> Incoming:
    """Polars hands out views of text but never shows them; few functions of Arrow take them."""
    kind, text = was.type, pa.large_string()
    if pa.types.is_string_view(kind):
        return replace(was, type=text)
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        return replace(was, type=pa.dictionary(kind.index_type, text, kind.ordered))
    return was


def _from_pandas(source: Any) -> tuple[pa.Table, str, dict[str, Incoming]]:
    if source.columns.nlevels > 1:
        raise InputError("The pandas table has column names of several levels: flatten them.")
    names = [str(name) for name in source.columns]
    check_names(names)
    arrays, mixed, faults = [], [], []
    for place, name in enumerate(names):
        series = source.iloc[:, place]
        try:
            arrays.append(pa.chunked_array(_chunks(series)))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError):
            mixed.append(name)
        except OverflowError:
            faults.append(name)
    if mixed or faults:
        listed = ", ".join(f"'{name}'" for name in [*mixed, *faults])
        raise InputError(
            f"Columns hold values of several types, or of none that Arrow knows: {listed}."
            " Convert each to one, for example with astype(str)."
        )
    dtypes = dict(zip(names, source.dtypes, strict=True))
    given = incoming(pa.table(arrays, names=names), dtypes)
    return pa.table([_pandas_column(array) for array in arrays], names=names), "pandas", given


def _chunks(series: Any) -> list[pa.Array]:
    array = pa.Array.from_pandas(series)
    return list(array.chunks) if isinstance(array, pa.ChunkedArray) else [array]


def _pandas_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whole numbers that pandas holds as floats only because some are missing, as integers."""
    if not pa.types.is_floating(column.type) or column.null_count in (0, len(column)):
        return column
    if (
        pc.all(pc.less(pc.abs(column), 2.0**53)).as_py()
        and pc.all(pc.equal(pc.floor(column), column)).as_py()
    ):
        return column.cast(pa.int64())
    return column
