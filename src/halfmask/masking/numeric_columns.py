"""Columns as numbers that masks compute with, and back as values of their type."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, ParameterError
from halfmask.masking.step import value_type
from halfmask.table.moments import as_moments, out_of_calendar
from halfmask.table.values import is_number, is_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.table import Table

    Floats = NDArray[np.float64]

_EXACT = 2**53  # beyond, a float does not hold every whole number


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """One column as numbers.

    Attributes:
        name: the column.
        kind: the type of its values.
        values: per row; NaN where it is missing.
        there: per row, whether it is not missing.
        given: the type that masked values go back as, where it is another.
    """

    name: str
    kind: pa.DataType
    values: Floats
    there: NDArray[np.bool_]
    given: pa.DataType | None = None

    @property
    def whole(self) -> bool:
        """Whether the values are whole numbers or moments, and masked ones must be."""
        return not (pa.types.is_floating(self.kind) or pa.types.is_decimal(self.kind))

    @property
    def held(self) -> Floats:
        """The values that are not missing."""
        return self.values[self.there]

    def back(self, values: Floats, *, exact: bool = False) -> pa.Array:
        """``values`` as the column's type; missing stays missing.

        Args:
            values: one per row; what stands at missing places is not read.
            exact: means of whole numbers stay fractions where they are.
        """
        filled = np.where(self.there, values, 0.0)
        mask = ~self.there
        if pa.types.is_floating(self.kind):
            return pa.array(filled, mask=mask).cast(self.kind)
        if pa.types.is_decimal(self.kind):
            return _decimals(filled, mask, self.kind)
        if exact and pa.types.is_integer(self.kind) and np.any(filled != np.rint(filled)):
            return pa.array(filled, mask=mask)
        # A mask may push a number beyond what its type holds: it stays at the end.
        rounded = self._clip(np.rint(filled)).astype(np.int64)
        out = pa.array(rounded, mask=mask)
        if pa.types.is_integer(self.kind):
            return out.cast(self.kind)
        if pa.types.is_date32(self.kind):
            out = out.cast(pa.int32())
        moments = out.cast(self.kind)
        if out_of_calendar(moments):
            raise InputError(f"Column '{self.name}' would hold dates beyond the years 1 to 9999.")
        return moments if self.given is None else self._fine(moments)

    def _fine(self, moments: pa.Array) -> pa.Array:
        """Moments in nanoseconds, which reach from 1677 to 2262 only."""
        try:
            return moments.cast(self.given)
        except pa.ArrowInvalid:
            raise InputError(
                f"Column '{self.name}' would hold dates beyond those that nanoseconds can count."
            ) from None

    def _clip(self, values: Floats) -> Floats:
        """Whole numbers inside what their type can hold."""
        if not pa.types.is_integer(self.kind):
            return values
        bounds = np.iinfo(self.kind.to_pandas_dtype())
        return np.clip(values, max(float(bounds.min), -_EXACT), min(float(bounds.max), _EXACT))


def numbers_in(table: Table, name: str) -> Numbers:
    """A column of numbers or moments as numbers.

    Raises:
        InputError: it holds something else, numbers that are not finite, or whole numbers that are
            too large to compute with.
    """
    column = table.arrow[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
    given = None
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        # A float holds microseconds of all years, and nanoseconds of a few months.
        given = array.type
        array = array.cast(pa.timestamp("us", given.tz), safe=False)
    kind = array.type
    there = ~np.asarray(array.is_null(), dtype=bool)
    values = _floats(name, array, kind)
    values[~there] = np.nan
    odd = int(np.count_nonzero(~np.isfinite(values[there])))
    if odd:
        raise InputError(
            f"Column '{name}' holds {odd:,} numbers that are not finite: mark them as missing."
        )
    if not pa.types.is_floating(kind) and np.any(np.abs(values[there]) > _EXACT):
        raise InputError(f"Column '{name}' holds whole numbers beyond 2**53: declare it as text.")
    return Numbers(name, kind, values, there, given)


def _floats(name: str, array: pa.Array, kind: pa.DataType) -> Floats:
    if pa.types.is_date32(kind):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        array = array.cast(pa.int64())
    elif not is_number(kind):
        raise InputError(f"Column '{name}' holds {kind}, not numbers or dates.")
    plain = array.cast(pa.float64(), safe=False)
    return np.array(plain.to_numpy(zero_copy_only=False), dtype=np.float64)


def _decimals(values: Floats, mask: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Decimals with the digits of their type."""
    scaled = np.round(values, kind.scale)
    distinct, place = np.unique(scaled, return_inverse=True)
    unit = Decimal(1).scaleb(-kind.scale)
    exact = pa.array([Decimal(repr(one)).quantize(unit) for one in distinct.tolist()], kind)
    indices = pa.array(place.reshape(-1).astype(np.int64), mask=mask)
    return exact.take(indices)


def moments_in(table: Table, name: str) -> Numbers:
    """A column of dates or times as numbers; text is read as ISO 8601.

    Raises:
        InputError: texts are no dates; says how many.
    """
    kind = value_type(table.arrow[name].type)
    if not is_text(kind):
        return numbers_in(table, name)
    encoded = table.encode(name)
    texts = encoded.values.drop_null().cast(pa.string())
    moments = as_moments(texts)
    if moments is None:
        bad = sum(as_moments(texts.slice(i, 1)) is None for i in range(len(texts)))
        raise InputError(
            f"Column '{name}': {bad or len(texts):,} distinct value(s) are no dates: write them as "
            "YYYY-MM-DD, or list what means a missing value under [table] missing."
        )
    codes = np.where(encoded.codes < len(texts), encoded.codes, 0)
    column = moments.take(pa.array(codes)) if len(texts) else pa.nulls(len(codes), moments.type)
    column = pc.if_else(pa.array(encoded.codes < len(texts)), column, pa.scalar(None, moments.type))
    return numbers_in(table.with_schema(table.schema, pa.table({name: column})), name)


def bound_as_number(what: str, value: Any, kind: pa.DataType) -> float:
    """A bound that somebody states, a number or a date, on the scale of a column.

    Raises:
        ParameterError: it is not of the column's kind.
    """
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        try:
            moment = _moment(pa.array([value]), kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            raise ParameterError(what, value, "a date, as YYYY-MM-DD") from None
        return float(moment.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())[0].as_py())
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ParameterError(what, value, "a number")
    if not np.isfinite(float(value)):
        raise ParameterError(what, value, "a finite number")
    return float(value)


def _moment(stated: pa.Array, kind: pa.DataType) -> pa.Array:
    """A date or time as ``kind``; without a zone it is meant in that of the column."""
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return stated.cast(kind)
    try:
        return (
            stated.cast(kind)
            if is_text(stated.type) or getattr(stated.type, "tz", None)
            else _local(stated, kind)
        )
    except pa.ArrowInvalid:
        return _local(stated, kind)


def _local(stated: pa.Array, kind: pa.DataType) -> pa.Array:
    return pc.assume_timezone(stated.cast(pa.timestamp(kind.unit)), kind.tz)
