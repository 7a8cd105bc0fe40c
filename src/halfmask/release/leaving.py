"""Which columns of a table leave in a release; nobody's silence counts as consent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.errors import SchemaError
from halfmask.table.schema import NO_QUASI

if TYPE_CHECKING:
    from halfmask.table.table import Table


def leaving(table: Table) -> tuple[str, ...]:
    """The columns that leave, in their order: all but identifiers, the person and policies.

    Raises:
        SchemaError: columns that are not declared or not there; all of them at once.
    """
    schema, names = table.schema, table.arrow.column_names
    faults = [
        f"Column {name!r} is not declared, so nobody decided whether it may leave: give it a role "
        "(identifier, quasi, sensitive or other) in the schema."
        for name in schema.undeclared(names)
    ]
    faults += schema.unknown(names)
    if not schema.quasi:
        faults.append(NO_QUASI)
    if faults:
        raise SchemaError(*faults)
    return tuple(name for name in names if name not in schema.private)
