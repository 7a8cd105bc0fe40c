"""What a table says of its columns before and after: means, deviations, quantiles, groups.

Definition: mean, standard deviation and quantiles of a numeric column, each row by its weight; of a
release, where the mass of a label lies evenly on the values it covers. A correlation is Pearson's,
a label counting as the mean of the values it covers. Of a group of rows the share left out is
1 - rows after / rows before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InputError
from halfmask.metrics.weighted import in_range
from halfmask.table.document import Result
from halfmask.table.values import is_number

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.metrics.common_ground import SharedColumn
    from halfmask.metrics.sides import Sides

    Mass = NDArray[np.float64]

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
FEWEST = 10  # rows of a group that is named by itself; smaller ones are one group
_GROUPS = 8  # groups that numbers are cut into


@dataclass(frozen=True, slots=True)
class Summary(Result):
    """One column of one table.

    Attributes:
        mean: its mean; ``deviation`` its standard deviation.
        median: half of the rows lie below.
        q10, q25, q75, q90: likewise a tenth, a quarter, three quarters, nine tenths.
    """

    mean: float
    deviation: float
    q10: float
    q25: float
    median: float
    q75: float
    q90: float


@dataclass(frozen=True, slots=True)
class ColumnSummary(Result):
    """A numeric column of the original and of its release."""

    name: str
    before: Summary
    after: Summary


@dataclass(frozen=True, slots=True)
class Correlation(Result):
    """The correlation of two columns in the original and in its release."""

    columns: tuple[str, str]
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Summaries(Result):
    """The numeric columns before and after.

    Attributes:
        columns: each of them; ``correlations`` each pair.
        weighted: the column of weights that counted; None: every row counts as one.
    """

    columns: tuple[ColumnSummary, ...]
    correlations: tuple[Correlation, ...]
    weighted: str | None = None


def summaries(sides: Sides, weights: str | None = None) -> Summaries:
    """Summarize the numeric columns of both tables, by ``weights`` or those that the schema names.

    Weights of the schema count only where both tables hold them as numbers.
    """
    declared = sides.original.schema.weight
    if weights is None and declared in sides.columns and _usable(sides, sides.columns[declared]):
        weights = declared
    own, theirs = _weights(sides, weights)
    found, before, after = [], [], []
    for column in sides.columns.values():
        if column.name == weights or not _usable(sides, column):
            continue
        known = _is_value(sides, column)
        numbers = np.where(known, _numbers(column), np.nan)
        mass = _tally(column.before, own, column.leaves)
        spread = column.spread(_tally(column.after, theirs, column.labels))
        found.append(
            ColumnSummary(
                column.name,
                _summary(numbers[known], mass[known]),
                _summary(numbers[known], spread[known]),
            )
        )
        before.append(numbers[column.before])
        after.append(_label_means(column, numbers)[column.after])
    pairs = tuple(
        Correlation(
            (found[i].name, found[j].name),
            _correlation(before[i], before[j], own),
            _correlation(after[i], after[j], theirs),
        )
        for i in range(len(found))
        for j in range(i + 1, len(found))
    )
    return Summaries(tuple(found), pairs, weights)


def require_weights(sides: Sides, name: str) -> None:
    """Refuse a column of weights that is not in both tables, or holds what no weight can be.

    Raises:
        InputError: it is so.
    """
    column = sides.columns.get(name)
    if column is None:
        raise InputError(
            f"The column of weights {name!r} must be in both tables, with a role that lets it "
            "leave: name another, or none."
        )
    if not _usable(sides, column) or not _is_value(sides, column)[column.before].all():
        raise InputError(f"The column of weights {name!r} must hold a number in every row.")
    if _numbers(column).min() < 0:
        raise InputError(f"The column of weights {name!r} holds numbers below 0.")


def _tally(ids: NDArray[np.int32], mass: Mass, size: int) -> Mass:
    return np.asarray(np.bincount(ids, weights=mass, minlength=size), dtype=np.float64)


def _usable(sides: Sides, column: SharedColumn) -> bool:
    """Whether it holds numbers (no dates) whose squares are numbers."""
    numbers = column.numbers
    if numbers is None or in_range(numbers) is not numbers:
        return False
    known = _is_value(sides, column)
    held = known[column.before].any() and known[column.covered].any()
    return bool(held) and is_number(sides.original.encode(column.name).values.type)


def _is_value(sides: Sides, column: SharedColumn) -> NDArray[np.bool_]:
    """Per leaf, whether it is a value: the missing one is none."""
    found = np.ones(column.leaves, dtype=np.bool_)
    if sides.original.encode(column.name).values.null_count:
        found[column.known - 1] = False
    return found


def _label_means(column: SharedColumn, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Per label, the mean of the known values it covers; NaN where it covers none."""
    inside = numbers[column.covered]
    there = ~np.isnan(inside)
    sums = np.add.reduceat(np.where(there, inside, 0.0), column.starts[:-1])
    counts = np.add.reduceat(there.astype(np.float64), column.starts[:-1])
    return np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)


