"""From drawn parts back to values of a column: a value, or a number inside its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.coclustering.numbers import as_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.prepare import ColumnParts
    from halfmask.table.table import Table

_DECIMALS = 9


def values_of(
    table: Table, column: ColumnParts, parts: NDArray[np.int32], random: np.random.Generator
) -> pa.Array:
    """The drawn parts of one column as values of its type."""
    values = table.encode(column.name).values
    if column.cuts is None:
        drawn = values.take(pa.array(parts))
        was = table.given.get(column.name)
        categories = was is not None and pa.types.is_dictionary(was.type)
        return drawn.dictionary_encode() if categories else drawn
    bounds = np.asarray(column.cuts.bounds)
    missing = parts >= len(column.cuts)
    inside = np.where(missing, 0, parts)
    whole = not pa.types.is_floating(values.type) and not pa.types.is_decimal(values.type)
    low, high = bounds[inside], bounds[inside + 1]
    if whole:
        first = np.where(inside == 0, np.ceil(low), np.floor(low) + 1)
        last = np.maximum(np.floor(high), first)
        drawn = first + np.floor(random.random(len(parts)) * (last - first + 1))
        if pa.types.is_uint64(values.type):
            return pa.array(drawn.astype(np.uint64), mask=missing)
        numbers = pa.array(drawn.astype(np.int64), mask=missing)
        if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
            numbers = numbers.cast(pa.int32())
        return numbers.cast(values.type)
    places = _places(as_numbers(values.drop_null()))
    numbers = np.clip(np.round(low + random.random(len(parts)) * (high - low), places), low, high)
    return pa.array(numbers, mask=missing).cast(values.type, safe=False)


def _places(numbers: NDArray[np.float64]) -> int:
    """How many decimals the column's numbers have."""
    for places in range(_DECIMALS):
        if np.array_equal(np.round(numbers, places), numbers):
            return places
    return _DECIMALS
