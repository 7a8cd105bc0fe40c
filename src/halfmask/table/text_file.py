"""Text files: which encoding they are in and what stands between their fields."""

from __future__ import annotations

import codecs
import csv
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from halfmask.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

DELIMITERS = ",;\t|^~"
PACKED = (".gz", ".bz2", ".zst", ".lz4", ".br")  # endings of files that are unpacked
_SAMPLE = 1 << 16
_BLOCK = 1 << 22
_SHOWN = 200
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_FORMATS = {
    b"PK\x03\x04": "a zip or Excel file",
    b"SQLi": "an SQLite database",
    b"%PDF": "a PDF",
    b'{"': "a JSON file",
    b"{\n": "a JSON file",
    b"[{": "a JSON file",
    b"[\n": "a JSON file",
}


def file_named(name: str | os.PathLike[str]) -> Path:
    """The path of that name; a text that can be none is not repeated, it may be the data itself.

    Raises:
        InputError: the name holds line breaks or zero bytes, is an address, or too long.
    """
    text = os.fspath(name)
    if "://" in text:
        raise InputError(
            "The address of a database stands where a file is read: give a file, or a verb that "
            "counts in a database (assess, check, compare, frontier, discriminate, query)."
        )
    if any(mark in text for mark in "\r\n\0"):
        raise InputError(
            "The name of a file cannot hold line breaks: to read a text, give its bytes, such as"
            " text.encode()."
        )
    if any(len(part.encode(errors="replace")) > 255 for part in Path(text).parts):
        raise InputError(f"No file has a name of {len(text)} characters: give a shorter one.")
    return Path(text)


def shown(path: Path) -> str:
    """How a path is written in errors: the end of it, if it is long."""
    text = str(path)
    return text if len(text) <= _SHOWN else f"...{text[-_SHOWN:]}"


def open_stream(source: Path | bytes) -> pa.NativeFile:
    """Open the bytes of a file (decompressed by its ending) or of a text held in memory."""
    if isinstance(source, bytes):
        return pa.input_stream(pa.BufferReader(source))
    if not source.exists():
        raise InputError(f"File '{shown(source)}' does not exist.")
    if source.is_dir():
        raise InputError(f"'{shown(source)}' is a folder: give one file in it.")
    try:
        return pa.input_stream(str(source), compression="detect")
    except OSError as error:
        raise InputError(f"File '{shown(source)}' cannot be read: {_why(error)}.") from None


def _why(error: OSError) -> str:
    return error.strerror or "the file is damaged or may not be read"


def name_of(source: Path | bytes) -> str:
    """How a source is called in errors."""
    return "The input" if isinstance(source, bytes) else f"File '{shown(source)}'"


def blocks(source: Path | bytes) -> Iterator[bytes]:
    """The bytes of a source, piece by piece."""
    with open_stream(source) as stream:
        while True:
            try:
                block = stream.read(_BLOCK)
            except (OSError, pa.ArrowInvalid):
                raise InputError(f"{name_of(source)} is damaged: it cannot be unpacked.") from None
            if not block:
                return
            yield block


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
        named = not header or all(cell.strip() for cell in rows[0])
        if (same if named else same / 2, fields) > best:
            best, chosen = (same, fields), delimiter
    return chosen
