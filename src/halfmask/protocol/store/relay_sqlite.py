"""The relay's store: SQLite with a write-ahead log, one transaction per message.

A relay that is killed at any moment finds, when it starts again, every message either handled
whole or not at all.
"""

from __future__ import annotations

import sqlite3
import struct
from typing import TYPE_CHECKING

import msgspec

from halfmask.errors import InputError, PartyUnavailableError
from halfmask.ownership import make_private
from halfmask.protocol.messages import AskedQuery, Signed
from halfmask.protocol.parties.relay import GroupQuery, Lease

if TYPE_CHECKING:
    from pathlib import Path

    from halfmask.protocol.crypto import Address

_TABLES = """
CREATE TABLE IF NOT EXISTS queries (name BLOB PRIMARY KEY, body BLOB, signature BLOB,
  closes INT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rooms (query BLOB, grp INT, state TEXT, contributions INT,
  root BLOB, stage INT, reason TEXT, closes INT, PRIMARY KEY (query, grp)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS contributions (query BLOB, grp INT, ticket BLOB, number INT, frame BLOB,
  PRIMARY KEY (query, grp, ticket));
CREATE INDEX IF NOT EXISTS numbers ON contributions (query, grp, number);
CREATE TABLE IF NOT EXISTS paths (query BLOB, grp INT, part INT, path BLOB,
  PRIMARY KEY (query, grp, part)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tasks (query BLOB, grp INT, stage INT, task INT, done INT, until REAL,
  lease INT, attempts INT, PRIMARY KEY (query, grp, stage, task)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS undone ON tasks (query, grp, stage, until) WHERE done = 0;
CREATE TABLE IF NOT EXISTS frames (query BLOB, grp INT, address BLOB, frame BLOB,
  PRIMARY KEY (query, grp, address));
"""


