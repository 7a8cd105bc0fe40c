"""Files of other programs: Excel workbooks, Stata, SPSS and SAS files, SQLite databases.

Each is known by its first bytes. What it declares is kept: value labels become the texts, declared
missing codes are missing, dates are dates.
"""

from __future__ import annotations

import datetime
import io
import re
import sqlite3
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pyarrow as pa

from halfmask.errors import EngineUnavailableError, InputError
from halfmask.table.files.text_file import first_bytes, name_of, open_zip
from halfmask.table.hierarchy import canonical
from halfmask.table.moments import serial_moments

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Iterator, Mapping, Sequence

LABEL = "label"  # what a file says of a column beside its name
ORIGINS = {
    "xlsx": "excel", "xls": "excel", "ods": "excel", "dta": "stata", "sav": "spss", "por": "spss",
    "sas7bdat": "sas", "xpt": "sas", "sqlite": "sqlite",
}  # fmt: skip
MOST_BYTES = 2 << 30  # that a workbook unpacks to
MOST_CELLS = 50_000_000  # of one sheet: a million rows of 50 columns

_SAS = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
_MAGIC = {
    b"SQLite format 3\0": "sqlite",
    b"<stata_dta>": "dta",
    b"$FL2": "sav",
    b"$FL3": "sav",
    _SAS: "sas7bdat",
    b"HEADER RECORD*******LIB": "xpt",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "xls",
}
_OLD_STATA = re.compile(rb"[\x69-\x73][\x01\x02]\x01\x00")  # format, byte order, file type, unused
_READERS = {
    "dta": "read_dta", "sav": "read_sav", "por": "read_por", "sas7bdat": "read_sas7bdat",
    "xpt": "read_xport",
}  # fmt: skip
_ERRORS = ("#N/A", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!")


def format_of(source: Path | bytes) -> str | None:
    """The kind of another program's file, by its first bytes; None: it is none of these."""
    start = first_bytes(source, 512)
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            return kind
    if _OLD_STATA.match(start):
        return "dta"
    if b"SPSS PORT FILE" in start:
        return "por"
    return _workbook_kind(source) if start.startswith(b"PK\x03\x04") else None


def _workbook_kind(source: Path | bytes) -> str | None:
    with open_zip(source) as file:
        names = set(file.namelist())
        if "xl/workbook.xml" in names:
            return "xlsx"
        if "xl/workbook.bin" in names:
            raise InputError(f"{name_of(source)} is a binary workbook (.xlsb): save it as .xlsx.")
        return "ods" if {"mimetype", "content.xml"} <= names else None


def read_format(source: Path | bytes, kind: str, table: str | None = None) -> pa.Table:
    """Read all rows of a file of ``kind``; ``table`` names a sheet, or a table of a database.

    Raises:
        InputError: the file is damaged or too large, or ``table`` is missing or not in it.
        EngineUnavailableError: the package that reads it is not installed.
    """
    if kind in _READERS:
        return _read_statistics(source, kind)
    return _read_sqlite(source, table) if kind == "sqlite" else _read_sheet(source, kind, table)


def unpacked_sizes(source: Path, kind: str) -> Iterator[int]:
    """How many bytes a file of ``kind`` unpacks to, piece by piece."""
    if kind in ("xlsx", "ods"):
        with open_zip(source) as file:
            for member in file.infolist():
                yield from map(len, _inflate(source, file, member))
    elif kind in _READERS:
        _, about = _call_reader(source, kind, metadataonly=True)
        width = sum(about.variable_storage_width.values()) or 8 * about.number_columns
        yield max(int(about.number_rows or 0) * width, source.stat().st_size)
    else:
        yield source.stat().st_size


def _damage(source: Path | bytes, kind: str) -> InputError:
    program = {"stata": "Stata", "spss": "SPSS", "sas": "SAS", "sqlite": "SQLite"}
    what = program.get(ORIGINS[kind], "Excel")
    return InputError(
        f"{name_of(source)} is a damaged or locked {what} file: open it in its own program and "
        "save it again, or as CSV."
    )


def _choose(source: Path | bytes, names: Sequence[str], wanted: str | None, what: str) -> str:
    """The sheet or table that was named, or the only one."""
    listed = ", ".join(repr(name) for name in names[:20])
    if wanted is not None:
        if wanted not in names:
            raise InputError(
                f"{name_of(source)} has no {what} of that name: name one of {listed or 'none'}."
            )
        return wanted
    if len(names) != 1:
        raise InputError(
            f"{name_of(source)} has {len(names)} {what}s: name one with table= (--table)"
            f"{f', one of {listed}' if names else ''}."
        )
    return names[0]


# Statistics programs


def _read_statistics(source: Path | bytes, kind: str) -> pa.Table:
    columns, about = _call_reader(source, kind)
    labels: Mapping[str, Mapping[Any, str]] = about.variable_value_labels or {}
    arrays = []
    for name, values in columns.items():
        labelled = _spell_labels(values, labels.get(name) or {})
        if labelled is None:
            blank = [None if isinstance(v, str) and not v.strip() else v for v in values]
            labelled = _array(source, kind, blank)
        arrays.append(labelled)
    said: Mapping[str, str | None] = about.column_names_to_labels or {}
    fields = [
        pa.field(name, array.type, metadata={LABEL: said[name]} if said.get(name) else None)
        for name, array in zip(columns, arrays, strict=True)
    ]
    return pa.table(arrays, schema=pa.schema(fields))


def _call_reader(source: Path | bytes, kind: str, **how: bool) -> tuple[dict[str, list[Any]], Any]:
    try:
        import pyreadstat
    except ImportError:
        raise EngineUnavailableError("pyreadstat", 'pip install "halfmask[stats]"') from None
    if isinstance(source, bytes):
        with tempfile.TemporaryDirectory(prefix="halfmask-") as folder:
            place = Path(folder) / f"rows.{kind}"
            place.touch(mode=0o600)
            place.write_bytes(source)
            return _call_reader(place, kind, **how)
    try:
        reader = getattr(pyreadstat, _READERS[kind])
        columns, about = reader(str(source), output_format="dict", **how)
    except Exception:  # noqa: BLE001 - its errors are of many kinds, and some quote cells
        raise _damage(source, kind) from None
    return columns, about


def _spell_labels(values: list[Any], labels: Mapping[Any, str]) -> pa.Array | None:
    """The column's labels in the order of their codes, where every value it holds has one."""
    held = {value for value in values if value is not None and value != ""}
    if not labels or not held <= set(labels):
        return None
    codes = sorted(labels)
    spelled = [labels[code] for code in codes]
    texts = [
        f"{text} ({canonical(code)})" if spelled.count(text) > 1 else text
        for code, text in zip(codes, spelled, strict=True)
    ]
    place = {code: rank for rank, code in enumerate(codes)}
    indices = pa.array([place.get(value) for value in values], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts, pa.string()), ordered=True)


