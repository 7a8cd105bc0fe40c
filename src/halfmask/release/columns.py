"""What was done to each column, in words and figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from halfmask.release.partition import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.release.recoding import Recoding
    from halfmask.table.table import Table

AS_IT_WAS = "kept as it was"


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
        plain = asdict(self)
        plain["cells"] = [{"level": level, "rows": rows} for level, rows in self.cells.items()]
        return plain


def changes(
    table: Table,
    published: pa.Table,
    recoding: Recoding | Partition,
    step: NDArray[np.int32],
    losses: Mapping[str, Fraction],
) -> tuple[ColumnChange, ...]:
    """Describe every column of ``table`` in its order."""
    return tuple(
        _quasi(table, published, recoding, step, float(losses[name]), name)
        if name in losses
        else other_change(table, published, name)
        for name in table.arrow.column_names
    )


def _quasi(
    table: Table,
    published: pa.Table,
    recoding: Recoding | Partition,
    step: NDArray[np.int32],
    loss: float,
    name: str,
) -> ColumnChange:
    height = table.hierarchy(name).height
    if isinstance(recoding, Partition):
        levels = recoding.labels[name].levels(table, name)
        if levels is None:
            return _ranged(table, published, step, loss, name)
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


def _ranged(
    table: Table, published: pa.Table, step: NDArray[np.int32], loss: float, name: str
) -> ColumnChange:
    before = len(np.unique(table.encode(name).codes[step >= 0]))
    after = _distinct(published[name])
    return ColumnChange(
        name=name,
        role="quasi",
        action="replaced by the range of the class" if loss else AS_IT_WAS,
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
    role = schema.columns[name].role
    if role == "identifier":
        return ColumnChange(name, role, "removed: it names a person", published=False)
    values = _distinct(published[name])
    return ColumnChange(name, role, AS_IT_WAS, published=True, before=values, after=values)


def _distinct(column: pa.ChunkedArray) -> int | None:
    import pyarrow as pa

    if pa.types.is_nested(column.type):
        return None
    return len(pc.unique(column))
