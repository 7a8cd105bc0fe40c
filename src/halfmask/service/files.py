"""The files of the page: how large a sent one unpacks, and what can be taken away, by fixed names.

A small upload may hold more than the memory of the machine. A browser opens a report or saves a
file without the header that carries the token, so each file gets an address that nobody can guess.
It ends with what it leads to.
"""

from __future__ import annotations

import hmac
import os
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, MissingError, TooLargeError
from halfmask.service.workspace import StepResult
from halfmask.table.files import formats, text_file
from halfmask.table.files.rows import file_kind, require_flat
from halfmask.table.values import is_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from halfmask.service.workspace import Workspace


_BATCH = 1 << 16
_CODE = 4  # bytes of what stands for a text
_VIEW = 16  # bytes of what points to a text that several rows share


def require_unpacked(path: Path, limit: int) -> None:
    """Refuse a file that unpacks to more than ``limit`` bytes, before it is read as a whole.

    Raises:
        TooLargeError: it does; says what to do.
        InputError: it is damaged.
    """
    kind = file_kind(path)
    count = {"parquet": _parquet, "arrow": _arrow, "csv": _text}.get(kind)
    total = 0
    try:
        for size in count(path) if count else formats.unpacked_sizes(path, kind):
            total += size
            if total > limit:
                raise TooLargeError(
                    f"This file unpacks to more than {limit / 1e6:,.0f} MB: start halfmask serve "
                    "with a larger --unpacked-limit, or use the command line, where "
                    "--engine duckdb counts a file without reading it into memory."
                )
    except (pa.ArrowNotImplementedError, *text_file.UNPACKING):
        raise InputError(f"{text_file.name_of(path)} is damaged: it cannot be unpacked.") from None


def _text(path: Path) -> Iterator[int]:
    if text_file.is_packed(path):
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
            size += sum(map(_unpacked_size, batch.columns))
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
            yield sum(map(_unpacked_size, batch.columns))


def _unpacked_size(column: pa.Array) -> int:
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


SCHEMA = "schema.toml"
# What a file is made of: the verb whose result it is, and whether it is the report, the rows or
# what the rows say of themselves.
FILES = {
    "assessment.html": ("assess", "report"),
    "frontier.html": ("frontier", "report"),
    "comparison.html": ("compare", "report"),
    "release.html": ("anonymize", "report"),
    "release.parquet": ("anonymize", "rows"),
    "release.csv": ("anonymize", "rows"),
    "masked.html": ("mask", "report"),
    "masked.parquet": ("mask", "rows"),
    "masked.csv": ("mask", "rows"),
    "masked.toml": ("mask", "record"),
    "answer.html": ("query", "report"),
    "answer.parquet": ("query", "rows"),
    "answer.csv": ("query", "rows"),
    "synthetic.html": ("synthesize", "report"),
    "synthetic.parquet": ("synthesize", "rows"),
    "synthetic.csv": ("synthesize", "rows"),
}


@dataclass(frozen=True, slots=True)
class Ticket:
    """The right to fetch one file, as long as what it is made of stands."""

    secret: str
    source: object
    file: str
    download: bool


@dataclass(eq=False)
class Files:
    """The files of a workspace and the addresses under which they are had."""

    space: Workspace
    _tickets: dict[tuple[str, bool], Ticket] = field(default_factory=dict)

    def link(self, file: str, *, download: bool) -> str:
        """The address of a file; the same one while its content stands."""
        source = self._source(file)
        ticket = self._tickets.get((file, download))
        if ticket is None or ticket.source is not source:
            ticket = Ticket(secrets.token_urlsafe(32), source, file, download)
            self._tickets[file, download] = ticket
        return f"/out/{ticket.secret}/{file}"

    def find(self, secret: str, file: str) -> Ticket:
        """The ticket of an address, if what it leads to is still there."""
        for ticket in list(self._tickets.values()):
            fits = hmac.compare_digest(ticket.secret.encode(), secret.encode())
            if fits and ticket.file == file and self._stands(ticket):
                return ticket
        raise _missing()

    def copy(self, ticket: Ticket) -> Path:
        """The file under a name of its own, which outlasts its result; removed once it is sent."""
        place = self.space.room(ticket.file)
        with self.space.remove_unless_done(place.parent):
            if isinstance(ticket.source, StepResult):
                try:
                    os.link(ticket.source.folder / ticket.file, place)
                except FileNotFoundError:
                    raise _missing() from None
            else:
                place.write_text(self.space.table_facts.toml, encoding="utf-8")
        return place

    def _source(self, file: str) -> object:
        """What a file is made of."""
        if file == SCHEMA:
            return self.space.table_facts
        if file not in FILES:
            raise MissingError(f"There is no such file: ask for {', '.join([*FILES, SCHEMA])}.")
        return self.space.result(FILES[file][0])

    def _stands(self, ticket: Ticket) -> bool:
        try:
            return self._source(ticket.file) is ticket.source
        except MissingError:
            return False


def _missing() -> MissingError:
    return MissingError("This file is gone: another table, schema or result took its place.")
