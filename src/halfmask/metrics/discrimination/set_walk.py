"""The walk over column sets that measures each from the grouping of a smaller one.

Groups that hold one outcome leave the walk as soon as they arise: nothing can split them further.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.discrimination.grouping import SAME, Kind, entropy_of, judge
from halfmask.metrics.walk import MOST, below

if TYPE_CHECKING:
    from halfmask.metrics.discrimination.inflation import Inflation
    from halfmask.metrics.walk import Units

    Grouping = tuple[Any, ...]  # keys, rows, labels and starts

_PAIRS = 1 << 20  # so many counters of (code, outcome) still fit a core's cache
_BITS = 1 << 20  # counts whose n log2 n is looked up; larger ones are few and are computed


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
        plain["rate"] = None if np.isnan(self.rate) else self.rate
        if self.inflation is not None:
            plain["inflation"] = self.inflation.to_dict()
        return plain


class SetWalk:
    """The state of one walk: what every set needs, and what was found."""

    def __init__(self, units: Units, size: int, undefined: float) -> None:
        self.units, self.size, self.undefined = units, size, undefined
        self.keys = len(units.columns) - 1
        self.labels = units.layout.codes(units.keys, self.keys).astype(np.int32)
        counts = np.arange(min(units.total + 1, _BITS), dtype=np.float64)
        self.bits = counts * np.log2(np.maximum(counts, 1.0))
        outcomes = np.bincount(self.labels, weights=units.rows).astype(np.int64)
        self.entropy = entropy_of(outcomes)
        self.domain = len(outcomes)
        widest = int(units.layout.masks[:-1].max()) + 1
        self.compact = widest * self.domain <= _PAIRS
        room = np.int32 if units.total <= MOST else np.int64
        self.count = np.zeros(widest * self.domain if self.compact else 0, dtype=room)
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
        for column in below(mask, self.keys):
            self.visit(grouping, mask | 1 << column, column, pure_rows)

    def finish(self, grouping: Grouping, mask: int, pure_rows: int) -> None:
        """Measure the largest sets, all that extend ``mask`` at once."""
        from halfmask.kernels import refine

        columns = len(list(below(mask, self.keys)))
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
                self.count,
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
        """The rate and its class; sums of many terms are rounded more."""
        return judge(
            self.entropy,
            residual,
            self.undefined,
            all_pure=several == 0,
            any_pure=pure_rows > 0,
            same=SAME * max(1.0, len(self.units) ** 0.5),
        )
