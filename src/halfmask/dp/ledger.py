"""The budget of one table: what was granted, and what was spent before anything was answered."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from halfmask.dp.budget import (
    Approximate,
    Budget,
    Concentrated,
    Pure,
    atoms,
    epsilon_of,
    read_budget,
    require_modest,
    total_of_parts,
)
from halfmask.errors import (
    BudgetExceededError,
    InputError,
    LedgerError,
    ParameterError,
    PrivacyError,
)
from halfmask.ledger import BIND, GRANT, RAISE, SPEND, LedgerFile, now

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from halfmask.ledger import LedgerRecord
    from halfmask.table.schema import Schema

_READ_AT = Fraction(1, 10**6)  # the delta at which rho is told as somebody's epsilon


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
class BudgetGrant:
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
    grants: tuple[BudgetGrant, ...]
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
    """The budget of one table in a ledger, which may hold answers too.

    A spending is on disk before anything is computed: a crash between spending and answering loses
    the answer and never the record.

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
            path: a new file, which only its owner can read, or a ledger of answers.
            granted: what may be spent in all.
            name: what the controller calls the table.
            table: its identity (``table_identity``); without one the first use binds the ledger.
            partition: a column of which every person has one value, known to be so without looking
                at the rows: answers about disjoint values cost the largest of them.
            key: a file that holds a secret; without it the same file is needed at each use.
            insist: whether a budget above epsilon 20 or delta 0.0001 is meant.
        """
        require_budget("granted", granted)
        if not any(granted.parts()):
            raise ParameterError("granted", str(granted), "more than 0")
        require_modest(granted, insist=insist)
        file = LedgerFile.at(path, key)
        if not file.present:
            if file.path.exists():
                raise InputError(_exists(file.path.name))
            file.create()
        about = {"name": name, "table": table, "partition": partition, "keyed": bool(file.key)}
        with file.change() as change:
            if change.of(GRANT):
                raise InputError(_exists(file.path.name))
            change.append(GRANT, {**about, "amount": granted.to_dict(), "reason": ""})
        return cls(file.path, file.key)

    @classmethod
    def open(
        cls, path: str | PathLike[str], *, key: str | PathLike[str] | None = None
    ) -> BudgetLedger:
        """The ledger of ``path``, which must exist and be whole."""
        file = LedgerFile.at(path, key)
        ledger = cls(file.path, file.key)
        ledger.account()
        return ledger

    def account(self) -> Account:
        """All that the ledger says, after its seals were checked."""
        return self._account(self._file.records())

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
        require_budget("amount", amount)
        with self._file.change() as change:
            # Read and written under one lock: two processes cannot spend the same rest.
            known = self._account(change.records)
            self._require_table(known, table)
            new = Spending(len(known.spendings) + 1, now(), purpose, amount, levels, part)
            require_covered(known, new, self.path.name)
            if table and not known.table:
                change.append(BIND, {"table": table, "reason": "first use"})
            change.append(SPEND, _document(new))
            return new.serial

    def require_table(self, table: str) -> None:
        """Refuse the identity of another table than the ledger's."""
        self._require_table(self.account(), table)

    def _require_table(self, known: Account, table: str) -> None:
        if table and known.table and table != known.table:
            raise LedgerError(
                f"The ledger {self.path.name!r} keeps the budget of another table (other "
                "columns or another person column): use the ledger of this one, or say that "
                f"the table changed with `halfmask budget bind {self.path.name} TABLE "
                "--reason ...`."
            )

    def raise_to(self, amount: Budget, reason: str, *, insist: bool = False) -> None:
        """Grant more, by the controller, with a reason; nothing that was spent is forgotten."""
        require_budget("amount", amount)
        require_modest(amount, insist=insist)
        _require_reason(reason)
        with self._file.change() as change:
            former = self._account(change.records).granted
            if type(amount) is not type(former) or not former < amount:
                raise ParameterError("amount", str(amount), _more_than(former))
            change.append(RAISE, {"amount": amount.to_dict(), "reason": reason})

    def bind(self, table: str, reason: str) -> None:
        """Say that the ledger is for the table of another identity from now on."""
        _require_reason(reason)
        with self._file.change() as change:
            self._account(change.records)
            change.append(BIND, {"table": table, "reason": reason})

    @property
    def _file(self) -> LedgerFile:
        return LedgerFile(self.path, self.key)

    def _account(self, records: Sequence[LedgerRecord]) -> Account:
        found = [record for record in records if record.kind in (GRANT, RAISE, BIND, SPEND)]
        if not found:
            self._file.fail(
                "holds no budget: let the controller grant one, `halfmask budget create "
                f"{self.path.name} --grant EPSILON`."
            )
        return _account(found)


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


def table_identity(columns: Iterable[str], schema: Schema | None) -> str:
    """What a ledger knows its table by: the names of its columns and whose rows they are.

    Rows may come and go, and so may what people demand: columns of a policy file do not count.
    Names of columns are public, so that their digest is no secret.
    """
    person, apart = None, set()
    if schema is not None:
        person = schema.person
        apart = set(schema.policy_names) if schema.policy_file is not None else set()
    text = json.dumps([sorted(set(columns) - apart), person])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _epsilon(amount: Budget) -> Fraction:
    if isinstance(amount, Pure | Approximate):
        return amount.epsilon
    assert isinstance(amount, Concentrated)  # noqa: S101 - there is no other kind
    return Fraction(str(epsilon_of(amount, _READ_AT)))


def _account(records: Sequence[LedgerRecord]) -> Account:
    first = records[0].body
    table = first["table"]
    grants: list[BudgetGrant] = []
    spendings: list[Spending] = []
    for record in records:
        body = record.body
        if record.kind in (GRANT, RAISE):
            grants.append(BudgetGrant(record.at, read_budget(body["amount"]), body["reason"]))
        elif record.kind == BIND:
            table = body["table"]
        else:
            levels, part = body["levels"], body["part"]
            spendings.append(
                Spending(
                    len(spendings) + 1,
                    record.at,
                    body["purpose"],
                    read_budget(body["amount"]),
                    None
                    if levels is None
                    else {Fraction(k): Fraction(v) for k, v in levels.items()},
                    None if part is None else tuple(part),
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


def _exists(name: str) -> str:
    """What to do where a budget is granted and the file holds one, or something else."""
    return (
        f"The file {name!r} exists and stays as it is. If it is the ledger of this table, name it "
        f"with --ledger, without --grant (see what it has left with `halfmask budget show {name}`, "
        f"grant more with `halfmask budget raise {name} --to EPSILON --reason ...`); for another "
        "table, choose another name."
    )


def require_budget(name: str, amount: object) -> None:
    """Refuse what is no budget."""
    if not isinstance(amount, Budget):
        allowed = "a budget, such as Pure(2), Approximate(2, 1e-6) or Concentrated(0.1)"
        raise ParameterError(name, amount, allowed)


def _more_than(now: Budget) -> str:
    kind = {
        Pure: "an epsilon alone, as it was granted (a delta needs a new ledger)",
        Approximate: "an epsilon and a delta, as it was granted, none of them smaller",
        Concentrated: "a rho, as it was granted",
    }[type(now)]
    return f"more than {now}: {kind}"


def _require_reason(reason: str) -> None:
    if not isinstance(reason, str) or not reason.strip():
        raise ParameterError("reason", reason, "why, in a few words: it is kept in the ledger")
