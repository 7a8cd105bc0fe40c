"""What was spent on one table, on disk: spent first, answered later.

A spending is written and flushed in one transaction before anything is computed, so a crash between
spending and answering loses the answer and never the record. Several processes may share the file:
the check and the record happen under one exclusive lock.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from halfmask.dp.budget import Budget, from_dict
from halfmask.dp.compose import as_kind, total
from halfmask.errors import BudgetExceededError, LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

_WAIT = 60.0  # seconds to wait for another process

_TABLES = """
CREATE TABLE IF NOT EXISTS grants (at TEXT NOT NULL, amount TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS spendings (
  serial INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, purpose TEXT NOT NULL,
  amount TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Spending:
    """One line of the ledger."""

    serial: int
    at: str
    purpose: str
    amount: Budget


@dataclass(frozen=True, slots=True)
class BudgetLedger:
    """The file that keeps the budget of one table.

    Example:
        >>> ledger = BudgetLedger.create("people.ledger", Pure(2))  # doctest: +SKIP
    """

    path: Path

    @classmethod
    def create(cls, path: str | PathLike[str], granted: Budget) -> BudgetLedger:
        """Start a ledger with the budget that the controller grants to this table."""
        ledger = cls(Path(path))
        taken = LedgerError(f"The ledger {ledger.path.name!r} exists: open it instead.")
        if ledger.path.exists():
            raise taken
        with ledger._transaction() as cursor:
            if cursor.execute("SELECT 1 FROM grants").fetchall():
                raise taken  # somebody else granted meanwhile; two grants would be none
            cursor.execute("INSERT INTO grants VALUES (?, ?)", (_now(), _text(granted)))
        return ledger

    @classmethod
    def open(cls, path: str | PathLike[str]) -> BudgetLedger:
        """The ledger of ``path``, which must exist."""
        ledger = cls(Path(path))
        if not ledger.path.is_file():
            raise LedgerError(
                f"There is no ledger {ledger.path.name!r}: create it with the granted budget."
            )
        ledger.granted()
        return ledger

    def granted(self) -> Budget:
        """The budget that the controller granted."""
        with self._transaction() as cursor:
            return _granted(cursor)

    def spent(self) -> Budget:
        """What all spendings cost together."""
        with self._transaction() as cursor:
            return _spent(cursor, _granted(cursor))

    def remaining(self) -> Budget:
        """What may still be spent."""
        with self._transaction() as cursor:
            granted = _granted(cursor)
            return granted - _spent(cursor, granted)

    def spend(self, amount: Budget, purpose: str) -> int:
        """Record a spending and give its serial number, or refuse and record nothing."""
        with self._transaction() as cursor:
            granted = _granted(cursor)
            cost = as_kind(amount, granted)
            left = granted - _spent(cursor, granted)
            if not cost <= left:
                raise BudgetExceededError(cost, left, cost - left)
            cursor.execute(
                "INSERT INTO spendings (at, purpose, amount) VALUES (?, ?, ?)",
                (_now(), purpose, _text(cost)),
            )
            return int(cursor.lastrowid or 0)

    def history(self) -> tuple[Spending, ...]:
        """All spendings, oldest first."""
        with self._transaction() as cursor:
            rows = cursor.execute("SELECT serial, at, purpose, amount FROM spendings").fetchall()
        return tuple(Spending(s, at, why, from_dict(json.loads(text))) for s, at, why, text in rows)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Cursor]:
        """One exclusive transaction, on disk when the body ends without an error."""
        try:
            with closing(sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None)) as base:
                base.execute("PRAGMA synchronous = FULL")
                base.execute("BEGIN EXCLUSIVE")
                try:
                    cursor = base.cursor()
                    for statement in _TABLES.split(";"):
                        cursor.execute(statement)
                    yield cursor
                except BaseException:
                    base.execute("ROLLBACK")
                    raise
                base.execute("COMMIT")
        except (sqlite3.Error, ValueError, KeyError) as error:
            if isinstance(error, LedgerError):
                raise
            raise LedgerError(
                f"The ledger {self.path.name!r} cannot be used: it is damaged, locked or not "
                "writable. Nothing was computed."
            ) from error


def _granted(cursor: sqlite3.Cursor) -> Budget:
    rows = cursor.execute("SELECT amount FROM grants").fetchall()
    if len(rows) != 1:
        raise LedgerError("The ledger does not say what was granted: it is not a ledger.")
    return from_dict(json.loads(rows[0][0]))


def _spent(cursor: sqlite3.Cursor, kind: Budget) -> Budget:
    rows = cursor.execute("SELECT amount FROM spendings").fetchall()
    return total((from_dict(json.loads(text)) for (text,) in rows), kind)


def _text(amount: Budget) -> str:
    return json.dumps(amount.to_dict())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
