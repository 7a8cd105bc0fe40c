"""A cell's home: one file in which everything of the person is encrypted; its key."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from halfmask.errors import AuthenticationError, InputError, SchemaError, usable_path
from halfmask.ownership import read_secret, tighten, write_new
from halfmask.protocol.common_schema import CommonSchema, Policy, commons_from
from halfmask.protocol.contribution import Participation
from halfmask.protocol.crypto import NONCE
from halfmask.protocol.keys import CellKey
from halfmask.protocol.parties.cell import Cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class FileSpill:
    """Frames in a temporary file, as they came: encrypted."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the task
        self._places: list[tuple[int, int]] = []

    def append(self, frame: bytes) -> None:
        """Keep one more."""
        self._file.seek(0, os.SEEK_END)
        self._places.append((self._file.tell(), len(frame)))
        self._file.write(frame)

    def read(self, index: int) -> bytes:
        """Give one back."""
        start, length = self._places[index]
        self._file.seek(start)
        return self._file.read(length)

    def close(self) -> None:
        """Forget everything."""
        self._file.close()


def new_key_file(path: str | Path) -> bytes:
    """A fresh key in a file that its owner alone may read."""
    key = os.urandom(32)
    try:
        write_new(path, key.hex().encode() + b"\n")
    except FileExistsError:
        raise InputError(f"{Path(path).name} exists already; a key is never overwritten.") from None
    return key


def read_key_file(path: str | Path) -> bytes:
    """The key in a key file, which others cannot read from now on."""
    try:
        key = bytes.fromhex(read_secret(path).decode("ascii").strip())
    except (OSError, ValueError):
        key = b""
    if len(key) != 32:
        raise InputError(f"{Path(path).name} cannot be read as a cell's key file.")
    return key


FORMAT = b"halfmask.cell/3"
WITHOUT_HEAD = b"halfmask.cell/2"  # of which a row can be taken away unnoticed
OLD = b"halfmask.cell/1"
_SEAL = b"halfmask cells 1"


