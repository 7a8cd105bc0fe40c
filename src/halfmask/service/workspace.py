"""The one table that the page works on, what has been made of it, and the files of both.

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

from halfmask.errors import MissingError
from halfmask.service.books import Books

if TYPE_CHECKING:
    from collections.abc import Iterator

    from halfmask.service.standing import Population, Standing

_LONGEST = 80
_MOST_BYTES = 240  # of a name, which file systems count so


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a step gave: the document that is shown of it, and the folder of its files."""

    document: dict[str, Any]
    folder: Path


@dataclass(eq=False)
class Workspace:
    """A private folder, a table and the results of steps, by verb.

    ``own_ledgers`` are the files of a budget and of answers that the service was started with.
    """

    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="halfmask-serve-")))
    results: dict[str, Result] = field(default_factory=dict)
    population: Population | None = None
    own_ledgers: tuple[Path | None, Path | None] = (None, None)
    _standing: Standing | None = None

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
        return self._standing is not None

    @property
    def standing(self) -> Standing:
        """The table that is in force."""
        if self._standing is None:
            raise MissingError("No table is open: choose a file, or take the sample.")
        return self._standing

    @property
    def books(self) -> Books:
        """The ledgers of the table that is in force."""
        return Books.of(self.standing, self.folder, self.own_ledgers)

    def become(self, standing: Standing) -> None:
        """Put another table or schema in force; what was made of the former is dropped."""
        for verb in list(self.results):
            self.drop(verb)
        former, self._standing = self._standing, standing
        if former is not None and former.path != standing.path:
            self.forget(former.path)
            self.compare_with(None)

    def compare_with(self, population: Population | None) -> None:
        """Take another population, or none, for the steps that compare with one."""
        former, self.population = self.population, population
        if former is not None:
            self.forget(former.path)

    def result(self, verb: str) -> Result:
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
    def kept_if_done(folder: Path) -> Iterator[None]:
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
