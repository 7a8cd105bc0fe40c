"""Frames of other libraries as Arrow tables; none of these libraries is imported by us."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError
from halfmask.table.csv_file import check_names


def from_frame(source: Any) -> tuple[pa.Table, str]:
    """The rows of a frame, and which kind of frame it is."""
    library = type(source).__module__.partition(".")[0]
    name = type(source).__name__
    if library == "pandas" and name == "DataFrame":
        return _from_pandas(source), "pandas"
    if library == "polars":
        return _from_polars(source, name), "polars"
    if isinstance(source, pa.Table):
        return source, "arrow"
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source]), "arrow"
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all(), "arrow"
    if hasattr(source, "__arrow_c_stream__"):
        origin = "duckdb" if library in ("duckdb", "_duckdb") else "arrow"
        return _from_stream(source), origin
    raise InputError(
        f"A {name} cannot be read: give a file name, a pandas, Polars, Arrow or DuckDB table, or"
        " anything with __arrow_c_stream__."
    )


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


def _from_polars(source: Any, name: str) -> pa.Table:
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
    return _from_stream(source)


def _from_pandas(source: Any) -> pa.Table:
    if source.columns.nlevels > 1:
        raise InputError("The pandas table has column names of several levels: flatten them.")
    names = [str(name) for name in source.columns]
    check_names(names)
    arrays, mixed, faults = [], [], []
    for place, name in enumerate(names):
        series = source.iloc[:, place]
        try:
            arrays.append(_pandas_column(pa.chunked_array(_chunks(series))))
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
    return pa.table(arrays, names=names)


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
