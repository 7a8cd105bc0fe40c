"""The role, kind and hierarchy of each column, and where people's own demands stand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from halfmask.errors import SchemaError
from halfmask.table.names import told

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from halfmask.table.hierarchy import HierarchyBuilder

Role = Literal["identifier", "quasi", "sensitive", "other"]
Kind = Literal["numeric", "date", "ordinal", "nominal"]

ROLES: tuple[str, ...] = get_args(Role)
KINDS: tuple[str, ...] = get_args(Kind)
DEMANDS = ("k", "l", "t", "epsilon")
NO_QUASI = (
    'No column is declared a quasi-identifier: give role = "quasi" to those that others '
    "may know, or run `halfmask describe`."
)


@dataclass(frozen=True, slots=True)
class Column:
    """What one column is.

    Attributes:
        role: identifier (never leaves), quasi (known to others), sensitive, or other (leaves
            as is).
        kind: how its values relate; ``None`` means: as the data says.
        hierarchy: how a quasi-identifier (or a sensitive column) is generalized.
        weight: how much this column's loss counts against the others'.
        order: the values of an ordinal column from lowest to highest.
        domain: the public values of the column, or its bounds, known without looking at the rows:
            ``("f", "m")`` or ``{"low": 0, "high": 110, "bins": 22}``; for differential privacy.
    """

    role: Role
    kind: Kind | None = None
    hierarchy: HierarchyBuilder | None = None
    weight: float = 1.0
    order: tuple[object, ...] | None = None
    domain: tuple[object, ...] | Mapping[str, object] | None = None

    def faults(self, name: str) -> list[str]:
        """Everything that is wrong with this entry taken alone."""
        found = []
        if self.role not in ROLES:
            found.append(f"Column '{name}': the role is none of {', '.join(ROLES)}.")
        if self.kind is not None and self.kind not in KINDS:
            found.append(f"Column '{name}': the kind is none of {', '.join(KINDS)}.")
        if self.hierarchy is not None and not hasattr(self.hierarchy, "build"):
            found.append(f"Column '{name}': the hierarchy is no builder; see halfmask.hierarchies.")
        if not _is_weight(self.weight):
            found.append(f"Column '{name}': the weight must be a finite number of at least 0.")
        if self.order is not None:
            if self.kind not in (None, "ordinal"):
                found.append(f"Column '{name}': only an ordinal column takes an order.")
            if len({str(value) for value in self.order}) < len(self.order):
                found.append(f"Column '{name}': the order names a value twice.")
        if self.domain is not None and not isinstance(self.domain, list | tuple | range | Mapping):
            found.append(
                f"Column '{name}': the domain is a list of values, or a table with low and high."
            )
        return found


@dataclass(frozen=True, slots=True)
class Schema:
    """What a table's columns are, who a row is about, and what these people demand.

    Attributes:
        columns: one entry per declared column; a plain text means the role.
        person: the column that says whose row this is; ``None``: one row, one person.
        policy: demand (``"k"``, ``"l"``, ``"t"``, ``"epsilon"``) to the column that holds it.
        policy_file: a file keyed by the person column that holds the policy columns.
        missing: the texts that mean a missing value; ``None``: the empty text in text files.
        delimiter: what stands between the fields of a text file; ``None``: detected.
        encoding: the character encoding of a text file; ``None``: detected.
        decimal: the decimal mark of a text file, ``","`` or ``"."``; ``None``: a point.
        folder: the folder that relative file names refer to.
        epsilon_levels: the public levels of epsilon that people's own are rounded down to,
            ascending; empty: halfmask's own.
        epsilon_shares: the public share of people at each level; empty: not known.

    Example:
        >>> Schema({"age": "quasi", "disease": "sensitive"}).quasi
        ('age',)
    """

    columns: Mapping[str, Column] = field(default_factory=dict)
    person: str | None = None
    policy: Mapping[str, str] = field(default_factory=dict)
    policy_file: str | None = None
    missing: tuple[str, ...] | None = None
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    folder: Path = field(default_factory=Path, compare=False)
    epsilon_levels: tuple[float, ...] = ()
    epsilon_shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        columns = {
            name: column if isinstance(column, Column) else Column(column)
            for name, column in self.columns.items()
        }
        object.__setattr__(self, "columns", columns)
        faults = [fault for name, column in columns.items() for fault in column.faults(name)]
        faults += self._two_roles()
        weights = [column.weight for column in columns.values() if column.role == "quasi"]
        if weights and all(_is_weight(weight) and weight == 0 for weight in weights):
            faults.append("All quasi-identifiers have weight 0: give those that count more.")
        faults += [
            f"Policy: a demand is none of {', '.join(DEMANDS)}."
            for demand in self.policy
            if demand not in DEMANDS
        ]
        if self.policy_file is not None and self.person is None:
            faults.append("Policy: a policy file needs [table] person, the column that keys it.")
        faults += self._level_faults()
        if faults:
            raise SchemaError(*faults)

    def _two_roles(self) -> list[str]:
        """Person and policy columns never leave, so they cannot be anything but identifiers."""
        uses = {name: f"the policy column of {demand}" for demand, name in self.policy.items()}
        faults = []
        if self.person is not None:
            if self.person in uses:
                faults.append(f"Column '{self.person}' has two roles: person and policy. Keep one.")
            uses[self.person] = "the person column"
        for name, use in uses.items():
            column = self.columns.get(name)
            if column is not None and column.role in ("quasi", "sensitive", "other"):
                faults.append(
                    f"Column '{name}' has two roles: {use} and {column.role}. Keep one of them."
                )
        return faults

    def _level_faults(self) -> list[str]:
        """What is wrong with the public levels of epsilon and their shares."""
        levels, shares = self.epsilon_levels, self.epsilon_shares
        faults = []
        if not all(_is_weight(level) and level >= 0.001 for level in levels) or any(
            high <= low for low, high in pairwise(levels)
        ):
            faults.append("[policy] levels: epsilon takes ascending numbers of at least 0.001.")
        if shares and (
            len(shares) != len(levels)
            or not all(_is_weight(share) and share > 0 for share in shares)
            or abs(sum(shares) - 1) > 1e-9
        ):
            faults.append(
                "[policy] shares: epsilon takes one share above 0 per level, which add up to 1."
            )
        return faults

    def names(self, role: Role) -> tuple[str, ...]:
        """The columns of one role, in declared order."""
        return tuple(name for name, column in self.columns.items() if column.role == role)

    @property
    def quasi(self) -> tuple[str, ...]:
        """The quasi-identifiers."""
        return self.names("quasi")

    def require_quasi(self) -> None:
        """Refuse a schema by which nobody can be recognized.

        Raises:
            SchemaError: no column is a quasi-identifier.
        """
        if not self.quasi:
            raise SchemaError(NO_QUASI)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive columns."""
        return self.names("sensitive")

    @property
    def private(self) -> tuple[str, ...]:
        """The columns that never leave: identifiers, the person column and the policy columns."""
        extra = [self.person] if self.person is not None else []
        return tuple(dict.fromkeys([*self.names("identifier"), *extra, *self.policy.values()]))

    def undeclared(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of ``names`` that the schema says nothing about."""
        known = {*self.columns, *self.private}
        return tuple(name for name in names if name not in known)

    def unknown(self, names: Sequence[str]) -> list[str]:
        """One fault per column that the schema names and the table does not have."""
        places = [(name, "declared in the schema") for name in self.columns]
        if self.person is not None and self.person not in self.columns:
            places.append((self.person, "named as the person column"))
        places += [
            (name, f"named as the policy column of {demand}")
            for demand, name in self.policy.items()
            if name not in self.columns
        ]
        exists = told(names)
        return [
            f"Column '{name}' is {place} but not in the table, which has {exists}."
            for name, place in places
            if name not in names
        ]

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        """Read a schema file (TOML); file names in it refer to its folder."""
        from halfmask.table.schema_file import read_schema

        return read_schema(Path(path))

    @classmethod
    def from_dict(cls, data: Mapping[str, object], *, folder: str | Path = "") -> Schema:
        """Make a schema from a mapping of the shape of the schema file."""
        from halfmask.table.schema_file import schema_from_dict

        return schema_from_dict(data, Path(folder))

    def to_dict(self) -> dict[str, object]:
        """The mapping that ``from_dict`` reads back."""
        from halfmask.table.schema_file import schema_to_dict

        return schema_to_dict(self)

    def to_toml(self) -> str:
        """The text of a schema file that reads back as this schema, in the same folder."""
        from halfmask.table.schema_file import schema_to_toml

        return schema_to_toml(self)


def _is_weight(weight: object) -> bool:
    return (
        isinstance(weight, int | float)
        and not isinstance(weight, bool)
        and math.isfinite(weight)
        and weight >= 0
    )
