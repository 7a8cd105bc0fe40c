"""Text files: which encoding they are in and what stands between their fields.

CSV and its relatives: every column as text first, typed by its distinct values afterwards.
"""

from __future__ import annotations

import codecs
import csv
import io
import lzma
import mmap
import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from halfmask.errors import InputError
from halfmask.table.columns import check_names, has_row_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


DELIMITERS = ",;\t|^~"
PACKED = (".gz", ".bz2", ".zst", ".lz4", ".br")  # endings of files that Arrow unpacks
_SAMPLE = 1 << 16  # bytes that the encoding and delimiter are guessed from
_SHOWN = 200  # characters of a name in an error
_BLOCK = 1 << 22  # bytes that are parsed at a time: the longest row
UNPACKING = (OSError, EOFError, pa.ArrowInvalid, lzma.LZMAError, zipfile.BadZipFile, zlib.error)


def file_named(name: str | os.PathLike[str]) -> Path:
    """The path of that name; a text that can be none is not repeated, it may be the data itself.

    Raises:
        InputError: the name holds line breaks or zero bytes, is an address, or too long.
    """
    text = os.fspath(name)
    if "://" in text:
        raise InputError(
            "The address of a database stands where a file is read: give a file, or a verb that "
            "counts in a database (anonymize, assess, check, compare, mask, query, tabulate ...)."
        )
    if any(mark in text for mark in "\r\n\0"):
        raise InputError(
            "The name of a file cannot hold line breaks or zero bytes: to read a text, give its"
            " bytes, such as text.encode()."
        )
    if any(len(part.encode(errors="replace")) > 255 for part in Path(text).parts):
        raise InputError(f"No file has a name of {len(text)} characters: give a shorter one.")
    return Path(text)


def path_text(path: Path) -> str:
    """How a path is written in errors: the end of it, if it is long."""
    text = str(path)
    return text if len(text) <= _SHOWN else f"...{text[-_SHOWN:]}"


def open_stream(source: Path | bytes) -> pa.NativeFile:
    """Open the bytes of a file or of a text held in memory, unpacked where they are packed."""
    require_file(source)
    packing = packing_of(source)
    place = pa.BufferReader(source) if isinstance(source, bytes) else str(source)
    try:
        if packing == "zip":
            return pa.PythonFile(open_member(source), mode="r")
        if packing == "xz":
            return pa.PythonFile(lzma.open(_handle(source)), mode="r")
        if packing is None and isinstance(source, bytes):
            return pa.input_stream(place)
        return pa.input_stream(place, compression=packing or "detect")
    except OSError as error:
        raise InputError(f"{name_of(source)} cannot be read: {_why(error)}.") from None


def require_file(source: Path | bytes) -> None:
    """Refuse the name of what is no file."""
    if isinstance(source, bytes):
        return
    if not source.exists():
        raise InputError(f"File '{path_text(source)}' does not exist.")
    if source.is_dir():
        raise InputError(f"'{path_text(source)}' is a folder: give one file in it.")


_PACKINGS = {  # the first bytes of packed files, whatever they are called
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xfd7zXZ\0": "xz",
    b"PK\x03\x04": "zip",
}


def packing_of(source: Path | bytes) -> str | None:
    """How a source is packed, by its first bytes; None: it is not."""
    start = first_bytes(source, 8)
    return next((name for magic, name in _PACKINGS.items() if start.startswith(magic)), None)


def is_packed(source: Path | bytes) -> bool:
    """Whether the text of a source is longer than its bytes."""
    named = isinstance(source, Path) and source.suffix.lower() in PACKED
    return named or packing_of(source) is not None


def first_bytes(source: Path | bytes, size: int) -> bytes:
    """The beginning of a source as it is, packed or not."""
    if isinstance(source, bytes):
        return source[:size]
    try:
        with source.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise InputError(f"File '{path_text(source)}' cannot be read: {_why(error)}.") from None


def _handle(source: Path | bytes) -> Any:
    return io.BytesIO(source) if isinstance(source, bytes) else str(source)


def open_zip(source: Path | bytes) -> zipfile.ZipFile:
    """Open a zip file, also one that holds a workbook."""
    try:
        return zipfile.ZipFile(_handle(source))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise InputError(
            f"{name_of(source)} is a damaged zip or Excel file: save it as CSV or Parquet."
        ) from None


