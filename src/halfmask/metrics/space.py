"""The space in which rows are near or far: the distance behind DBIL and the partition methods.

Definition: d(x, y) = sum over columns of w_c d_c(x_c, y_c) with d_c from 0 to 1: for numbers, dates
and ordered values |a - b| / (max - min), else the height of the tree under the lowest common label
of a and b divided by the height of the whole tree; a label that repeats the one below it adds
nothing. A missing value is at distance 1 from every other value.
Source: Michel, "Personalizing privacy constraints in generalization-based anonymization models",
2019, section 5.3.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.table.values import is_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.kernels.distance import Points
    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table

_TABLE_LIMIT = 1024  # values up to which all distances of a column are kept in a table


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """The rows of a table as points.

    Attributes:
        columns: the quasi-identifiers, in order.
        ordered: per column, whether its values stand on a line (else in a hierarchy).
        places: (rows, columns) where each value stands in its column: its rank, or the place of
            the leaf when the hierarchy is read depth first. Distances grow with the difference.
        sizes: per column, how many places there are.
        weights: per column, its weight.
        points: the same for the kernels.
    """

    columns: tuple[str, ...]
    ordered: tuple[bool, ...]
    places: NDArray[np.int32]
    sizes: NDArray[np.int64]
    weights: NDArray[np.float64]
    points: Points

    def __len__(self) -> int:
        return len(self.places)

    def __repr__(self) -> str:
        return f"Space({len(self):,} rows, {len(self.columns)} columns)"

    def take(self, rows: NDArray[np.int64]) -> Space:
        """The same space with some of the rows; distances stay what they are."""
        points = self.points._replace(
            numbers=self.points.numbers[rows],
            codes=self.points.codes[rows],
            marks=self.points.marks[rows],
        )
        return replace(self, places=np.ascontiguousarray(self.places[rows]), points=points)


def space_of(
    table: Table,
    columns: Sequence[str] | None = None,
    *,
    rows: NDArray[np.int64] | None = None,
) -> Space:
    """The space of the quasi-identifiers of ``table``, normalized by its own ranges.

    With ``rows``, only these rows become points.
    """
    from halfmask.kernels.distance import Points

    names = tuple(table.schema.quasi if columns is None else columns)
    weights = np.array([_weight(table, name) for name in names])
    ordered = tuple(is_ordered(table, name) for name in names)
    numbers: list[NDArray[Any]] = []
    codes: list[NDArray[Any]] = []
    marks: list[NDArray[Any]] = []
    spans, tables, steps, places, slots = [], [], [], [], []
    for name, on_line, weight in zip(names, ordered, weights.tolist(), strict=True):
        row_codes = table.encode(name).codes if rows is None else table.encode(name).codes[rows]
        if on_line:
            position = line_positions(table, name) * weight
            slots.append((0, len(numbers), 0))
            numbers.append(position[row_codes])
            spans.append(weight)
            places.append(row_codes)
            continue
        hierarchy = table.hierarchy(name)
        order = depth_first(hierarchy)
        places.append(order[row_codes])
        levels = levels_by_height(hierarchy)
        height = len(levels)
        # Codes in depth-first order, so that distances grow with the difference of places.
        if len(order) <= _TABLE_LIMIT:
            slots.append((1, len(codes), 0))
            codes.append(order[row_codes])
            tables.append(heights(levels[:, np.argsort(order)]) * (weight / max(height, 1)))
            continue
        slots.append((2, len(marks), height))
        for level in levels:
            marks.append(level[row_codes])
            steps.append(weight / height)
    sizes = np.array([len(one) for one in tables], dtype=np.int64)
    offsets = np.zeros(len(sizes), dtype=np.int64)
    np.cumsum(sizes[:-1] ** 2, out=offsets[1:])
    count = len(table) if rows is None else len(rows)
    points = Points(
        _stack(numbers, count, np.float64),
        np.array(spans, dtype=np.float64),
        _stack(codes, count, np.int32),
        np.concatenate([one.reshape(-1) for one in tables]) if tables else np.zeros(0),
        offsets,
        sizes,
        _stack(marks, count, np.int32),
        np.array(steps, dtype=np.float64),
        np.array(slots, dtype=np.int64).reshape(-1, 3),
    )
    values = np.array([len(table.encode(name).values) for name in names], dtype=np.int64)
    return Space(names, ordered, _stack(places, count, np.int32), values, weights, points)


def is_ordered(table: Table, name: str) -> bool:
    """Whether the values of a column stand on a line: numbers, dates, a declared order."""
    column = table.schema.columns.get(name)
    kind = column.kind if column is not None else None
    if kind == "ordinal":
        return column is not None and column.hierarchy is None
    if kind is not None:
        return kind in ("numeric", "date")
    values = table.encode(name).values.type
    return bool(
        pa.types.is_integer(values)
        or pa.types.is_floating(values)
        or pa.types.is_decimal(values)
        or pa.types.is_temporal(values)
    )


def line_positions(table: Table, name: str) -> NDArray[np.float64]:
    """Per value of an ordered column, where it stands between 0 and 1; NaN where it is missing."""
    values = table.encode(name).values
    present = values.drop_null()
    column = table.schema.columns.get(name)
    if (column is not None and column.kind == "ordinal") or is_text(present.type):
        numbers = np.arange(len(present), dtype=np.float64)
    elif pa.types.is_temporal(present.type):
        bits = pa.int32() if present.type.bit_width == 32 else pa.int64()
        # Whole numbers until the least is taken off: floats lose nanoseconds of today's dates.
        whole = present.cast(bits).to_numpy(zero_copy_only=False)
        numbers = (whole - whole.min(initial=whole[0] if len(whole) else 0)).astype(np.float64)
    else:
        numbers = finite(present.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    out = np.full(len(values), np.nan)
    if len(numbers):
        low, high = float(numbers.min()), float(numbers.max())
        out[: len(numbers)] = (numbers - low) / (high - low) if high > low else 0.0
    return out


def finite(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Infinite numbers at the ends of the others: they are far, yet distances stay numbers."""
    held = numbers[np.isfinite(numbers)]
    low, high = (held.min(), held.max()) if len(held) else (-1.0, 1.0)
    ended = np.where(numbers == np.inf, high, numbers)
    return np.asarray(np.where(numbers == -np.inf, low, ended))


