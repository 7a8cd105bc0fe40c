"""From a table to what is co-clustered: columns cut into parts, rows as pairs (row, part)."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from halfmask.coclustering.criterion import GridCriterion
from halfmask.coclustering.observations import Observations, Variable, observe
from halfmask.coclustering.optimize import optimize_grid
from halfmask.coclustering.search import GridSearch
from halfmask.errors import InputError, ParameterError
from halfmask.table.columns import require_known
from halfmask.table.hierarchies.builders import INTERVALS
from halfmask.table.hierarchy_finder import ROUNDS
from halfmask.table.labels import ANY, MISSING
from halfmask.table.values import is_continuous

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import CriterionForm, GridPartition
    from halfmask.coclustering.grid import Grid
    from halfmask.table.table import Table


_SMALL, _LARGE = Decimal("1e-12"), Decimal("1e17")  # beyond, numbers are written as 1.5E+20
_NOISE = 1e-9  # of the gap between two values
# The first bound is lowered so that the least value is inside, as printed.
_LOWERED = Decimal("0.001")


@dataclass(frozen=True, slots=True)
class IntervalCuts:
    """Intervals that are open below and closed above; values beyond the ends join the end ones.

    Attributes:
        bounds: the ends of all intervals in ascending order, one more than intervals.
    """

    bounds: tuple[float, ...]

    def __repr__(self) -> str:
        return f"IntervalCuts({len(self)} intervals)"

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def apply(self, numbers: NDArray[np.float64]) -> NDArray[np.int32]:
        """The interval of each number, also of numbers the cuts were not learnt on."""
        inner = np.asarray(self.bounds[1:-1])
        return np.searchsorted(inner, numbers, side="left").astype(np.int32)

    def short(self, values: NDArray[np.float64]) -> IntervalCuts:
        """The same intervals of the ascending ``values``, between bounds that are short to write.

        Bounds of whole numbers are whole; others keep three decimals, or as many more as leave
        every value on its side.
        """
        whole = bool((values == np.floor(values)).all())
        inner = [_short(values, bound, whole=whole) for bound in self.bounds[1:-1]]
        return IntervalCuts((self.bounds[0], *inner, self.bounds[-1]))

    def labels(self) -> list[str]:
        """The intervals as text, with the least value (lowered a little) and the largest."""
        first, *ends = [Decimal(repr(bound)) for bound in self.bounds]
        texts = [decimal_text(end) for end in (first - _LOWERED, *ends)]
        return [f"]{low},{high}]" for low, high in itertools.pairwise(texts)]


def open_labels(ends: Sequence[str]) -> list[str]:
    """Intervals between inner bounds as text; the least and the largest value stay unsaid."""
    if not ends:
        return [ANY]
    middle = [f"]{low},{high}]" for low, high in itertools.pairwise(ends)]
    return [f"<={ends[0]}", *middle, f">{ends[-1]}"]


def decimal_text(number: Decimal) -> str:
    """A number as decimals without zeros at the end; very large and small ones: an exponent."""
    if number and not _SMALL <= abs(number) < _LARGE:
        return str(number)
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _short(values: NDArray[np.float64], bound: float, *, whole: bool) -> float:
    """The bound as short as it can be written with the same values up to it."""
    place = int(np.searchsorted(values, bound, side="right"))
    if whole:
        return float(np.floor(bound))
    low = values[place - 1] if place else -np.inf
    high = values[place] if place < len(values) else np.inf
    for places in range(3, 18):  # the fewest decimals that part the same values
        near = round(bound, places)
        if low <= near < high:
            return near
    return bound


def equal_frequency(numbers: NDArray[np.float64], parts: int) -> IntervalCuts:
    """Intervals that hold about as many rows each (quantiles).

    Where quantiles coincide, values that more than a part's share of the rows hold are parts of
    their own, and the other rows are cut at their own quantiles.
    """
    _require(numbers, parts)
    values, counts = np.unique(numbers, return_counts=True)
    bounds = _quantile_bounds(numbers, values, parts)
    if len(bounds) == parts + 1:
        return _cuts(bounds)
    heavy = counts * parts >= len(numbers)
    left = max(2, parts - int(heavy.sum()))
    others = numbers[~np.isin(numbers, values[heavy])]
    heavy |= (counts * left * 2 >= len(others)) & (counts > 1)  # half of what an interval holds
    between = _quantile_bounds(others, np.unique(others), left)[1:-1] if len(others) else others
    after = np.searchsorted(values, between, side="right")
    return _with_alone(values, heavy, between[np.append(np.diff(after) > 0, True)[: len(after)]])


def _with_alone(
    values: NDArray[np.float64], heavy: NDArray[np.bool_], inner: NDArray[np.float64]
) -> IntervalCuts:
    """The intervals between ``inner`` bounds, and each heavy value as a part of its own.

    Of bounds that part the same values, that of a heavy one counts.
    """
    alone: dict[int, float] = {}
    for place in np.flatnonzero(heavy).tolist():
        alone[place] = float(values[place])
        if place and not heavy[place - 1]:  # it is alone only if it is cut off below too
            alone[place - 1] = float(values[place - 1] + values[place]) / 2
    after = np.searchsorted(values, inner, side="right") - 1
    rest = inner[~np.isin(after, [*alone, len(values) - 1])]
    ends = [end for place, end in alone.items() if place < len(values) - 1]
    return _cuts(np.r_[values[0], np.sort(np.r_[rest, ends]), values[-1]])


def _quantile_bounds(
    numbers: NDArray[np.float64], values: NDArray[np.float64], parts: int
) -> NDArray[np.float64]:
    """The quantiles of ``numbers``, equal ones joined."""
    bounds = np.quantile(numbers, np.linspace(0, 1, parts + 1))
    place = np.minimum(np.searchsorted(values, bounds), len(values) - 1)
    above, below = values[place], values[np.maximum(place - 1, 0)]
    close = above - bounds <= _NOISE * (above - below)  # a value, but for the last digits
    return np.asarray(np.unique(np.where(close, above, bounds)))


def equal_width(numbers: NDArray[np.float64], parts: int) -> IntervalCuts:
    """Intervals of the same width; values that a part's share of the rows hold stand alone."""
    _require(numbers, parts)
    values, counts = np.unique(numbers, return_counts=True)
    heavy = (counts * parts >= len(numbers)) & (counts > 1)
    return _with_alone(values, heavy, np.linspace(values[0], values[-1], parts + 1)[1:-1])