def open_member(source: Path | bytes) -> Any:
    """Open the only file in a zip file.

    Raises:
        InputError: there are none or several, it is locked, or packed in an unknown way.
    """
    file = open_zip(source)
    inside = [
        one
        for one in file.infolist()
        if not one.is_dir() and not one.filename.startswith("__MACOSX/")
    ]
    if len(inside) != 1:
        raise InputError(
            f"{name_of(source)} holds {len(inside)} files: unpack it, or give a zip of one file."
        )
    if inside[0].flag_bits & 1:
        raise InputError(f"{name_of(source)} is locked with a password: unpack it first.")
    try:
        return file.open(inside[0])
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError):
        raise InputError(f"{name_of(source)} cannot be unpacked.") from None


def _why(error: OSError) -> str:
    return error.strerror or "the file is damaged or may not be read"


def name_of(source: Path | bytes) -> str:
    """How a source is called in errors."""
    return "The input" if isinstance(source, bytes) else f"File '{path_text(source)}'"


def blocks(source: Path | bytes) -> Iterator[bytes]:
    """The bytes of a source, piece by piece."""
    with open_stream(source) as stream:
        while True:
            try:
                block = stream.read(_BLOCK)
            except UNPACKING:
                raise InputError(f"{name_of(source)} is damaged: it cannot be unpacked.") from None
            if not block:
                return
            yield block


# UTF-32 before UTF-16, whose mark is the beginning of its own.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def detect_encoding(source: Path | bytes) -> str:
    """UTF-8 or what a byte order mark says; else Latin-1, or Windows-1252 where only that fits."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    utf8, controls, first = True, False, True
    for block in blocks(source):
        if first:
            _refuse_formats(source, block)
            for mark, name in _BOMS:
                if block.startswith(mark):
                    return name
            first = False
        if b"\0" in block:
            raise InputError(f"{name_of(source)} is not text: it holds zero bytes.")
        if utf8 and (decoder.getstate()[0] or not block.isascii()):
            utf8 = _decodes(decoder, block)
        if not utf8:
            controls = controls or any(byte in block for byte in range(0x80, 0xA0))
    if utf8 and _decodes(decoder, b"", final=True):
        return "utf-8"
    if not controls and utf8:
        controls = any(byte in block for block in blocks(source) for byte in range(0x80, 0xA0))
    return "cp1252" if controls else "latin-1"


def _decodes(decoder: codecs.IncrementalDecoder, block: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(block, final=final)
    except UnicodeDecodeError:
        return False
    return True


_FORMATS = {
    b"%PDF": "a PDF",
    b'{"': "a JSON file",
    b"{\n": "a JSON file",
    b"[{": "a JSON file",
    b"[\n": "a JSON file",
}


def _refuse_formats(source: Path | bytes, block: bytes) -> None:
    for magic, what in _FORMATS.items():
        if block.startswith(magic):
            raise InputError(
                f"{name_of(source)} is {what}, not a table: save it as CSV or Parquet."
            )


def check_encoding(encoding: str) -> str:
    """The codec's own name, or an error that says it is unknown."""
    try:
        codec = codecs.lookup(encoding)
        "a".encode(codec.name)  # refused where it is no encoding of text, such as rot13
    except (LookupError, UnicodeError):
        raise InputError(f"Encoding {encoding!r} is unknown: give utf-8 or latin-1.") from None
    return codec.name


def unreadable(source: Path | bytes, encoding: str) -> InputError:
    """The error for bytes that the encoding does not allow."""
    return InputError(
        f"{name_of(source)} cannot be read as {encoding}: give the right encoding, such as"
        " encoding='latin-1'."
    )


def read_text(source: Path | bytes, encoding: str | None = None) -> str:
    """The whole text of a small file."""
    name = check_encoding(encoding) if encoding else detect_encoding(source)
    return _decode(source, b"".join(blocks(source)), name)


