"""How large a packed file becomes: a small upload may hold more than the memory of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, TooLargeError
from halfmask.table import text_file
from halfmask.table.normalize import require_flat
from halfmask.table.numbers import is_text
from halfmask.table.raw_rows import file_kind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BATCH = 1 << 16
_CODE = 4  # bytes of what stands for a text
_VIEW = 16  # bytes of what points to a text that several rows share


def require_unpacked(path: Path, limit: int) -> None:
    """Refuse a file that unpacks to more than ``limit`` bytes, before it is read as a whole.

    Raises:
        TooLargeError: it does; says what to do.
        InputError: it is damaged.
    """
    count = {"parquet": _parquet, "arrow": _arrow}.get(file_kind(path), _text)
    total = 0
    try:
        for size in count(path):
            total += size
            if total > limit:
                raise TooLargeError(
                    f"This file unpacks to more than {limit / 1e6:,.0f} MB: start halfmask serve "
                    "with a larger --unpacked-limit, or use the command line, where "
                    "--engine duckdb counts a file without reading it into memory."
                )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
        raise InputError(f"{text_file.name_of(path)} is damaged: it cannot be unpacked.") from None


def _text(path: Path) -> Iterator[int]:
    if path.suffix.lower() in text_file.PACKED:
        yield from map(len, text_file.blocks(path))
    else:
        yield path.stat().st_size


def _parquet(path: Path) -> Iterator[int]:
    """First what its pages declare; then, as equal values are stored once, what rows hold."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        groups = range(file.metadata.num_row_groups)
        declared = sum(file.metadata.row_group(i).total_byte_size for i in groups)
        require_flat(file.schema_arrow)  # one batch of lists can be larger than all memory
        texts = [field.name for field in file.schema_arrow if is_text(field.type)]
    yield declared
    size = 0
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        for batch in file.iter_batches(_BATCH):
            size += sum(map(_held, batch.columns))
            if size > declared:
                yield size - declared
                declared = size


def _arrow(path: Path) -> Iterator[int]:
    with pa.memory_map(str(path)) as file:
        try:
            reader = pa.ipc.open_file(file)
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        except pa.ArrowInvalid:
            file.seek(0)
            reader = pa.ipc.open_stream(file)
            batches = iter(reader)
        require_flat(reader.schema)
        for batch in batches:
            yield sum(map(_held, batch.columns))


def _held(column: pa.Array) -> int:
    """The bytes of a column's rows once each stands for itself.

    Equal values can be stored once (dictionaries, runs, views of one text), and nothing at all for
    a column without values: a few bytes are then millions of rows.
    """
    kind = column.type
    if pa.types.is_null(kind):
        return len(column) * _CODE
    if pa.types.is_dictionary(kind):
        return int(column.indices.nbytes) + _total(_sizes(column.dictionary).take(column.indices))
    if pa.types.is_run_end_encoded(kind):
        runs = np.diff(column.run_ends.to_numpy().astype(np.int64), prepend=0)
        each = _sizes(column.values).fill_null(0).to_numpy(zero_copy_only=False)
        return len(column) * _CODE + int(runs @ each)
    if pa.types.is_string_view(kind):
        return len(column) * _VIEW + _total(_sizes(column))
    return int(column.nbytes)


def _sizes(values: pa.Array) -> pa.Array:
    """The bytes of each value."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _sizes(values.dictionary).take(values.indices)
    if pa.types.is_string_view(kind):
        views = np.frombuffer(values.buffers()[1] or b"", np.int32)[:: _VIEW // 4]
        lengths = pa.array(views[values.offset :][: len(values)].astype(np.int64))
        return pc.if_else(values.is_valid(), lengths, 0)
    if is_text(kind):
        return pc.binary_length(values).cast(pa.int64())
    return pa.array(np.full(len(values), -(-int(values.nbytes) // max(len(values), 1))))


def _total(sizes: pa.Array) -> int:
    return int(pc.sum(sizes).as_py() or 0)