def best_cuts(
    numbers: NDArray[np.float64], target: NDArray[np.int32], *, seed: int = 0
) -> IntervalCuts:
    """The intervals of least MODL cost against a categorical ``target``; bounds lie mid-way."""
    _require(numbers, 1)
    values, codes = np.unique(numbers, return_inverse=True)
    groups = int(target.max()) + 1
    observed = observe(
        [Variable("numbers", "numeric", len(values)), Variable("target", "categorical", groups)],
        [codes.reshape(-1).astype(np.int32), target],
    )
    search = GridSearch.of(GridCriterion(observed), seed)
    partition: GridPartition = (
        np.zeros(len(values), dtype=np.int32),
        np.arange(groups, dtype=np.int32),
    )
    for _ in range(3):  # values near the cuts are looked at one by one from the second time on
        partition = search.improve(0, partition)
    ends = np.flatnonzero(np.diff(partition[0]))
    inner = (values[ends] + values[ends + 1]) / 2
    return _cuts(np.concatenate([values[:1], inner, values[-1:]]))


def _cuts(bounds: NDArray[np.float64]) -> IntervalCuts:
    ends = bounds.tolist()
    return IntervalCuts(tuple(ends if len(ends) > 1 else [ends[0], ends[0]]))


def _require(numbers: NDArray[np.float64], parts: int) -> None:
    if parts < 1:
        raise ParameterError("parts", parts, "1 or more")
    if not len(numbers) or not np.isfinite(numbers).all():
        raise InputError("Only finite numbers can be cut into intervals: there is none, or NaN.")


