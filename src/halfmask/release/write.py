"""A published table as a file: the suffix says which kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from halfmask.errors import InputError
from halfmask.release.files import whole_file

if TYPE_CHECKING:
    from os import PathLike

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_KINDS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".feather", ".arrow")


def write_table(table: pa.Table, path: str | PathLike[str]) -> None:
    """Write ``table`` to ``path``, whole or not at all."""
    kind = table_kind(path)
    with whole_file(path) as temporary:
        if kind == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, temporary)
        elif kind in (".feather", ".arrow"):
            import pyarrow.feather as feather

            feather.write_feather(table, str(temporary))
        else:
            _write_text(table, temporary, kind)


def plain(table: pa.Table, but: frozenset[str] = frozenset()) -> pa.Table:
    """The table with values in place of dictionary codes, except in the columns ``but``.

    Text is held as dictionaries to save memory, which whoever gave plain text did not ask for.
    """
    columns = {
        name: column.cast(column.type.value_type)
        if pa.types.is_dictionary(column.type) and name not in but
        else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pa.table(columns)


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
            csv.write_csv(plain(table), stream, options)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(
                "A column's type cannot be written as text: write .parquet or .arrow instead."
            ) from error
