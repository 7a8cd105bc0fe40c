"""Special uniques: people who stand out through few columns already (SUDA2).

Definition: a minimal unique set of a row is a set of columns on which the row is unique (no other
person shares its values), while it is unique on no part of the set. Its score is prod (A - i) for i
from its size to M - 1, where A is the number of columns and M the largest size looked at; a row's
score is the sum over its sets.
Source: Elliot, Manning and Ford, "A computational algorithm for handling the special uniques
problem", 2002; Manning, Haglin and Keane, "A recursive search algorithm for statistical disclosure
assessment", 2008.

Rows of one person that agree are one: their sets and scores count once, their rows each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import ParameterError
from halfmask.metrics.owners import holders, owners
from halfmask.metrics.walk import below, by_size, chosen_columns, units_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.walk import Units
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True)
class ColumnContribution:
    """How often a column takes part in singling somebody out.

    Attributes:
        name: the column.
        sets: in how many minimal unique sets it stands, over all different tuples.
        share: the same as a share of all of them.
        score: the share of the total score that these sets carry.
    """

    name: str
    sets: int
    share: float
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class SpecialUniques:
    """Who stands out, through how few columns.

    Attributes:
        rows: how many rows there are.
        size: the largest column set looked at; ``columns`` the columns.
        special_rows: rows that have a minimal unique set.
        by_size: per set size, how many minimal unique sets (of different tuples) and how many rows
            whose smallest it is.
        by_set: the column sets that single out most rows: (columns, rows).
        contributions: per column, its part in it.
        scores: per row, its score; 0 for rows without a minimal unique set.
    """

    rows: int
    size: int
    columns: tuple[str, ...]
    special_rows: int
    by_size: tuple[tuple[int, int, int], ...]
    by_set: tuple[tuple[tuple[str, ...], int], ...]
    contributions: tuple[ColumnContribution, ...]
    scores: NDArray[np.float64] = field(repr=False)
    _sets: tuple[NDArray[np.int64], NDArray[np.int64]] = field(repr=False)
    _names: tuple[str, ...] = field(repr=False)

    def sets_of(self, row: int) -> tuple[tuple[str, ...], ...]:
        """The minimal unique sets of one row."""
        starts, masks = self._sets
        place = {name: i for i, name in enumerate(self.columns)}
        found = [
            tuple(
                sorted(
                    (name for i, name in enumerate(self._names) if int(mask) >> i & 1),
                    key=place.__getitem__,
                )
            )
            for mask in masks[starts[row] : starts[row + 1]]
        ]
        return tuple(sorted(found, key=lambda one: (len(one), one)))

    def smallest(self) -> NDArray[np.int64]:
        """Per row, how many columns suffice to single it out; 0 where none were found."""
        starts, masks = self._sets
        out = np.zeros(len(starts) - 1, dtype=np.int64)
        held = np.flatnonzero(np.diff(starts))
        if len(held):
            counts = np.bitwise_count(masks.astype(np.uint64)).astype(np.int64)
            out[held] = np.minimum.reduceat(counts, starts[held])
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, without those of single rows."""
        return {
            "rows": self.rows,
            "size": self.size,
            "columns": list(self.columns),
            "special_rows": self.special_rows,
            "by_size": [
                {"size": size, "sets": sets, "rows": rows} for size, sets, rows in self.by_size
            ],
            "by_set": [{"columns": list(names), "rows": rows} for names, rows in self.by_set],
            "contributions": [
                {"name": c.name, "sets": c.sets, "share": c.share, "score": c.score}
                for c in self.contributions
            ],
        }


def special_uniques(
    table: Table,
    columns: Sequence[str] | None = None,
    *,
    size: int = 5,
    top: int = 10,
    counts: NDArray[np.int64] | None = None,
) -> SpecialUniques:
    """Find the minimal unique sets of up to ``size`` columns of every row.

    Args:
        table: the rows.
        columns: where to look; None: the quasi-identifiers, or all columns that may leave.
        size: the largest set.
        top: how many column sets to name.
        counts: how many rows each row of ``table`` stands for; None: one.
    """
    if columns is None and table.schema.quasi:
        columns = table.schema.quasi
    names = chosen_columns(table, columns, size)
    if len(names) > 62:
        wanted = "at most 62 columns: those that nobody outside knows are no quasi-identifiers"
        raise ParameterError("columns", len(names), wanted)
    size = min(size, len(names))
    units = units_of(table, by_size(table, names), counts=counts)
    whose = owners(units, holders(table, units, counts))
    walk = _Walk(units, size)
    walk.descend((units.keys, whose, np.arange(len(units), dtype=np.int32), units.start), 0)
    return _summary(units, tuple(names), size, walk, top)


