"""A schema that comes from the page; it may name no file on the disk of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.errors import SchemaError
from halfmask.table.hierarchies import Csv
from halfmask.table.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Mapping

_START = "Start halfmask serve with FILE and --schema to use it."


def changed_schema(asked: Mapping[str, object], now: Schema) -> Schema:
    """The schema that ``asked`` describes, in the shape of the schema file.

    A hierarchy or policy that stands in a file is kept where it is the one in force, and refused
    where it is new: the browser would else choose what the service reads. What is looked at is the
    schema that comes out, so that it does not matter how it was written.

    Raises:
        SchemaError: with every fault.
    """
    schema = Schema.from_dict(asked, folder=now.folder)
    faults = [
        f"Column '{name}': a hierarchy in a file cannot be named from the page. {_START}"
        for name, column in schema.columns.items()
        if isinstance(column.hierarchy, Csv) and not _is_in_force(name, column.hierarchy, now)
    ]
    if schema.policy_file not in (None, now.policy_file):
        faults.append(f"A policy file cannot be named from the page. {_START}")
    if faults:
        raise SchemaError(*faults)
    return schema


def _is_in_force(name: str, found: Csv, now: Schema) -> bool:
    column = now.columns.get(name)
    former = None if column is None else column.hierarchy
    return isinstance(former, Csv) and former.to_dict() == found.to_dict()