def _decode(source: Path | bytes, data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise unreadable(source, encoding) from None


def read_sample(source: Path | bytes, encoding: str) -> str:
    """The beginning of a text: some lines, the last of which may be cut."""
    with open_stream(source) as stream:
        data = stream.read(_SAMPLE)
        while data.count(b"\n") < 2 and (more := stream.read(len(data))):
            data += more  # a header of very many columns
        more = stream.read(1)
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        text = decoder.decode(data, final=not more).removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise unreadable(source, encoding) from None
    return text


def lines_of(text: str) -> list[str]:
    """The lines as CSV knows them; other line separators of Unicode are characters like others."""
    return list(io.StringIO(text, newline=""))


def detect_delimiter(sample: str, *, header: bool = False) -> str:
    """The delimiter that gives most lines the first line's number of fields, then most fields."""
    lines = lines_of(sample)
    best, chosen = (0.0, 1), ","
    for delimiter in DELIMITERS:
        try:
            rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            continue
        if not rows or len(rows[0]) < 2:
            continue
        fields = len(rows[0])
        body = rows[1:-1] or rows[1:]  # the last line of a sample may be cut
        same = sum(len(row) == fields for row in body) / len(body) if body else 1.0
        named = not header or all(cell.strip() for cell in rows[0][1:])
        if (same if named else same / 2, fields) > best:
            best, chosen = (same, fields), delimiter
    return chosen


TEXT = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a text file is written; ``blank`` lines stand above its header."""

    delimiter: str
    encoding: str
    missing: tuple[str, ...]
    blank: int = 0


DELIMITER = b"delimiter"  # the metadata that says what stood between the fields
WITHOUT_ROW_NAMES = b"without row names"  # and that a first column without a name was left out


def read_csv(
    source: Path | bytes,
    *,
    delimiter: str | None,
    encoding: str | None,
    missing: Sequence[str],
) -> pa.Table:
    """Read a text file with a header into dictionary-encoded text columns.

    A first column without a name, of row numbers or row names, is left out; the metadata say so.

    Raises:
        InputError: no such file, no rows, unreadable bytes, ragged rows, or names missing or twice.
    """
    chosen = check_encoding(encoding) if encoding else detect_encoding(source)
    sample = read_sample(source, chosen)
    if not sample.strip():
        raise InputError(f"{name_of(source)} is empty.")
    if delimiter is not None and (
        len(delimiter) != 1 or delimiter in '\0"\r\n' or not delimiter.isascii()
    ):
        raise InputError("The delimiter must be one character of ASCII, such as ';' or a tab.")
    split = delimiter or detect_delimiter(sample, header=True)
    names = _header(source, sample, split)
    blank = next(n for n, line in enumerate(lines_of(sample)) if line.strip("\r\n"))
    dialect = Dialect(split, chosen, tuple(missing), blank)
    table = _read(source, dialect, names)
    if table.num_rows == 0:
        raise InputError(f"{name_of(source)} has a header but no rows.")
    known = {DELIMITER: split, **({WITHOUT_ROW_NAMES: ""} if has_row_names(names) else {})}
    return table.replace_schema_metadata(known)


def has_nameless_first(source: Path, delimiter: str | None, encoding: str | None) -> bool:
    """Whether the header of a text file has no name for the first of several columns."""
    chosen = check_encoding(encoding) if encoding else detect_encoding(source)
    sample = read_sample(source, chosen)
    if not sample.strip():
        return False
    split = delimiter or detect_delimiter(sample, header=True)
    return has_row_names(_header(source, sample, split))


def _header(source: Path | bytes, sample: str, delimiter: str) -> list[str]:
    lines = (line for line in lines_of(sample) if line.strip("\r\n"))
    try:
        names = [name.strip() for name in next(csv.reader(lines, delimiter=delimiter))]
    except csv.Error:
        raise InputError(f"{name_of(source)} has a header that is no CSV.") from None
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
            f"{name_of(source)}: {ragged} row(s) do not have {len(names)} fields as the"
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
        block_size=_BLOCK,
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
        include_columns=names[1:] if has_row_names(names) else names,
        null_values=list(dialect.missing),
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    try:
        with open_stream(source) as stream:
            return arrow_csv.read_csv(stream, read, parse, convert)
    except (UnicodeDecodeError, *UNPACKING) as error:
        raise _arrow_fault(source, dialect, str(error)) from None


_NO_TEXT = (  # what a name may promise that is known by its first bytes
    ".xlsx", ".xls", ".ods", ".dta", ".sav", ".por", ".sas7bdat", ".xpt", ".sqlite", ".parquet",
    ".feather", ".arrow", ".zip", ".xz",
)  # fmt: skip


def _arrow_fault(source: Path | bytes, dialect: Dialect, message: str) -> InputError:
    """Arrow's messages quote cells, so none of their text is passed on."""
    name = name_of(source)
    if isinstance(source, Path) and source.suffix.lower() in (*PACKED, *_NO_TEXT):
        suffix = source.suffix.lower()
        return InputError(f"{name} is damaged or no {suffix} file: save it anew, or as .csv.")
    if "UTF8" in message or "codec" in message or "decode" in message:
        return unreadable(source, dialect.encoding)
    if "straddling" in message and sum(map(len, blocks(source))) > _BLOCK:
        return InputError(f"{name} has a row of more than 4 MB; is a quote left open?")
    if "Empty CSV" in message or "straddling" in message:  # a header without a line end
        return InputError(f"{name} has a header but no rows.")
    return InputError(f"{name} is not readable as CSV with delimiter {dialect.delimiter!r}.")


def _has_quotes(source: Path | bytes) -> bool:
    """Only where a quote occurs can a field hold a line end; else threads may split anywhere."""
    if isinstance(source, bytes):
        return b'"' in source
    if is_packed(source):
        return True
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text.find(b'"') >= 0
