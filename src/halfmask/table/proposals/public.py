"""A schema for differential privacy from what is public: names, types and a codebook; no value.

What cannot be known without looking at the rows is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from halfmask.table.columns import Column
from halfmask.table.proposals import vocabulary as words
from halfmask.table.proposals.roles import named_demand
from halfmask.table.schema import Schema, schema_to_toml
from halfmask.table.values import is_number

if TYPE_CHECKING:
    from halfmask.table.table import Table

_KEPT_BACK = ("identifier", "drop")
# What everybody knows of a thing that is called so.
_COMMON = (
    ("age alter edad eta leeftijd idade", {"low": 0, "high": 120, "bins": 24}),
    ("month monat mois mes mese maand", list(range(1, 13))),
    ("weekday wochentag", list(range(1, 8))),
    ("hour stunde heure hora ora uur", list(range(24))),
    ("percent prozent pourcent", {"low": 0, "high": 100, "bins": 20}),
)


@dataclass(frozen=True, slots=True)
class PublicDescription:
    """A schema that holds nothing which comes from rows, and what it asks for.

    Attributes:
        schema: the columns, with the domains that are known, and the person column by its name.
        asked: the columns whose domain nobody said.
        unused: what the codebook speaks of and the table does not have.
    """

    schema: Schema
    asked: tuple[str, ...]
    unused: tuple[str, ...] = ()

    def to_toml(self) -> str:
        """The text of a schema file, with a question above each column that lacks a domain."""
        questions = {
            name: _question(self.schema.columns[name])
            for name in self.schema.columns
            if name in self.asked
        }
        head = (
            "# Proposed by halfmask describe --public, from the names and types of columns alone:\n"
            "# no value of a row stands here. Write down what is asked for from what is public,\n"
            "# such as the form or the codebook. Values outside of it are moved into it.\n"
        )
        for name in self.schema.names("drop"):
            questions[name] = "By its name a sampling weight: it does not leave."
        questions["[table]"] = (
            "By its name this column says whose row it is: at most the stated rows of a person\n"
            "are used. Correct it where it is wrong: epsilon holds for whom it tells apart."
        )
        questions["[policy]"] = (
            "By its name this column holds what people demand; it never leaves. Delete it where\n"
            "it is something else, and give the column a role."
        )
        if self.schema.person is None:
            head += (
                "#\n"
                "# Which column says whose row it is? No name tells. Without it each row is taken\n"
                "# for one person, and epsilon holds per row. Where people can have several rows:\n"
                '# [table]\n# person = "..."\n'
            )
        return f"{head}\n{schema_to_toml(self.schema, questions)}"

    def to_dict(self) -> dict[str, object]:
        """The same as plain data."""
        return {
            "schema": self.schema.to_dict(),
            "asked": list(self.asked),
            "unused": list(self.unused),
        }


def _question(column: Column) -> str:
    if column.kind == "date":
        return "Between which days? domain = { low = 1900-01-01, high = 2030-12-31 }"
    if column.kind == "numeric":
        return "From what to what, or which codes? domain = { low = ..., high = ... } or [1, 2, 9]"
    return 'Which values can it have? domain = ["...", "..."]'


def public_description(table: Table, codebook: Mapping[str, object]) -> PublicDescription:
    """Roles by name, kinds by type, domains by the codebook or where everybody knows them."""
    columns: dict[str, Any] = {}
    policy: dict[str, str] = {}
    stored = table.stored
    typed = stored is not None and not stored.are_texts
    fields = pa.schema(list(stored.columns().items())) if stored and typed else table.arrow.schema
    for field in fields:
        demand = named_demand(field.name) if is_number(field.type) else None
        if demand is not None and demand not in policy:
            policy[demand] = field.name
            continue
        role = _role(field.name)
        domain = codebook.get(field.name)
        if domain is None and role not in _KEPT_BACK:
            domain = _common(field)
        if isinstance(domain, list):
            domain = tuple(domain)
        columns[field.name] = Column(role, _kind(field.type, domain), domain=domain)  # type: ignore[arg-type]
    if not any(column.role == "quasi" for column in columns.values()):
        first = next((n for n, c in columns.items() if c.role not in _KEPT_BACK), None)
        if first is not None:
            columns[first] = Column("quasi", columns[first].kind, domain=columns[first].domain)
    asked = tuple(n for n, c in columns.items() if c.role not in _KEPT_BACK and c.domain is None)
    rules = codebook.get("impossible")
    known = isinstance(rules, list | tuple) and all(isinstance(one, Mapping) for one in rules)
    impossible = tuple(rules) if known else ()  # type: ignore[arg-type]
    schema = Schema(columns, person=_person(columns), policy=policy, impossible=impossible)
    there = {*fields.names, "impossible"}
    return PublicDescription(schema, asked, tuple(n for n in codebook if n not in there))


def _person(columns: Mapping[str, Column]) -> str | None:
    """The first identifier that says whose row it is, by its name alone."""
    named = (name for name, column in columns.items() if column.role == "identifier")
    return next((name for name in named if words.tells_people_apart(words.words_of(name))), None)


def _role(name: str) -> str:
    said = words.words_of(name)
    named = words.contains_word(words.IDENTIFIERS, said) or said == ("name",)
    named = named or bool(words.IDENTIFIER_PAIRS & {*pairwise(said)})
    numbered = words.contains_word(words.PEOPLE, said) or words.contains_word(
        words.HOUSEHOLDS, said
    )
    if (named or numbered) and not words.contains_word(words.AMOUNTS, said):
        return "identifier"
    if words.contains_word(words.WEIGHTS, said):
        return "drop"
    return "sensitive" if words.special_category(said) else "quasi"


def _kind(kind: pa.DataType, domain: object) -> str:
    """The kind by its type, or by bounds that are public."""
    low = domain.get("low") if isinstance(domain, Mapping) else None
    if low is not None:
        return "numeric" if isinstance(low, int | float) else "date"
    if is_number(kind):
        return "numeric"
    return "date" if pa.types.is_temporal(kind) else "nominal"


def _common(field: pa.Field) -> object:
    if pa.types.is_boolean(field.type):
        return [True, False]
    if not is_number(field.type):
        return None
    said = words.words_of(field.name)
    return next((domain for names, domain in _COMMON if words.contains_word(names, said)), None)
