"""The role, kind and hierarchy of each column, and where people's own demands stand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from halfmask.errors import SchemaError
from halfmask.table.demands import Demand, Policies, entry_faults
from halfmask.table.names import told

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from halfmask.table.hierarchy import HierarchyBuilder

Role = Literal["identifier", "quasi", "sensitive", "other"]
Kind = Literal["numeric", "date", "ordinal", "nominal"]

ROLES: tuple[str, ...] = get_args(Role)
KINDS: tuple[str, ...] = get_args(Kind)
FLOOR = 3
MOST_SHARES = 10
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
class QueryRules:
    """What the controller lets be asked, whoever asks.

    Attributes:
        k: the least k that an answer promises; ``None``: 3.
        single_people: the word that ``k = 1`` needs: figures about single people may leave.
        tables: the tables that may be asked; ``None``: those that are given.
        dominance: ``{"p": 10}`` or ``{"n": 2, "k": 85}``: no sum that few people make up.
    """

    k: int | None = None
    single_people: bool = False
    tables: tuple[str, ...] | None = None
    dominance: Mapping[str, float] = field(default_factory=dict)

    def faults(self) -> list[str]:
        """Everything that is wrong with these rules."""
        found = []
        if self.k is not None and (not isinstance(self.k, int) or isinstance(self.k, bool)):
            found.append("[query] k must be a whole number.")
        elif self.k is not None and self.k < 1:
            found.append("[query] k must be at least 1.")
        elif self.k == 1 and not self.single_people:
            found.append(
                "[query] k = 1 lets figures about single people leave: say so with "
                "single_people = true, or give k = 2 or more."
            )
        if self.tables is not None and not all(isinstance(t, str) and t for t in self.tables):
            found.append('[query] tables must be a list of names, such as ["visits"].')
        return found + self._dominance_faults()

    def _dominance_faults(self) -> list[str]:
        rule = self.dominance
        right = isinstance(rule, Mapping) and set(rule) in (set(), {"p"}, {"n", "k"})
        if right and all(_is_weight(value) for value in rule.values()):
            whole = isinstance(rule.get("n", 1), int) and 1 <= rule.get("n", 1) <= MOST_SHARES
            if whole and rule.get("p", 1) > 0 and 0 < rule.get("k", 1) <= 100:
                return []
        return [
            "[query] dominance must be { p = 10 } (percent) or { n = 2, k = 85 } (the n largest "
            f"may make up k percent), n at most {MOST_SHARES}."
        ]


@dataclass(frozen=True, slots=True)
class Schema:
    """What a table's columns are, who a row is about, and what these people demand.

    Attributes:
        columns: one entry per declared column; a plain text means the role.
        person: the column that says whose row this is; ``None``: one row, one person.
        policy: demand (``"k"``, ``"l"``, ``"t"``, ``"epsilon"``) to the column that holds it, or to
            the number that everybody demands.
        policy_file: a file keyed by the person column that holds the policy columns, or TOML of the
            shape of ``Policies``.
        policy_columns: column to the demands that hold, beside the general ones, where it is shown.
        policies: more sources of demands; all count, and the strictest holds.
        missing: the texts that mean a missing value; ``None``: the empty text in text files.
        delimiter: what stands between the fields of a text file; ``None``: detected.
        encoding: the character encoding of a text file; ``None``: detected.
        decimal: the decimal mark of a text file, ``","`` or ``"."``; ``None``: a point.
        query: what the controller lets be asked, as rules or as a mapping of their names.
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
    policy: Mapping[str, Demand] = field(default_factory=dict)
    policy_file: str | None = None
    missing: tuple[str, ...] | None = None
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    query: QueryRules = QueryRules()
    folder: Path = field(default_factory=Path, compare=False)
    policy_columns: Mapping[str, Mapping[str, Demand]] = field(default_factory=dict)
    policies: tuple[Policies, ...] = field(default=(), compare=False, repr=False)
    epsilon_levels: tuple[float, ...] = ()
    epsilon_shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        columns = {
            name: column if isinstance(column, Column) else Column(column)
            for name, column in self.columns.items()
        }
        object.__setattr__(self, "columns", columns)
        if isinstance(self.query, Mapping):
            object.__setattr__(self, "query", QueryRules(**self.query))
        faults = [fault for name, column in columns.items() for fault in column.faults(name)]
        faults += self._two_roles() + self.query.faults()
        weights = [column.weight for column in columns.values() if column.role == "quasi"]
        if weights and all(_is_weight(weight) and weight == 0 for weight in weights):
            faults.append("All quasi-identifiers have weight 0: give those that count more.")
        faults += entry_faults("[policy]", self.policy)
        for name, entry in self.policy_columns.items():
            faults += entry_faults(f"[policy.columns] '{name}'", entry)
        if self.policy_file is not None and self.person is None:
            faults.append("Policy: a policy file needs [table] person, the column that keys it.")
        faults += self._level_faults()
        if faults:
            raise SchemaError(*faults)

    def _two_roles(self) -> list[str]:
        """Person and policy columns never leave, so they cannot be anything but identifiers."""
        uses = self._policy_uses()
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

    def _policy_uses(self) -> dict[str, str]:
        """What each column that holds demands is, in words."""
        entries = [self.policy, *self.policy_columns.values()]
        for source in self.policies:
            entries += [source.general, *source.columns.values()]
        return {
            name: f"the policy column of {demand}"
            for entry in entries
            for demand, name in entry.items()
            if isinstance(name, str)
        }

    @property
    def policy_names(self) -> tuple[str, ...]:
        """The columns that hold demands."""
        return tuple(self._policy_uses())

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
        return tuple(dict.fromkeys([*self.names("identifier"), *extra, *self.policy_names]))

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
            (name, f"named as {use}")
            for name, use in self._policy_uses().items()
            if name not in self.columns
        ]
        places += [
            (name, "named in [policy.columns]")
            for name in self.policy_columns
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
