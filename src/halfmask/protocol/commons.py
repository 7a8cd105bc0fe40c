"""The common schema: what all cells' tables look like, so that one question suits them all.

    [query]
    k = 5                          # no answer promises less; 3 if left out
    [tables.people.columns.city]
    type = "text"                  # integer, float, decimal(9,2), text, boolean, date, timestamp
    role = "quasi"
    values = ["Bourges", "Vierzon"]   # the domain; needed to climb a hierarchy
    hierarchy = { tree = ... }        # as in a schema file

It holds no data. Questions name its digest, and cells answer questions on their own one only.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from halfmask.errors import SchemaError
from halfmask.protocol.crypto import digest
from halfmask.query.catalog import Catalog, Source
from halfmask.table.schema import FLOOR, QueryRules, Schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from halfmask.table.hierarchy import Hierarchy

TYPES = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True, eq=False)
class CommonTable:
    """One table: its Arrow schema, roles, and the domains of its columns."""

    arrow: pa.Schema
    schema: Schema
    domains: Mapping[str, pa.Array]


@dataclass(frozen=True, eq=False)
class Commons:
    """The tables that every cell has, and the least k of an answer about them."""

    tables: Mapping[str, CommonTable]
    rules: QueryRules = field(default_factory=QueryRules)

    @property
    def floor(self) -> int:
        """The least k that an answer promises."""
        return FLOOR if self.rules.k is None else self.rules.k

    @cached_property
    def hierarchies(self) -> dict[tuple[str, str], Hierarchy]:
        """The hierarchies over the declared domains."""
        found = {}
        for name, table in self.tables.items():
            for column, declared in table.schema.columns.items():
                if declared.hierarchy is not None and column in table.domains:
                    found[name, column] = declared.hierarchy.build(column, table.domains[column])
        return found

    @cached_property
    def digest(self) -> bytes:
        """The name of this common schema."""
        document: dict[str, Any] = {
            name: {
                "columns": [[f.name, str(f.type)] for f in table.arrow],
                "roles": {c: d.role for c, d in table.schema.columns.items()},
                "domains": {c: v.to_pylist() for c, v in table.domains.items()},
                "hierarchies": {
                    c: [[m.tolist() for m in h.maps], [list(x) for x in h.labels]]
                    for (t, c), h in self.hierarchies.items()
                    if t == name
                },
            }
            for name, table in self.tables.items()
        }
        document["query"] = {"k": [self.rules.k]}
        return digest(json.dumps(document, sort_keys=True, default=str).encode())

    def catalog(self) -> Catalog:
        """The tables as queries are planned on."""
        sources = {
            name: Source(name, {f.name: f.type for f in table.arrow}, table.schema, repeats=False)
            for name, table in self.tables.items()
        }
        main = next(iter(sources)) if len(sources) == 1 else None
        return Catalog(sources, main, None, dict(self.hierarchies))


def read_commons(path: str | Path) -> Commons:
    """Read a common schema (TOML).

    Raises:
        SchemaError: the file says something that cannot be.
    """
    file = Path(path)
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise SchemaError(
            f"{file.name} cannot be read as a schema file (TOML): give the common schema."
        ) from None
    return commons_from(document, file.parent)


def commons_from(document: Mapping[str, Any], folder: Path | None = None) -> Commons:
    """Make a common schema from a mapping of the file's shape.

    Raises:
        SchemaError: everything that is wrong, together.
    """
    tables = document.get("tables")
    if not isinstance(tables, dict) or not tables:
        raise SchemaError("A common schema needs [tables.NAME.columns.COLUMN] entries.")
    rules = Schema.from_dict({"query": document.get("query", {})}).query
    faults: list[str] = []
    found = {name: _table(name, entry, folder or Path(), faults) for name, entry in tables.items()}
    if faults:
        raise SchemaError(*faults)
    return Commons(found, rules)


def _table(name: str, entry: Mapping[str, Any], folder: Path, faults: list[str]) -> CommonTable:
    columns = entry.get("columns") if isinstance(entry, dict) else None
    if not isinstance(columns, dict) or not columns:
        faults.append(f"Table '{name}' declares no columns.")
        return CommonTable(pa.schema([]), Schema(), {})
    fields, domains, declared = [], {}, {}
    for column, given in columns.items():
        given = dict(given) if isinstance(given, dict) else {"role": given}
        kind = _type(given.pop("type", "text"))
        if kind is None:
            faults.append(
                f"Column '{column}': the type is none of {', '.join(TYPES)}, decimal(p,s)."
            )
            continue
        values = given.pop("values", None)
        if values is not None:
            try:
                domains[column] = pa.array(sorted(values), kind)
            except (TypeError, ValueError, pa.ArrowInvalid):
                faults.append(f"Column '{column}': its values are not all of its type.")
        elif given.get("hierarchy") is not None:
            faults.append(f"Column '{column}': a hierarchy needs the column's values listed.")
        fields.append(pa.field(column, kind))
        declared[column] = given
    schema = Schema.from_dict({"columns": declared}, folder=folder)
    return CommonTable(pa.schema(fields), schema, domains)


def _type(name: object) -> pa.DataType | None:
    decimal = _DECIMAL.fullmatch(str(name))
    if decimal is not None and 1 <= int(decimal[1]) <= 38 and int(decimal[2]) <= int(decimal[1]):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return TYPES.get(str(name))
