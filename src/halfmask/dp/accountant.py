"""Who decides what may be spent, and proves afterwards what was.

An ``Accountant`` holds the budget of one table (in memory, or in a ledger on disk). Before a table
is touched, an ``Allowance`` is taken: the whole promise is spent at once. Mechanisms then charge
the allowance, and its ``Receipt`` is what the door for private releases demands.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from halfmask.dp.budget import Approximate, Budget, Concentrated, Pure, concentrated_within
from halfmask.dp.compose import as_kind, total, zero
from halfmask.errors import BudgetExceededError, InternalError, ParameterError, PrivacyError

if TYPE_CHECKING:
    from fractions import Fraction

    from halfmask.dp.ledger import BudgetLedger

_DESK = object()
NEIGHBORS = "tables that differ by all rows of one person (added or removed)"


@dataclass(frozen=True, slots=True)
class Entry:
    """One use of the table: which noisy view was read, by what, at which cost.

    Attributes:
        view: the columns whose counts were read, or what was chosen.
        mechanism: the name of the mechanism.
        cost: what it cost.
        variance: the variance of the noise in each number, stated before use; None for a choice.
    """

    view: str
    mechanism: str
    cost: Budget
    variance: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was promised and what was used for it; only an allowance writes one.

    Attributes:
        promise: the budget that was spent.
        limit: the promise in the unit in which mechanisms were charged.
        entries: every use of the table.
        rows_per_person: how many rows one person could have.
        secure: whether all noise came from the system's secure source.
        serial: the line of the ledger, where there is one.
    """

    promise: Budget
    limit: Budget
    entries: tuple[Entry, ...]
    rows_per_person: int
    secure: bool
    serial: int | None
    desk: InitVar[object]

    def __post_init__(self, desk: object) -> None:
        if desk is not _DESK:
            raise PrivacyError("A receipt is written by an allowance: take one from an accountant.")

    def verify(self) -> None:
        """Add the entries up again; an overspent receipt is a defect."""
        used = total((entry.cost for entry in self.entries), self.limit)
        if not used <= self.limit:
            raise InternalError("The mechanisms used more budget than was spent.")
        if not _implied(self.limit, self.promise):
            raise InternalError("The unit of the mechanisms does not imply the promise.")

    def to_dict(self) -> dict[str, object]:
        """The receipt as plain values."""
        return {
            "promise": self.promise.to_dict(),
            "unit": self.limit.to_dict(),
            "neighbors": NEIGHBORS,
            "rows_per_person": self.rows_per_person,
            "secure_noise": self.secure,
            "ledger_serial": self.serial,
            "views": [
                {
                    "view": e.view,
                    "mechanism": e.mechanism,
                    "cost": e.cost.to_dict(),
                    "variance": None if e.variance is None else float(e.variance),
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
        rows_per_person: how many rows one person can have.
    """

    promise: Budget
    limit: Budget
    rows_per_person: int = 1
    serial: int | None = None
    secure: bool = True
    entries: list[Entry] = field(default_factory=list)
    desk: InitVar[object] = None

    def __post_init__(self, desk: object) -> None:
        if desk is not _DESK:
            raise PrivacyError("An allowance is budget that was spent: take it from an accountant.")

    @property
    def remaining(self) -> Budget:
        """What mechanisms can still take."""
        return self.limit - total((e.cost for e in self.entries), self.limit)

    def charge(self, entry: Entry) -> None:
        """Take the cost of ``entry``, or refuse before the table is touched."""
        cost, left = as_kind(entry.cost, self.limit), self.remaining
        if not cost <= left:
            raise BudgetExceededError(cost, left, cost - left)
        self.entries.append(entry)

    def receipt(self) -> Receipt:
        """What was used so far."""
        return Receipt(
            self.promise,
            self.limit,
            tuple(self.entries),
            self.rows_per_person,
            self.secure,
            self.serial,
            _DESK,
        )


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
    _spent: list[Budget] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def of(cls, ledger: BudgetLedger) -> Accountant:
        """The accountant whose record is ``ledger``."""
        return cls(ledger.granted(), ledger)

    @property
    def remaining(self) -> Budget:
        """What may still be spent."""
        if self.ledger is not None:
            return self.ledger.remaining()
        return self.granted - total(self._spent, self.granted)

    def allow(
        self,
        promise: Budget,
        purpose: str,
        *,
        rows_per_person: int = 1,
        as_promised: bool = False,
    ) -> Allowance:
        """Spend ``promise`` and give what mechanisms may take from it.

        Args:
            promise: what to spend, all of it and now.
            purpose: what for, in words that hold no value of the table.
            rows_per_person: how many rows one person can have.
            as_promised: charge mechanisms in epsilon and delta even where zCDP could be used.

        Raises:
            BudgetExceededError: more than remains was requested; nothing was spent.
        """
        if promise == zero(promise):
            raise ParameterError("epsilon", 0, "above 0")
        if rows_per_person < 1:
            raise ParameterError("rows_per_person", rows_per_person, "at least 1")
        limit = promise if as_promised else unit(promise)
        serial = None
        if self.ledger is not None:
            serial = self.ledger.spend(promise, purpose)
        else:
            with self._lock:
                cost, left = as_kind(promise, self.granted), self.remaining
                if not cost <= left:
                    raise BudgetExceededError(cost, left, cost - left)
                self._spent.append(cost)
        return Allowance(promise, limit, rows_per_person, serial, desk=_DESK)


def unit(promise: Budget) -> Budget:
    """The unit in which mechanisms charge: zCDP where delta is above 0, else as promised."""
    if isinstance(promise, Approximate) and promise.delta > 0:
        return concentrated_within(promise)
    return Pure(promise.epsilon) if isinstance(promise, Approximate) else promise


def _implied(limit: Budget, promise: Budget) -> bool:
    if isinstance(promise, Approximate) and isinstance(limit, Concentrated):
        return limit <= concentrated_within(promise)
    if isinstance(promise, Approximate):
        return as_kind(limit, promise) <= promise
    return type(limit) is type(promise) and limit <= promise