def as_numbers(values: pa.Array) -> NDArray[np.float64]:
    """The values as floating-point numbers; points in time in the units they are stored in."""
    numbers = _units(values).cast(pa.float64(), safe=False)
    return np.asarray(numbers.to_numpy(zero_copy_only=False))


def _units(values: pa.Array) -> pa.Array:
    """Points in time as whole numbers of the units they are stored in; others as they are."""
    if not pa.types.is_temporal(values.type):
        return values
    return values.cast(pa.int32() if _narrow(values.type) else pa.int64())


def _narrow(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date32(kind) or pa.types.is_time32(kind))


def bound_texts(cuts: IntervalCuts, values: pa.Array) -> list[str]:
    """The inner bounds as text; every value up to a bound is at most what the text says."""
    inner, kind = cuts.bounds[1:-1], values.type
    if not pa.types.is_integer(kind) and not pa.types.is_temporal(kind):
        return [decimal_text(Decimal(repr(bound))) for bound in inner]
    units = _units(values)
    last = np.searchsorted(as_numbers(values), inner, side="right") - 1
    whole = [math.floor(bound) for bound in inner]  # large numbers differ in what a float loses
    ends = [max(w, units[p].as_py()) if p >= 0 else w for w, p in zip(whole, last, strict=True)]
    if pa.types.is_integer(kind):
        return [str(end) for end in ends]
    moments = pa.array(ends, units.type).cast(kind).cast(pa.string())
    return [str(moment) for moment in moments.to_pylist()]


IntervalRule = Literal["equal-frequency", "equal-width", "modl"]
MAX_PARTS = 50_000  # parts of all columns together


@dataclass(frozen=True, slots=True, eq=False)
class ColumnParts:
    """The parts of one column.

    Attributes:
        name: the column.
        ordered: whether the parts but the missing one are ordered (numbers, ordinals).
        labels: the text of each part, as it may be published.
        of_value: per distinct value of the table's column, its part.
        codes: per row, its part.
        cuts: how numbers were cut, where they were.
        counts: how many rows each of ``codes`` stands for; None: they are rows.
    """

    name: str
    ordered: bool
    labels: tuple[str, ...]
    of_value: NDArray[np.int32]
    codes: NDArray[np.int32]
    cuts: IntervalCuts | None = None
    counts: NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        return f"ColumnParts({self.name!r}, {len(self.labels)} parts)"

    @property
    def rows(self) -> NDArray[np.int64]:
        """How many rows each part holds."""
        found = np.bincount(self.codes, self.counts, minlength=len(self.labels))
        return found.astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class MeltedTable:
    """A table as observations of (row, part of a column).

    Definition: one observation per row and column; a part is a value of a nominal column or an
        interval of a numeric one; the missing value is a part of its own.
    Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018,
        ch. 3.

    Attributes:
        columns: the columns' parts, in order.
        observations: the two variables ``row`` and ``part``.
        offsets: where each column's parts begin among all parts, and their number at the end.
    """

    columns: tuple[ColumnParts, ...]
    observations: Observations
    offsets: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Melted({len(self.columns)} columns, {self.offsets[-1]:,} parts)"

    @property
    def owner(self) -> NDArray[np.int32]:
        """The column of each part."""
        return np.repeat(np.arange(len(self.columns), dtype=np.int32), np.diff(self.offsets))

    def matrix(self) -> NDArray[np.int32]:
        """(rows, columns) the part of each row in each column, counted through all columns."""
        shifted = [c.codes + o for c, o in zip(self.columns, self.offsets[:-1], strict=True)]
        return np.column_stack(shifted).astype(np.int32)


