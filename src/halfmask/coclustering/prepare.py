"""From a table to (person, part of a column) pairs: the two variables that are co-clustered.

Definition: one observation per row and column; a part is a value of a nominal column or an interval
    of a numeric one; the missing value is a part of its own.
Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018, ch. 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from halfmask.coclustering.cuts import Cuts, best_cuts, equal_frequency, equal_width, open_labels
from halfmask.coclustering.numbers import as_numbers, ends, is_number
from halfmask.coclustering.observations import Observations, Variable, observe
from halfmask.errors import InputError, ParameterError
from halfmask.table.hierarchies.auto import INTERVALS
from halfmask.table.names import require_known
from halfmask.table.sets import MISSING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from halfmask.table.table import Table

Intervals = Literal["equal-frequency", "equal-width", "modl"]
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
    """

    name: str
    ordered: bool
    labels: tuple[str, ...]
    of_value: NDArray[np.int32]
    codes: NDArray[np.int32]
    cuts: Cuts | None = None

    def __repr__(self) -> str:
        return f"ColumnParts({self.name!r}, {len(self.labels)} parts)"


@dataclass(frozen=True, slots=True, eq=False)
class Melted:
    """A table as observations of (row, part of a column).

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
    table: Table, name: str, *, bins: int = 10, intervals: Intervals = "equal-frequency"
) -> ColumnParts:
    """The parts of one column: intervals of numbers with more than ``bins`` values, else values.

    ``"modl"`` starts from intervals of equal frequency; ``recut`` then moves them.
    """
    encoded = table.encode(name)
    values = encoded.values
    held = len(values) - values.null_count
    column = table.schema.columns.get(name)
    kind = column.kind if column is not None else None
    number = is_number(values.type) and kind in (None, "numeric", "date")
    if number and held > bins:
        numbers = as_numbers(values.slice(0, held))
        if not np.isfinite(numbers).all():
            raise InputError(
                f"Column {name!r} holds numbers that are infinite, which no interval takes: "
                "replace them, or declare the column nominal."
            )
        counts = np.bincount(encoded.codes, minlength=len(values))[:held]
        learn = equal_width if intervals == "equal-width" else equal_frequency
        cuts = learn(np.repeat(numbers, counts), bins).short(numbers)
        return cut_column(table, name, cuts)
    labels = [str(value) for value in values.slice(0, held).to_pylist()]
    labels += [MISSING] * values.null_count
    ordered = number or kind in ("ordinal", "date") or pa.types.is_temporal(values.type)
    return ColumnParts(
        name,
        ordered,
        tuple(_distinct(labels)),
        np.arange(len(values), dtype=np.int32),
        encoded.codes.astype(np.int32),
    )


def cut_column(table: Table, name: str, cuts: Cuts) -> ColumnParts:
    """The parts of a numeric column that is cut at ``cuts``; intervals without rows stay."""
    encoded = table.encode(name)
    held = len(encoded.values) - encoded.values.null_count
    values = encoded.values.slice(0, held)
    part = cuts.apply(as_numbers(values))
    labels = open_labels(ends(cuts, values))
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
    )


def melt(
    table: Table,
    names: Sequence[str],
    *,
    bins: int = 10,
    intervals: Intervals = "equal-frequency",
) -> Melted:
    """Melt the columns ``names`` into observations of (row, part)."""
    if intervals not in INTERVALS:
        raise ParameterError("intervals", intervals, "one of " + ", ".join(INTERVALS))
    if not isinstance(bins, int) or isinstance(bins, bool) or bins < 2:
        raise ParameterError("bins", bins, "a whole number of 2 or more")
    if not names:
        raise InputError("There is no column to co-cluster: declare at least one as quasi.")
    require_known(names, table.arrow.column_names)
    return melt_columns([column_parts(table, n, bins=bins, intervals=intervals) for n in names])


def melt_columns(columns: Sequence[ColumnParts]) -> Melted:
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
    return Melted(tuple(columns), observed, tuple(int(o) for o in offsets))


def recut(
    table: Table, melted: Melted, groups: NDArray[np.int32], names: Collection[str]
) -> Melted:
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
        cuts = best_cuts(numbers[encoded.codes[present]], groups[present]).short(numbers)
        columns.append(cut_column(table, column.name, cuts))
    return melt_columns(columns)


def _distinct(labels: list[str]) -> list[str]:
    """The labels, a repeated one with a number behind it."""
    seen: dict[str, int] = {}
    out = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        out.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return out
