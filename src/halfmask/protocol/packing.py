"""Values as fixed bytes and back: numbers of eight bytes, padded texts, codes of a domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

Packing = Literal["code", "number", "float", "text"]


@dataclass(frozen=True, slots=True, eq=False)
class KeyField:
    """One grouping column: its Arrow type, how it is packed, and its domain if it has one."""

    type: pa.DataType
    packing: Packing
    width: int
    domain: pa.Array | None = None


def pack_key(
    field: KeyField, column: pa.ChunkedArray
) -> tuple[NDArray[np.uint8], NDArray[np.bool_], NDArray[np.bool_]]:
    """Fixed bytes per value, which are missing, and which fit."""
    if field.packing != "code":
        return pack(field.packing, field.width, column)
    values = plain(column)
    null = values.is_null().to_numpy()
    import pyarrow.compute as pc

    codes = pc.index_in(values.cast(field.type), value_set=field.domain)
    ok = codes.is_valid().to_numpy()
    numbers = codes.fill_null(0).to_numpy().astype("<u4")
    return numbers.view(np.uint8).reshape(-1, 4), null, ok


def unpack_key(field: KeyField, raw: NDArray[np.uint8], null: NDArray[np.bool_]) -> pa.Array:
    """The values behind fixed bytes."""
    if field.packing != "code":
        return unpack(field.packing, field.type, raw, null)
    codes = np.ascontiguousarray(raw).view("<u4").ravel().astype(np.int64)
    assert field.domain is not None  # noqa: S101 - coded fields have one
    return field.domain.take(pa.array(codes, mask=null))


def pack(
    packing: Packing, width: int, column: pa.ChunkedArray
) -> tuple[NDArray[np.uint8], NDArray[np.bool_], NDArray[np.bool_]]:
    """Fixed bytes per value, which are missing, and which fit."""
    values = plain(column)
    null = values.is_null().to_numpy()
    if packing == "text":
        coded = values.cast(pa.string()).combine_chunks().dictionary_encode()
        texts = [t.encode() for t in coded.dictionary.to_pylist()] or [b""]
        good = np.array([len(t) <= width and b"\0" not in t for t in texts])
        table = np.array([t[:width] for t in texts], dtype=f"S{width}")
        codes = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        raw = table[codes].view(np.uint8).reshape(-1, width)
        return raw, null, good[codes]
    if packing == "float":
        numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy() + 0.0
        return numbers.astype("<f8").view(np.uint8).reshape(-1, 8), null, np.ones(len(null), bool)
    whole, ok = _whole(values)
    return whole.astype("<i8").view(np.uint8).reshape(-1, 8), null, ok


def unpack(
    packing: Packing,
    kind: pa.DataType,
    raw: NDArray[np.uint8],
    null: NDArray[np.bool_],
) -> pa.Array:
    """The values behind fixed bytes."""
    raw = np.ascontiguousarray(raw)
    if packing == "text":
        texts = raw.view(f"S{raw.shape[1]}").ravel()
        values = [
            None if n else t.decode() for t, n in zip(texts.tolist(), null.tolist(), strict=True)
        ]
        return pa.array(values, pa.string())
    numbers = raw.view("<f8" if packing == "float" else "<i8").ravel()
    found = pa.array(numbers, mask=null)
    if pa.types.is_decimal(kind):
        from decimal import Decimal

        places = Decimal(1).scaleb(-kind.scale)
        return pa.array([None if v is None else v * places for v in found.to_pylist()], kind)
    if pa.types.is_boolean(kind):
        return found.cast(pa.bool_())
    if pa.types.is_temporal(kind):
        return found.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    return found if packing == "float" else found.cast(kind)


def _whole(values: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Whole numbers of 64 bits, and which values fit in them."""
    kind = values.type
    ok = np.ones(len(values), dtype=bool)
    if pa.types.is_decimal(kind):
        scaled = [0 if v is None else int(v.scaleb(kind.scale)) for v in values.to_pylist()]
        ok = np.array([abs(v) < 2**62 for v in scaled], dtype=bool)
        return np.array([v if abs(v) < 2**62 else 0 for v in scaled], dtype=np.int64), ok
    if pa.types.is_temporal(kind):
        values = values.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    return values.cast(pa.int64()).fill_null(0).to_numpy().astype(np.int64), ok


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values behind a dictionary."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column
