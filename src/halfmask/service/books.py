"""The ledgers of a table: its budget, and what was answered before.

They lie in the private folder and are kept for the rows of a file, however often it is opened; or
they are files of whoever started the service: that of the budget keeps to the table that first
spent from it, that of answers counts for every table that is opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import budget
from halfmask.dp.ledger import BudgetLedger
from halfmask.errors import LedgerError
from halfmask.release.files import private_folder

if TYPE_CHECKING:
    from pathlib import Path

    from halfmask.dp.budget import Number
    from halfmask.service.standing import Standing

_FOLDER = "ledgers"


@dataclass(frozen=True, slots=True)
class Books:
    """The two ledgers of one table.

    Attributes:
        budget: the file that keeps the budget; it is there once a budget is granted.
        answers: the file that keeps the answers to queries with guarantees.
        outlast: whether the budget is kept when the service ends.
    """

    budget: Path
    answers: Path
    outlast: bool

    @classmethod
    def of(cls, now: Standing, home: Path, own: tuple[Path | None, Path | None]) -> Books:
        """Those of a table; ``own`` are the files that the service was started with."""
        folder = home / _FOLDER
        budget_file, answers = own
        return cls(
            budget_file or folder / f"{now.content}.budget",
            answers or folder / f"{now.content}.answers",
            budget_file is not None,
        )

    def grant(self, epsilon: Number, delta: Number) -> None:
        """Start the ledger of the budget; a budget is granted once."""
        granted = budget(epsilon, delta)
        if self.budget.exists():
            raise LedgerError(
                "A budget is granted to this table already: it cannot be granted again, as what "
                "was spent would be forgotten."
            )
        private_folder(self.budget.parent)
        BudgetLedger.create(self.budget, granted)

    def accountant(self) -> Accountant:
        """Who keeps the budget.

        Raises:
            LedgerError: none was granted; nothing is spent without one.
        """
        if not self.budget.exists():
            raise LedgerError(
                "No privacy budget is granted to this table: say first how much all noisy answers "
                "and private tables together may spend."
            )
        return Accountant.of(BudgetLedger.open(self.budget))

    def to_dict(self) -> dict[str, Any] | None:
        """What was granted, spent and is left, and on what; None before it is granted."""
        if not self.budget.exists():
            return None
        facts = BudgetLedger.open(self.budget).account().to_dict()
        facts["kept"] = self.budget.name if self.outlast else None
        return {name: facts[name] for name in ("granted", "spent", "left", "kept", "spendings")}
