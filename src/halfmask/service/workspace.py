"""A schema that comes from the page; it may name no file on the disk of the service.

The table that is in force, in plain values that pass from process to process.

The ledgers of a table: its budget, and what was answered before.

They lie in the private folder and are kept for the rows of a file, however often it is opened; or
they are files of whoever started the service: that of the budget keeps to the table that first
spent from it, that of answers counts for every table that is opened.

The one table that the page works on, what has been made of it, and the files of both.

Jobs run one at a time, so that only one of them changes a workspace. A table or schema that cannot
be read leaves the former in force; a step that fails or is cancelled leaves no result and no file.
"""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import budget
from halfmask.dp.ledger import BudgetLedger
from halfmask.errors import LedgerError, MissingError, SchemaError
from halfmask.ownership import private_folder
from halfmask.table.hierarchies import Csv
from halfmask.table.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from halfmask.dp.budget import Number


_START = "Start halfmask serve with FILE and --schema to use it."


def changed_schema(asked: Mapping[str, object], now: Schema) -> Schema:
    """The schema that ``asked`` describes, in the shape of the schema file.

    A hierarchy or policy that stands in a file is kept where it is the one in force, and refused
    where it is new: the browser would else choose what the service reads. What is looked at is the
    schema that comes out, so that it does not matter how it was written.

    Raises:
        SchemaError: with every fault.
    """
    schema = Schema.from_dict(asked, folder=now.folder)
    faults = [
        f"Column '{name}': a hierarchy in a file cannot be named from the page. {_START}"
        for name, column in schema.columns.items()
        if isinstance(column.hierarchy, Csv) and not _is_in_force(name, column.hierarchy, now)
    ]
    if schema.policy_file not in (None, now.policy_file):
        faults.append(f"A policy file cannot be named from the page. {_START}")
    if faults:
        raise SchemaError(*faults)
    return schema


def _is_in_force(name: str, found: Csv, now: Schema) -> bool:
    column = now.columns.get(name)
    former = None if column is None else column.hierarchy
    return isinstance(former, Csv) and former.to_dict() == found.to_dict()


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table as it was opened, without its rows.

    Attributes:
        serial: what tells it from every other table and schema of this service.
        path: where its rows lie; the browser is never told.
        content: what tells its bytes from those of every other file.
        how: the delimiter, encoding and decimal mark that were given.
        description: what its columns seem to be, as ``describe`` tells it.
        schema: what is in force.
        toml: the same as a file; a proposal says why.
        proposed: whether that schema is the proposal as it stands.
    """

    serial: str
    path: Path
    content: str
    how: Mapping[str, str | None]
    description: Mapping[str, Any]
    schema: Schema
    toml: str
    proposed: bool

    @property
    def name(self) -> str:
        """How its file is called."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class Population:
    """A table of all people of whom the other holds some: where it lies, and how large it is."""

    path: Path
    rows: int

    def to_dict(self) -> dict[str, Any]:
        """What the browser is told."""
        return {"name": self.path.name, "rows": self.rows}


_FOLDER = "ledgers"


@dataclass(frozen=True, slots=True)
class Ledgers:
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
    def of(cls, now: OpenTable, home: Path, own: tuple[Path | None, Path | None]) -> Ledgers:
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


_LONGEST = 80
_MOST_BYTES = 240  # of a name, which file systems count so


@dataclass(frozen=True, slots=True, eq=False)
class StepResult:
    """What a step gave: the document that is shown of it, and the folder of its files."""

    document: dict[str, Any]
    folder: Path


@dataclass(eq=False)
class Workspace:
    """A private folder, a table and the results of steps, by verb.

    ``own_ledgers`` are the files of a budget and of answers that the service was started with.
    """

    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="halfmask-serve-")))
    results: dict[str, StepResult] = field(default_factory=dict)
    population: Population | None = None
    own_ledgers: tuple[Path | None, Path | None] = (None, None)
    _table_facts: OpenTable | None = None

    def close(self) -> None:
        """Remove the folder with all that was sent or made, even while a file is being sent."""
        for _ in range(20):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                return
            time.sleep(0.05)

    @property
    def is_open(self) -> bool:
        """Whether there is a table."""
        return self._table_facts is not None

    @property
    def table_facts(self) -> OpenTable:
        """The table that is in force."""
        if self._table_facts is None:
            raise MissingError("No table is open: choose a file, or take the sample.")
        return self._table_facts

    @property
    def ledgers(self) -> Ledgers:
        """The ledgers of the table that is in force."""
        return Ledgers.of(self.table_facts, self.folder, self.own_ledgers)

    def become(self, table_facts: OpenTable) -> None:
        """Put another table or schema in force; what was made of the former is dropped."""
        for verb in list(self.results):
            self.drop(verb)
        former, self._table_facts = self._table_facts, table_facts
        if former is not None and former.path != table_facts.path:
            self.forget(former.path)
            self.compare_with(None)

    def compare_with(self, population: Population | None) -> None:
        """Take another population, or none, for the steps that compare with one."""
        former, self.population = self.population, population
        if former is not None:
            self.forget(former.path)

    def result(self, verb: str) -> StepResult:
        """What the last run of a step gave."""
        if verb not in self.results:
            raise MissingError(f"There is nothing of '{verb}' yet: run this step first.")
        return self.results[verb]

    def drop(self, verb: str) -> None:
        """Forget what a step gave before it runs again: nobody takes the old for the new."""
        for name in (verb, "compare") if verb == "anonymize" else (verb,):
            former = self.results.pop(name, None)
            if former is not None:
                shutil.rmtree(former.folder, ignore_errors=True)

    def room(self, name: str) -> Path:
        """A new place in the private folder for a file that the browser calls ``name``."""
        plain = re.sub(r"[^\w.-]+", "_", Path(name.replace("\\", "/")).name).lstrip(".")
        short = plain[-_LONGEST:].encode()[-_MOST_BYTES:].decode(errors="ignore")
        return self.new_folder() / (short.lstrip(".") or "table")

    def new_folder(self) -> Path:
        """A new, private and empty folder in the private folder."""
        made = self.folder / secrets.token_hex(8)
        made.mkdir(mode=0o700)
        return made

    @staticmethod
    @contextmanager
    def remove_unless_done(folder: Path) -> Iterator[None]:
        """Remove a folder again where what is done with it fails."""
        try:
            yield
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def forget(self, path: Path) -> None:
        """Remove a file that was sent or made here; the user's own files stay."""
        if path.is_relative_to(self.folder) and path.parent != self.folder:
            shutil.rmtree(path.parent, ignore_errors=True)
