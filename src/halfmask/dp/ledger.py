"""What was granted for one table and spent on it, on disk: spent first, answered later.

A spending is written and flushed in one transaction before anything is computed, so a crash between
spending and answering loses the answer and never the record. Several processes may share the file:
the check and the record happen under one exclusive lock.

Every row carries a seal over itself and the seal before it, and the last one is sealed with the
number of rows: a row that was changed, removed, added or moved is noticed. Without a key whoever
may write the file can seal anew, so this finds accidents and clumsy hands; with a key (a file that
the asker cannot read) only an older copy of the whole file passes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfmask.dp.budget import (
    Approximate,
    Budget,
    Concentrated,
    Pure,
    epsilon_of,
    from_dict,
    require_modest,
)
from halfmask.dp.compose import atoms, total_of_parts
from halfmask.errors import BudgetExceededError, LedgerError, ParameterError, PrivacyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from os import PathLike

_WAIT = 60.0  # seconds to wait for another process
_MARK, _VERSION = 0x484D424C, 2  # SQLite's application_id and user_version: a ledger of budgets
_READ_AT = Fraction(1, 10**6)  # the delta at which rho is told as somebody's epsilon
_TABLES = (
    "CREATE TABLE entries (serial INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, "
    "body TEXT NOT NULL, seal TEXT NOT NULL)",
    "CREATE TABLE head (seal TEXT NOT NULL)",
    f"PRAGMA application_id = {_MARK}",
    f"PRAGMA user_version = {_VERSION}",
)


@dataclass(frozen=True, slots=True)
class Spending:
    """One spending.

    Attributes:
        serial: its number among the spendings.
        at: when.
        purpose: what for.
        amount: what it cost whoever states no epsilon.
        levels: what it cost at each public level of demand; None: the same for everybody.
        part: the values of the ledger's partition whose people it read; None: everybody.
    """

    serial: int
    at: str
    purpose: str
    amount: Budget
    levels: Mapping[Fraction, Fraction] | None = None
    part: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """What the controller granted in all from then on, with the reason."""

    at: str
    amount: Budget
    reason: str


@dataclass(frozen=True, slots=True)
class Account:
    """All that a ledger says, read at once.

    Attributes:
        name: what the controller calls the table.
        table: the identity of the table, empty before the first use.
        partition: the column by which disjoint people cost the largest part only; may be empty.
        grants: the first grant and every raise.
        spendings: oldest first.
    """

    name: str
    table: str
    partition: str
    grants: tuple[Grant, ...]
    spendings: tuple[Spending, ...]

    @property
    def granted(self) -> Budget:
        """What may be spent in all."""
        return self.grants[-1].amount

    @property
    def spent(self) -> Budget:
        """What all spendings cost together."""
        return total_of_parts([(s.amount, s.part) for s in self.spendings], self.granted)

    @property
    def remaining(self) -> Budget:
        """What may still be spent."""
        return self.granted - self.spent

    def left(
        self, levels: Sequence[Fraction], part: tuple[str, ...] | None = None
    ) -> tuple[Fraction, ...]:
        """What is left at each public level of demand, of the level itself, in one part or in all.

        Where other levels were declared earlier, the largest cost counts that somebody who now
        stands at a level can have had.
        """
        above = [*levels[1:], None][: len(levels)]
        return tuple(
            max(level - self._spent_at(level, upper, part), Fraction(0))
            for level, upper in zip(levels, above, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """The account as plain values; levels are those that spendings were told apart by."""
        levels = sorted({level for s in self.spendings for level in s.levels or ()})
        return {
            "name": self.name,
            "table": self.table,
            "partition": self.partition,
            "granted": str(self.granted),
            "spent": str(self.spent),
            "left": str(self.remaining),
            "levels": [
                {"epsilon": float(level), "left": float(left)}
                for level, left in zip(levels, self.left(levels), strict=True)
            ],
            "grants": [
                {"at": g.at, "amount": str(g.amount), "reason": g.reason} for g in self.grants
            ],
            "spendings": [
                {
                    "serial": s.serial,
                    "at": s.at,
                    "purpose": s.purpose,
                    "amount": str(s.amount),
                    "levels": None
                    if s.levels is None
                    else {f"{float(k):g}": float(v) for k, v in s.levels.items()},
                    "part": None if s.part is None else list(s.part),
                }
                for s in self.spendings
            ],
        }

    def _spent_at(
        self, level: Fraction, upper: Fraction | None, part: tuple[str, ...] | None
    ) -> Fraction:
        return max(
            sum(
                (
                    cost_at(s, level, upper)
                    for s in self.spendings
                    if s.part is None or atom in s.part
                ),
                Fraction(0),
            )
            for atom in part or atoms(s.part for s in self.spendings)
        )


@dataclass(frozen=True, slots=True)
class BudgetLedger:
    """The file that keeps the budget of one table.

    Attributes:
        path: the file.
        key: what the seals are made with; empty: anybody can make them.

    Example:
        >>> ledger = BudgetLedger.create("people.ledger", Pure(2))  # doctest: +SKIP
    """

    path: Path
    key: bytes = field(default=b"", repr=False)

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        granted: Budget,
        *,
        name: str = "",
        table: str = "",
        partition: str = "",
        key: str | PathLike[str] | None = None,
        insist: bool = False,
    ) -> BudgetLedger:
        """Start a ledger with the budget that the controller grants to this table.

        Args:
            path: the file, which must not exist; only its owner can read it.
            granted: what may be spent in all.
            name: what the controller calls the table.
            table: its identity (``identity``); without one the first use binds the ledger.
            partition: a column of which every person has one value, known to be so without looking
                at the rows: answers about disjoint values cost the largest of them.
            key: a file that holds a secret; without it the same file is needed at each use.
            insist: whether a budget above epsilon 20 or delta 0.0001 is meant.
        """
        require_modest(granted, insist=insist)
        ledger = cls(Path(path), _key(key))
        try:
            os.close(os.open(ledger.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise LedgerError(f"The ledger {ledger.path.name!r} exists: open it instead.") from None
        except OSError as error:
            raise LedgerError(
                f"The ledger {ledger.path.name!r} cannot be made here: {error.strerror}."
            ) from None
        about = {"name": name, "table": table, "partition": partition, "keyed": bool(ledger.key)}
        with ledger._transaction(fresh=True) as cursor:
            for statement in _TABLES:
                cursor.execute(statement)
            ledger._append(cursor, "create", {**about, "amount": granted.to_dict(), "reason": ""})
        return ledger

    @classmethod
    def open(
        cls, path: str | PathLike[str], *, key: str | PathLike[str] | None = None
    ) -> BudgetLedger:
        """The ledger of ``path``, which must exist and be whole."""
        ledger = cls(Path(path), _key(key))
        ledger.account()
        return ledger

    def account(self) -> Account:
        """All that the ledger says, after its seals were checked."""
        with self._transaction(write=False) as cursor:
            return self._read(cursor)

    def granted(self) -> Budget:
        """The budget that the controller granted."""
        return self.account().granted

    def spent(self) -> Budget:
        """What all spendings cost together."""
        return self.account().spent

    def remaining(self) -> Budget:
        """What may still be spent."""
        return self.account().remaining

    def history(self) -> tuple[Spending, ...]:
        """All spendings, oldest first."""
        return self.account().spendings

    def spend(
        self,
        amount: Budget,
        purpose: str,
        *,
        levels: Mapping[Fraction, Fraction] | None = None,
        part: tuple[str, ...] | None = None,
        table: str = "",
    ) -> int:
        """Record a spending and give its serial number, or refuse and record nothing."""
        with self._transaction() as cursor:
            now = self._read(cursor)
            if table and now.table and table != now.table:
                raise LedgerError(
                    f"The ledger {self.path.name!r} keeps the budget of another table (other "
                    "columns or another person column): use the ledger of this one, or say that "
                    f"the table changed with `halfmask budget bind {self.path.name} TABLE "
                    "--reason ...`."
                )
            new = Spending(len(now.spendings) + 1, _now(), purpose, amount, levels, part)
            require_covered(now, new, self.path.name)
            if table and not now.table:
                self._append(cursor, "bind", {"table": table, "reason": "first use"})
            self._append(cursor, "spend", _document(new))
            return new.serial

    def raise_to(self, amount: Budget, reason: str, *, insist: bool = False) -> None:
        """Grant more, by the controller, with a reason; nothing that was spent is forgotten."""
        require_modest(amount, insist=insist)
        _require_reason(reason)
        with self._transaction() as cursor:
            now = self._read(cursor).granted
            if type(amount) is not type(now) or not now < amount:
                raise ParameterError("amount", str(amount), f"more than {now}, in the same kind")
            self._append(cursor, "raise", {"amount": amount.to_dict(), "reason": reason})

    def bind(self, table: str, reason: str) -> None:
        """Say that the ledger is for the table of another identity from now on."""
        _require_reason(reason)
        with self._transaction() as cursor:
            self._read(cursor)
            self._append(cursor, "bind", {"table": table, "reason": reason})

    def _append(self, cursor: sqlite3.Cursor, kind: str, body: Mapping[str, Any]) -> None:
        rows = cursor.execute("SELECT seal FROM entries ORDER BY serial").fetchall()
        before = rows[-1][0] if rows else ""
        row = (len(rows) + 1, _now(), kind, json.dumps(body, sort_keys=True))
        seal = self._seal(before, row)
        cursor.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", (*row, seal))
        cursor.execute("DELETE FROM head")
        cursor.execute("INSERT INTO head VALUES (?)", (self._seal(seal, (len(rows) + 1,)),))

    def _seal(self, before: str, row: tuple[object, ...]) -> str:
        text = json.dumps([before, *row]).encode()
        if self.key:
            return hmac.new(self.key, text, hashlib.sha256).hexdigest()
        return hashlib.sha256(text).hexdigest()

    def _read(self, cursor: sqlite3.Cursor) -> Account:
        mark = cursor.execute("PRAGMA application_id").fetchone()[0]
        version = cursor.execute("PRAGMA user_version").fetchone()[0]
        if mark != _MARK:
            old = {name for (name,) in cursor.execute("SELECT name FROM sqlite_master")}
            self._fail(
                "was kept by an earlier version of halfmask: start a new one with `halfmask budget "
                "create`, with what this one has left."
                if {"grants", "spendings"} <= old
                else "is not a ledger of budgets."
            )
        if version != _VERSION:
            self._fail("was kept by another version of halfmask: use that one.")
        rows = cursor.execute("SELECT serial, at, kind, body, seal FROM entries ORDER BY serial")
        entries: list[tuple[str, str, dict[str, Any]]] = []
        before = ""
        for place, (*row, seal) in enumerate(rows.fetchall(), 1):
            if row[0] != place or seal != self._seal(before, tuple(row)):
                self._damaged(place, entries)
            before = seal
            entries.append((row[1], row[2], json.loads(row[3])))
        heads = cursor.execute("SELECT seal FROM head").fetchall()
        if not entries or heads != [(self._seal(before, (len(entries),)),)]:
            self._damaged(len(entries) + 1, entries)
        return _account(entries)

    def _damaged(self, place: int, entries: list[Any]) -> None:
        if place == 1 and not entries:
            self._fail(
                "is damaged at its first row, or sealed with another key: give the key file that "
                "it was created with."
            )
        self._fail(f"is damaged: row {place} was changed, removed or added.")

    def _fail(self, words: str) -> None:
        raise LedgerError(f"The ledger {self.path.name!r} {words} Nothing was computed.")

    @contextmanager
    def _transaction(self, *, write: bool = True, fresh: bool = False) -> Iterator[sqlite3.Cursor]:
        """One transaction, exclusive where it writes, on disk when the body ends without error."""
        if not fresh and not self.path.is_file():
            raise LedgerError(
                f"There is no ledger {self.path.name!r}: create it with the granted budget, "
                f"`halfmask budget create {self.path.name} --grant EPSILON`."
            )
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
            raise LedgerError(
                f"The ledger {self.path.name!r} {_why(error)} Nothing was computed."
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, ParameterError):
                raise
            raise LedgerError(
                f"The ledger {self.path.name!r} is damaged: a row cannot be read. Nothing was "
                "computed."
            ) from error


def require_covered(now: Account, new: Spending, file: str = "") -> None:
    """Refuse a spending beyond what was granted, or beyond what people at a level demand."""
    granted = now.granted
    try:
        after = total_of_parts([(s.amount, s.part) for s in (*now.spendings, new)], granted)
    except ParameterError:
        raise PrivacyError(
            f"A budget granted as {granted} cannot pay {new.amount}: let the controller grant an "
            "epsilon with a delta."
        ) from None
    if not after <= granted:
        raise BudgetExceededError(new.amount, now.remaining, after - granted, file=file)
    if new.levels is None:
        return
    levels = sorted(new.levels)
    for level, left in zip(levels, now.left(levels, new.part), strict=True):
        if new.levels[level] > left:
            asked = Pure(new.levels[level])
            raise BudgetExceededError(
                asked, Pure(left), asked - Pure(left), level=f"{float(level):g}"
            )


def cost_at(spending: Spending, level: Fraction, upper: Fraction | None) -> Fraction:
    """The most that a spending cost somebody whose demand is from ``level`` to below ``upper``."""
    if spending.levels is None:
        return _epsilon(spending.amount)
    below = [old for old in spending.levels if old <= level]
    within = [o for o in spending.levels if o > level and (upper is None or o < upper)]
    reached = [*within, *([max(below)] if below else [])]
    return max((spending.levels[old] for old in reached), default=Fraction(0))


def identity(columns: Iterable[str], person: str | None) -> str:
    """What a ledger knows its table by: the names of its columns and whose rows they are.

    Rows may come and go. Names of columns are public, so that their digest is no secret.
    """
    text = json.dumps([sorted(columns), person])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _epsilon(amount: Budget) -> Fraction:
    if isinstance(amount, Pure | Approximate):
        return amount.epsilon
    assert isinstance(amount, Concentrated)  # noqa: S101 - there is no other kind
    return Fraction(str(epsilon_of(amount, _READ_AT)))


def _account(entries: list[tuple[str, str, dict[str, Any]]]) -> Account:
    first = entries[0][2]
    table = first["table"]
    grants: list[Grant] = []
    spendings: list[Spending] = []
    for at, kind, body in entries:
        if kind in ("create", "raise"):
            grants.append(Grant(at, from_dict(body["amount"]), body["reason"]))
        elif kind == "bind":
            table = body["table"]
        else:
            levels = body["levels"]
            spendings.append(
                Spending(
                    len(spendings) + 1,
                    at,
                    body["purpose"],
                    from_dict(body["amount"]),
                    None
                    if levels is None
                    else {Fraction(k): Fraction(v) for k, v in levels.items()},
                    None if body["part"] is None else tuple(body["part"]),
                )
            )
    return Account(first["name"], table, first["partition"], tuple(grants), tuple(spendings))


def _document(spending: Spending) -> dict[str, Any]:
    levels = spending.levels
    return {
        "purpose": spending.purpose,
        "amount": spending.amount.to_dict(),
        "levels": None if levels is None else {str(k): str(v) for k, v in levels.items()},
        "part": None if spending.part is None else list(spending.part),
    }


def _why(error: sqlite3.Error) -> str:
    text = str(error).lower()
    if "locked" in text or "busy" in text:
        return "is in use by another program: ask again."
    if "readonly" in text or "unable to open" in text or "permission" in text:
        return "cannot be written: see who owns it and its folder."
    if "not a database" in text:
        return "is not a ledger of budgets."
    if "full" in text:
        return "cannot be written: the disk is full."
    return "is damaged: it cannot be read."


def _key(file: str | PathLike[str] | None) -> bytes:
    if file is None:
        return b""
    try:
        found = Path(file).read_bytes()
    except OSError as error:
        raise LedgerError(
            f"The key of the ledger cannot be read from {Path(file).name!r}: {error.strerror}."
        ) from None
    if len(found) < 16:
        raise LedgerError("The key of a ledger needs at least 16 bytes: make it from chance.")
    return found


def _require_reason(reason: str) -> None:
    if not reason.strip():
        raise ParameterError("reason", reason, "why, in a few words: it is kept in the ledger")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
