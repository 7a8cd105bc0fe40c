"""What a measure is asked of: rows in memory, a file or a database, and how it is read."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from halfmask.engines.open import is_address
from halfmask.errors import ParameterError
from halfmask.table.demands import read_policies, with_policies
from halfmask.table.read import declared_schema, read
from halfmask.table.table import Table, require_table

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from halfmask.engines.request import Engine
    from halfmask.table.schema import Schema

LARGE = 2 << 30  # files of more bytes are counted by the engine without being asked


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Source:
    """Rows and how to come by them.

    Attributes:
        given: a table (or, with ``schema``, a frame), the name of a file, or the address of a
            database.
        schema: as for ``read``.
        engine: who counts: ``"duckdb"``, ``"postgres"``, or ``"memory"``, which reads the rows.
        table: which table of a database.
        memory_limit: how much memory DuckDB may take.
        delimiter: what stands between the fields of a text file; None: detected.
        encoding: the character encoding of a text file; None: detected.
    """

    given: object
    schema: object = None
    engine: str | None = None
    table: str | None = None
    memory_limit: str | None = None
    delimiter: str | None = None
    encoding: str | None = None

    @property
    def place(self) -> str:
        """The file or address; nothing for rows in memory."""
        return os.fspath(self.given) if isinstance(self.given, str | os.PathLike) else ""

    @property
    def declared(self) -> Schema:
        """The schema that was given, or that of the file beside the data."""
        return declared_schema(self.given, self.schema)

    @property
    def stays(self) -> bool:
        """Whether the rows stay where they are and are counted by an engine.

        A database counts its own rows, DuckDB those of a large file or where a memory limit is
        given.

        Raises:
            ParameterError: there is no such engine, or it does not go with the source.
        """
        if not isinstance(self.given, str | os.PathLike):
            return False
        if self.engine not in (None, "duckdb", "postgres", "memory"):
            raise ParameterError("engine", self.engine, "duckdb, postgres or memory")
        if is_address(self.place):
            if self.engine == "memory":
                raise ParameterError("engine", "memory", "nothing: a database counts its own rows")
            return True
        if self.engine == "postgres":
            raise ParameterError("engine", "postgres", "a postgres:// address in place of the file")
        if self.engine is None and self.memory_limit is None:
            return Path(self.place).is_file() and Path(self.place).stat().st_size > LARGE
        return self.engine != "memory"

    def read(self) -> Table:
        """All rows."""
        if self.schema is None and not isinstance(self.given, str | os.PathLike):
            return require_table(self.given)
        return read(self.given, self.declared, delimiter=self.delimiter, encoding=self.encoding)

    def demanding(self, policies: object) -> Source:
        """The same rows, whose people also demand what ``policies`` say."""
        found = read_policies(policies)
        if found is None:
            return self
        if not self.stays:
            return replace(self, given=with_policies(self.read(), found), schema=None)
        declared = self.declared
        return replace(self, schema=replace(declared, policies=(*declared.policies, found)))

    def open(self) -> AbstractContextManager[tuple[Engine, str]]:
        """An engine over rows that stay, and the name that their table has in it."""
        from halfmask.engines.large import open_large

        declared = self.declared
        return open_large(
            self.place,
            table=self.table,
            memory_limit=self.memory_limit,
            delimiter=self.delimiter or declared.delimiter,
            encoding=self.encoding or declared.encoding,
        )
