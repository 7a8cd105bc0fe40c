"""A schema that comes from the page; it may name no file on the disk of the service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from halfmask.errors import SchemaError
from halfmask.table.schema import Schema

_START = "Start halfmask serve with FILE and --schema to use it."


def changed_schema(asked: Mapping[str, object], now: Schema) -> Schema:
    """The schema that ``asked`` describes, in the shape of the schema file.

    A hierarchy or policy that stands in a file is kept where it is the one in force, and refused
    where it is new: the browser would else choose what the service reads.

    Raises:
        SchemaError: with every fault.
    """
    faults: list[str] = []
    data: dict[str, Any] = dict(asked)
    columns = data.get("columns")
    if isinstance(columns, Mapping):
        data["columns"] = {
            name: _column(str(name), entry, now, faults) for name, entry in columns.items()
        }
    policy = data.get("policy")
    if isinstance(policy, Mapping) and policy.get("file") not in (None, now.policy_file):
        faults.append(f"A policy file cannot be named from the page. {_START}")
    if faults:
        raise SchemaError(*faults)
    return Schema.from_dict(data, folder=now.folder)


def _column(name: str, entry: object, now: Schema, faults: list[str]) -> object:
    if not isinstance(entry, Mapping):
        return entry
    spec = entry.get("hierarchy")
    former = now.columns.get(name)
    kept = former.hierarchy if former is not None else None
    if kept is not None and spec == kept.to_dict():
        return {**entry, "hierarchy": kept}
    if isinstance(spec, Mapping) and "csv" in spec:
        faults.append(
            f"Column '{name}': a hierarchy in a file cannot be named from the page. {_START}"
        )
    return entry