class CellVault:
    """One person's cell on disk: a SQLite file.

    The key comes from a key file (bytes) or is a passphrase (text, by scrypt). Names of entries are
    bound to them, so that nothing in the file can change places, and a head is sealed over all of
    them, so that none can be taken away, such as what was answered before. Only an older copy of
    the whole file passes. Real hardware would keep the key where nobody can copy it.
    """

    def __init__(self, path: str | Path, key: bytes | str) -> None:
        self._path = usable_path(path)
        if not self._path.exists():
            raise InputError(f"There is no cell {self._path.name}: make one with cell init.")
        tighten(self._path)
        with self._file() as db:
            try:
                row = db.execute("SELECT data FROM things WHERE name = 'salt'").fetchone()
            except sqlite3.DatabaseError:
                row = None
        if row is None:
            raise InputError(f"{self._path.name} is no cell.")
        self._cipher = AESGCM(_stretch_key(key, row[0]))
        found = self._get("format")
        if found == OLD:
            raise InputError(
                f"{self._path.name} is of a version in which cells had no credentials: have its "
                "person enrolled anew (cells enroll), make a new cell with cell init, and import "
                "the rows again."
            )
        if found not in (FORMAT, WITHOUT_HEAD):
            raise InputError(f"{self._path.name} is no cell that this version can read.")
        self._headed = found == FORMAT
        with self._file() as db:
            self._verify(db)

    @classmethod
    def create(
        cls,
        path: str | Path,
        key: bytes | str,
        enrolled: CellKey,
        commons: Mapping[str, object],
        folder: Path | None = None,
    ) -> CellVault:
        """A new cell of somebody who is enrolled, with the common schema and no rows."""
        path = usable_path(path)
        if path.exists():
            raise InputError(f"{path.name} exists already; a cell is never overwritten.")
        commons_from(commons, folder)
        salt = os.urandom(16)
        # Its owner's alone before anything is in it.
        write_new(path, b"")
        try:
            with _transaction(path) as db:
                db.execute("CREATE TABLE things (name TEXT PRIMARY KEY, data BLOB) WITHOUT ROWID")
                db.execute("INSERT INTO things VALUES ('salt', ?)", (salt,))
                cipher = AESGCM(_stretch_key(key, salt))
                document = {"document": commons, "folder": str(folder or "")}
                start = {
                    "format": FORMAT,
                    "enrolled": msgspec.msgpack.encode(enrolled),
                    "commons": msgspec.json.encode(document),
                }
                for name, data in start.items():
                    db.execute(
                        "INSERT INTO things VALUES (?, ?)", (name, _seal(cipher, name, data))
                    )
                _seal_head(db, cipher)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return cls(path, key)

    def cell(self) -> Cell:
        """The party that speaks for this person."""
        return Cell(self.enrolled, self.commons, self, FileSpill)

    @property
    def enrolled(self) -> CellKey:
        """What the cell was enrolled with."""
        return msgspec.msgpack.decode(self._need("enrolled"), type=CellKey)

    @property
    def commons(self) -> CommonSchema:
        """The common schema."""
        stored = msgspec.json.decode(self._need("commons"))
        return commons_from(stored["document"], Path(stored["folder"]))

    def tables(self) -> Mapping[str, pa.Table]:
        """The person's own rows; a table without rows is empty."""
        found = {}
        for name, table in self.commons.tables.items():
            data = self._get(f"table {name}")
            found[name] = table.arrow.empty_table() if data is None else _table(data)
        return found

    def put_table(self, name: str, rows: pa.Table) -> None:
        """Keep rows in place of those that were there.

        Raises:
            SchemaError: they are not what the common schema says.
        """
        table = self.commons.tables.get(name)
        if table is None:
            known = ", ".join(self.commons.tables)
            raise SchemaError(f"There is no common table '{name}'; there are {known}.")
        faults, columns = [], []
        for column in table.arrow:
            if column.name not in rows.column_names:
                faults.append(f"Column '{column.name}' is missing.")
                continue
            try:
                columns.append(_cast(rows[column.name], column.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                faults.append(f"Column '{column.name}' does not hold what its type says.")
        if faults:
            raise SchemaError(*faults)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.arrow) as writer:
            writer.write_table(pa.table(columns, schema=table.arrow))
        self._put(f"table {name}", sink.getvalue().to_pybytes())

    def policy(self) -> Policy | None:
        """What the person demands."""
        data = self._get("policy")
        return None if data is None else msgspec.json.decode(data, type=Policy)

    def put_policy(self, policy: Policy) -> None:
        """Keep the person's demands.

        Raises:
            ParameterError: they name a column that the common schema does not have.
        """
        policy.check_columns(self.commons)
        self._put("policy", msgspec.json.encode(policy))

    def log(self) -> list[Participation]:
        """What was answered before, oldest first."""
        with self._file() as db:
            self._verify(db)
            rows = db.execute("SELECT name, data FROM things WHERE name LIKE 'entry %'").fetchall()
        entries = [msgspec.msgpack.decode(self._decrypt(n, d), type=Participation) for n, d in rows]
        return sorted(entries, key=lambda entry: entry.time)

    def note(self, entry: Participation) -> Participation:
        """Keep the first entry on a query, and give it back for good."""
        kept = self._first(f"entry {entry.query.hex()}", msgspec.msgpack.encode(entry))
        return msgspec.msgpack.decode(kept, type=Participation)

    def revoke(self, entry: Participation) -> None:
        """Have nothing more sent to a query of the log."""
        self._put(
            f"entry {entry.query.hex()}", msgspec.msgpack.encode(replace(entry, revoked=True))
        )

    def settle(self, query: bytes, closing: bytes) -> bytes:
        """Keep the first closing that is seen of a query, and give it back for good."""
        return self._first(f"closing {query.hex()}", closing)

    def _need(self, name: str) -> bytes:
        data = self._get(name)
        if data is None:
            raise InputError(f"{self._path.name} is damaged: its {name} is missing.")
        return data

    def _get(self, name: str) -> bytes | None:
        with self._file() as db:
            row = db.execute("SELECT data FROM things WHERE name = ?", (name,)).fetchone()
        return None if row is None else self._decrypt(name, row[0])

    def _put(self, name: str, data: bytes) -> None:
        with self._change() as db:
            db.execute(
                "INSERT OR REPLACE INTO things VALUES (?, ?)",
                (name, _seal(self._cipher, name, data)),
            )

    def _first(self, name: str, data: bytes) -> bytes:
        """Keep what comes first under a name, also among processes, and give it back."""
        with self._change() as db:
            db.execute(
                "INSERT OR IGNORE INTO things VALUES (?, ?)",
                (name, _seal(self._cipher, name, data)),
            )
        return self._need(name)

    def _decrypt(self, name: str, data: bytes) -> bytes:
        try:
            return self._cipher.decrypt(data[:NONCE], data[NONCE:], _SEAL + name.encode())
        except InvalidTag:
            raise AuthenticationError(
                "The key does not open this cell, or the file is damaged."
            ) from None

    @contextmanager
    def _file(self) -> Iterator[sqlite3.Connection]:
        with _transaction(self._path) as db:
            yield db

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """One transaction that writes; the head is sealed anew only over what was whole before."""
        with self._file() as db:
            # The lock before the check, so that nobody writes in between.
            db.execute("BEGIN IMMEDIATE")
            self._verify(db)
            yield db
            if self._headed:
                _seal_head(db, self._cipher)

    def _verify(self, db: sqlite3.Connection) -> None:
        """Refuse a file of which something was taken away or put back."""
        if not self._headed:
            return
        row = db.execute("SELECT data FROM things WHERE name = 'head'").fetchone()
        if row is None or self._decrypt("head", row[0]) != _digest(db):
            raise AuthenticationError(
                f"{self._path.name} is damaged: something was taken away, put back or added."
            )


@contextmanager
def _transaction(path: Path) -> Iterator[sqlite3.Connection]:
    """One transaction on the file: everything of it holds, or nothing."""
    db = sqlite3.connect(path, timeout=10)
    try:
        with db:
            yield db
    except sqlite3.OperationalError as error:
        full = "the disk is full" if "full" in str(error) else "the file cannot be used"
        raise InputError(f"{path.name}: {full}; nothing was changed.") from None
    finally:
        db.close()


def _stretch_key(key: bytes | str, salt: bytes) -> bytes:
    if isinstance(key, bytes):
        return hashlib.sha256(b"cell key" + salt + key).digest()
    return hashlib.scrypt(key.encode(), salt=salt, n=2**14, r=8, p=1, dklen=32)


def _seal_head(db: sqlite3.Connection, cipher: AESGCM) -> None:
    head = _seal(cipher, "head", _digest(db))
    db.execute("INSERT OR REPLACE INTO things VALUES ('head', ?)", (head,))


def _digest(db: sqlite3.Connection) -> bytes:
    """What tells everything in the file, but the head, from any other content."""
    found = hashlib.sha256()
    for name, data in db.execute(
        "SELECT name, data FROM things WHERE name <> 'head' ORDER BY name"
    ):
        found.update(hashlib.sha256(name.encode()).digest() + hashlib.sha256(data).digest())
    return found.digest()


def _seal(cipher: AESGCM, name: str, data: bytes) -> bytes:
    nonce = os.urandom(NONCE)
    return nonce + cipher.encrypt(nonce, data, _SEAL + name.encode())


def _table(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(pa.BufferReader(data)).read_all()


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(kind)