def _numbers(column: SharedColumn) -> NDArray[np.float64]:
    assert column.numbers is not None  # noqa: S101 - only asked of numeric columns
    return column.numbers


def _weights(sides: Sides, name: str | None) -> tuple[Mass, Mass]:
    """What each entry of either table counts for."""
    own, theirs = (c.astype(np.float64) for c in (sides.original_counts, sides.released_counts))
    if name is None:
        return own, theirs
    column = sides.columns[name]
    return own * _numbers(column)[column.before], theirs * column.label_numbers[column.after]


def _summary(numbers: NDArray[np.float64], mass: Mass) -> Summary:
    total = mass.sum()
    mean = float(numbers @ mass / total)
    deviation = float(np.sqrt(((numbers - mean) ** 2) @ mass / total))
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(mass[order])
    # A little below, so that rounding of shares does not step over the value that reaches them.
    wanted = np.array(QUANTILES) * ends[-1] * (1 - 1e-12)
    return Summary(mean, deviation, *map(float, numbers[order][np.searchsorted(ends, wanted)]))


def _correlation(one: NDArray[np.float64], two: NDArray[np.float64], mass: Mass) -> float | None:
    """Of the rows that hold both; None where one of them does not vary."""
    both = ~np.isnan(one) & ~np.isnan(two)
    if not both.any() or not mass[both].sum():
        return None
    share = mass[both] / mass[both].sum()
    left, right = one[both], two[both]
    if left.min() == left.max() or right.min() == right.max():
        return None
    left, right = left - left @ share, right - right @ share
    spread = float(np.sqrt(((left**2) @ share) * ((right**2) @ share)))
    return float((left * right) @ share / spread) if spread > 0 else None


@dataclass(frozen=True, slots=True)
class GroupLoss(Result):
    """How many rows of a group were left out.

    Attributes:
        column: the column; ``group`` what the rows hold there.
        before: rows of the original; ``after`` of the release.
        share: the share left out.
    """

    column: str
    group: str
    before: int
    after: int
    share: float


@dataclass(frozen=True, slots=True)
class LeftOut(Result):
    """Who was left out, for whoever holds the original.

    Attributes:
        share: the share of all rows.
        groups: by column and group, those that lose most first.
        untold: columns whose labels overlap, so that they do not tell whose rows are missing.
    """

    share: float
    groups: tuple[GroupLoss, ...]
    untold: tuple[str, ...] = ()

    def most(self, count: int = 5) -> tuple[GroupLoss, ...]:
        """The groups that lose most, and more than all rows do."""
        return tuple(one for one in self.groups if one.share > self.share)[:count]