def column_parts(
    table: Table,
    name: str,
    *,
    bins: int = 10,
    intervals: IntervalRule = "equal-frequency",
    counts: NDArray[np.int64] | None = None,
) -> ColumnParts:
    """The parts of one column: intervals of numbers with more than ``bins`` values, else values.

    ``"modl"`` starts from intervals of equal frequency; ``recut`` then moves them. With ``counts``,
    entries of the table stand for so many rows each.
    """
    encoded = table.encode(name)
    values = encoded.values
    held = len(values) - values.null_count
    column = table.schema.columns.get(name)
    kind = column.kind if column is not None else None
    number = is_continuous(values.type) and kind in (None, "numeric", "date")
    if number and held > bins:
        numbers = as_numbers(values.slice(0, held))
        if not np.isfinite(numbers).all():
            raise InputError(
                f"Column {name!r} holds numbers that are infinite, which no interval takes: "
                "replace them, or declare the column nominal."
            )
        often = np.bincount(encoded.codes, counts, minlength=len(values))[:held].astype(np.int64)
        learn = equal_width if intervals == "equal-width" else equal_frequency
        cuts = learn(np.repeat(numbers, often), bins).short(numbers)
        return cut_column(table, name, cuts, counts)
    labels = [str(value) for value in values.slice(0, held).to_pylist()]
    labels += [MISSING] * values.null_count
    ordered = number or kind in ("ordinal", "date") or pa.types.is_temporal(values.type)
    return ColumnParts(
        name,
        ordered,
        tuple(_distinct(labels)),
        np.arange(len(values), dtype=np.int32),
        encoded.codes.astype(np.int32),
        counts=counts,
    )


def cut_column(
    table: Table, name: str, cuts: IntervalCuts, counts: NDArray[np.int64] | None = None
) -> ColumnParts:
    """The parts of a numeric column that is cut at ``cuts``; intervals without rows stay."""
    encoded = table.encode(name)
    held = len(encoded.values) - encoded.values.null_count
    values = encoded.values.slice(0, held)
    part = cuts.apply(as_numbers(values))
    labels = open_labels(bound_texts(cuts, values))
    if held < len(encoded.values):
        part = np.append(part, np.int32(len(labels)))
        labels = [*labels, MISSING]
    of_value = part.astype(np.int32)
    return ColumnParts(
        name=name,
        ordered=True,
        labels=tuple(labels),
        of_value=of_value,
        codes=of_value[encoded.codes],
        cuts=cuts,
        counts=counts,
    )


def require_cuts(bins: object, intervals: object) -> None:
    """Refuse what is no rule for cutting numbers."""
    if intervals not in INTERVALS:
        raise ParameterError("intervals", intervals, "one of " + ", ".join(INTERVALS))
    if not isinstance(bins, int) or isinstance(bins, bool) or bins < 2:
        raise ParameterError("bins", bins, "a whole number of 2 or more")


def melt(
    table: Table,
    names: Sequence[str],
    *,
    bins: int = 10,
    intervals: IntervalRule = "equal-frequency",
) -> MeltedTable:
    """Melt the columns ``names`` into observations of (row, part)."""
    require_cuts(bins, intervals)
    if not names:
        raise InputError("There is no column to co-cluster: declare at least one as quasi.")
    require_known(names, table.arrow.column_names)
    return melt_columns([column_parts(table, n, bins=bins, intervals=intervals) for n in names])


def melt_columns(columns: Sequence[ColumnParts]) -> MeltedTable:
    """Melt columns whose parts are known.

    Raises:
        InputError: there is no row, or there are more parts than can be worked with.
    """
    rows = len(columns[0].codes)
    offsets = np.concatenate([[0], np.cumsum([len(c.labels) for c in columns])])
    if not rows:
        raise InputError("There is no row to co-cluster.")
    if offsets[-1] > MAX_PARTS:
        widest = max(columns, key=lambda c: len(c.labels))
        raise InputError(
            f"The columns have {offsets[-1]:,} parts together, more than {MAX_PARTS:,}: column "
            f"{widest.name!r} alone has {len(widest.labels):,}. Declare it numeric or an "
            "identifier, or generalize it first."
        )
    parts = np.concatenate([c.codes + o for c, o in zip(columns, offsets[:-1], strict=True)])
    ids = np.tile(np.arange(rows, dtype=np.int32), len(columns))
    labels = tuple(f"{c.name}={label}" for c in columns for label in c.labels)
    observed = observe(
        [
            Variable("row", "categorical", rows),
            Variable("part", "categorical", int(offsets[-1]), labels),
        ],
        [ids, parts.astype(np.int32)],
    )
    return MeltedTable(tuple(columns), observed, tuple(int(o) for o in offsets))


