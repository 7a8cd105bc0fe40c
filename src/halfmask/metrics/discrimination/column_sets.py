"""Which combinations of columns discriminate a target most: all sets up to a size.

Definition: as in ``halfmask.metrics.discrimination.rate``, for every set of columns.
Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, figure 4.3.

Sets are pruned: everything that contains an identifier is one. A column whose rate alone is 0 is
not pruned, because it may matter together with others.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.discrimination.rate import _SAME, Kind, _require, bind, entropy_of
from halfmask.metrics.walk import below, by_size, chosen_columns, units_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.discrimination.inflation import Inflation
    from halfmask.metrics.walk import Units
    from halfmask.table.table import Table

    Grouping = tuple[Any, ...]  # keys, rows, labels and starts


@dataclass(frozen=True, slots=True)
class SetRate:
    """The discrimination rate of one set of columns.

    Attributes:
        columns: the set.
        rate: its rate; ``kind`` its class.
        identified_rows: rows whose combination leaves one outcome only.
        implied: whether it was not measured because a part of it is already an identifier.
        inflation: what chance alone gives, where that was asked for.
    """

    columns: tuple[str, ...]
    rate: float
    kind: Kind
    identified_rows: int
    implied: bool = False
    inflation: Inflation | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        plain = asdict(self) | {"columns": list(self.columns)}
        if self.inflation is not None:
            plain["inflation"] = self.inflation.to_dict()
        return plain


def rank_column_sets(
    table: Table,
    target: str,
    columns: Sequence[str] | None = None,
    *,
    size: int = 3,
    partition: object = None,
    undefined: float = float("nan"),
    counts: NDArray[np.int64] | None = None,
) -> tuple[SetRate, ...]:
    """Measure every set of at most ``size`` columns and put the most discriminating first.

    Among equal rates the smaller set comes first.

    Args:
        table: the rows.
        target: the column X.
        columns: where to look; None: all columns that may leave, without the target.
        size: the largest set.
        partition: blocks of values, as for ``discrimination_rate``.
        undefined: what a target that never varies gives.
        counts: how many rows each row of ``table`` stands for; None: one.
    """
    names = [name for name in chosen_columns(table, columns, size) if name != target]
    _require(table, target, tuple(names), "keep")
    blocks = bind(table, (target, *names), target, partition)
    units = units_of(table, [*by_size(table, names), target], blocks, counts)
    walk = _Walk(units, size, undefined)
    walk.descend((units.keys, units.rows, walk.labels, units.start), 0, 0)
    place = {name: i for i, name in enumerate(names)}
    found = [
        replace(one, columns=tuple(sorted(one.columns, key=place.__getitem__)))
        for one in walk.found
    ]
    return tuple(sorted(found, key=lambda one: (-one.rate, len(one.columns), one.columns)))


_PAIRS = 1 << 20  # so many counters of (code, outcome) still fit a core's cache


class _Walk:
    """The state of one walk: what every set needs, and what was found."""

    def __init__(self, units: Units, size: int, undefined: float) -> None:
        self.units, self.size, self.undefined = units, size, undefined
        self.count = len(units.columns) - 1
        self.labels = units.layout.codes(units.keys, self.count).astype(np.int32)
        counts = np.arange(units.total + 1, dtype=np.float64)
        self.bits = counts * np.log2(np.maximum(counts, 1.0))
        outcomes = np.bincount(self.labels, weights=units.rows).astype(np.int64)
        self.entropy = entropy_of(outcomes)
        self.domain = len(outcomes)
        widest = int(units.layout.masks[:-1].max()) + 1
        self.compact = widest * self.domain <= _PAIRS
        self.found: list[SetRate] = []
        self.identifiers: list[int] = []

    def descend(self, grouping: Grouping, mask: int, pure_rows: int) -> None:
        """Visit all sets that extend ``mask`` by lower columns."""
        size = mask.bit_count()
        if size == self.size:
            return
        if size == self.size - 1 and self.compact:
            self.finish(grouping, mask, pure_rows)
            return
        for column in below(mask, self.count):
            self.visit(grouping, mask | 1 << column, column, pure_rows)

    def finish(self, grouping: Grouping, mask: int, pure_rows: int) -> None:
        """Measure the largest sets, all that extend ``mask`` at once."""
        from halfmask.kernels import refine

        columns = len(list(below(mask, self.count)))
        if not columns:
            return
        layout = self.units.layout
        totals, pure, several = refine.leaves(
            *(
                *grouping,
                layout.words[:columns],
                layout.shifts[:columns],
                layout.masks[:columns],
                self.domain,
                self.bits,
            )
        )
        for column in range(columns):
            self.note(
                mask | 1 << column,
                float(totals[column]),
                int(several[column]),
                pure_rows + int(pure[column]),
            )

    def visit(self, grouping: Grouping, mask: int, column: int, pure_rows: int) -> None:
        """Measure one set and all that extend it by lower columns."""
        from halfmask.kernels import refine

        if self.implied(mask):
            self.note(mask, 0.0, 0, self.units.total)
            keys, rows, labels, starts = grouping
            nothing = (keys[:0], rows[:0], labels[:0], starts[:1])
            self.descend(nothing, mask, self.units.total)
            return
        *finer, total, rows = refine.split(
            *(*grouping, *self.units.field(column), self.domain, self.bits)
        )
        self.note(mask, float(total), len(finer[3]) - 1, pure_rows + int(rows))
        self.descend(tuple(finer), mask, pure_rows + int(rows))

    def implied(self, mask: int) -> bool:
        """Whether a part of the set is an identifier."""
        return any(known & mask == known for known in self.identifiers)

    def note(self, mask: int, total: float, several: int, pure_rows: int) -> None:
        """Keep what was measured of one set."""
        implied = self.implied(mask)
        rate, kind = self.judge(total / self.units.total, several, pure_rows)
        if kind == "identifier" and not implied:
            self.identifiers.append(mask)
        names = self.units.names(mask)
        self.found.append(SetRate(names, rate, kind, pure_rows, implied=implied))

    def judge(self, residual: float, several: int, pure_rows: int) -> tuple[float, Kind]:
        """The rate and its class, by structure rather than by comparing floats with 0 and 1."""
        if self.entropy == 0.0:
            return self.undefined, "undefined"
        if several == 0:
            return 1.0, "identifier"
        if abs(self.entropy - residual) < _SAME * max(1, self.units.total):
            return 0.0, "zero"
        return 1.0 - residual / self.entropy, "partial" if pure_rows else "sketchy"