def left_out(sides: Sides) -> LeftOut | None:
    """Who was left out, by quasi-identifiers and sensitive columns; None where nobody was.

    Labels that overlap hold the same rows: what they cover together is one group, whose rows
    before and after are counted and not guessed. Groups of fewer than ``FEWEST`` rows are one.
    """
    gone = sides.before - sides.after
    if gone <= 0:
        return None
    found: list[GroupLoss] = []
    untold = []
    for column in (*sides.quasi, *sides.sensitive):
        groups = _groups(column, sides) if not column.foreign else []
        found += groups
        if not groups:
            untold.append(column.name)
    order = sorted(found, key=lambda one: (-one.share, -one.before, one.column, one.group))
    return LeftOut(gone / sides.before, tuple(order), tuple(untold))


def _groups(column: SharedColumn, sides: Sides) -> list[GroupLoss]:
    """The groups of one column; none where its labels leave one only."""
    block = _blocks(column)
    if column.numbers is not None:
        block = _coarsen(column, block)
    before = np.bincount(block, weights=column.leaf_rows, minlength=int(block.max()) + 1)
    first = column.covered[column.starts[:-1]]
    after = np.bincount(block[first], weights=column.label_rows, minlength=len(before))
    held = np.flatnonzero(before)
    small = held[before[held] < FEWEST]
    if len(held) - len(small) + bool(len(small)) < 2:
        return []
    values = sides.original.encode(column.name).values
    named = [
        _loss(column.name, _name(values, np.flatnonzero(block[: column.known] == one)), pair)
        for one in held.tolist()
        if before[one] >= FEWEST
        for pair in [(int(before[one]), int(after[one]))]
    ]
    # Small groups are told together only, and not at all where they are few even so.
    pair = (int(before[small].sum()), int(after[small].sum()))
    if pair[0] >= FEWEST:
        named.append(_loss(column.name, f"values that under {FEWEST} rows hold", pair))
    return named


def _loss(column: str, group: str, pair: tuple[int, int]) -> GroupLoss:
    before, after = pair
    return GroupLoss(column, group, before, after, max(0.0, 1 - after / before))


def _blocks(column: SharedColumn) -> NDArray[np.int64]:
    """Per leaf, the number of the leaves that labels join it with."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    owner = np.repeat(np.arange(column.labels), column.sizes)
    size = column.labels + column.leaves
    # Labels and leaves as a graph: leaves that a chain of labels joins cannot be told apart.
    edges = (np.ones(len(owner)), (owner, column.labels + column.covered))
    ids = connected_components(csr_array(edges, shape=(size, size)), directed=False)[1]
    found = np.unique(ids[column.labels :], return_inverse=True)[1]
    return np.asarray(found.reshape(-1), dtype=np.int64)


def _coarsen(column: SharedColumn, block: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers in a few groups of about as many rows; neighbors stay together."""
    count = int(block.max()) + 1
    if count <= _GROUPS:
        return block
    rows = np.bincount(block, weights=column.leaf_rows, minlength=count)
    lowest = np.full(count, np.inf)
    np.minimum.at(lowest, block, _numbers(column))
    order = np.argsort(lowest, kind="stable")
    middle = np.cumsum(rows[order]) - rows[order] / 2
    group = np.empty(count, dtype=np.int64)
    group[order] = np.minimum(middle * _GROUPS / max(rows.sum(), 1), _GROUPS - 1).astype(np.int64)
    return group[block]


_NAMED = 3


def _name(values: pa.Array, leaves: NDArray[np.int64]) -> str:
    """What the rows of a group hold: a value, a range, or a few values and how many more."""
    import pyarrow as pa

    held = [
        "missing" if one is None else str(one) for one in values.take(pa.array(leaves)).to_pylist()
    ]
    if len(held) <= _NAMED:
        return ", ".join(held)
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind):
        return f"{held[0]} to {held[-1]}"
    return f"{', '.join(held[:_NAMED])} and {len(held) - _NAMED} more"
