"""CSV and its relatives: every column as text first, typed by its distinct values afterwards."""

from __future__ import annotations

import csv
import mmap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from halfmask.errors import InputError
from halfmask.table import text_file
from halfmask.table.names import check_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TEXT = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a text file is written; ``blank`` lines stand above its header."""

    delimiter: str
    encoding: str
    missing: tuple[str, ...]
    blank: int = 0


def read_csv(
    source: Path | bytes,
    *,
    delimiter: str | None,
    encoding: str | None,
    missing: Sequence[str],
) -> pa.Table:
    """Read a text file with a header into dictionary-encoded text columns.

    Raises:
        InputError: no such file, no rows, unreadable bytes, ragged rows, or names missing or twice.
    """
    chosen = text_file.check_encoding(encoding) if encoding else text_file.detect_encoding(source)
    sample = text_file.read_sample(source, chosen)
    if not sample.strip():
        raise InputError(f"{text_file.name_of(source)} is empty.")
    if delimiter is not None and (
        len(delimiter) != 1 or delimiter in '\0"\r\n' or not delimiter.isascii()
    ):
        raise InputError("The delimiter must be one character of ASCII, such as ';' or a tab.")
    split = delimiter or text_file.detect_delimiter(sample, header=True)
    names = _header(source, sample, split)
    blank = next(n for n, line in enumerate(text_file.lines_of(sample)) if line.strip("\r\n"))
    dialect = Dialect(split, chosen, tuple(missing), blank)
    table = _read(source, dialect, names)
    if table.num_rows == 0:
        raise InputError(f"{text_file.name_of(source)} has a header but no rows.")
    return table


def _header(source: Path | bytes, sample: str, delimiter: str) -> list[str]:
    lines = (line for line in text_file.lines_of(sample) if line.strip("\r\n"))
    try:
        names = [name.strip() for name in next(csv.reader(lines, delimiter=delimiter))]
    except csv.Error:
        raise InputError(f"{text_file.name_of(source)} has a header that is no CSV.") from None
    check_names(names)
    return names


def _read(source: Path | bytes, dialect: Dialect, names: list[str]) -> pa.Table:
    ragged = 0

    def count(row: Any) -> str:  # noqa: ARG001 - Arrow's handler
        nonlocal ragged
        ragged += 1
        return "skip"

    table = _parse(source, dialect, names, count, quoted=_has_quotes(source))
    if ragged:
        raise InputError(
            f"{text_file.name_of(source)}: {ragged} row(s) do not have {len(names)} fields as the"
            f" header, first row {_first_ragged(source, dialect, names)}. Correct them, or give"
            " the delimiter."
        )
    return table


def _first_ragged(source: Path | bytes, dialect: Dialect, names: list[str]) -> int:
    """The number of the first ragged row (the header is 1); threads do not know it."""
    numbers: list[int] = []

    def note(row: Any) -> str:
        numbers.append(row.number)
        return "skip"

    _parse(source, dialect, names, note, quoted=True, threads=False)
    return min(numbers)


def _parse(
    source: Path | bytes,
    dialect: Dialect,
    names: list[str],
    handler: Any,
    *,
    quoted: bool,
    threads: bool = True,
) -> pa.Table:
    codec = "utf8" if dialect.encoding in ("utf-8", "utf-8-sig") else dialect.encoding
    read = arrow_csv.ReadOptions(
        use_threads=threads,
        encoding=codec,
        column_names=names,
        skip_rows=dialect.blank,
        block_size=1 << 22,
    )
    read.skip_rows_after_names = 1
    parse = arrow_csv.ParseOptions(
        delimiter=dialect.delimiter,
        newlines_in_values=quoted,
        invalid_row_handler=handler,
        ignore_empty_lines=len(names) > 1,
    )
    types: Mapping[str, pa.DataType] = dict.fromkeys(names, TEXT)
    convert = arrow_csv.ConvertOptions(
        column_types=types,
        null_values=list(dialect.missing),
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    try:
        with text_file.open_stream(source) as stream:
            return arrow_csv.read_csv(stream, read, parse, convert)
    except (pa.ArrowInvalid, UnicodeDecodeError, OSError) as error:
        raise _arrow_fault(source, dialect, str(error)) from None


def _arrow_fault(source: Path | bytes, dialect: Dialect, message: str) -> InputError:
    """Arrow's messages quote cells, so none of their text is passed on."""
    name = text_file.name_of(source)
    if "UTF8" in message or "codec" in message or "decode" in message:
        return text_file.unreadable(source, dialect.encoding)
    if "straddling" in message:
        return InputError(f"{name} has a row of more than 4 MB; is a quote left open?")
    if "Empty CSV" in message:
        return InputError(f"{name} has a header but no rows.")
    return InputError(f"{name} is not readable as CSV with delimiter {dialect.delimiter!r}.")


def _has_quotes(source: Path | bytes) -> bool:
    """Only where a quote occurs can a field hold a line end; else threads may split anywhere."""
    if isinstance(source, bytes):
        return b'"' in source
    if source.suffix.lower() in text_file.PACKED:
        return True
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text.find(b'"') >= 0
