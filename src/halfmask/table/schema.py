"""The role, kind and hierarchy of each column, and where people's own demands stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from halfmask.table.hierarchy import HierarchyBuilder

Role = Literal["identifier", "quasi", "sensitive", "other"]
Kind = Literal["numeric", "date", "ordinal", "nominal"]


@dataclass(frozen=True, slots=True)
class Column:
    """What one column is.

    Attributes:
        role: identifier (never leaves), quasi (known to others), sensitive, or other (leaves as is).
        kind: how its values relate; ``None`` means: as the data says.
        hierarchy: how a quasi-identifier (or a sensitive column) is generalized.
        weight: how much this column's loss counts against the others'.
    """

    role: Role
    kind: Kind | None = None
    hierarchy: HierarchyBuilder | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Schema:
    """What a table's columns are, who a row is about, and what these people demand.

    Attributes:
        columns: one entry per declared column.
        person: the column that says whose row this is; ``None``: one row, one person.
        policy: demand (``"k"``, ``"l"`` ...) to the column that holds it.
    """

    columns: Mapping[str, Column] = field(default_factory=dict)
    person: str | None = None
    policy: Mapping[str, str] = field(default_factory=dict)

    def names(self, role: Role) -> tuple[str, ...]:
        """The columns of one role, in declared order."""
        return tuple(name for name, column in self.columns.items() if column.role == role)

    @property
    def quasi(self) -> tuple[str, ...]:
        """The quasi-identifiers."""
        return self.names("quasi")

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive columns."""
        return self.names("sensitive")
