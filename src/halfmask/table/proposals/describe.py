"""Propose what the columns of a table are, and say why: ``hm.describe``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from halfmask.errors import HierarchyError, InputError, ParameterError
from halfmask.table.classes import QuasiIdentifiers, search_quasi_identifiers
from halfmask.table.columns import Column, abbreviate_names
from halfmask.table.document import grid, lines, view
from halfmask.table.hierarchies import Auto, Dates, Flat
from halfmask.table.hierarchies.builders import INTERVALS, find_automatic
from halfmask.table.hierarchy_finder import ROUNDS
from halfmask.table.moments import (
    EXCEL,
)
from halfmask.table.proposals.counts import ColumnCounts, RowCounts
from halfmask.table.proposals.roles import RoleFound, SurveyDesign, design_of, policy_of, role_of
from halfmask.table.proposals.shapes import (
    Facts,
    facts_of,
    round_intervals,
    shape_of,
)
from halfmask.table.proposals.writing import (
    Writing,
    understood_entries,
    usual_mark,
    without_tokens,
    writing_notes,
)
from halfmask.table.read import declared_schema, read_rows
from halfmask.table.schema import Schema, schema_to_toml
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from halfmask.table.hierarchy import HierarchyBuilder

    ColumnEntries = Mapping[str, pa.ChunkedArray]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What one column seems to be.

    Attributes:
        name: the column.
        role: identifier, quasi, sensitive, other or drop; or policy: a person's own demand.
        kind: numeric, date, ordinal or nominal.
        hierarchy: how it could be generalized, for a quasi-identifier.
        reason: why it has this role, in few words.
        why: the same with all that was seen of it.
        distinct: how many values differ.
        missing: how many rows have none.
        written: how its values are written, where that must be said: the ``decimal`` mark, the
            ``format`` of dates, the texts that seem to mean a ``missing`` value.
    """

    name: str
    role: str
    kind: str
    hierarchy: HierarchyBuilder | None
    reason: str
    why: str
    distinct: int
    missing: int
    written: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """The same as plain data."""
        out: dict[str, object] = {"name": self.name, "role": self.role, "kind": self.kind}
        if self.hierarchy is not None:
            out["hierarchy"] = self.hierarchy.to_dict()
        if self.written:
            out["written"] = {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in self.written.items()
            }
        out |= {"reason": self.reason, "why": self.why}
        return {**out, "distinct": self.distinct, "missing": self.missing}


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
        policy_columns: the demands for single columns that the table's schema states.
        household: the column that seems to say which rows are of one household.
        weight: the column that seems to say how many people a row stands for.
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
    policy_columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    household: str | None = None
    weight: str | None = None

    def __repr__(self) -> str:
        return f"Description({self.rows:,} rows, {len(self.columns)} columns)"

    def _repr_html_(self) -> str:
        """The proposal column by column, and what else was seen; no value of a column."""
        rows = [(p.name, p.role, p.kind, p.distinct, p.missing, p.reason) for p in self.columns]
        headings = ("column", "role", "kind", "distinct", "missing", "why")
        title = f"Proposed schema, from {self.rows:,} rows and {len(self.columns):,} columns"
        return view(title, grid(headings, rows, _SHOWN), lines(self.notes))

    def to_schema(self) -> Schema:
        """The proposal as a schema."""
        columns: dict[str, Any] = {
            p.name: Column(p.role, p.kind, p.hierarchy, **p.written)  # type: ignore[arg-type]
            for p in self.columns
            if p.role != "policy"
        }
        return Schema(
            columns,
            person=self.person,
            household=self.household,
            weight=self.weight,
            policy=self.policy,
            policy_columns=self.policy_columns,
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
            "household": self.household,
            "weight": self.weight,
            "policy": dict(self.policy),
            "quasi_identifiers": [list(names) for names in self.quasi_identifiers],
            "searched": self.searched,
            "missing": None if self.missing is None else list(self.missing),
            "decimal": self.decimal,
            "notes": list(self.notes),
        }


_SHOWN = 40  # columns that a notebook shows; to_toml() holds all


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


_TAKEN_BY = {"decimal": "numeric", "format": "date"}
HIERARCHIES = ("proposed", "auto")
_LIMIT = 3
_WORK = 2e8  # rows times column sets: about a second


