"""One file of what was answered and spent: records in order, each sealed over the one before.

A record is written and flushed in one transaction, so that what follows it can crash and the record
stays. Several processes may share the file: reading, deciding and writing happen under one
exclusive lock.

Every record carries a seal over itself and the seal before it, and the last one is sealed with the
number of records: one that was changed, removed, added or moved is noticed. Without a key whoever
may write the file can seal anew, so this finds accidents and clumsy hands; with a key (a file that
the asker cannot read) only an older copy of the whole file passes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sqlite3
import zlib
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from halfmask.errors import HalfmaskError, InputError, LedgerError, usable_path
from halfmask.ownership import read_secret, tighten, write_new

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from os import PathLike
    from pathlib import Path

    from numpy.typing import NDArray

GRANT, RAISE, BIND, SPEND = "create", "raise", "bind", "spend"
SALT, ANSWER = "answers", "answer"
SERIES, RELEASE = "series", "release"
CONTINUAL = "counts over time"
_KINDS = {GRANT, RAISE, BIND, SPEND, SALT, ANSWER, SERIES, RELEASE, CONTINUAL}
_WAIT = 60.0  # seconds to wait for another process
_MARK, _VERSION = 0x484D424C, 3  # SQLite's application_id and user_version
_MAGIC = b"SQLite format 3\0"
_TABLES = (
    "CREATE TABLE entries (serial INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, "
    "body TEXT NOT NULL, seal TEXT NOT NULL)",
    "CREATE TABLE head (seal TEXT NOT NULL)",
    f"PRAGMA application_id = {_MARK}",
    f"PRAGMA user_version = {_VERSION}",
)


@dataclass(frozen=True, slots=True)
class LedgerRecord:
    """What happened, and when.

    Attributes:
        serial: its place in the file, from 1.
        at: when, in universal time.
        kind: what happened.
        text: the rest, as JSON.
        seal: over all this and the seal before.
    """

    serial: int
    at: str
    kind: str
    text: str
    seal: str

    @property
    def body(self) -> dict[str, Any]:
        """The rest as plain values."""
        found: dict[str, Any] = json.loads(self.text)
        return found


@dataclass(slots=True)
class Change:
    """One exclusive turn with the file: what it holds, and more records behind that."""

    records: list[LedgerRecord]
    _cursor: sqlite3.Cursor
    _seal: Callable[[str, tuple[object, ...]], str]

    def of(self, *kinds: str) -> list[LedgerRecord]:
        """The records of some kinds."""
        return [record for record in self.records if record.kind in kinds]

    def append(self, kind: str, body: Mapping[str, Any]) -> None:
        """Seal one more record."""
        before = self.records[-1].seal if self.records else ""
        row = (len(self.records) + 1, now(), kind, json.dumps(body, sort_keys=True))
        record = LedgerRecord(*row, self._seal(before, row))
        self._cursor.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", (*row, record.seal))
        self._cursor.execute("DELETE FROM head")
        end = self._seal(record.seal, (record.serial,))
        self._cursor.execute("INSERT INTO head VALUES (?)", (end,))
        written = self._cursor.execute(
            "SELECT seal, (SELECT seal FROM head) FROM entries WHERE serial = ?", row[:1]
        )
        if written.fetchall() != [(record.seal, end)]:
            raise LedgerError("The ledger did not keep what was written. Nothing was computed.")
        self.records.append(record)


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """The file, whoever keeps something in it.

    Attributes:
        path: where it is.
        key: what the seals are made with; empty: anybody can make them.
    """

    path: Path
    key: bytes = field(default=b"", repr=False)

    @classmethod
    def at(cls, path: str | PathLike[str], key: str | PathLike[str] | None = None) -> LedgerFile:
        """The file of ``path``, whose key stands in the file ``key``."""
        return cls(usable_path(path), b"" if key is None else _read_key(usable_path(key)))

    @property
    def present(self) -> bool:
        """Whether there is a file that may be a ledger."""
        try:
            with self.path.open("rb") as file:
                return file.read(len(_MAGIC)) == _MAGIC
        except OSError:
            return False

    def create(self) -> None:
        """Make the file, which must not exist, for its owner alone; it holds nothing yet."""
        try:
            write_new(self.path, b"")
        except FileExistsError:
            raise self._no_ledger() from None
        with self._transaction(write=True) as cursor:
            for statement in _TABLES:
                cursor.execute(statement)
            end = self._seal("", (0,))
            cursor.execute("INSERT INTO head VALUES (?)", (end,))

    def records(self) -> list[LedgerRecord]:
        """All that the file holds, after its seals were checked."""
        with self._transaction(write=False) as cursor:
            return self._read(cursor)

    @contextmanager
    def change(self) -> Iterator[Change]:
        """One exclusive turn: what was appended is on disk when the body ends without error."""
        with self._transaction(write=True) as cursor:
            yield Change(self._read(cursor), cursor, self._seal)

    def hashes(self, salt: bytes, people: Iterable[str]) -> NDArray[Any]:
        """What people are known by here, 64 bits each: nobody is found without salt and key."""
        import numpy as np

        secret = hashlib.blake2b(salt + self.key, digest_size=32).digest()
        made = b"".join(
            hashlib.blake2b(one.encode(), key=secret, digest_size=8).digest() for one in people
        )
        return np.frombuffer(made, dtype="<u8").astype(np.uint64)

    def fail(self, words: str) -> None:
        """Refuse, with the name of the file."""
        raise LedgerError(f"The ledger {self.path.name!r} {words} Nothing was computed.")

    def _seal(self, before: str, row: tuple[object, ...]) -> str:
        text = json.dumps([before, *row]).encode()
        if self.key:
            return hmac.new(self.key, text, hashlib.sha256).hexdigest()
        return hashlib.sha256(text).hexdigest()

    def _read(self, cursor: sqlite3.Cursor) -> list[LedgerRecord]:
        self._require_ledger(cursor)
        rows = cursor.execute("SELECT serial, at, kind, body, seal FROM entries ORDER BY serial")
        records: list[LedgerRecord] = []
        before = ""
        for place, row in enumerate(rows.fetchall(), 1):
            record = LedgerRecord(*row)
            if record.serial != place or record.seal != self._seal(before, row[:-1]):
                self._damaged(place)
            records.append(record)
            before = record.seal
        heads = cursor.execute("SELECT seal FROM head").fetchall()
        if heads != [(self._seal(before, (len(records),)),)]:
            self._damaged(len(records) + 1)
        if any(record.kind not in _KINDS for record in records):
            self.fail("holds what this version of halfmask does not know: use a newer one.")
        return records

    def _require_ledger(self, cursor: sqlite3.Cursor) -> None:
        if cursor.execute("PRAGMA application_id").fetchone()[0] != _MARK:
            raise self._no_ledger()
        if cursor.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
            self.fail("was kept by another version of halfmask: use that one.")
        # A trigger or view could drop what is written, and every read would find the rest sealed.
        parts = cursor.execute("SELECT type, name FROM sqlite_master ORDER BY name").fetchall()
        if parts != [("table", "entries"), ("table", "head")]:
            self.fail("is damaged: it holds more than records, or less.")

    def _no_ledger(self) -> InputError:
        return InputError(
            f"The file {self.path.name!r} is not a ledger: name one that `halfmask budget create` "
            "or an answer with --ledger made. Nothing was computed."
        )

    def _damaged(self, place: int) -> None:
        if place == 1:
            self.fail(
                "is damaged at its first row, or sealed with another key: give the key file that "
                "it was created with."
            )
        self.fail(f"is damaged: row {place} was changed, removed or added.")

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[sqlite3.Cursor]:
        """One transaction, exclusive where it writes."""
        if self.path.is_dir():
            raise InputError(f"The ledger {self.path.name!r} is a folder: name a file in it.")
        if not self.path.is_file():
            raise InputError(
                f"There is no ledger {self.path.name or str(self.path)!r}: create it with the "
                "granted budget, "
                f"`halfmask budget create {self.path.name} --grant EPSILON`."
            )
        if write:
            tighten(self.path)
        place = f"{self.path.absolute().as_uri()}?mode={'rw' if write else 'ro'}"
        try:
            with closing(
                sqlite3.connect(place, timeout=_WAIT, isolation_level=None, uri=True)
            ) as base:
                if write:
                    base.execute("PRAGMA synchronous = FULL")
                base.execute("BEGIN EXCLUSIVE" if write else "BEGIN")
                try:
                    yield base.cursor()
                except BaseException:
                    base.execute("ROLLBACK")
                    raise
                base.execute("COMMIT")
        except sqlite3.Error as error:
            if "not a database" in str(error).lower():
                raise self._no_ledger() from error
            raise LedgerError(
                f"The ledger {self.path.name!r} {self._why(error)} Nothing was computed."
            ) from error
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            if isinstance(error, HalfmaskError):
                raise
            raise LedgerError(
                f"The ledger {self.path.name!r} is damaged: a row cannot be read. Nothing was "
                "computed."
            ) from error

    @staticmethod
    def _why(error: sqlite3.Error) -> str:
        text = str(error).lower()
        if "locked" in text or "busy" in text:
            return "is in use by another program: ask again."
        if "readonly" in text or "unable to open" in text or "permission" in text:
            return "cannot be written: see who owns it and its folder."
        if "full" in text:
            return "cannot be written: the disk is full."
        return "is damaged: it cannot be read."


def _read_key(file: Path) -> bytes:
    try:
        found = read_secret(file)
    except OSError as error:
        raise InputError(
            f"The key of the ledger cannot be read from {file.name!r}: {error.strerror}."
        ) from None
    if len(found) < 16:
        raise InputError(
            "The key of a ledger needs at least 16 bytes: make it from chance, `head -c 32 "
            "/dev/urandom > FILE`."
        )
    return found


def encode_numbers(numbers: NDArray[Any], kind: str) -> str:
    """Numbers as text."""
    return base64.b64encode(zlib.compress(numbers.astype(kind).tobytes(), 6)).decode()


def decode_numbers(text: str, kind: str) -> NDArray[Any]:
    """What ``encode_numbers`` gave."""
    import numpy as np

    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=kind)


def now() -> str:
    """The time, in universal time to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
