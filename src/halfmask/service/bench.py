"""Where a table is worked on: its rows, and what the last steps made of them.

It stands in the process of the steps, and can be lost at any time: whoever asks says which table is
meant, and a bench that does not hold it reads it again.
"""

from __future__ import annotations

import hashlib
import secrets
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from halfmask.errors import InputError
from halfmask.service.schema_change import changed_schema
from halfmask.service.standing import Population, Standing
from halfmask.service.unpacked import require_unpacked
from halfmask.table.describe import describe
from halfmask.table.read import declared_schema, read
from halfmask.table.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from halfmask.table.table import Table


@dataclass(eq=False)
class Bench:
    """One table in memory, and its last release with the folder of its files."""

    release: tuple[Path, Any] | None = None
    _serial: str = ""
    _table: Table | None = None
    _population: tuple[Path, Table] | None = None

    def open(self, path: Path, schema: object = None, **how: str | None) -> Standing:
        """Open a file; its schema is the given one, the one beside it, or the proposal."""
        found = describe(read(path, Schema(), **how))
        declared = declared_schema(path, schema)
        proposed = declared == Schema()
        table = read(path, found.to_schema() if proposed else declared, **how)
        toml = found.to_toml() if proposed else table.schema.to_toml()
        facts = (how, found.to_dict(), table.schema, toml, proposed)
        return self._hold(Standing(_new(), path, _content(path), *facts), table)

    def open_sent(self, path: Path, unpacked_limit: int, **how: str | None) -> Standing:
        """Open a file that the browser sent and that may unpack to so many bytes."""
        with _without_place(path):
            require_unpacked(path, unpacked_limit)
            return self.open(
                path, Schema(), **how
            )  # it may not be its own schema, which names files

    def open_population(self, path: Path, unpacked_limit: int) -> Population:
        """The same for a population."""
        with _without_place(path):
            require_unpacked(path, unpacked_limit)
            return Population(path, len(self.population(path)))

    def population(self, path: Path) -> Table:
        """The rows of a population, whose roles do not matter."""
        if self._population is None or self._population[0] != path:
            self._population = path, read(path, Schema())
        return self._population[1]

    def change_schema(self, now: Standing, asked: Mapping[str, object]) -> Standing:
        """Put another schema in force."""
        schema = changed_schema(asked, now.schema)
        table = read(now.path, schema, **now.how)
        held, toml = table.schema, table.schema.to_toml()
        changed = replace(now, serial=_new(), schema=held, toml=toml, proposed=False)
        return self._hold(changed, table)

    def table(self, now: Standing) -> Table:
        """The rows, bound to the schema in force."""
        if self._table is None or self._serial != now.serial:
            self._hold(now, read(now.path, now.schema, **now.how))
        assert self._table is not None  # noqa: S101 - it is held now
        return self._table

    def _hold(self, standing: Standing, table: Table) -> Standing:
        self.release = None
        self._serial, self._table = standing.serial, table
        return standing


@contextmanager
def _without_place(path: Path) -> Iterator[None]:
    """Where a file lies is no help to whoever sent it."""
    try:
        yield
    except InputError as error:
        if type(error) is not InputError:
            raise
        raise InputError(str(error).replace(f"{path.parent}/", "")) from None


def _new() -> str:
    return secrets.token_hex(8)


def _content(path: Path) -> str:
    if not path.is_file():
        return _new()  # a pipe cannot be read again
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
