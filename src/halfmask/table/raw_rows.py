"""The rows of a file or frame, before any schema."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from halfmask.errors import InputError
from halfmask.table import text_file
from halfmask.table.csv_file import read_csv
from halfmask.table.frames import from_frame
from halfmask.table.incoming import Incoming, incoming

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}


def raw_rows(
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
