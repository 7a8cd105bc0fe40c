"""What a frontier is tried on: rows, or distinct tuples that an engine counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError, ParameterError, SchemaError
from halfmask.metrics.sides import Published
from halfmask.models.exact import require_number
from halfmask.table.hierarchies.auto import Auto
from halfmask.table.table import Table, require_table

if TYPE_CHECKING:
    from halfmask.assessment.settings import Setting
    from halfmask.engines.counted import Counted
    from halfmask.models.verdict import Model
    from halfmask.table.schema import Schema


def columns_read(schema: Schema, models: Sequence[Model]) -> list[str]:
    """The columns that every figure is counted from."""
    schema.require_quasi()
    names = [*schema.quasi, *schema.sensitive]
    names += [column for model in models for column in model.columns]
    names += schema.policy_names
    return names if schema.person is None else [*names, schema.person]


def require_tables(epsilons: Sequence[float], releases: Mapping[str, Any] | None) -> None:
    """Refuse budgets that are none and finished tables that are none."""
    if not isinstance(epsilons, Sequence) or isinstance(epsilons, str):
        raise ParameterError("epsilons", epsilons, "a list of budgets, such as [0.5, 1]")
    for epsilon in epsilons:
        require_number("epsilons", epsilon, 0, open_low=True)
    if releases is not None and not isinstance(releases, Mapping):
        raise ParameterError("releases", type(releases).__name__, "tables by name, as a mapping")
    for made in (releases or {}).values():
        if not isinstance(made, Published):
            require_table(made)


def require_no_rows(wanted: Sequence[Sequence[Setting]], *, rows_needed: bool) -> None:
    """Refuse, before anything is counted, what counts are not enough for."""
    need = [chain[0].method for chain in wanted if not chain[0].recodes]
    if need or rows_needed:
        what = f"The method {need[0]}" if need else "A private or finished table beside it"
        raise InputError(
            f"{what} needs the rows, and an engine only counts them: name recodings only (optimal, "
            "local), or read the file into memory (engine memory)."
        )


def require(held: Counted, risk: str) -> None:
    """Refuse a table without people, quasi-identifiers or what the risk needs."""
    schema = held.table.schema
    schema.require_quasi()
    if not len(held.table):
        raise InputError("The table has no rows: there is nobody to protect.")
    if risk == "inference" and not schema.sensitive:
        raise SchemaError(
            "risk = 'inference' needs a sensitive column: give one the role sensitive in the "
            "schema or by --sensitive."
        )
    auto = [name for name, column in schema.columns.items() if isinstance(column.hierarchy, Auto)]
    if held.counts is not None and auto:
        raise InputError(
            f"The automatic hierarchy of '{auto[0]}' is found from rows, and an engine only counts "
            "them: write it into the schema first, by `halfmask describe --hierarchies auto` on a "
            "part of the rows."
        )


def by_value(held: Counted) -> Counted:
    """Counted tuples by their values: an engine gives them in any order, which heuristics see."""
    if held.counts is None:
        return held
    order = np.lexsort([held.table.encode(name).codes for name in held.table.schema.quasi[::-1]])
    table = Table(held.table.arrow.take(pa.array(order)), held.table.schema)
    return replace(held, table=table, counts=held.counts[order])
