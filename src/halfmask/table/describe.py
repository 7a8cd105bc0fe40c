"""Propose what the columns of a table are, and say why: ``hm.describe``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import ParameterError
from halfmask.table.decimal_comma import with_points
from halfmask.table.description import Description, Proposal
from halfmask.table.hierarchies import Auto, Dates, Flat
from halfmask.table.hierarchies.auto import INTERVALS, settled
from halfmask.table.infer import inferred, used_values
from halfmask.table.normalize import text_column
from halfmask.table.proposals.facts import Facts, facts_of
from halfmask.table.proposals.kinds import shape_of
from halfmask.table.proposals.roles import is_person, policy_of, role_of
from halfmask.table.quasi_identifiers import Found, search
from halfmask.table.read import read
from halfmask.table.schema import Column, Schema
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping


_MISSING = ("?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null")
HIERARCHIES = ("proposed", "auto")
_LIMIT = 3
_WORK = 5e8  # rows times column sets: a few seconds


def describe(
    source: object, *, hierarchies: str = "proposed", intervals: str = "equal-frequency"
) -> Description:
    """Propose role, kind and hierarchy of each column; what the schema says is not used.

    Args:
        source: a table, or anything that ``read`` takes.
        hierarchies: ``"proposed"`` from each column's values, or ``"auto"``: found from how the
            columns go together, for every quasi-identifier.
        intervals: with ``"auto"``, how numbers are first cut: ``"equal-frequency"``,
            ``"equal-width"`` or ``"modl"``, where it explains the other columns best.
    """
    if hierarchies not in HIERARCHIES:
        raise ParameterError("hierarchies", hierarchies, "one of " + ", ".join(HIERARCHIES))
    if intervals not in INTERVALS:
        raise ParameterError("intervals", intervals, "one of " + ", ".join(INTERVALS))
    table = source if isinstance(source, Table) else read(source, Schema())
    arrow, tokens = _without_tokens(table)
    arrow, commas = _with_points(arrow, table)
    facts = [facts_of(name, arrow[name]) for name in arrow.column_names]
    policy = {demand: f.name for f in facts if (demand := policy_of(f)) is not None}
    person = next((f.name for f in facts if is_person(f)), None)
    roles = {f.name: _role(f, person, policy) for f in facts}
    quasi = [f for f in facts if roles[f.name][0] == "quasi" and f.distinct > 0]
    found = search({f.name: (f.codes, f.size) for f in quasi}, _LIMIT, _WORK)
    own = hierarchies == "proposed"
    proposals = tuple(_proposal(f, *roles[f.name], found, own=own) for f in facts)
    if not own:
        proposals = _automatic(arrow, proposals, Auto(intervals=intervals))
    missing = ("", *tokens) if tokens else None
    decimal = "," if commas or table.schema.decimal == "," else None
    notes = (*_notes(found, person, tokens), *_comma_note(commas))
    return Description(
        len(table), proposals, person, policy, found.sets, found.size, missing, decimal, notes
    )


def _automatic(
    arrow: pa.Table, proposals: tuple[Proposal, ...], auto: Auto
) -> tuple[Proposal, ...]:
    """The proposals with hierarchies found from how the columns go together."""
    columns: dict[str, Any] = {
        p.name: Column(p.role, p.kind, auto if p.role == "quasi" else None)  # type: ignore[arg-type]
        for p in proposals
        if p.role != "policy"
    }
    found = settled(Table(arrow.select(list(columns)), Schema(columns))).schema.columns
    return tuple(
        replace(
            p,
            hierarchy=found[p.name].hierarchy,
            why=f"{p.why}; {_found_words(found[p.name].hierarchy)}",
        )
        if p.role == "quasi"
        else p
        for p in proposals
    )


def _found_words(builder: object) -> str:
    if isinstance(builder, Flat):
        return "no groups were found in it: kept or hidden"
    if isinstance(builder, Dates):
        return "dates, merged by the calendar"
    return "its hierarchy was found from how the columns go together"


def _without_tokens(table: Table) -> tuple[pa.Table, tuple[str, ...]]:
    """The rows with texts such as ``?`` taken as missing, and which of them occur."""
    arrow = table.arrow
    known = pa.array(_MISSING)
    tokens: dict[str, None] = {}
    for place, name in enumerate(arrow.column_names):
        column = arrow[name]
        if not pa.types.is_dictionary(column.type):
            continue
        values = used_values(column)
        seen = values.filter(pc.is_in(values, value_set=known)).to_pylist()
        if not seen or _are_country_codes(values):
            continue
        tokens.update(dict.fromkeys(seen))
        column = text_column(column, seen)
        column = inferred(column) if table.origin == "csv" else column
        arrow = arrow.set_column(place, name, column)
    return arrow, tuple(sorted(tokens))


def _with_points(arrow: pa.Table, table: Table) -> tuple[pa.Table, list[str]]:
    """The rows with decimal commas read as such, and the columns that have them.

    Where other columns of the file have points, nobody can tell what either mark means.
    """
    floats = any(pa.types.is_floating(field.type) for field in arrow.schema)
    if table.origin != "csv" or table.schema.decimal is not None or floats:
        return arrow, []
    return with_points(arrow)


def _comma_note(names: list[str]) -> list[str]:
    if not names:
        return []
    return [
        f"Numbers with a decimal comma: {', '.join(names)}. They are read as numbers with "
        'decimal = "," under [table] (or --decimal ,), else as text.'
    ]


def _are_country_codes(values: pa.Array) -> bool:
    """NA among codes of two letters is Namibia."""
    return bool(pc.all(pc.match_substring_regex(values, "^[A-Z]{2}$")).as_py()) and len(values) > 9


def _role(facts: Facts, person: str | None, policy: Mapping[str, str]) -> tuple[str, str]:
    for demand, name in policy.items():
        if facts.name == name:
            return "policy", f"whole numbers named as a person's own {demand}; they never leave"
    if facts.name == person:
        return "identifier", (
            f"its name says whose row this is: {facts.distinct:,} people in {facts.rows:,} rows"
        )
    return role_of(facts)


def _proposal(facts: Facts, role: str, why: str, found: Found, *, own: bool) -> Proposal:
    """The proposal for one column; ``own``: its hierarchy comes from its own values."""
    shape = shape_of(facts)
    reasons = [why]
    if role == "quasi":
        partners = [names for names in found.sets if facts.name in names and len(names) > 1]
        if partners:
            others = " and ".join(name for name in partners[0] if name != facts.name)
            reasons.append(f"with {others} it singles rows out")
        reasons += [shape.why] if own else []
    hierarchy = shape.hierarchy if role == "quasi" else None
    if facts.missing:
        reasons.append(f"{facts.missing:,} rows have no value, which counts as a value of its own")
    text = "; ".join(reasons)
    return Proposal(facts.name, role, shape.kind, hierarchy, text, facts.distinct, facts.missing)


def _notes(found: Found, person: str | None, tokens: tuple[str, ...]) -> tuple[str, ...]:
    notes = []
    if found.sets:
        sets = "; ".join(" + ".join(names) for names in found.sets[:10])
        more = f"; and {len(found.sets) - 10} more" if len(found.sets) > 10 else ""
        notes.append(f"Minimal column sets that single rows out: {sets}{more}.")
    else:
        notes.append("No set of columns that was looked at singles a row out.")
    notes.append(f"All sets of up to {found.size} columns were decided, on all rows.")
    if person is not None:
        notes.append(f"People have several rows, told apart by {person}: k counts people.")
    if tokens:
        notes.append(f"{len(tokens)} text(s) that usually mean a missing value are read as one.")
    return tuple(notes)
