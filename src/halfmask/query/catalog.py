"""The tables a query may speak of: their columns, roles and hierarchies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from halfmask.query.parsing.chain import folded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.schema import QueryRules, Schema
    from halfmask.table.table import Table


@dataclass(frozen=True, eq=False)
class Source:
    """One table.

    Attributes:
        name: what the engine calls it.
        columns: its columns and their types.
        schema: what they are, where it is known.
        table: the table itself, where it is in memory.
        repeats: whether people have several rows; None where it must be asked.
    """

    name: str
    columns: Mapping[str, pa.DataType]
    schema: Schema | None = None
    table: Table | None = None
    repeats: bool | None = None

    @property
    def person(self) -> str | None:
        """The column that says whose row it is."""
        return self.schema.person if self.schema else None

    @property
    def hidden(self) -> set[str]:
        """Columns that may not leave: identifiers, the person, people's demands."""
        if self.schema is None:
            return set()
        found = {*self.schema.names("identifier"), *self.schema.policy_names}
        return found | ({self.schema.person} if self.schema.person else set())

    def role(self, column: str) -> str:
        """The role of a column; undeclared columns count as known to others."""
        declared = self.schema.columns.get(column) if self.schema else None
        return declared.role if declared else "quasi"

    def find(self, name: str) -> str | None:
        """The column of that name; case, spaces and hyphens make no difference."""
        if name in self.columns:
            return name
        same = [c for c in self.columns if folded(c) == folded(name)]
        return same[0] if len(same) == 1 else None


@dataclass(frozen=True, eq=False)
class Catalog:
    """All tables.

    Attributes:
        sources: by name.
        main: the one that a query on a single table means whatever it calls it.
        lookup: asks the engine for a table that is not listed yet.
        hierarchies: those that were built already.
        declared: what all given tables are, also those that no query reads.
        rules: what the controller lets be asked, by the schemas that were given.
    """

    sources: dict[str, Source]
    main: str | None = None
    lookup: Callable[[str], Source | None] | None = None
    hierarchies: dict[tuple[str, str], Hierarchy] = field(default_factory=dict)
    rules: tuple[QueryRules, ...] = ()
    declared: Mapping[str, Schema] = field(default_factory=dict)

    def find(self, name: str) -> Source | None:
        """The table of that name."""
        for source in self.sources.values():
            if folded(source.name) == folded(name):
                return source
        if self.main is not None:
            return self.sources.get(self.main)
        found = self.lookup(name) if self.lookup is not None else None
        if found is not None:
            self.sources[found.name] = found
        return found
