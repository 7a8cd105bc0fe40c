"""Which columns tell people apart: distinction and separation of column sets.

Definition: rows of one person that agree in the set are one entry. Distinction is the share of
different combinations among all entries; separation the share of pairs of entries of different
people that differ in the set; a set is a minimal quasi-identifier if it singles a person out and no
part of it does.
Source: Motwani and Xu, "Efficient algorithms for masking and finding quasi-identifiers", 2007.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.owners import holders
from halfmask.metrics.walk import below, by_size, chosen_columns, units_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.walk import Units
    from halfmask.table.table import Table

    _Pairs = tuple[int, int]  # twice the pairs of entries that agree, and twice all pairs


@dataclass(frozen=True, slots=True)
class ColumnSet:
    """How far a set of columns tells people apart.

    Attributes:
        columns: the set.
        classes: how many different combinations occur.
        unique_rows: rows of people who are alone with theirs.
        distinction: classes / people in them (a person in two classes counts twice).
        separation: the share of pairs of different people that it tells apart.
        minimal: whether it singles somebody out and no part of it does.
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
    """Measure every set of at most ``size`` columns; those with most unique rows first.

    With ``counts``, each row of ``table`` stands for so many.
    """
    names = chosen_columns(table, columns, size)
    units = units_of(table, by_size(table, names), counts=counts)
    found = _Found(units, names)
    held = holders(table, units, counts)
    if held is None:
        start = (units.keys, units.rows, np.arange(len(units), dtype=np.int32), units.start)
        _descend(found, size, start, 0, (0, 0, 0))
    else:
        whole = np.array([0, len(held.unit)], dtype=np.int64)
        start = (units.keys[held.unit], held.rows, held.person, whole)
        _descend_people(found, size, start, 0, held.people)
    return tuple(
        sorted(found.sets, key=lambda s: (-s.unique_rows, -s.separation, len(s.columns), s.columns))
    )


class _Found:
    """The sets that were visited so far, every subset before a set."""

    def __init__(self, units: Units, names: Sequence[str]) -> None:
        self.units = units
        self.place = {name: i for i, name in enumerate(names)}
        self.minimal: list[int] = []
        self.sets: list[ColumnSet] = []

    def note(self, mask: int, classes: int, entries: int, alone: int, pairs: _Pairs) -> None:
        """Keep the figures of one set: its classes, entries, rows alone, and pairs that agree."""
        first = alone > 0 and not any(known & mask == known for known in self.minimal)
        if first:
            self.minimal.append(mask)
        same, every = pairs
        self.sets.append(
            ColumnSet(
                tuple(sorted(self.units.names(mask), key=self.place.__getitem__)),
                classes,
                alone,
                classes / entries,
                1.0 - same / every if every else 1.0,
                minimal=first,
            )
        )


def _descend(
    found: _Found, size: int, grouping: tuple[Any, ...], mask: int, settled: tuple[int, int, int]
) -> None:
    """Visit all sets that extend ``mask``; ``settled`` counts tuples that left the walk."""
    from halfmask.kernels import refine

    units = found.units
    if mask.bit_count() == size:
        return
    for column in below(mask, len(units.columns)):
        keys, rows, ids, starts, sums, lone = refine.refine(*(*grouping, *units.field(column)))
        held = units.rows[lone].astype(np.int64)
        alone = (
            settled[0] + len(held),
            settled[1] + int((held == 1).sum()),
            settled[2] + _squares(held),
        )
        finer = mask | 1 << column
        total = units.total
        pairs = (alone[2] + _squares(sums) - total, total * (total - 1))
        found.note(finer, alone[0] + len(sums), total, alone[1], pairs)
        _descend(found, size, (keys, rows, ids, starts), finer, alone)


def _descend_people(
    found: _Found, size: int, grouping: tuple[Any, ...], mask: int, everybody: int
) -> None:
    """The same where people have several rows."""
    from halfmask.kernels.owned import count_people, divide

    if mask.bit_count() == size:
        return
    for column in below(mask, len(found.units.columns)):
        finer = mask | 1 << column
        divided = divide(*(*grouping, *found.units.field(column)))
        people, alone, own = count_people(*divided[1:], everybody)
        entries = int(people.sum())
        # Entries of one person are no pair of different people.
        pairs = (_squares(people) - entries, entries * entries - int(own))
        found.note(finer, len(people), entries, int(alone), pairs)
        _descend_people(found, size, divided, finer, everybody)


def _squares(counts: NDArray[np.int64]) -> int:
    """The sum of squares, exact where machine words would not hold it."""
    if len(counts) and int(counts.max()) ** 2 * len(counts) >= 2**63:
        counts = counts.astype(object)
    return int(counts @ counts) if len(counts) else 0
