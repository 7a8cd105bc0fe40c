"""A demand that stands in a column, as an expression that has a value whatever the row holds.

A number within the range of its kind is what it says. All else that is not empty, too large, not a
number or below the range, is the strictest demand of its kind, which no exact answer can meet: its
person is left out, and nothing fails. Whether a column can hold demands is told by its type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.engines.request import kind_of
from halfmask.query.total.conversions import bounded_numeric, case_of, compare, double
from halfmask.table.policies import LARGEST, STRICTEST

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from sqlglot import exp

    from halfmask.table.policies import Policies


def type_faults(policies: Policies, columns: Mapping[str, pa.DataType]) -> list[str]:
    """One fault per policy column whose type holds no numbers; rows have no say in it."""
    import pyarrow as pa

    named: dict[str, str] = {}
    for entry in (policies.general, *policies.columns.values()):
        named |= {where: demand for demand, where in entry.items() if isinstance(where, str)}
    return [
        f"Policy column '{name}' ({demand}) holds no numbers: name a column that does."
        for name, demand in named.items()
        if name in columns
        and not pa.types.is_null(columns[name])
        and kind_of(columns[name]) not in ("integer", "decimal", "float")
    ]


def stated(column: exp.Column, kind: pa.DataType, demand: str) -> exp.Expr:
    """What a row states as ``demand``; null where it states nothing."""
    import pyarrow as pa
    from sqlglot import exp

    if demand == "epsilon":  # exact answers ask only whether there is one
        return column
    low, high = (0, 1) if demand == "t" else (1, LARGEST)
    number: exp.Expr = column
    if pa.types.is_decimal256(kind):
        number = bounded_numeric(column)
    elif kind_of(kind) != "integer":
        number = double(column)
    inside = exp.Between(this=number, low=exp.convert(low), high=exp.convert(high))
    read = double(number) if demand == "t" or kind_of(kind) != "integer" else _whole(number)
    known = compare(exp.Is, column, exp.null())
    strictest = exp.convert(int(STRICTEST[demand]))
    return case_of((known, exp.null()), (inside, read), other=strictest)


def _whole(number: exp.Expr) -> exp.Expr:
    from sqlglot import exp

    return exp.cast(exp.paren(number), "bigint")
