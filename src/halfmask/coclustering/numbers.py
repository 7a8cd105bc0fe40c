"""The values of a column as numbers to cut, and the bounds between them as text."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.coclustering.cuts import plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.cuts import Cuts


def is_number(kind: pa.DataType) -> bool:
    """Whether values of this Arrow type are numbers, or points in time."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_temporal(kind)
    )


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


def ends(cuts: Cuts, values: pa.Array) -> list[str]:
    """The inner bounds as text; every value up to a bound is at most what the text says."""
    inner, kind = cuts.bounds[1:-1], values.type
    if not pa.types.is_integer(kind) and not pa.types.is_temporal(kind):
        return [plain(Decimal(repr(bound))) for bound in inner]
    units = _units(values)
    last = np.searchsorted(as_numbers(values), inner, side="right") - 1
    whole = [math.floor(bound) for bound in inner]  # large numbers differ in what a float loses
    ends = [max(w, units[p].as_py()) if p >= 0 else w for w, p in zip(whole, last, strict=True)]
    if pa.types.is_integer(kind):
        return [str(end) for end in ends]
    moments = pa.array(ends, units.type).cast(kind).cast(pa.string())
    return [str(moment) for moment in moments.to_pylist()]