class RelayStore:
    """A file, or memory where no path is given."""

    def __init__(self, path: str | Path = ":memory:") -> None:
        try:
            if str(path) != ":memory:":
                make_private(path)
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode = WAL")
            # A crash of the machine may lose what came last, never half a message.
            self._db.execute("PRAGMA synchronous = NORMAL")
            old = self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'slots'").fetchone()
            self._db.executescript(_TABLES)
        except (InputError, sqlite3.Error) as error:
            word = _word(error) if isinstance(error, sqlite3.Error) else str(error).rstrip(".")
            raise PartyUnavailableError(
                f"The relay's store cannot be opened ({word}): "
                "name a file in a folder that exists and can be written."
            ) from None
        if old is not None:
            self._db.close()
            raise InputError(
                "The relay's store is of a version in which cells had no credentials: name a new "
                "file, and enroll every cell anew (cells enroll)."
            )

    def __del__(self) -> None:
        if hasattr(self, "_db"):
            self._db.close()

    def stop(self) -> None:
        """Close the file."""
        self._db.close()

    def begin(self) -> None:
        """Start a message."""
        self._run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Everything of the message holds."""
        self._run("COMMIT")

    def rollback(self) -> None:
        """Nothing of the message holds."""
        if self._db.in_transaction:
            self._db.rollback()

    def add_query(self, name: bytes, signed: bytes, signature: bytes, query: AskedQuery) -> None:
        """Keep a question and open a room in every group of cells."""
        self._run("INSERT INTO queries VALUES (?, ?, ?, ?)", name, signed, signature, query.closes)
        for group in query.groups:
            self._run(
                "INSERT INTO rooms VALUES (?, ?, 'collecting', 0, x'', 0, '', ?)",
                name,
                group,
                query.closes,
            )

    def find_question(self, name: bytes) -> Signed | None:
        """A question."""
        row = self._run("SELECT body, signature FROM queries WHERE name = ?", name).fetchone()
        return None if row is None else Signed(*row)

    def open_queries(self, group: int, now: float) -> list[Signed]:
        """Questions that still collect."""
        rows = self._run(
            "SELECT body, signature FROM rooms JOIN queries ON name = query "
            "WHERE grp = ? AND state = 'collecting' AND rooms.closes > ? ORDER BY name",
            group,
            now,
        )
        return [Signed(*row) for row in rows]

    def room(self, name: bytes, group: int) -> GroupQuery | None:
        """One query in one group."""
        found = self._rooms("query = ? AND grp = ?", name, group)
        return found[0] if found else None

    def rooms(self, name: bytes) -> list[GroupQuery]:
        """One query in all groups."""
        return self._rooms("query = ?", name)

    def queries_at_work(self, group: int) -> list[GroupQuery]:
        """Queries with work for a group."""
        return self._rooms("grp = ? AND state = 'working'", group)

    def due(self, now: float) -> list[tuple[bytes, int]]:
        """Collections whose time is over."""
        rows = self._run(
            "SELECT query, grp FROM rooms WHERE state = 'collecting' AND closes <= ?", now
        )
        return [(name, group) for name, group in rows]

    def has_ticket(self, name: bytes, group: int, ticket: bytes) -> bool:
        """Whether there is a contribution with a ticket."""
        row = self._run(
            "SELECT 1 FROM contributions WHERE query = ? AND grp = ? AND ticket = ?",
            name,
            group,
            ticket,
        ).fetchone()
        return row is not None

    def keep(self, name: bytes, group: int, ticket: bytes, frame: bytes) -> None:
        """Keep a contribution."""
        self._run("INSERT INTO contributions VALUES (?, ?, ?, NULL, ?)", name, group, ticket, frame)
        self._run(
            "UPDATE rooms SET contributions = contributions + 1 WHERE query = ? AND grp = ?",
            name,
            group,
        )

    def number(self, name: bytes, group: int) -> int:
        """Number the contributions in the order of their tickets; how many there are."""
        return self._run(
            # Tickets are digests: their order tells nothing of who came when.
            "UPDATE contributions SET number = ordered.place - 1 FROM (SELECT ticket AS t, "
            "ROW_NUMBER() OVER (ORDER BY ticket) AS place FROM contributions WHERE query = ? AND "
            "grp = ?) AS ordered WHERE query = ? AND grp = ? AND ticket = ordered.t",
            name,
            group,
            name,
            group,
        ).rowcount

    def members(self, name: bytes, group: int, low: int, high: int) -> list[tuple[bytes, bytes]]:
        """Tickets and contributions in a range of numbers, in order."""
        return self._run(
            "SELECT ticket, frame FROM contributions WHERE query = ? AND grp = ? AND number >= ? "
            "AND number < ? ORDER BY number",
            name,
            group,
            low,
            high,
        ).fetchall()

    def close(self, room: GroupQuery, paths: list[list[bytes]]) -> None:
        """End a collection."""
        self._run(
            "UPDATE rooms SET state = ?, contributions = ?, root = ? WHERE query = ? AND grp = ?",
            room.state,
            room.contributions,
            room.root,
            room.query,
            room.group,
        )
        self._db.executemany(
            "INSERT OR REPLACE INTO paths VALUES (?, ?, ?, ?)",
            [(room.query, room.group, i, msgspec.msgpack.encode(p)) for i, p in enumerate(paths)],
        )

    def path(self, name: bytes, group: int, partition: int) -> list[bytes]:
        """The way from a partition up to the root."""
        row = self._run(
            "SELECT path FROM paths WHERE query = ? AND grp = ? AND part = ?",
            name,
            group,
            partition,
        ).fetchone()
        return [] if row is None else msgspec.msgpack.decode(row[0], type=list[bytes])

    def set_state(self, name: bytes, group: int, state: str, reason: str = "") -> None:
        """Move a room on."""
        self._run(
            "UPDATE rooms SET state = ?, reason = ? WHERE query = ? AND grp = ?",
            state,
            reason,
            name,
            group,
        )

    def start(self, name: bytes, group: int, stage: int, tasks: int) -> None:
        """Begin a stage."""
        self._run("UPDATE rooms SET stage = ? WHERE query = ? AND grp = ?", stage, name, group)
        self._db.executemany(
            "INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?, 0, 0, 0, 0)",
            [(name, group, stage, task) for task in range(tasks)],
        )

    def lease(self, room: GroupQuery, now: float, until: float) -> Lease | None:
        """Give out a task that nobody has, or has had for too long."""
        row = self._run(
            "SELECT task, lease, attempts FROM tasks WHERE query = ? AND grp = ? AND "
            "stage = ? AND done = 0 AND until <= ? ORDER BY until, task LIMIT 1",
            room.query,
            room.group,
            room.stage,
            now,
        ).fetchone()
        if row is None:
            return None
        self._run(
            "UPDATE tasks SET until = ?, lease = lease + 1, attempts = attempts + 1 WHERE "
            "query = ? AND grp = ? AND stage = ? AND task = ?",
            until,
            room.query,
            room.group,
            room.stage,
            row[0],
        )
        return Lease(room.stage, row[0], row[1] + 1, row[2] + 1)

    def find_lease(self, name: bytes, group: int, stage: int, task: int) -> Lease | None:
        """A task that is being done."""
        row = self._run(
            "SELECT lease, attempts FROM tasks WHERE query = ? AND grp = ? AND stage = ? "
            "AND task = ? AND done = 0 AND lease > 0",
            name,
            group,
            stage,
            task,
        ).fetchone()
        return None if row is None else Lease(stage, task, row[0], row[1])

    def give_back(self, name: bytes, group: int, stage: int, task: int) -> None:
        """A task may be given out again at once."""
        self._run(
            "UPDATE tasks SET until = 0 WHERE query = ? AND grp = ? AND stage = ? AND task = ?",
            name,
            group,
            stage,
            task,
        )

    def finish(self, name: bytes, group: int, stage: int, task: int) -> int:
        """A task is done; how many of its stage are not."""
        self._run(
            "UPDATE tasks SET done = 1 WHERE query = ? AND grp = ? AND stage = ? AND task = ?",
            name,
            group,
            stage,
            task,
        )
        row = self._run(
            "SELECT 1 FROM tasks WHERE query = ? AND grp = ? AND stage = ? AND done = 0 LIMIT 1",
            name,
            group,
            stage,
        ).fetchone()
        return 0 if row is None else 1

    def put(self, name: bytes, group: int, address: Address, frame: bytes, *, over: bool) -> None:
        """Keep a frame; the first one stays unless ``over``."""
        verb = "REPLACE" if over else "IGNORE"
        self._run(
            f"INSERT OR {verb} INTO frames VALUES (?, ?, ?, ?)",  # noqa: S608 - two words
            name,
            group,
            _pack(address),
            frame,
        )

    def get(self, name: bytes, group: int, address: Address) -> bytes | None:
        """A frame."""
        row = self._run(
            "SELECT frame FROM frames WHERE query = ? AND grp = ? AND address = ?",
            name,
            group,
            _pack(address),
        ).fetchone()
        return None if row is None else row[0]

    def has(self, name: bytes, group: int, addresses: tuple[Address, ...]) -> bool:
        """Whether all frames are there."""
        return all(
            self._run(
                "SELECT 1 FROM frames WHERE query = ? AND grp = ? AND address = ?",
                name,
                group,
                _pack(a),
            ).fetchone()
            for a in addresses
        )

    def _rooms(self, condition: str, *values: object) -> list[GroupQuery]:
        rows = self._run(
            "SELECT query, grp, state, contributions, root, stage, reason "  # noqa: S608
            f"FROM rooms WHERE {condition} ORDER BY query, grp",
            *values,
        )
        return [GroupQuery(*row) for row in rows]

    def _run(self, text: str, *values: object) -> sqlite3.Cursor:
        try:
            return self._db.execute(text, values)
        except (sqlite3.Error, OverflowError) as error:
            raise PartyUnavailableError(f"The relay's store failed ({_word(error)}).") from None


def _pack(address: Address) -> bytes:
    return struct.pack(">iIII", *address)


def _word(error: Exception) -> str:
    return "the disk is full" if "full" in str(error) else type(error).__name__
