"""Which columns tell people apart: distinction and separation of column sets.

Definition: distinction is the share of different combinations among all rows; separation the share
of pairs of rows that differ in the set; a set is a minimal quasi-identifier if it singles a row out
and no part of it does.
Source: Motwani and Xu, "Efficient algorithms for masking and finding quasi-identifiers", 2007.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.walk import below, by_size, chosen_columns, units_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.walk import Units
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True)
class ColumnSet:
    """How far a set of columns tells rows apart.

    Attributes:
        columns: the set.
        classes: how many different combinations occur.
        unique_rows: rows that are alone with theirs.
        distinction: classes / rows.
        separation: the share of pairs of rows that it tells apart.
        minimal: whether it singles rows out and no part of it does.
    """

    columns: tuple[str, ...]
    classes: int
    unique_rows: int
    distinction: float
    separation: float
    minimal: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"columns": list(self.columns)}


def column_sets(
    table: Table,
    columns: Sequence[str] | None = None,
    *,
    size: int = 3,
    counts: NDArray[np.int64] | None = None,
) -> tuple[ColumnSet, ...]:
    """Measure every set of at most ``size`` columns; those with most unique rows first."""
    names = chosen_columns(table, columns, size)
    units = units_of(table, by_size(table, names), counts=counts)
    walk = _Walk(units, size, names)
    walk.descend(
        (units.keys, units.rows, np.arange(len(units), dtype=np.int32), units.start), 0, (0, 0, 0)
    )
    return tuple(
        sorted(walk.found, key=lambda s: (-s.unique_rows, -s.separation, len(s.columns), s.columns))
    )


class _Walk:
    """The state of one walk over the column sets."""

    def __init__(self, units: Units, size: int, names: Sequence[str]) -> None:
        self.units, self.size = units, size
        self.place = {name: i for i, name in enumerate(names)}
        self.minimal: list[int] = []
        self.found: list[ColumnSet] = []

    def descend(self, grouping: tuple[Any, ...], mask: int, settled: tuple[int, int, int]) -> None:
        """Visit all sets that extend ``mask``; ``settled`` counts tuples that left the walk."""
        from halfmask.kernels import refine

        if mask.bit_count() == self.size:
            return
        for column in below(mask, len(self.units.columns)):
            keys, rows, ids, starts, sums, lone = refine.refine(
                *(*grouping, *self.units.field(column))
            )
            held = self.units.rows[lone].astype(np.int64)
            alone = (
                settled[0] + len(held),
                settled[1] + int((held == 1).sum()),
                settled[2] + _squares(held),
            )
            finer = mask | 1 << column
            self.note(finer, alone, len(sums), _squares(sums))
            self.descend((keys, rows, ids, starts), finer, alone)

    def note(self, mask: int, alone: tuple[int, int, int], groups: int, squares: int) -> None:
        """Keep the figures of one set."""
        total = self.units.total
        first = alone[1] > 0 and not any(known & mask == known for known in self.minimal)
        if first:
            self.minimal.append(mask)
        same = alone[2] + squares - total
        classes = alone[0] + groups
        self.found.append(
            ColumnSet(
                tuple(sorted(self.units.names(mask), key=self.place.__getitem__)),
                classes,
                alone[1],
                classes / total,
                1.0 - same / (total * (total - 1)) if total > 1 else 1.0,
                minimal=first,
            )
        )


def _squares(counts: NDArray[np.int64]) -> int:
    """The sum of squares, exact where machine words would not hold it."""
    if len(counts) and int(counts.max()) ** 2 * len(counts) >= 2**63:
        counts = counts.astype(object)
    return int(counts @ counts) if len(counts) else 0
