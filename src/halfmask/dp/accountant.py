"""Who decides what may be spent, and proves afterwards what was.

An ``Accountant`` holds the budget of one table (in memory, or in a ledger on disk). Before a table
is touched, an ``Allowance`` is taken: the whole promise is spent at once. Mechanisms then charge
the allowance, and its ``Receipt`` is what the door for private releases demands.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from halfmask.dp.budget import (
    Approximate,
    Budget,
    Concentrated,
    Pure,
    as_kind,
    concentrated_within,
    total,
    zero,
)
from halfmask.dp.ledger import Account, BudgetGrant, BudgetLedger, Spending, require_covered
from halfmask.errors import (
    BudgetExceededError,
    InternalError,
    LedgerError,
    ParameterError,
    PrivacyError,
)
from halfmask.table.columns import quote_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from halfmask.table.schema import Schema

_ISSUER = object()


def whose_rows(schema: Schema | None, most: int) -> tuple[str, ...]:
    """What a promise covers, in words; by the schema and public numbers alone, never by rows."""
    if schema is not None and schema.person is not None:
        used = "1 row is" if most == 1 else f"{most:,} rows are"
        return (
            f"Of each person ({quote_names([schema.person])}) at most {used} used, and further "
            "ones are left out at random: a larger bound of rows per person uses more, with more "
            "noise.",
        )
    person = 'name the column that says whose row it is: person = "..." under [table]'
    if most == 1:
        held = "each row is taken for one person, and epsilon holds per row. "
    else:
        held = f"epsilon holds for people with up to {most:,} rows, and no row is left out. "
    named = () if schema is None else schema.names("identifier")
    if named:
        said = (
            f"{quote_names(named)} identify people or groups: if one of them tells people apart, "
        )
    else:
        said = "Where people can have more rows, "
    return (f"The schema names no person column: {held}{said}{person}.",)


@dataclass(frozen=True, slots=True)
class ViewCost:
    """One use of the table: which noisy view was read, by what, at which cost.

    Attributes:
        view: the columns whose counts were read, or what was chosen.
        mechanism: the name of the mechanism.
        cost: what it cost.
        variance: the variance of the noise in each number, stated before use; None for a choice.
        level: the public level of demand whose people alone were read; None: all who are read.
    """

    view: str
    mechanism: str
    cost: Budget
    variance: Fraction | None = None
    level: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was promised and what was used for it; only an allowance writes one.

    Attributes:
        promise: the budget that was spent.
        limit: the promise in the unit in which mechanisms were charged.
        entries: every use of the table.
        rows_per_person: how many rows one person could have, of which no more were used.
        secure: whether all noise came from the system's secure source.
        serial: the line of the ledger, where there is one.
        levels: what it cost people at each public level of demand; empty: as promised.
        limits: per level what mechanisms that read its people alone could use.
        by_person: whether a person column told whose rows are whose; else it holds per row.
    """

    promise: Budget
    limit: Budget
    entries: tuple[ViewCost, ...]
    rows_per_person: int
    secure: bool
    serial: int | None
    issuer: InitVar[object]
    levels: Mapping[Fraction, Fraction] = field(default_factory=dict)
    limits: Mapping[Fraction, Budget] = field(default_factory=dict)
    by_person: bool = False

    def __post_init__(self, issuer: object) -> None:
        if issuer is not _ISSUER:
            raise PrivacyError("A receipt is written by an allowance: take one from an accountant.")

    @property
    def neighbors(self) -> str:
        """Which tables nobody can tell apart: without a person column, rows are all it knows."""
        most = self.rows_per_person
        rows = "one row" if most == 1 else f"up to {most:,} rows"
        whose = "all rows of one person" if self.by_person else rows
        return f"tables that differ by {whose} (added or removed)"

    def verify(self) -> None:
        """Add the entries up again; an overspent receipt is a defect."""
        for level in (None, *self.limits):
            limit = self.limit if level is None else self.limits[level]
            used = total((e.cost for e in self.entries if e.level == level), limit)
            if not used <= limit:
                raise InternalError("The mechanisms used more budget than was spent.")
        if not {e.level for e in self.entries} <= {None, *self.limits}:
            raise InternalError("The mechanisms read people whose budget was not spent.")
        delta = self.promise.delta if isinstance(self.promise, Approximate) else 0
        for level, limit in self.limits.items():
            cost = self.levels.get(level, 0)
            if not _implies(limit, Approximate(cost, delta) if delta else Pure(cost)):
                raise InternalError("The unit of a level does not imply what it pays.")
        if any(cost > level for level, cost in self.levels.items()):
            raise InternalError("People at a level of demand would pay more than they allow.")
        if not _implies(self.limit, self.promise):
            raise InternalError("The unit of the mechanisms does not imply the promise.")

    def to_dict(self) -> dict[str, object]:
        """The receipt as plain values."""
        return {
            "promise": self.promise.to_dict(),
            "unit": self.limit.to_dict(),
            "neighbors": self.neighbors,
            "by_person": self.by_person,
            "rows_per_person": self.rows_per_person,
            "secure_noise": self.secure,
            "ledger_serial": self.serial,
            "levels": [
                {"epsilon": float(level), "cost": float(cost)}
                for level, cost in self.levels.items()
            ],
            "views": [
                {
                    "view": e.view,
                    "mechanism": e.mechanism,
                    "cost": e.cost.to_dict(),
                    "variance": None if e.variance is None else float(e.variance),
                    **({} if e.level is None else {"level": float(e.level)}),
                }
                for e in self.entries
            ],
        }