# Workbooks


def _read_sheet(source: Path | bytes, kind: str, table: str | None) -> pa.Table:
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise EngineUnavailableError("python-calamine", 'pip install "halfmask[excel]"') from None
    _require_small(source, kind)
    try:
        content = source if isinstance(source, bytes) else source.read_bytes()
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(content))
        names = list(workbook.sheet_names)
        if table is None and len(names) > 1:
            names = [name for name in names if workbook.get_sheet_by_name(name).height]
    except Exception:  # noqa: BLE001 - its errors are of many kinds, and some quote cells
        raise _damage(source, kind) from None
    chosen = _choose(source, names, table, "sheet")
    try:
        rows = workbook.get_sheet_by_name(chosen).to_python()
    except Exception:  # noqa: BLE001
        raise _damage(source, kind) from None
    return _sheet_table(source, kind, rows)


def _sheet_table(source: Path | bytes, kind: str, rows: list[list[Any]]) -> pa.Table:
    full = [row for row in rows if any(cell != "" for cell in row)]
    if not full:
        raise InputError(f"{name_of(source)} is empty.")
    names = [canonical(cell).strip() for cell in full[0]]
    columns = [list(column) for column in zip(*full[1:], strict=True)] or [[] for _ in names]
    kept = [i for i, name in enumerate(names) if name or any(cell != "" for cell in columns[i])]
    arrays = [_array(source, kind, [_cell(one) for one in columns[i]]) for i in kept]
    return pa.table(arrays, names=[names[i] for i in kept])


