"""What a text column holds, decided on its distinct values alone."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.table.moments import as_moments, no_moments, out_of_calendar
from halfmask.table.numbers import NUMBER

_GUESSES = (pa.int64(), pa.float64(), pa.date32(), pa.timestamp("s"), pa.timestamp("us"))


def inferred(column: pa.ChunkedArray, *, points: bool = True) -> pa.ChunkedArray:
    """The column as numbers, dates or times where every text comes back the same, else as it is.

    So "01234", "+5" and "1.50" stay text: they are codes, or written with care. Without
    ``points``, a point is no decimal mark.
    """
    values = used_values(column)
    if len(values) == 0:
        return column
    for kind in _GUESSES:
        if pa.types.is_floating(kind) and not points:
            continue
        typed = _round_trip(values, kind)
        if typed is not None:
            return retyped(column, kind)
    return column


def used_values(column: pa.ChunkedArray) -> pa.Array:
    """The distinct values of a dictionary column, without the missing one."""
    if column.num_chunks == 0:
        return pa.array([], type=column.type.value_type)
    return pc.drop_null(column.chunk(0).dictionary)


def _round_trip(values: pa.Array, kind: pa.DataType) -> pa.Array | None:
    for part in (values.slice(0, 1), values):
        try:
            typed = part.cast(kind)
        except pa.ArrowInvalid:
            return None
        if pa.types.is_floating(kind) and not pc.all(pc.is_finite(typed)).as_py():
            return None
        if out_of_calendar(typed):
            return None
        if not typed.cast(pa.string()).equals(part.cast(pa.string())):
            return None
    return typed


def retyped(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A dictionary column of text as a plain column of ``kind``; every value must allow it."""
    chunks = []
    for chunk in column.chunks:
        texts = chunk.dictionary
        if pa.types.is_floating(kind) or pa.types.is_integer(kind):
            texts = pc.replace_substring_regex(pc.utf8_trim_whitespace(texts), r"^\+", "")
        chunks.append(texts.cast(kind).take(chunk.indices))
    return pa.chunked_array(chunks, type=kind)


def number_type(values: pa.Array) -> tuple[pa.DataType | None, pa.Array]:
    """The number type that holds all ``values``, and which of them are no numbers."""
    texts = pc.utf8_trim_whitespace(values)
    bad = pc.invert(pc.match_substring_regex(texts, NUMBER))
    if pc.any(bad).as_py():
        return None, bad
    whole = pc.all(pc.match_substring_regex(texts, r"^[+-]?[0-9]{1,18}$")).as_py()
    return (pa.int64() if whole else pa.float64()), bad


def date_type(values: pa.Array) -> tuple[pa.DataType | None, pa.Array]:
    """The date or time type that holds all ``values``, and which of them are no dates."""
    moments = as_moments(values)
    if moments is None:
        return None, no_moments(values)
    return moments.type, pa.array([False] * len(values))