@dataclass(slots=True)
class Allowance:
    """Budget that is already spent and from which mechanisms take their parts.

    Attributes:
        promise: what was spent.
        limit: the same in the unit in which mechanisms charge: zCDP where delta is above 0.
        rows_per_person: how many rows one person can have, or, of wide rows, change: noise is for
            so many.
        rows_used: how many own rows these are made of, which the receipt names; None: as many.
    """

    promise: Budget
    limit: Budget
    rows_per_person: int = 1
    serial: int | None = None
    secure: bool = True
    entries: list[ViewCost] = field(default_factory=list)
    issuer: InitVar[object] = None
    levels: Mapping[Fraction, Fraction] = field(default_factory=dict)
    limits: Mapping[Fraction, Budget] = field(default_factory=dict)
    by_person: bool = False
    rows_used: int | None = None

    def __post_init__(self, issuer: object) -> None:
        if issuer is not _ISSUER:
            raise PrivacyError("An allowance is budget that was spent: take it from an accountant.")

    @property
    def remaining(self) -> Budget:
        """What mechanisms can still take that read everybody."""
        return self.left(None)

    def left(self, level: Fraction | None) -> Budget:
        """What mechanisms can still take that read the people of a level alone."""
        limit = self.limit if level is None else self.limits[level]
        return limit - total((e.cost for e in self.entries_of(level)), limit)

    def charge(self, entry: ViewCost) -> None:
        """Take the cost of ``entry``, or refuse before the table is touched."""
        left = self.left(entry.level)
        cost = as_kind(entry.cost, left)
        if not cost <= left:
            raise BudgetExceededError(cost, left, cost - left)
        self.entries.append(entry)

    def lower(self, limit: Budget) -> None:
        """Let mechanisms take less than was spent; more is never possible."""
        if not limit <= self.limit or self.entries_of(None):
            raise InternalError("A limit is lowered before it is used, and never raised.")
        self.limit = limit

    def entries_of(self, level: Fraction | None) -> list[ViewCost]:
        """The uses that read the people of a level alone; None: everybody."""
        return [entry for entry in self.entries if entry.level == level]

    def receipt(self) -> Receipt:
        """What was used so far."""
        return Receipt(
            self.promise,
            self.limit,
            tuple(self.entries),
            self.rows_used or self.rows_per_person,
            self.secure,
            self.serial,
            _ISSUER,
            dict(self.levels),
            dict(self.limits),
            self.by_person,
        )


@dataclass(frozen=True, slots=True)
class SpendingScope:
    """Whose rows a use of the table reads, and what that costs them.

    Attributes:
        levels: what it costs people at each public level of demand, 0 for those who are left out;
            None: everybody the same.
        limits: per level what mechanisms may take that read its people alone.
        limit: what mechanisms may take that read everybody; None: the promise.
        part: the values of the accountant's partition whose people are read; None: all.
        table: the identity of the table, for its ledger.
        by_person: whether the table's schema names the person column.
        rows_used: of how many own rows the rows of one person are made, where these are wide.
    """

    levels: Mapping[Fraction, Fraction] | None = None
    limits: Mapping[Fraction, Budget] = field(default_factory=dict)
    limit: Budget | None = None
    part: tuple[str, ...] | None = None
    table: str = ""
    by_person: bool = False
    rows_used: int | None = None

    def __post_init__(self) -> None:
        if self.rows_used is not None and not self.by_person:  # a receipt would promise rows
            raise InternalError("Wide rows are made of rows of people whom a column tells apart.")