def _cell(value: Any) -> Any:
    """A cell's value; empty ones and those of failed formulas are missing."""
    if isinstance(value, str):
        return None if value == "" or value in _ERRORS else value
    return canonical(value) if isinstance(value, datetime.timedelta) else value


def _inflate(
    source: Path | bytes, file: zipfile.ZipFile, member: zipfile.ZipInfo
) -> Iterator[bytes]:
    """The unpacked bytes of a member, to their true end: its declared size may be a lie."""
    stream: Any = file.fp
    stream.seek(member.header_offset)
    head = stream.read(30)
    stream.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1)
    left = member.compress_size
    unpack = zlib.decompressobj(-15) if member.compress_type == 8 else None
    if unpack is None and member.compress_type != 0:
        raise InputError(
            f"{name_of(source)} is packed in an unknown way: save it again, or as CSV."
        )
    while left > 0 and (block := stream.read(min(left, 1 << 16))):
        left -= len(block)
        while unpack is not None and block and not unpack.eof:
            yield unpack.decompress(block, 1 << 22)
            block = unpack.unconsumed_tail
        if unpack is None:
            yield block


def _require_small(source: Path | bytes, kind: str) -> None:
    """Refuse a workbook that unpacks to more than memory should hold, before it is read.

    One cell in the last corner of a sheet makes a table of billions of cells.
    """
    if kind == "xls":  # not packed, and of at most 65,536 rows of 256 columns
        return
    total = 0
    with open_zip(source) as file:
        for member in file.infolist():
            area = _Area()
            sheet = kind == "xlsx" and member.filename.startswith("xl/worksheets/")
            body = kind == "ods" and member.filename == "content.xml"
            try:
                for block in _inflate(source, file, member):
                    total += len(block)
                    area.see(block) if sheet else None
                    area.feed(block) if body else None
                    if total > MOST_BYTES or area.cells > MOST_CELLS:
                        raise _too_large(source)
            except (zlib.error, OSError, ET.ParseError):
                raise _damage(source, kind) from None


def _too_large(source: Path | bytes) -> InputError:
    return InputError(
        f"{name_of(source)} unpacks to more than {MOST_BYTES / 1e9:,.0f} GB or {MOST_CELLS:,} "
        "cells: delete stray cells far from the table, or save it as CSV or Parquet."
    )


