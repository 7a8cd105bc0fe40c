"""The one table that the page works on, and what has been made of it.

Jobs run one at a time, so that only one of them changes a workspace. A table or schema that cannot
be read leaves the former in force; a step that fails leaves no result.
"""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfmask.errors import InputError, MissingError
from halfmask.sample import SEED, write
from halfmask.service.schema_change import changed_schema
from halfmask.table.describe import describe
from halfmask.table.read import declared_schema, read
from halfmask.table.schema import Schema
from halfmask.table.schema_file import mapping_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from halfmask.table.description import Description
    from halfmask.table.table import Table

_LONGEST = 80
_MOST_BYTES = 240  # of a name, which file systems count so


@dataclass(frozen=True, slots=True)
class Opened:
    """A table as it was opened.

    Attributes:
        path: where its rows lie; the browser is never told.
        name: how its file is called.
        how: the delimiter and encoding that were given.
        description: what its columns seem to be.
        table: its rows, bound to the schema that is in force.
        proposed: whether that schema is the proposal as it stands.
    """

    path: Path
    name: str
    how: Mapping[str, str | None]
    description: Description
    table: Table
    proposed: bool


@dataclass(frozen=True, slots=True)
class Result:
    """What a step gave: the thing itself, and the document that is shown of it."""

    made: Any
    document: dict[str, Any]


@dataclass(eq=False)
class Workspace:
    """A private folder, a table and the results of steps, by verb."""

    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="halfmask-serve-")))
    results: dict[str, Result] = field(default_factory=dict)
    _opened: Opened | None = None

    def close(self) -> None:
        """Remove the folder with all that was sent or made, even while a job still writes to it."""
        for _ in range(20):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                return
            time.sleep(0.05)

    @property
    def is_open(self) -> bool:
        """Whether there is a table."""
        return self._opened is not None

    @property
    def opened(self) -> Opened:
        """The table as it was opened."""
        if self._opened is None:
            raise MissingError("No table is open: choose a file, or take the sample.")
        return self._opened

    def result(self, verb: str) -> Result:
        """What the last run of a step gave."""
        if verb not in self.results:
            raise MissingError(f"There is nothing of '{verb}' yet: run this step first.")
        return self.results[verb]

    def drop(self, verb: str) -> None:
        """Forget what a step gave before it runs again: nobody takes the old for the new."""
        self.results.pop(verb, None)
        if verb == "anonymize":
            self.results.pop("compare", None)

    def room(self, name: str) -> Path:
        """A new place in the private folder for a file that the browser calls ``name``."""
        plain = re.sub(r"[^\w.-]+", "_", Path(name.replace("\\", "/")).name).lstrip(".")
        place = self.folder / secrets.token_hex(8)
        place.mkdir(mode=0o700)
        short = plain[-_LONGEST:].encode()[-_MOST_BYTES:].decode(errors="ignore")
        return place / (short.lstrip(".") or "table")

    def open(self, path: Path, schema: object = None, **how: str | None) -> None:
        """Open a file; its schema is the given one, the one beside it, or the proposal."""
        found = describe(read(path, Schema(), **how))
        declared = declared_schema(path, schema)
        proposed = declared == Schema()
        table = read(path, found.to_schema() if proposed else declared, **how)
        self._become(Opened(path, path.name, how, found, table, proposed))

    def open_sent(self, path: Path) -> None:
        """Open a file that the browser sent; it is removed where it cannot be read."""
        try:
            self.open(path, Schema())  # what is sent may not be its own schema, which names files
        except InputError as error:
            self.forget(path)
            if type(error) is not InputError:
                raise
            # Where the file lies is no help to whoever sent it.
            raise InputError(str(error).replace(f"{path.parent}/", "")) from None
        except BaseException:
            self.forget(path)
            raise

    def open_sample(self, rows: int) -> None:
        """Open an invented table, with its schema and hierarchies."""
        self.open(write(self.room("people").parent, rows, seed=SEED))

    def change_schema(self, asked: Mapping[str, object]) -> None:
        """Put another schema in force; what was made under the former one is dropped."""
        now = self.opened
        schema = changed_schema(asked, now.table.schema)
        table = read(now.path, schema, **now.how)
        self._become(replace(now, table=table, proposed=False))

    def read_schema(self, text: str) -> None:
        """The same, from the text of a schema file."""
        self.change_schema(mapping_of(text, "schema.toml"))

    def schema_file(self) -> str:
        """The schema in force, as a file; a proposal says why."""
        now = self.opened
        return now.description.to_toml() if now.proposed else now.table.schema.to_toml()

    def _become(self, opened: Opened) -> None:
        self.results.clear()
        former, self._opened = self._opened, opened
        if former is not None and former.path != opened.path:
            self.forget(former.path)

    def forget(self, path: Path) -> None:
        """Remove a file that was sent or made here; the user's own files stay."""
        if path.is_relative_to(self.folder) and path.parent != self.folder:
            shutil.rmtree(path.parent, ignore_errors=True)