@dataclass(slots=True)
class Accountant:
    """Holds the budget of one table and refuses what goes beyond it.

    Example:
        >>> accountant = Accountant(Pure(1))
        >>> allowance = accountant.allow(Pure("0.4"), "a histogram")
        >>> accountant.remaining
        epsilon = 0.6
    """

    granted: Budget
    ledger: BudgetLedger | None = None
    partition: str = ""
    _spent: list[Spending] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def of(cls, ledger: BudgetLedger) -> Accountant:
        """The accountant whose record is ``ledger``."""
        now = ledger.account()
        return cls(now.granted, ledger, now.partition)

    @property
    def remaining(self) -> Budget:
        """What may still be spent."""
        return self._account().remaining

    def left(
        self, levels: Sequence[Fraction], part: tuple[str, ...] | None = None
    ) -> tuple[Fraction, ...]:
        """What people at each public level of demand have left of it, in one part or in all."""
        return self._account().left(levels, part)

    def allow(
        self,
        promise: Budget,
        purpose: str,
        *,
        rows_per_person: int = 1,
        as_promised: bool = False,
        scope: SpendingScope | None = None,
    ) -> Allowance:
        """Spend ``promise`` and give what mechanisms may take from it.

        Args:
            promise: what to spend, all of it and now.
            purpose: what for, in words that hold no value of the table.
            rows_per_person: how many rows one person can have.
            as_promised: charge mechanisms in epsilon and delta even where zCDP could be used.
            scope: whose rows are read, and what it costs people who state an own epsilon.

        Raises:
            BudgetExceededError: more than remains was requested; nothing was spent.
        """
        if promise == zero(promise):
            raise ParameterError("epsilon", 0, "above 0")
        if rows_per_person < 1:
            raise ParameterError("rows_per_person", rows_per_person, "at least 1")
        whose = scope or SpendingScope()
        limit = promise if as_promised else unit(promise)
        # A ledger in rho is charged in rho where that is what the mechanisms use.
        cost = limit if isinstance(self.granted, Concentrated) else promise
        if self.ledger is not None:
            serial: int | None = self.ledger.spend(
                cost, purpose, levels=whose.levels, part=whose.part, table=whose.table
            )
        else:
            serial = None
            # Looked up and spent under one lock: two threads must not both find enough.
            with self._lock:
                new = Spending(len(self._spent) + 1, "", purpose, cost, whose.levels, whose.part)
                require_covered(self._account(), new)
                self._spent.append(new)
        return Allowance(
            promise,
            whose.limit or limit,
            rows_per_person,
            serial,
            issuer=_ISSUER,
            levels=whose.levels or {},
            limits=whose.limits,
            by_person=whose.by_person,
            rows_used=whose.rows_used,
        )

    def resume(
        self,
        promise: Budget,
        purpose: str,
        serial: int,
        *,
        rows_per_person: int,
        scope: SpendingScope,
    ) -> Allowance:
        """The allowance of a spending before, for views that it paid for and that were not read.

        Nothing is spent. Whoever asks must read each such view once only, whenever that is.

        Raises:
            LedgerError: the ledger has no such spending.
        """
        limit = unit(promise)
        cost = limit if isinstance(self.granted, Concentrated) else promise
        paid = [one for one in self._account().spendings if one.serial == serial]
        if self.ledger is None or not paid or (paid[0].purpose, paid[0].amount) != (purpose, cost):
            raise LedgerError("The ledger has not paid for this. Nothing was computed.")
        self.ledger.require_table(scope.table)
        return Allowance(
            promise, limit, rows_per_person, serial, issuer=_ISSUER, by_person=scope.by_person
        )

    def _account(self) -> Account:
        if self.ledger is not None:
            return self.ledger.account()
        return Account(
            "", "", self.partition, (BudgetGrant("", self.granted, ""),), tuple(self._spent)
        )


def unit(promise: Budget) -> Budget:
    """The unit in which mechanisms charge: zCDP where delta is above 0, else as promised."""
    if isinstance(promise, Approximate) and promise.delta > 0:
        return concentrated_within(promise)
    return Pure(promise.epsilon) if isinstance(promise, Approximate) else promise


def _implies(limit: Budget, promise: Budget) -> bool:
    if isinstance(promise, Approximate) and isinstance(limit, Concentrated):
        return limit <= concentrated_within(promise)
    if isinstance(promise, Approximate):
        return as_kind(limit, promise) <= promise
    return type(limit) is type(promise) and limit <= promise
