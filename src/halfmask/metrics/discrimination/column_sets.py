"""Which combinations of columns discriminate a target most: all sets up to a size.

Definition: as in ``halfmask.metrics.discrimination.rate``, for every set of columns.
Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, figure 4.3.

Each set is measured from the grouping of a smaller one. Groups that hold one outcome leave the walk
as soon as they arise: nothing can split them further. Sets are pruned: everything that contains an
identifier is one. A column whose rate alone is 0 is not pruned, because it may matter together with
others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.engines.counting.tuples import count_tuples
from halfmask.engines.read import as_table
from halfmask.errors import InputError
from halfmask.metrics.discrimination.columns import bind_partitions, per_column, require_measurable
from halfmask.metrics.discrimination.rate import SAME, KeyKind, inflation, judge_rate
from halfmask.metrics.risk.column_sets import (
    by_size,
    chosen_columns,
    extensions,
    narrow_counts,
    one_group,
)
from halfmask.metrics.weighted import entropy_of
from halfmask.table.document import Result
from halfmask.table.tuples import pack_tuples

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from halfmask.kernels.grouping import Grouping
    from halfmask.metrics.discrimination.rate import Inflation
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table
    from halfmask.table.tuples import PackedTuples, Tuples

_FIRST = 10  # sets whose target is shuffled
_SHUFFLED = 2_000_000  # rows that are shuffled in all for one of them, three times at least
_PAIRS = 1 << 20  # so many counters of (code, outcome) still fit a core's cache
_BITS = 1 << 20  # counts whose n log2 n is looked up; larger ones are few and are computed


@dataclass(frozen=True, slots=True)
class SetRate(Result):
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
    kind: KeyKind
    identified_rows: int
    implied: bool = False
    inflation: Inflation | None = None


class SetWalk:
    """The state of one walk: what every set needs, and what was found."""

    def __init__(self, units: PackedTuples, size: int, undefined: float) -> None:
        self.units, self.size, self.undefined = units, size, undefined
        self.rows, self.total = narrow_counts(units.rows), int(units.rows.sum())
        self.keys = len(units.columns) - 1
        self.labels = units.codes(self.keys).astype(np.int32)
        counts = np.arange(min(self.total + 1, _BITS), dtype=np.float64)
        self.bits = counts * np.log2(np.maximum(counts, 1.0))
        outcomes = np.bincount(self.labels, weights=self.rows).astype(np.int64)
        self.entropy = entropy_of(outcomes)
        self.domain = len(outcomes)
        widest = int(units.layout.masks[:-1].max()) + 1
        self.compact = widest * self.domain <= _PAIRS
        self.count = np.zeros(widest * self.domain if self.compact else 0, dtype=self.rows.dtype)
        self.found: list[SetRate] = []
        self.identifiers: list[int] = []

    def run(self) -> list[SetRate]:
        """Visit all sets."""
        from halfmask.kernels.grouping import Grouping

        start = Grouping(self.units.keys, self.rows, self.labels, one_group(len(self.units)))
        self.descend(start, 0, 0)
        return self.found

    def descend(self, grouping: Grouping, mask: int, pure_rows: int) -> None:
        """Visit all sets that extend ``mask`` by lower columns."""
        size = mask.bit_count()
        if size == self.size:
            return
        if size == self.size - 1 and self.compact:  # most sets are of the largest size
            self.finish(grouping, mask, pure_rows)
            return
        for column in extensions(mask, self.keys):
            self.visit(grouping, mask | 1 << column, column, pure_rows)

    def finish(self, grouping: Grouping, mask: int, pure_rows: int) -> None:
        """Measure the largest sets, all that extend ``mask`` at once."""
        from halfmask.kernels.grouping import residuals_by_column

        columns = len(list(extensions(mask, self.keys)))
        if not columns:
            return
        layout = self.units.layout
        fields = layout.words[:columns], layout.shifts[:columns], layout.masks[:columns]
        totals, pure, several = residuals_by_column(
            grouping, fields, self.domain, self.bits, self.count
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
        from halfmask.kernels.grouping import Grouping, refine, residual_bits

        if self.implied(mask):
            self.note(mask, 0.0, 0, self.total)
            keys, rows, labels, starts = grouping
            nothing = Grouping(keys[:0], rows[:0], labels[:0], starts[:1])
            self.descend(nothing, mask, self.total)
            return
        found = refine(grouping, self.units.field(column))
        total = residual_bits(found.finer, found.sums, found.upto, self.domain, self.bits)
        pure_rows += int(found.held.sum(dtype=np.int64))
        self.note(mask, float(total), len(found.sums), pure_rows)
        self.descend(found.finer, mask, pure_rows)

    def implied(self, mask: int) -> bool:
        """Whether a part of the set is an identifier."""
        return any(known & mask == known for known in self.identifiers)

    def note(self, mask: int, total: float, several: int, pure_rows: int) -> None:
        """Keep what was measured of one set."""
        implied = self.implied(mask)
        rate, kind = self.judge(total / self.total, several, pure_rows)
        if kind == "identifier" and not implied:
            self.identifiers.append(mask)
        names = self.units.names(mask)
        self.found.append(SetRate(names, rate, kind, pure_rows, implied=implied))

    def judge(self, residual: float, several: int, pure_rows: int) -> tuple[float, KeyKind]:
        """The rate and its class; sums of many terms are rounded more."""
        return judge_rate(
            self.entropy,
            residual,
            self.undefined,
            all_pure=several == 0,
            any_pure=pure_rows > 0,
            same=SAME * max(1.0, len(self.units) ** 0.5),
        )


def rank_column_sets(
    table: Table | str | PathLike[str],
    target: str,
    columns: Sequence[str] | None = None,
    *,
    size: int = 3,
    partition: object = None,
    undefined: float = float("nan"),
    permutations: int = 0,
) -> tuple[SetRate, ...]:
    """Measure every set of at most ``size`` columns and put the most discriminating first.

    Among equal rates the smaller set comes first.

    Args:
        table: the rows, wherever they are, or the name of a file.
        target: the column X.
        columns: where to look; None: all columns that may leave, without the target.
        size: the largest set.
        partition: blocks of values, as for ``discrimination_rate``.
        undefined: what a target that never varies gives.
        permutations: how often the target is shuffled to see what chance gives the first ten
            sets; three times are enough for many rows.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"id": [1, 2, 3], "age": [22, 35, 22], "pay": [4, 5, 6]}, schema={})
        >>> hm.rank_column_sets(people, "id")[0].columns
        ('pay',)
    """

    def columns_of(known: Schema) -> list[str]:
        if columns is None and not known.columns:
            raise InputError("Name the columns to look at, or give a schema that lists them.")
        wanted = (
            [n for n in known.columns if n not in known.private] if columns is None else columns
        )
        return [target, *wanted]

    held = count_tuples(as_table(table), columns_of)
    found = rank_tuples(held, target, columns, size=size, partition=partition, undefined=undefined)
    if not permutations:
        return found
    blocks = per_column(held.table, target, partition)
    times = min(permutations, max(3, _SHUFFLED // held.rows))
    first = []
    for one in found[:_FIRST]:
        own = {name: blocks[name] for name in (target, *one.columns) if name in blocks} or None
        chance = inflation(held, target, one.columns, own, permutations=times)
        first.append(replace(one, inflation=chance))
    return (*first, *found[_FIRST:])


def rank_tuples(
    tuples: Tuples,
    target: str,
    columns: Sequence[str] | None = None,
    *,
    size: int = 3,
    partition: object = None,
    undefined: float = float("nan"),
) -> tuple[SetRate, ...]:
    """The same for tuples at hand."""
    table = tuples.table
    names = [name for name in chosen_columns(table, columns, size) if name != target]
    require_measurable(table, target, tuple(names), "keep")
    blocks = bind_partitions(table, (target, *names), target, partition)
    places = {name: (one.places, len(one.names)) for name, one in blocks.items()}
    units = pack_tuples(tuples, [*by_size(table, names), target], places=places)
    place = {name: i for i, name in enumerate(names)}
    found = [
        replace(one, columns=tuple(sorted(one.columns, key=place.__getitem__)))
        for one in SetWalk(units, size, undefined).run()
    ]
    return tuple(sorted(found, key=lambda one: (-one.rate, len(one.columns), one.columns)))