class _Area:
    """How many cells the smallest rectangle has that holds all values of a sheet."""

    _PLACE = re.compile(rb' r="([A-Z]{1,3})([0-9]{1,7})"')

    def __init__(self) -> None:
        self._width, self._height, self._rest = 0, 0, b""
        self._parser: Any = None
        self._row = self._column = self._last = 0

    @property
    def cells(self) -> int:
        """Width times height."""
        return self._width * self._height

    def see(self, block: bytes) -> None:
        """Look at a piece of a sheet of .xlsx, where each cell tells its place."""
        block = self._rest + block
        for letters, row in set(self._PLACE.findall(block)):
            column = 0
            for letter in letters:
                column = column * 26 + letter - 64
            self._width, self._height = max(self._width, column), max(self._height, int(row))
        self._rest = block[-16:]

    def feed(self, block: bytes) -> None:
        """Look at a piece of .ods, where repeated rows and cells are written once."""
        if self._parser is None:
            self._parser = ET.XMLPullParser(("start", "end"))
        self._parser.feed(block)
        for event, element in self._parser.read_events():
            space, _, tag = element.tag.rpartition("}")
            if event == "start" and tag == "table":
                self._row = 0
            elif event == "start" and tag == "table-row":
                self._column = self._last = 0
            elif event == "end" and tag in ("table-cell", "covered-table-cell"):
                self._column += _times(element, f"{space}}}number-columns-repeated")
                if any(name.endswith("}value-type") for name in element.keys()):  # noqa: SIM118
                    self._last = self._column
            elif event == "end" and tag == "table-row":
                self._end_row(_times(element, f"{space}}}number-rows-repeated"))
                element.clear()

    def _end_row(self, times: int) -> None:
        self._row += times
        if self._last:
            self._width = max(self._width, self._last)
            self._height = max(self._height, self._row)


def _times(element: ET.Element, name: str) -> int:
    text = element.get(name, "1")
    return int(text) if text.isdigit() and len(text) < 10 else MOST_CELLS + 1


# Databases


def _read_sqlite(source: Path | bytes, table: str | None) -> pa.Table:
    connection = sqlite3.connect(":memory:")
    try:
        if isinstance(source, bytes):
            connection.deserialize(source)
        else:
            connection.close()
            place = quote(str(source.resolve()))
            connection = sqlite3.connect(f"file:{place}?mode=ro", uri=True)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        listed = connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
            " AND name NOT LIKE 'sqlite^_%' ESCAPE '^' ORDER BY name"
        )
        chosen = _choose(source, [name for (name,) in listed], table, "table")
        quoted = chosen.replace('"', '""')
        cursor = connection.execute(f'SELECT * FROM "{quoted}"')  # noqa: S608 - quoted, and listed
        names = [column[0] for column in cursor.description]
        columns = [list(column) for column in zip(*cursor, strict=True)] or [[] for _ in names]
    except sqlite3.Error:
        raise _damage(source, "sqlite") from None
    finally:
        connection.close()
    arrays = [_array(source, "sqlite", values) for values in columns]
    return pa.table(arrays, names=names)


# Values of any kind as one column


def _array(source: Path | bytes, kind: str, values: list[Any]) -> pa.Array:
    """A column of one type; values of several become texts, whole numbers are whole."""
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return pa.nulls(len(values), pa.string())
    if kinds <= {int, float}:
        return _number_array(values)
    moments = {datetime.date, datetime.datetime}
    if kinds <= moments | ({int, float} if kind in ("xlsx", "xls", "ods") else set()):
        return _moment_array(values)
    if len(kinds) > 1:
        values = [None if value is None else canonical(value) for value in values]
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, ValueError):
        raise _damage(source, kind) from None


def _number_array(values: list[Any]) -> pa.Array:
    held = [value for value in values if value is not None and value == value]
    if all(abs(value) < 2**53 and value == int(value) for value in held if abs(value) < 2**1000):
        try:
            return pa.array([None if v is None or v != v else int(v) for v in values], pa.int64())
        except OverflowError:
            pass
    return pa.array([None if v is None else float(v) for v in values], pa.float64())


def _moment_array(values: list[Any]) -> pa.Array:
    """Dates, or times where some have one; numbers among them are days as Excel counts them."""
    moments: list[Any] = []
    for value in values:
        moment = serial_moments(pa.array([value]))[0].as_py() if _is_number(value) else value
        if isinstance(moment, datetime.date) and not isinstance(moment, datetime.datetime):
            moment = datetime.datetime(moment.year, moment.month, moment.day)
        moments.append(moment)
    array = pa.array(moments, pa.timestamp("us"))
    midnight = all(m is None or m.time() == datetime.time() for m in moments)
    return array.cast(pa.date32()) if midnight else array


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)
