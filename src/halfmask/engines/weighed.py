"""Sampling weights where an engine counts: the weights of each distinct tuple, added up there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.table.names import require_known
from halfmask.table.weights import LARGEST, Tallied, require_numbers

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray
    from sqlglot import exp

    from halfmask.engines.request import Engine

_NAME = "halfmask_weights_"


def weight_sums(
    engine: Engine, table: str, column: str, *, written: bool = False, comma: bool = False
) -> list[exp.Expr]:
    """What is aggregated beside the number of rows.

    Args:
        engine: who counts.
        table: the table that it counts.
        column: where the weights stand.
        written: whether they are texts of a CSV file.
        comma: whether these have a decimal comma.
    """
    from sqlglot import exp

    known = engine.columns(table) or {}
    require_known([column], known)
    weight: exp.Expr = exp.column(column, quoted=True)
    if written:
        if comma:
            weight = exp.func("REPLACE", exp.func("REPLACE", weight, _text("."), _text("")),
                              _text(","), _text("."))  # fmt: skip
        # Trimmed, because DuckDB would have its CSV reader cast a bare column, which tries nothing.
        weight = exp.TryCast(this=exp.Trim(this=weight), to=exp.DataType.build("double"))
    else:
        require_numbers(column, known[column])
        weight = exp.cast(weight, "double")
    largest = exp.Literal.number(f"{LARGEST:.0f}")
    parts = {
        "sum": exp.Sum(this=weight),
        "low": exp.Min(this=weight.copy()),
        "high": exp.Max(this=weight.copy()),
        "known": exp.Count(this=weight.copy()),
        "below": _rows_where(exp.LT(this=weight.copy(), expression=exp.Literal.number(1))),
        "beyond": _rows_where(exp.GT(this=weight.copy(), expression=largest)),
    }
    return [part.as_(_NAME + name) for name, part in parts.items()]


def split_off(found: pa.Table, counts: NDArray[np.int64]) -> tuple[pa.Table, Tallied]:
    """The tuples without the aggregates of their weights, and these."""
    names = [name for name in found.column_names if name.startswith(_NAME)]
    held = {name.removeprefix(_NAME): _numbers(found[name]) for name in names}
    tallied = Tallied(
        held["sum"],
        held["low"],
        held["high"],
        missing=int(counts.sum() - held["known"].sum()),
        beyond=int(held["beyond"].sum()),
        below=int(held["below"].sum()),
    )
    return found.drop_columns(names), tallied


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _rows_where(condition: exp.Expr) -> exp.Expr:
    from sqlglot import exp

    return exp.Count(this=exp.case().when(condition, exp.Literal.number(1)))


def _text(text: str) -> exp.Expr:
    from sqlglot import exp

    return exp.Literal.string(text)
