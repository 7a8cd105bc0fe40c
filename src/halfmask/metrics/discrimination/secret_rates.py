"""How far released quasi-identifiers tell a sensitive column: four readings of one rate.

Each is measured for all quasi-identifiers together and for each of them, beside the original.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.discrimination.attack_rate import AttackRate, undefined_as_none
from halfmask.metrics.discrimination.columns import CodedColumn, coded, grouped
from halfmask.metrics.discrimination.grouping import Measured, measure
from halfmask.metrics.discrimination.inflation import beside_chance
from halfmask.metrics.discrimination.meaning import meaning_of
from halfmask.metrics.discrimination.released import released_column
from halfmask.metrics.weighted import rows_of, tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.discrimination.partition import Partitioning
    from halfmask.metrics.discrimination.released import Owners
    from halfmask.metrics.estimate import Estimate
    from halfmask.metrics.sides import Sides
    from halfmask.metrics.weighted import Counts

_CHANGED = "The released rows are not known to be rows of the original with these sensitive values."
_NO_MEANING = (
    "Nothing says which values mean the same: give a partition, or a hierarchy in the schema."
)
_SHUFFLED = 1_000_000  # rows that are shuffled in all to see what chance gives


def secret_rates(
    both: Sides, secret: str, partition: object, own: Owners | None
) -> list[AttackRate]:
    """All attacks on one sensitive column."""
    quasi = [column.name for column in both.quasi]
    sets = [tuple(quasi)] + ([(name,) for name in quasi] if len(quasi) > 1 else [])
    kept = _kept(both, secret, own)
    meaning = meaning_of(both.original, secret, partition)
    return [
        undefined_as_none(one)
        for keys in sets
        for one in _attacks(both, secret, keys, kept, meaning, shuffle=keys == sets[0])
    ]


def _attacks(
    both: Sides,
    secret: str,
    keys: tuple[str, ...],
    kept: NDArray[np.bool_] | None,
    meaning: Partitioning | None,
    *,
    shuffle: bool,
) -> list[AttackRate]:
    old, new = _Knowledge.before(both, keys), _Knowledge.after(both, keys)
    x0, x1 = coded(both.original, secret), released_column(both, secret)[0]
    before, after = old.measure(x0), new.measure(x1)
    rows = int(after.sizes.sum())
    figures = (after.kind, rows, after.pure_rows)
    chances = (new.chance(x1), old.chance(x0)) if shuffle else (None, None)
    out = [
        AttackRate("homogeneity", secret, keys, after.rate, before.rate, *figures, *chances),
        AttackRate("background", secret, keys, 1 - after.rate, 1 - before.rate, None, rows),
    ]
    if kept is None:
        out.append(AttackRate("skewness", secret, keys, None, reason=_CHANGED))
    else:
        told = before if kept.all() else old.measure(x0, kept)
        out.append(AttackRate("skewness", secret, keys, told.rate - after.rate, None, None, rows))
    if meaning is None:
        out.append(AttackRate("similarity", secret, keys, None, reason=_NO_MEANING))
        return out
    block_of = meaning.bind(secret, both.original.encode(secret).values)
    m0, m1 = coded(both.original, secret, block_of), released_column(both, secret, meaning)[0]
    before, after = old.measure(m0), new.measure(m1)
    figures = (after.kind, rows, after.pure_rows)
    chances = (new.chance(m1), old.chance(m0)) if shuffle else (None, None)
    out.append(AttackRate("similarity", secret, keys, after.rate, before.rate, *figures, *chances))
    return out


class _Knowledge:
    """What an attacker knows of each row: its group by the keys."""

    def __init__(self, columns: Sequence[CodedColumn], counts: Counts) -> None:
        self.groups, self.count = grouped(columns)
        self.counts = counts

    @classmethod
    def before(cls, both: Sides, keys: Sequence[str]) -> _Knowledge:
        """The original keys."""
        return cls([coded(both.original, name) for name in keys], both.original_counts)

    @classmethod
    def after(cls, both: Sides, keys: Sequence[str]) -> _Knowledge:
        """The released keys."""
        return cls([released_column(both, name)[0] for name in keys], both.released_counts)

    def measure(self, x: CodedColumn, kept: NDArray[np.bool_] | None = None) -> Measured:
        """How far it tells ``x``, on the rows ``kept``."""
        if kept is None:
            return measure(x.codes, x.size, self.groups, self.count, weights=self.counts)
        part = grouped([CodedColumn(self.groups[kept].astype(np.int32), self.count, ())])
        counts = None if self.counts is None else self.counts[kept]
        return measure(x.codes[kept], x.size, *part, weights=counts)

    def chance(self, x: CodedColumn) -> Estimate | None:
        """What shuffled outcomes give."""
        times = max(3, min(10, _SHUFFLED // rows_of(len(x.codes), self.counts)))
        return beside_chance(
            x.codes, x.size, self.groups, self.count, times, weights=self.counts
        ).chance


def _kept(both: Sides, secret: str, own: Owners | None) -> NDArray[np.bool_] | None:
    """The original rows that were released; None where the sensitive values do not bear it out."""
    column = both.columns[secret]
    if column.foreign or int(column.level.max(initial=0)) > 0:
        return None
    value = column.covered[column.starts[:-1]]
    published = tally(value[column.after], column.leaves, both.released_counts)
    counts = both.original_counts
    candidates = [np.ones(len(column.before), dtype=bool)] + ([] if own is None else [own.kept])
    for kept in candidates:
        part = None if counts is None else counts[kept]
        if (tally(column.before[kept], column.leaves, part) == published).all():
            return kept
    return None