def recut(
    table: Table, melted: MeltedTable, groups: NDArray[np.int32], names: Collection[str]
) -> MeltedTable:
    """The same, the numbers of ``names`` cut at the least MODL cost against groups of rows."""
    columns = []
    for column in melted.columns:
        if column.cuts is None or column.name not in names:
            columns.append(column)
            continue
        encoded = table.encode(column.name)
        held = len(encoded.values) - encoded.values.null_count
        present = encoded.codes < held
        numbers = as_numbers(encoded.values.slice(0, held))
        found = best_cuts(numbers[encoded.codes[present]], groups[present])
        cuts = _with_alone(numbers, _points(column)[:held], np.array(found.bounds[1:-1]))
        # What tells nothing of the groups stays as it was: one interval would say nothing at all.
        columns.append(
            column if len(cuts) == 1 else cut_column(table, column.name, cuts.short(numbers))
        )
    return melt_columns(columns)


def _points(column: ColumnParts) -> NDArray[np.bool_]:
    """Which values are parts of their own that hold as much as an interval does on average."""
    rows, values = column.rows, np.bincount(column.of_value, minlength=len(column.labels))
    found: NDArray[np.bool_] = ((values == 1) & (rows * len(rows) >= rows.sum()))[column.of_value]
    return found


def _distinct(labels: list[str]) -> list[str]:
    """The labels, a repeated one with a number behind it."""
    seen: dict[str, int] = {}
    out = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        out.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return out


_PASSES = 3


def cocluster_columns(
    table: Table,
    names: Sequence[str],
    *,
    bins: int = 10,
    intervals: IntervalRule = "equal-frequency",
    criterion: CriterionForm = "published",
    seed: int = 0,
    rounds: int = ROUNDS,
    time_limit: float | None = None,
) -> tuple[MeltedTable, Grid]:
    """Melt columns into (row, part), and the grid that was found.

    With ``"modl"`` the rows are co-clustered with numbers cut at quantiles; then every numeric
    column is cut anew at the least MODL cost against the groups of rows, and the rows are
    co-clustered again, as long as the grid's level rises.

    Args:
        table: the rows.
        names: the columns.
        bins: how many intervals numbers are (first) cut into.
        intervals: ``"equal-frequency"``, ``"equal-width"`` or ``"modl"``.
        criterion: the form of the cost.
        seed: of the co-clustering.
        rounds: of each co-clustering.
        time_limit: seconds for all of it.
    """
    melted = melt(table, names, bins=bins, intervals=intervals)
    again = names if intervals == "modl" else ()
    effort: dict[str, Any] = {"seed": seed, "rounds": rounds, "time_limit": time_limit}
    return cocluster_parts(table, melted, again=again, criterion=criterion, **effort)


def cocluster_parts(
    table: Table,
    melted: MeltedTable,
    *,
    again: Collection[str] = (),
    criterion: CriterionForm = "published",
    seed: int = 0,
    rounds: int = ROUNDS,
    time_limit: float | None = None,
) -> tuple[MeltedTable, Grid]:
    """Co-cluster what is melted; numbers of the columns ``again`` are cut anew where it helps."""
    deadline = time.monotonic() + (math.inf if time_limit is None else time_limit)
    effort: dict[str, Any] = {"criterion": criterion, "seed": seed, "rounds": rounds}
    grid = optimize_grid(melted.observations, time_limit=time_limit, **effort)
    cut = {column.name for column in melted.columns if column.cuts is not None}
    for _ in range(_PASSES if cut.intersection(again) else 0):
        left = deadline - time.monotonic()
        if not grid.informative or left <= 0:
            break
        finer = recut(table, melted, grid.partition[0], again)
        limit = None if time_limit is None else left
        found = optimize_grid(finer.observations, time_limit=limit, **effort)
        if found.level <= grid.level:
            break
        melted, grid = finer, found
    return melted, grid
