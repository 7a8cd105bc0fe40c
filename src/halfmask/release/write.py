"""A published table as a file: the suffix says which kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError
from halfmask.release.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from os import PathLike

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_KINDS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".feather", ".arrow")


def write_table(
    table: pa.Table,
    path: str | PathLike[str],
    file: Callable[[str | PathLike[str]], AbstractContextManager[Path]] = whole_file,
) -> None:
    """Write ``table`` to ``path``, whole or not at all; no release goes to a ``private_file``."""
    kind = table_kind(path)
    table = _each(table, _without_runs)
    with file(path) as temporary:
        if kind == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, temporary)
        elif kind in (".feather", ".arrow"):
            import pyarrow.feather as feather

            feather.write_feather(table, str(temporary))
        else:
            _write_text(table, temporary, kind)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values in place of dictionary codes and views, which text files do not know."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


def _without_runs(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values in place of runs, which few readers know."""
    if not pa.types.is_run_end_encoded(column.type):
        return column
    return pa.chunked_array([pc.run_end_decode(c) for c in column.chunks], column.type.value_type)


def _each(table: pa.Table, change: Callable[[pa.ChunkedArray], pa.ChunkedArray]) -> pa.Table:
    return pa.table([change(column) for column in table.columns], names=table.column_names)


def table_kind(path: str | PathLike[str]) -> str:
    """The kind of table that the name of a file asks for."""
    name = Path(path).name.lower()
    for kind in sorted(_KINDS, key=len, reverse=True):
        if name.endswith(kind) and name != kind:
            return kind
    raise InputError(
        f"The file name {Path(path).name!r} does not say which kind to write: end it in one of "
        f"{', '.join(_KINDS)}."
    )


def report_kind(path: str | PathLike[str]) -> str:
    """The kind of report that the name of a file asks for."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".json", ".html", ".htm"):
        raise InputError(
            f"The report {Path(path).name!r} can be .json or .html: end its name in either."
        )
    return suffix


def _write_text(table: pa.Table, path: Path, kind: str) -> None:
    import pyarrow.csv as csv

    options = csv.WriteOptions(delimiter=_DELIMITERS[kind.removesuffix(".gz")])
    codec = "gzip" if kind.endswith(".gz") else None
    with pa.output_stream(str(path), compression=codec) as stream:
        try:
            csv.write_csv(_each(table, _plain), stream, options)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(
                "A column's type cannot be written as text: write .parquet or .arrow instead."
            ) from error
