"""Published rows as a frame of the library they came from, each value exactly what it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from halfmask.errors import EngineUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from halfmask.table.incoming import Incoming


def restored(table: pa.Table, given: Mapping[str, Incoming]) -> pa.Table:
    """The table with the columns of ``given`` as they came in, and plain values in the others.

    Text is held as dictionaries to save memory, which whoever gave plain text did not ask for.
    """
    columns = [
        given[name].restore(column) if name in given else _decoded(column)
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.table(columns, names=table.column_names)


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column


def pandas_frame(table: pa.Table, dtypes: Mapping[str, Any]) -> Any:
    """A pandas frame; columns of ``dtypes`` get these, the others what holds their values."""
    try:
        import pandas as pd
    except ImportError as error:
        raise EngineUnavailableError("pandas", "pip install pandas") from error
    columns = [
        _series(column, dtypes.get(name))
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame()
    frame.columns = pd.Index(table.column_names)
    return frame


def _series(column: pa.ChunkedArray, dtype: Any) -> Any:
    import pandas as pd

    if pa.types.is_run_end_encoded(column.type):
        column = pa.chunked_array([c.values.take(c.find_physical_indices()) for c in column.chunks])
    if dtype is None:
        dtype = _nullable(column)
    elif isinstance(dtype, pd.CategoricalDtype):
        return column.to_pandas()
    if hasattr(dtype, "__from_arrow__"):
        return pd.Series(dtype.__from_arrow__(column), dtype=dtype)
    series = column.to_pandas(integer_object_nulls=True)
    return series if dtype is None or series.dtype == dtype else series.astype(dtype)


def _nullable(column: pa.ChunkedArray) -> Any:
    """The type for whole numbers and truth values of which some are missing."""
    import pandas as pd

    if not column.null_count:
        return None
    if pa.types.is_boolean(column.type):
        return pd.BooleanDtype()
    if not pa.types.is_integer(column.type):
        return None
    sign = "Int" if pa.types.is_signed_integer(column.type) else "UInt"
    return pd.api.types.pandas_dtype(f"{sign}{column.type.bit_width}")


def polars_frame(table: pa.Table, dtypes: Mapping[str, Any]) -> Any:
    """A Polars frame; enumerations list the published values only, in their order."""
    try:
        import polars
    except ImportError as error:
        raise EngineUnavailableError("Polars", "pip install polars") from error
    enums = {}
    for name, dtype in dtypes.items():
        if isinstance(dtype, polars.Enum) and pa.types.is_dictionary(table[name].type):
            values = table[name].chunk(0).dictionary.cast(pa.string())
            enums[name] = polars.Enum(values.to_pylist())
    frame = polars.from_arrow(table)
    texts = [polars.col(name).cast(polars.String).cast(enum) for name, enum in enums.items()]
    return frame.with_columns(texts)  # type: ignore[union-attr]


def duckdb_relation(table: pa.Table) -> Any:
    """A DuckDB relation; it knows no half floats, and reads dictionaries as text."""
    try:
        import duckdb
    except ImportError as error:
        raise EngineUnavailableError("DuckDB", "pip install duckdb") from error
    wider = [pa.float32() if pa.types.is_float16(f.type) else f.type for f in table.schema]
    return duckdb.from_arrow(table.cast(pa.schema(zip(table.column_names, wider, strict=True))))
