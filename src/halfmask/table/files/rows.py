"""Arrow data of any origin in the few types that the rest of halfmask knows.

What each column was when it came in, so that what nobody touched can go back the same.

Frames of other libraries as Arrow tables; none of these libraries is imported by us.

The rows of a file or frame, before any schema.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, ParameterError
from halfmask.table.columns import check_names, has_row_names
from halfmask.table.files import formats, text_file
from halfmask.table.files.text_file import read_csv
from halfmask.table.moments import out_of_calendar, zone_known
from halfmask.table.values import dictionary_of, is_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


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


_OWN = "an interval, or a type or collation of the database's own"


def require_flat(schema: pa.Schema) -> None:
    """Refuse columns whose type can not be grouped and written."""
    faults = [
        f"column '{field.name}' ({_OWN if pa.types.is_interval(field.type) else field.type})"
        for field in schema
        if not _flat(field.type)
    ]
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
    # A dictionary from outside may hold values of rows that are not here, or one value twice.
    used = len(pc.unique(codes.drop_null()))
    if used < len(texts) or pc.count_distinct(texts).as_py() < len(texts):
        return pa.chunked_array([pc.take(texts, codes).dictionary_encode()])
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, texts)])


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """NaN is missing, and zero has one sign."""
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    zero = pa.scalar(0.0, column.type)
    column = pc.add(column, zero)  # -0.0 + 0.0 is 0.0; all else stays
    empty = pa.scalar(None, column.type)
    return pc.if_else(pc.is_nan(column), empty, column)


@dataclass(frozen=True, slots=True, eq=False)
class Incoming:
    """The type that a column had outside.

    Attributes:
        type: the Arrow type.
        order: the values of an ordered dictionary, lowest first.
        dtype: the type in the frame's own library, where it says more than Arrow's.
        label: what the file says of it beside its name.
        form: how a text file wrote its numbers (``","``: a decimal comma) or dates
            (``"%d.%m.%Y"``); empty: as everybody does.
        delimiter: what stood between the fields of that file.
        declared: whether the schema says that form, whatever the rows are.
    """

    type: pa.DataType
    order: pa.Array | None = field(default=None, repr=False)
    dtype: Any = None
    label: str = ""
    form: str = ""
    delimiter: str = ","
    declared: bool = False

    @property
    def text(self) -> bool:
        """Whether it was plain text, so that labels are of the same type."""
        return is_text(self.type)

    def restore(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """The values of ``column`` in the incoming type; as they are where it cannot hold them.

        A dictionary holds the column's own values only: others are of rows that did not leave.
        """
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            return self._cast(column)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return column

    def _cast(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        if pa.types.is_null(self.type) and column.null_count == len(column):
            return pa.chunked_array([pa.nulls(len(column))])
        if pa.types.is_run_end_encoded(self.type):
            values = column.cast(self.type.value_type)
            ends = self.type.run_end_type
            return pa.chunked_array(
                [pc.run_end_encode(c, run_end_type=ends) for c in values.chunks]
            )
        if not pa.types.is_dictionary(self.type):
            return column.cast(self.type)
        present = pc.unique(column.drop_null())
        if self.order is None:
            values = present.take(pc.sort_indices(present))
        else:
            known = self.order.cast(present.type)
            values = known.filter(pc.is_in(known, value_set=present))
        codes = pc.index_in(column.combine_chunks(), value_set=values)
        if isinstance(codes, pa.ChunkedArray):
            codes = codes.combine_chunks()
        array = pa.DictionaryArray.from_arrays(
            codes.cast(self.type.index_type),
            values.cast(self.type.value_type),
            ordered=self.type.ordered,
        )
        return pa.chunked_array([array])


def incoming_types(arrow: pa.Table, dtypes: Mapping[str, Any] | None = None) -> dict[str, Incoming]:
    """What the columns of ``arrow`` are, with the types of the frame they come from."""
    return {
        field.name: Incoming(
            column.type, _order(column), (dtypes or {}).get(field.name), _label(field)
        )
        for field, column in zip(arrow.schema, arrow.columns, strict=True)
    }


def _label(field: pa.Field) -> str:
    said = (field.metadata or {}).get(formats.LABEL.encode(), b"")
    return str(said.decode("utf-8", "replace"))


def _order(column: pa.ChunkedArray) -> pa.Array | None:
    if not pa.types.is_dictionary(column.type) or not column.type.ordered:
        return None
    values = dictionary_of(column).dictionary
    return values.cast(pa.string()) if is_text(values.type) else values


def from_frame(source: Any) -> tuple[pa.Table, str, dict[str, Incoming]]:
    """The rows of a frame, which kind of frame it is, and what its columns were."""
    library = type(source).__module__.partition(".")[0]
    name = type(source).__name__
    if library == "pandas" and name == "DataFrame":
        return _from_pandas(source)
    if library == "polars":
        return _from_polars(source, name)
    if library == "pyspark":
        arrow = _from_spark(source)
        return arrow, "arrow", incoming_types(arrow)
    origin = "duckdb" if library in ("duckdb", "_duckdb") else "arrow"
    arrow = _from_arrow(source)
    return arrow, origin, incoming_types(arrow)


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


def _from_spark(source: Any) -> pa.Table:
    try:
        return source.toArrow()  # by SQL alone: its stream would need Python on the workers
    except Exception as error:  # noqa: BLE001 - Spark's errors are many, and quote cells
        raise _failure(source, error) from None


def _from_columns(source: Mapping[Any, Any]) -> pa.Table:
    try:
        found = pa.table(dict(source))
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(
            "The mapping is no table: give one list of values per column name, all of one length"
            " and each of one kind."
        ) from None
    for place, values in enumerate(source.values()):
        if not isinstance(values, pa.Array | pa.ChunkedArray):
            name, column = found.field(place).name, found.column(place)
            found = found.set_column(place, name, _as_declared(column))
    return found


def _from_stream(source: Any) -> pa.Table:
    try:
        return pa.RecordBatchReader.from_stream(source).read_all()
    except Exception as error:  # noqa: BLE001 - each library has its own, and they quote cells
        raise _failure(source, error) from None


def _failure(source: object, error: Exception) -> InputError:
    return InputError(
        f"The {type(source).__name__} gave no rows: its library raised {type(error).__name__}."
        " Does it work on its own?"
    )


def _from_polars(source: Any, name: str) -> tuple[pa.Table, str, dict[str, Incoming]]:
    if name == "LazyFrame":
        try:
            source = source.collect()
        except Exception as error:  # noqa: BLE001 - Polars quotes cells in its messages
            raise _failure(source, error) from None
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
    given = incoming_types(arrow, source.schema)
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
        return _failure(source, error)
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
    given = incoming_types(pa.table(arrays, names=names), dtypes)
    return pa.table([_pandas_column(array) for array in arrays], names=names), "pandas", given


def _chunks(series: Any) -> list[pa.Array]:
    array = pa.Array.from_pandas(series)
    chunks = list(array.chunks) if isinstance(array, pa.ChunkedArray) else [array]
    return [_as_declared(chunk) for chunk in chunks] if series.dtype == object else chunks


def _as_declared(found: Any) -> Any:
    """Decimals of which no type was declared, as doubles.

    Arrow counts the digits of all values: the type would tell of the longest one, whoever holds it.
    """
    return found.cast(pa.float64()) if pa.types.is_decimal(found.type) else found


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


_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}


def raw_rows(
    source: Any,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    missing: Sequence[str] | None = None,
    table: str | None = None,
) -> tuple[pa.Table, str, dict[str, Incoming]]:
    """The rows of a source, what kind it is, and what its columns were.

    ``table`` names a sheet of a workbook, or a table of a database file. A first column without a
    name is left out, and the metadata say so (``text_file.WITHOUT_ROW_NAMES``).
    """
    arrow, origin, given = _all_columns(
        source, delimiter=delimiter, encoding=encoding, missing=missing, table=table
    )
    if not has_row_names(arrow.column_names):
        return arrow, origin, given
    rest = arrow.select(range(1, arrow.num_columns))
    rest = rest.replace_schema_metadata({text_file.WITHOUT_ROW_NAMES: ""})
    return rest, origin, {name: was for name, was in given.items() if name.strip()}


def _all_columns(
    source: Any,
    *,
    delimiter: str | None,
    encoding: str | None,
    missing: Sequence[str] | None,
    table: str | None,
) -> tuple[pa.Table, str, dict[str, Incoming]]:
    if isinstance(source, str | os.PathLike):
        path = text_file.file_named(source)
        pipe = path.exists() and not path.is_file() and not path.is_dir()
        place: Path | bytes = path.read_bytes() if pipe else path  # a pipe is read only once
    elif isinstance(source, bytes) or (hasattr(source, "read") and not _is_frame(source)):
        place = source if isinstance(source, bytes) else _content(source)
    else:
        if table is not None:
            raise _no_tables(table)
        return from_frame(source)
    kind = file_kind(place)
    if kind in formats.ORIGINS:
        arrow = formats.read_format(place, kind, table)
        return arrow, formats.ORIGINS[kind], incoming_types(arrow)
    if table is not None:
        raise _no_tables(table)
    if kind in ("parquet", "arrow"):
        arrow = _arrow_file(place, kind)
        return arrow, kind, incoming_types(arrow)
    texts = ("",) if missing is None else tuple(missing)
    return read_csv(place, delimiter=delimiter, encoding=encoding, missing=texts), "csv", {}


def _no_tables(table: str) -> ParameterError:
    return ParameterError("table", table, "nothing: only databases and workbooks have tables")


def _is_frame(source: Any) -> bool:
    """Whether something has an attribute for each of its columns, one of them called ``read``."""
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "createOrReplaceTempView")


def _content(source: Any) -> bytes:
    data = source.read()
    return data.encode() if isinstance(data, str) else bytes(data)


def file_kind(place: Path | bytes) -> str:
    """parquet, arrow, csv or a key of ``formats.ORIGINS``: by the first bytes, not the name."""
    text_file.require_file(place)
    known = formats.format_of(place)
    if known is not None:
        return known
    with text_file.open_stream(place) as stream:
        try:
            start = stream.read(512)
        except text_file.UNPACKING:
            raise InputError(f"{text_file.name_of(place)} cannot be unpacked.") from None
    kind = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), "csv")
    kind = "arrow" if start[:4] == b"\xff\xff\xff\xff" else kind
    packed = text_file.packing_of(place) is not None
    nested = kind != "csv" or text_file.packing_of(start) or formats.format_of(start)
    if packed and nested:
        raise InputError(
            f"{text_file.name_of(place)} packs a file that is no text: unpack it, and give that."
        )
    return kind


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
