"""A proposed schema, with the reasons for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halfmask.table.schema import Column, Schema
from halfmask.table.schema_file import schema_to_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from halfmask.table.hierarchy import HierarchyBuilder


@dataclass(frozen=True, slots=True)
class Proposal:
    """What one column seems to be.

    Attributes:
        name: the column.
        role: identifier, quasi, sensitive or other; or policy: a person's own demand.
        kind: numeric, date, ordinal or nominal.
        hierarchy: how it could be generalized, for a quasi-identifier.
        why: the reasons, in words.
        distinct: how many values differ.
        missing: how many rows have none.
    """

    name: str
    role: str
    kind: str
    hierarchy: HierarchyBuilder | None
    why: str
    distinct: int
    missing: int

    def to_dict(self) -> dict[str, object]:
        """The same as plain data."""
        out: dict[str, object] = {"name": self.name, "role": self.role, "kind": self.kind}
        if self.hierarchy is not None:
            out["hierarchy"] = self.hierarchy.to_dict()
        return {**out, "why": self.why, "distinct": self.distinct, "missing": self.missing}


@dataclass(frozen=True, slots=True)
class Description:
    """A proposed schema with the reason for each part of it.

    Attributes:
        rows: how many rows were looked at: all of them.
        columns: one proposal per column, in the table's order.
        person: the column that seems to say whose row this is, where people have several rows.
        policy: demand to the column that seems to hold it.
        quasi_identifiers: the minimal sets of columns that single rows out.
        searched: sets of up to this many columns were decided.
        missing: texts that seem to mean a missing value, with the empty text.
        decimal: the decimal mark of the file, where it is a comma.
        notes: what else was seen.
    """

    rows: int
    columns: tuple[Proposal, ...]
    person: str | None
    policy: Mapping[str, str]
    quasi_identifiers: tuple[tuple[str, ...], ...]
    searched: int
    missing: tuple[str, ...] | None
    decimal: str | None
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Description({self.rows:,} rows, {len(self.columns)} columns)"

    def to_schema(self) -> Schema:
        """The proposal as a schema."""
        columns: dict[str, Any] = {
            p.name: Column(p.role, p.kind, p.hierarchy)  # type: ignore[arg-type]
            for p in self.columns
            if p.role != "policy"
        }
        return Schema(
            columns,
            person=self.person,
            policy=self.policy,
            missing=self.missing,
            decimal=self.decimal,
        )

    def to_toml(self) -> str:
        """The text of a schema file; each column's reason is a comment above it."""
        reasons = {p.name: _sentence(p.why) for p in self.columns}
        reasons["[policy]"] = "\n".join(
            f"{p.name}: {_sentence(p.why)}" for p in self.columns if p.role == "policy"
        )
        head = ["Proposed by halfmask describe: read it, and change what is wrong.", *self.notes]
        comment = "".join(f"# {line}\n" for line in head)
        return f"{comment}\n{schema_to_toml(self.to_schema(), reasons)}"

    def to_dict(self) -> dict[str, object]:
        """The same as plain data, for JSON."""
        return {
            "rows": self.rows,
            "columns": [proposal.to_dict() for proposal in self.columns],
            "person": self.person,
            "policy": dict(self.policy),
            "quasi_identifiers": [list(names) for names in self.quasi_identifiers],
            "searched": self.searched,
            "missing": None if self.missing is None else list(self.missing),
            "decimal": self.decimal,
            "notes": list(self.notes),
        }


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