def describe(
    source: object, *, hierarchies: str = "proposed", intervals: str = "equal-frequency"
) -> Description:
    """Propose role, kind and hierarchy of each column; of a schema only [policy] is used.

    Args:
        source: a table, or anything that ``read`` takes. Of rows that stay elsewhere the engine
            counts each column's values there, up to a million of them one by one.
        hierarchies: ``"proposed"`` from each column's values, or ``"auto"``: found from how the
            columns go together, for every quasi-identifier.
        intervals: with ``"auto"``, how numbers are first cut: ``"equal-frequency"``,
            ``"equal-width"`` or ``"modl"``, where it explains the other columns best.
    """
    if hierarchies not in HIERARCHIES:
        raise ParameterError("hierarchies", hierarchies, "one of " + ", ".join(HIERARCHIES))
    if intervals not in INTERVALS:
        raise ParameterError("intervals", intervals, "one of " + ", ".join(INTERVALS))
    table = source if isinstance(source, Table) else read_rows(source, Schema())
    counted = _counts(table, hierarchies)
    held = counted.columns
    origin = _origin(table)
    entries, tokens = without_tokens({n: one.entries for n, one in held.items()}, origin)
    usual = usual_mark(entries, table.schema.decimal, origin)
    entries, writings = understood_entries(entries, usual, workbook=origin == EXCEL)
    facts = [facts_of(name, entries[name], held[name]) for name in entries]
    policy, demands = _policy(facts, table.schema)
    design = design_of([f for f in facts if f.name not in demands], counted.pairs)
    known = {**design.roles, **demands}
    roles = {f.name: known[f.name] if f.name in known else role_of(f) for f in facts}
    found = _singling_sets([f for f in facts if roles[f.name].role == "quasi"], counted)
    proposals = tuple(_proposal(f, roles[f.name], found, writings[f.name]) for f in facts)
    notes = [
        *table.notes,
        *_notes(found, design, tokens),
        *writing_notes(writings, usual),
        *_many_notes(facts),
    ]
    if hierarchies == "auto":
        arrow = pa.table(entries)
        proposals = _automatic(arrow, proposals, Auto(intervals=intervals), notes)
    missing = ("", *tokens) if tokens else None
    decimal = "," if usual == "," else None
    return Description(
        counted.rows,
        proposals,
        design.person,
        policy,
        found.sets,
        found.size,
        missing,
        decimal,
        tuple(notes),
        table.schema.policy_columns,
        design.household,
        design.weight,
    )


def _counts(table: Table, hierarchies: str) -> ColumnCounts:
    """The columns, counted where the rows are; how columns go together is found from rows."""
    stored = table.stored
    counted = None
    if stored is not None and hierarchies == "proposed":
        counted = stored.column_counts(table.schema)
    return RowCounts(table.collect()) if counted is None else counted


def _origin(table: Table) -> str:
    """``csv`` where texts became numbers and dates only as they were read."""
    stored = table.stored
    if stored is None:
        return table.origin
    return "csv" if stored.are_texts else "arrow"


def _singling_sets(quasi: list[Facts], counted: ColumnCounts) -> QuasiIdentifiers:
    """The sets of columns that single rows out."""
    by_name = {f.name: f for f in quasi}
    return search_quasi_identifiers(
        list(by_name),
        counted.rows,
        lambda name: by_name[name].single > 0,
        lambda names, most: counted.joint([by_name[name] for name in names], most),
        (_LIMIT, _WORK),
    )


def with_declared_policy(table: Table, file: str) -> Table:
    """The table with the [policy] of the schema beside its file, where there is a sound one."""
    try:
        declared = declared_schema(file, None)
    except InputError:
        return table
    names = set(declared.policy_names)
    if not names or not names <= set(table.column_names):
        return table
    known = replace(table.schema, policy=declared.policy, policy_columns=declared.policy_columns)
    return table.with_schema(known)


def _policy(facts: list[Facts], schema: Schema) -> tuple[dict[str, Any], dict[str, RoleFound]]:
    """What [policy] is proposed to say, and the role and reason of the columns with demands.

    What the schema's own [policy] names stands; a second column of one kind never leaves.
    """
    policy: dict[str, Any] = dict(schema.policy)
    declared = RoleFound("policy", "the schema's [policy] names it; it never leaves")
    roles = dict.fromkeys(schema.policy_names, declared)
    for one in facts:
        demand = None if one.name in roles else policy_of(one)
        if demand is None:
            continue
        own = f"numbers named as a person's own {demand}"
        if demand in policy:
            roles[one.name] = RoleFound("identifier", f"{own}, of which there is one already")
        else:
            policy[demand] = one.name
            roles[one.name] = RoleFound("policy", f"{own}; they never leave")
    return policy, roles