class _Walk:
    """The state of one walk over the column sets."""

    def __init__(self, units: Units, size: int) -> None:
        self.units, self.size = units, size
        self.heads = np.full(len(units), -1, dtype=np.int64)
        self.links = np.empty(1024, dtype=np.int64)
        self.masks = np.empty(1024, dtype=np.int64)
        self.used = 0
        self.runs: list[tuple[int, int]] = []  # a set, and where its entries begin

    def descend(self, grouping: tuple[Any, ...], mask: int) -> None:
        """Visit all sets that extend ``mask`` by lower columns."""
        from halfmask.kernels.owned import single_out

        if not len(grouping[0]):
            return
        for column in below(mask, len(self.units.columns)):
            finer = mask | 1 << column
            further = min(column, self.size - finer.bit_count())
            *kept, lone = single_out(*(*grouping, *self.units.field(column), further))
            self.note(lone, finer)
            if further:
                self.descend(tuple(kept), finer)

    def note(self, lone: NDArray[np.int32], mask: int) -> None:
        """Keep the set for the units it singles out first."""
        from halfmask.kernels import refine

        need = self.used + len(lone)
        if need > len(self.masks):
            room = max(need, 2 * len(self.masks))
            self.links = np.resize(self.links, room)
            self.masks = np.resize(self.masks, room)
        before = self.used
        self.used = int(refine.minimal(lone, mask, self.heads, self.links, self.masks, before))
        if self.used > before:
            self.runs.append((mask, before))


def _summary(
    units: Units, names: tuple[str, ...], size: int, walk: _Walk, top: int
) -> SpecialUniques:
    masks = walk.masks[: walk.used]
    owner = _owners(walk)
    counts = np.bitwise_count(masks.astype(np.uint64)).astype(np.int64)
    worth = np.array(
        [prod(range(len(names) - size + 1, len(names) - s + 1)) for s in range(size + 1)],
        dtype=np.float64,
    )
    weights = worth[counts]
    unit_scores = np.zeros(len(units))
    np.add.at(unit_scores, owner, weights)
    smallest = np.full(len(units), 99, dtype=np.int64)
    np.minimum.at(smallest, owner, counts)
    sets = np.bincount(counts, minlength=size + 1)
    special = smallest < 99
    least = np.bincount(smallest[special], weights=units.rows[special], minlength=size + 1)
    runs = np.array([begin for _, begin in walk.runs], dtype=np.int64)
    rows = np.add.reduceat(units.rows[owner], runs) if len(runs) else runs
    order = sorted(range(len(runs)), key=lambda i: (-rows[i], walk.runs[i][0]))[:top]
    place = {name: i for i, name in enumerate(names)}
    by_set = tuple(
        (tuple(sorted(units.names(walk.runs[i][0]), key=place.__getitem__)), int(rows[i]))
        for i in order
    )
    starts = np.zeros(len(units.of_row) + 1, dtype=np.int64)
    by_unit = np.bincount(owner, minlength=len(units))
    np.cumsum(by_unit[units.of_row], out=starts[1:])
    sorted_masks = masks[np.argsort(owner, kind="stable")]
    begins = np.concatenate(([0], np.cumsum(by_unit)))[units.of_row]
    gather = np.repeat(begins - starts[:-1], by_unit[units.of_row]) + np.arange(int(starts[-1]))
    return SpecialUniques(
        rows=units.total,
        size=size,
        columns=names,
        special_rows=int(units.rows[special].sum()),
        by_size=tuple((s, int(sets[s]), int(least[s])) for s in range(1, size + 1)),
        by_set=by_set,
        contributions=tuple(_contributions(units, names, masks, weights)),
        scores=unit_scores[units.of_row],
        _sets=(starts, sorted_masks[gather]),
        _names=units.columns,
    )


def _owners(walk: _Walk) -> NDArray[np.int64]:
    """The unit of each noted set."""
    owner = np.empty(walk.used, dtype=np.int64)
    units = np.flatnonzero(walk.heads >= 0)
    entries = walk.heads[units]
    while len(units):  # one round per set of the unit that has most
        owner[entries] = units
        entries = walk.links[entries]
        more = entries >= 0
        units, entries = units[more], entries[more]
    return owner


def _contributions(
    units: Units, names: tuple[str, ...], masks: NDArray[np.int64], weights: NDArray[np.float64]
) -> list[ColumnContribution]:
    total, scored = len(masks), float(weights.sum())
    out = []
    for name in names:
        inside = (masks >> units.columns.index(name) & 1) == 1
        count = int(inside.sum())
        out.append(
            ColumnContribution(
                name,
                count,
                count / total if total else 0.0,
                float(weights[inside].sum()) / scored if scored else 0.0,
            )
        )
    return out
