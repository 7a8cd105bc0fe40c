"""What is told of a release: plain values, versions, and what became of each column."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.release.labels import Sets
from halfmask.release.partition import RowPartition
from halfmask.table.document import plain as plain  # releases take it from here

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from numpy.typing import NDArray

    from halfmask.release.recoding import Recoding
    from halfmask.table.table import Table

AS_IT_WAS = "kept as it was"


def plain_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """Released rows as JSON knows them: moments as text, and null for infinite numbers."""
    text = json.dumps([_finite(row) for row in rows.to_pylist()], default=str)
    found: list[dict[str, Any]] = json.loads(text)
    return found


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def versions() -> dict[str, str]:
    """The programs that a release depends on, without importing them."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("halfmask", "numpy", "pyarrow", "numba"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "unknown"
    return found


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What became of one column of the original table.

    Attributes:
        name: the column.
        role: its role, or ``"person"`` or ``"policy"``.
        action: what was done, in words.
        published: whether it leaves at all.
        level: the level that all its rows got, else None.
        height: the coarsest level of its hierarchy, for quasi-identifiers.
        before: how many distinct values it had in the rows that leave: one more would tell of a row
            that does not.
        after: how many distinct values or labels are published.
        loss: the column's loss, for quasi-identifiers.
        cells: how many rows got each level, for quasi-identifiers; height + 1 is a suppressed cell.
    """

    name: str
    role: str
    action: str
    published: bool
    level: int | None = None
    height: int | None = None
    before: int | None = None
    after: int | None = None
    loss: float | None = None
    cells: Mapping[int, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain values."""
        cells = [{"level": level, "rows": rows} for level, rows in self.cells.items()]
        return asdict(self) | {"cells": cells}


def column_changes(
    table: Table,
    published: pa.Table,
    recoding: Recoding | RowPartition,
    step: NDArray[np.int32],
    losses: Mapping[str, Fraction],
) -> tuple[ColumnChange, ...]:
    """Describe every column of ``table`` in its order."""
    return tuple(
        _quasi_change(table, published, recoding, step, float(losses[name]), name)
        if name in losses
        else other_change(table, published, name)
        for name in table.arrow.column_names
    )


def _quasi_change(
    table: Table,
    published: pa.Table,
    recoding: Recoding | RowPartition,
    step: NDArray[np.int32],
    loss: float,
    name: str,
) -> ColumnChange:
    height = table.hierarchy(name).height
    if isinstance(recoding, RowPartition):
        levels = recoding.labels[name].levels(table, name)
        if levels is None:
            what = "values" if isinstance(recoding.labels[name], Sets) else "range"
            return _range_change(table, published, step, (loss, what), name)
    else:
        levels = np.array([s.levels[name] for s in recoding.steps])
    counts = np.bincount(levels[step[step >= 0]], minlength=height + 2)
    cells = {int(level): int(counts[level]) for level in np.flatnonzero(counts)}
    level = next(iter(cells)) if len(cells) == 1 else None
    return ColumnChange(
        name=name,
        role="quasi",
        action=_action(cells, height),
        published=True,
        level=level,
        height=height,
        before=len(np.unique(table.encode(name).codes[step >= 0])),
        after=_distinct(published[name]),
        loss=loss,
        cells=cells,
    )


def _range_change(
    table: Table,
    published: pa.Table,
    step: NDArray[np.int32],
    found: tuple[float, str],
    name: str,
) -> ColumnChange:
    loss, what = found
    before = len(np.unique(table.encode(name).codes[step >= 0]))
    after = _distinct(published[name])
    return ColumnChange(
        name=name,
        role="quasi",
        action=f"replaced by the {what} of the class" if loss else AS_IT_WAS,
        published=True,
        level=None if loss else 0,
        height=table.hierarchy(name).height,
        before=before,
        after=after,
        loss=loss,
    )


def _action(cells: Mapping[int, int], height: int) -> str:
    if len(cells) > 1:
        shown = sorted(level for level in cells if level <= height)
        words = f"generalized row by row, to level {_words(shown)} of {height}"
        gone = cells.get(height + 1, 0)
        return f"{words}; {gone:,} cells suppressed" if gone else words
    level = next(iter(cells))
    if level == 0:
        return AS_IT_WAS
    if level > height:
        return "suppressed in every row"
    return f"generalized to level {level} of {height}"


def _words(levels: list[int]) -> str:
    """The levels as a person would list them."""
    *first, last = (str(level) for level in levels)
    return f"{', '.join(first)} or {last}" if first else last


def other_change(table: Table, published: pa.Table, name: str) -> ColumnChange:
    """What became of a column that is no quasi-identifier."""
    schema = table.schema
    if name in schema.policy_names:
        return ColumnChange(name, "policy", "removed: a person's own demand", published=False)
    if name == schema.person:
        return ColumnChange(name, "person", "removed: it says whose row it is", published=False)
    if name == schema.household:
        said = "removed: it says which rows are of one household"
        return ColumnChange(name, "household", said, published=False)
    if name not in schema.columns:
        return ColumnChange(name, "weight", "removed: a sampling weight", published=False)
    role = schema.columns[name].role
    if role == "identifier":
        return ColumnChange(name, role, "removed: it names a person", published=False)
    if role == "drop":
        return ColumnChange(name, role, "removed: as the schema says", published=False)
    values = _distinct(published[name])
    return ColumnChange(name, role, AS_IT_WAS, published=True, before=values, after=values)


def _distinct(column: pa.ChunkedArray) -> int | None:
    if pa.types.is_nested(column.type):
        return None
    return len(pc.unique(column))