def _automatic(
    arrow: pa.Table, proposals: tuple[Proposal, ...], auto: Auto, notes: list[str]
) -> tuple[Proposal, ...]:
    """The proposals with hierarchies found from how the columns go together, where they do."""
    columns: dict[str, Any] = {
        p.name: Column(p.role, p.kind, auto if p.role == "quasi" else None)  # type: ignore[arg-type]
        for p in proposals
        if p.role != "policy"
    }
    try:
        found = find_automatic(Table(arrow.select(list(columns)), Schema(columns))).schema.columns
    except HierarchyError:
        notes.append(
            "The columns do not go together, or there are too few rows: the hierarchies proposed "
            "here are made of each column's own values."
        )
        return proposals
    notes.append(f"Hierarchies were found with {ROUNDS} round(s) of search, as by every verb.")
    return tuple(
        _with_found(p, found[p.name].hierarchy) if p.name in found else p for p in proposals
    )


def _with_found(proposal: Proposal, builder: HierarchyBuilder | None) -> Proposal:
    """The proposal with the hierarchy that was found, where one was."""
    if proposal.role != "quasi" or builder is None or isinstance(builder, Flat | Dates):
        return proposal  # the calendar, and what its own values say
    # What its own values would have given is no longer the reason.
    why = proposal.why.partition("; numbers, merged")[0].partition("; text without a known")[0]
    why = f"{why}; its hierarchy was found from how the columns go together"
    return replace(proposal, hierarchy=round_intervals(builder), why=why)


def _many_notes(facts: list[Facts]) -> list[str]:
    """Which columns have so many values that some of these were looked at."""
    many = [one for one in facts if one.many is not None]
    if not many:
        return []
    looked = min(len(one.values) for one in many)
    return [
        f"Very many values: {abbreviate_names([one.name for one in many])}. All were counted; kind "
        f"and hierarchy were judged by {looked:,} of them, the most frequent ones."
    ]


def _proposal(facts: Facts, said: RoleFound, found: QuasiIdentifiers, writing: Writing) -> Proposal:
    """The proposal for one column."""
    shape, role = shape_of(facts), said.role
    reasons = [said.reason, *([said.details] if said.details else [])]
    if role == "quasi":
        partners = [names for names in found.sets if facts.name in names and len(names) > 1]
        if partners:
            others = " and ".join(name for name in partners[0] if name != facts.name)
            reasons.append(f"with {others} it singles rows out")
        reasons.append(shape.why)
    hierarchy = shape.hierarchy if role == "quasi" else None
    if facts.missing and role == "policy":
        reasons.append(f"{facts.missing:,} rows state none")
    elif facts.missing:
        counts_as = "protects nobody" if role == "sensitive" else "counts as a value of its own"
        reasons.append(f"{facts.missing:,} rows have no value, which {counts_as}")
    text = "; ".join([*reasons, *writing.why])
    counts = (facts.distinct, facts.missing)
    written = {
        name: value
        for name, value in writing.entry.items()
        if name == "missing" or _TAKEN_BY[name] == shape.kind
    }
    return Proposal(facts.name, role, shape.kind, hierarchy, said.reason, text, *counts, written)


def _notes(
    found: QuasiIdentifiers, design: SurveyDesign, tokens: tuple[str, ...]
) -> tuple[str, ...]:
    notes = []
    if found.sets:
        sets = "; ".join(" + ".join(names) for names in found.sets[:10])
        more = f"; and {len(found.sets) - 10} more" if len(found.sets) > 10 else ""
        notes.append(f"Minimal column sets that single rows out: {sets}{more}.")
    else:
        notes.append("No set of columns that was looked at singles a row out.")
    notes.append(f"All sets of up to {found.size} columns were decided, on all rows.")
    if design.person is not None:
        notes.append(f"People have several rows, told apart by {design.person}: k counts people.")
    if design.household is not None:
        notes.append(
            f"Rows of one household share {design.household}: its people know of each other; "
            "--k-households counts households."
        )
    if design.weight is not None:
        notes.append(f"Rows stand for people of the population by {design.weight}: risks use it.")
    if tokens:
        notes.append(f"{len(tokens)} text(s) that usually mean a missing value are read as one.")
    return tuple(notes)
