"""Dates and times: how texts are read as such, and which of them a calendar holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS = (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
ALLOWED = "YYYY-MM-DD of the years 1 to 9999, or with a time, all with a zone or all without"

_FIRST, _LAST = -719_162, 2_932_896  # days from 1970-01-01 to 0001-01-01 and 9999-12-31
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000}


def out_of_calendar(values: pa.Array | pa.ChunkedArray) -> int:
    """How many dates or times lie outside the years 1 to 9999, which nothing could write."""
    kind = values.type
    if pa.types.is_date32(kind):
        first, last, count = _FIRST, _LAST + 1, values.cast(pa.int32())
    elif pa.types.is_timestamp(kind) and kind.unit in _PER_DAY:
        slack = 1 if kind.tz else 0  # a zone may move a time into the next or the last day
        first, last = (day * _PER_DAY[kind.unit] for day in (_FIRST + slack, _LAST + 1 - slack))
        count = values.cast(pa.int64())
    else:
        return 0
    outside = pc.or_(pc.less(count, first), pc.greater_equal(count, last))
    return pc.sum(outside).as_py() or 0


def zone_known(kind: pa.DataType) -> bool:
    """Whether the time zone of a type, if it has one, is one that Arrow can compute with."""
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return True
    try:
        pc.year(pa.array([0], kind))
    except pa.ArrowInvalid:
        return False
    return True


def as_moments(texts: pa.Array, kinds: Sequence[pa.DataType] = KINDS) -> pa.Array | None:
    """ISO 8601 texts as the first of ``kinds`` that takes all of them; those with a zone as UTC."""
    for kind in kinds:
        try:
            moments = texts.cast(kind)
        except pa.ArrowInvalid:
            continue
        if not out_of_calendar(moments):
            return moments
    return None


def no_moments(texts: pa.Array) -> pa.Array:
    """Which texts hinder ``as_moments``: those that are none or, if all are, those with a zone."""
    alone = [pa.array([text]) for text in texts.to_pylist()]
    bad = [as_moments(text) is None for text in alone]
    if not any(bad):
        bad = [as_moments(text, KINDS[:2]) is None for text in alone]
    return pa.array(bad, pa.bool_())