def depth_first(hierarchy: Hierarchy) -> NDArray[np.int32]:
    """Per value, its place when the leaves are read along the hierarchy."""
    order = np.lexsort(hierarchy.maps)  # the coarsest level decides first
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place


def rooted_height(hierarchy: Hierarchy) -> int:
    """The height of the root; it stands above the top level where that has several labels."""
    return hierarchy.height if len(hierarchy.labels[-1]) == 1 else hierarchy.height + 1


def levels_by_height(hierarchy: Hierarchy) -> NDArray[np.int32]:
    """Per height below that of the root, the largest tree of at most that height around each value.

    Two values differ in as many of these levels as the tree under their lowest common label is
    high, also where values stand less deep than others.
    """
    high = hierarchy.subtree_heights()
    root = int(high[-1].max(initial=0)) + (len(hierarchy.labels[-1]) > 1)
    begins = np.cumsum([0, *(len(labels) for labels in hierarchy.labels)])
    out = np.zeros((root, hierarchy.maps.shape[1]), dtype=np.int32)
    for height in range(root):
        out[height] = hierarchy.maps[0]
        for level in range(1, len(high)):
            at = hierarchy.maps[level]
            out[height] = np.where(high[level][at] <= height, begins[level] + at, out[height])
    return out


def heights(levels: NDArray[np.int32]) -> NDArray[np.float64]:
    """In how many levels every two values differ."""
    values = levels.shape[1]
    out = np.zeros((values, values))
    for level in levels:
        out += level[:, None] != level[None, :]
    return out


def _weight(table: Table, name: str) -> float:
    column = table.schema.columns.get(name)
    return 1.0 if column is None else float(column.weight)


def _stack(columns: list[NDArray[Any]], rows: int, kind: type) -> NDArray[Any]:
    if not columns:
        return np.zeros((rows, 0), dtype=kind)
    return np.ascontiguousarray(np.column_stack(columns), dtype=kind)
