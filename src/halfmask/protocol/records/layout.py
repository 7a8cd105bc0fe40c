"""Values as fixed bytes and back: numbers of eight bytes, padded texts, codes of a domain.

The plaintext of a contribution and of a group: fixed fields, so that all have one length.

A record starts with its key: a tag (sum, group or empty), the level, and the grouping columns as
fixed bytes. Then come counts, the largest demands, the mergeable states, numbers of people per
value where a median is asked for and, per test, up to ``cap`` distinct values as 64-bit numbers.
Whole numbers stand for themselves there, everything else for a keyed digest of 64 bits: should two
ever collide, fewer values are counted, never more.

Merge records: equal keys become one, counts and sums add, extremes compare, sets unite.

Merging is commutative and associative (moments and sums of fractions up to rounding), so that the
shape of the tree and the order of cells make no difference. Where a frame must keep its size, the
second of two equal keys stays behind as a husk: its key, and nothing in it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.engines.request import AggregateState, DistinctTest, StateKind


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
        return pack_row(field.packing, field.width, column)
    values = decode_dictionary(column)
    null = values.is_null().to_numpy()
    import pyarrow.compute as pc

    codes = pc.index_in(values.cast(field.type), value_set=field.domain)
    ok = codes.is_valid().to_numpy()
    numbers = codes.fill_null(0).to_numpy().astype("<u4")
    return numbers.view(np.uint8).reshape(-1, 4), null, ok


def unpack_key(field: KeyField, raw: NDArray[np.uint8], null: NDArray[np.bool_]) -> pa.Array:
    """The values behind fixed bytes."""
    if field.packing != "code":
        return unpack_values(field.packing, field.type, raw, null)
    codes = np.ascontiguousarray(raw).view("<u4").ravel().astype(np.int64)
    assert field.domain is not None  # noqa: S101 - coded fields have one
    return field.domain.take(pa.array(codes, mask=null))


def pack_row(
    packing: Packing, width: int, column: pa.ChunkedArray
) -> tuple[NDArray[np.uint8], NDArray[np.bool_], NDArray[np.bool_]]:
    """Fixed bytes per value, which are missing, and which fit."""
    values = decode_dictionary(column)
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
        # Adding 0.0 makes -0.0 the 0.0 that it equals: keys are compared byte by byte.
        numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy() + 0.0
        return numbers.astype("<f8").view(np.uint8).reshape(-1, 8), null, np.ones(len(null), bool)
    whole, ok = _whole(values)
    return whole.astype("<i8").view(np.uint8).reshape(-1, 8), null, ok


def unpack_values(
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


def decode_dictionary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values behind a dictionary."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


SUM, GROUP, EMPTY = 0, 1, 255
LOW = 1 << 32
Records: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"  # its fields are the layout's


@dataclass(frozen=True, slots=True, eq=False)
class StateField:
    """One mergeable state: what it is of which Arrow type.

    Attributes:
        once: a count of people: somebody with several rows counts once.
    """

    kind: StateKind
    type: pa.DataType
    packing: Packing
    width: int = 8
    scale: int = 0
    once: bool = False

    @property
    def exact(self) -> bool:
        """Whether it is a sum of whole or decimal numbers, kept in two halves."""
        return self.kind == "sum" and self.packing == "number"


@dataclass(frozen=True, eq=False)
class RecordLayout:
    """The fields of a record for one query; the last state counts people."""

    keys: tuple[KeyField, ...]
    states: tuple[StateField, ...]
    caps: tuple[int, ...]
    salt: bytes = b""
    noisy: bool = False
    sketches: int = 0
    histograms: tuple[pa.Array, ...] = ()

    @cached_property
    def key_width(self) -> int:
        """Bytes of a key."""
        return 2 + sum(1 + key.width for key in self.keys)

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """The record as NumPy sees it."""
        fields: list[tuple[object, ...]] = [("key", f"S{self.key_width}")]
        fields += [(name, "<i8") for name in ("rows", "k", "l")]
        for i, state in enumerate(self.states):
            fields.append((f"s{i}_n", "<i8"))
            if state.kind == "moments":
                fields += [(f"s{i}_mean", "<f8"), (f"s{i}_m2", "<f8")]
            elif state.exact:
                fields += [(f"s{i}_high", "<i8"), (f"s{i}_low", "<i8")]
            elif state.kind != "count":
                kind = {"number": "<i8", "float": "<f8"}.get(state.packing, f"S{state.width}")
                fields.append((f"s{i}", kind))
        if self.noisy:
            fields.append(("w", "<f8"))
        for j, cap in enumerate(self.caps):
            fields += [(f"t{j}_n", "<i8"), (f"t{j}", "<i8", (cap,))]
        fields += [(f"h{i}", "<i8", (len(values),)) for i, values in enumerate(self.histograms)]
        return np.dtype(fields)

    @cached_property
    def size(self) -> int:
        """Bytes of a record."""
        return int(self.dtype.itemsize)

    def empty(self, count: int) -> Records:
        """Records that mean nobody; they sort behind all others."""
        found = np.zeros(count, self.dtype)
        found["key"] = bytes([EMPTY]) * self.key_width
        return found

    def sums(self, contributions: int, real: int, void: int) -> Records:
        """The records that count all contributions, those that are no dummies, and void ones."""
        found = np.zeros(3, self.dtype)
        # Tags order the keys: sums stand before groups, empty records behind all.
        found["key"] = [bytes([SUM, which]) for which in range(3)]
        found["rows"] = contributions, real, void
        return found

    def tags(self, records: Records) -> NDArray[np.uint8]:
        """Per record, whether it is a sum, a group or empty."""
        return _raw(records, self.key_width)[:, 0]

    def hollow(self, records: Records) -> NDArray[np.bool_]:
        """Which records hold nothing: empty places, husks, and sums of nobody."""
        hollow: NDArray[np.bool_] = (records["rows"] == 0) | (self.tags(records) == EMPTY)
        return hollow

    def people(self, records: Records) -> NDArray[np.int64]:
        """Per record, how many people stand in it."""
        counted: NDArray[np.int64] = records[f"s{len(self.states) - 1}_n"]
        return counted

    def single(self, records: Records) -> NDArray[np.bool_]:
        """Which records are what one cell may send: a dummy, or one person at a level."""
        fits: NDArray[np.bool_] = (self.people(records) == 1) & (records["rows"] >= 1)
        for i, state in enumerate(self.states):
            if state.once:
                fits &= (records[f"s{i}_n"] >= 0) & (records[f"s{i}_n"] <= 1)
        tags = self.tags(records)
        alone: NDArray[np.bool_] = (tags == EMPTY) | ((tags == GROUP) & fits)
        return alone

    def of_one_person(self, rows: Records) -> Records:
        """One person's rows as one record per group, in which the person counts once."""
        found = combine_records(self, rows)
        for i, state in enumerate(self.states):
            if state.once:
                found[f"s{i}_n"] = np.minimum(found[f"s{i}_n"], 1)
        return found

    def level(self, record: bytes) -> int | None:
        """The level of a single record; None for a dummy."""
        return record[1] if record[0] == GROUP else None

    def bytes_of(self, records: Records) -> bytes:
        """Records as they are encrypted."""
        return records.tobytes()

    def read(self, data: bytes) -> Records:
        """Records from decrypted bytes."""
        return np.frombuffer(data, self.dtype)

    # -- one record per row

    def encode(self, rows: pa.Table) -> Records:
        """One record per row of ``level``, ``g0...``, ``k``, ``l``, ``v0...``, ``a0...``, ``h0``.

        A row that contributes nothing (a negative level), or does not fit, becomes empty.
        """
        n = rows.num_rows
        level = rows["level"].to_numpy().astype(np.int64)
        fits = level >= 0
        key = np.zeros((n, self.key_width), np.uint8)
        key[:, 0] = GROUP
        key[:, 1] = np.where(fits, level, 0)
        at = 2
        for i, field in enumerate(self.keys):
            packed, null, ok = pack_key(field, rows[f"g{i}"])
            key[:, at] = null
            key[:, at + 1 : at + 1 + field.width] = np.where(null[:, None], 0, packed)
            at += 1 + field.width
            fits = fits & (ok | null)
        found = np.zeros(n, self.dtype)
        found["key"] = key.view(f"S{self.key_width}").ravel()
        found["rows"] = 1
        for name in ("k", "l"):
            if name in rows.column_names:
                demand = rows[name].cast(pa.float64()).fill_null(0).to_numpy()
                found[name] = np.ceil(np.minimum(demand, 2.0**60))
        for i, state in enumerate(self.states):
            fits = fits & self._encode_state(found, i, state, rows[f"a{i}"])
        for j in range(len(self.caps)):
            tokens, null = self.tokens(rows[f"v{j}"], j)
            # A set of one value, or none: every record has the room of the largest set.
            found[f"t{j}_n"] = ~null
            found[f"t{j}"][:, 0] = np.where(null, 0, tokens)
        for i in range(len(self.histograms)):
            fits = fits & self._encode_histogram(found, i, rows[f"h{i}"])
        found[~fits] = self.empty(1)[0]
        return found

    def _encode_histogram(
        self, found: Records, i: int, column: pa.ChunkedArray
    ) -> NDArray[np.bool_]:
        import pyarrow.compute as pc

        values = self.histograms[i]
        codes = pc.index_in(decode_dictionary(column).cast(values.type), value_set=values)
        at = codes.fill_null(-1).to_numpy()
        there = np.flatnonzero(at >= 0)
        found[f"h{i}"][there, at[there]] = 1
        fits: NDArray[np.bool_] = column.is_null().to_numpy() | (at >= 0)
        return fits

    def _encode_state(
        self, found: Records, i: int, state: StateField, column: pa.ChunkedArray
    ) -> NDArray[np.bool_]:
        null: NDArray[np.bool_] = column.is_null().to_numpy()
        found[f"s{i}_n"] = ~null
        ok = np.ones(len(null), dtype=bool)
        if state.kind == "count":
            return ok
        values, _, ok = pack_row(state.packing, state.width, column)
        if state.packing == "text":
            found[f"s{i}"] = values.view(f"S{state.width}").ravel()
            return ok | null
        numbers = values.view("<f8" if state.packing == "float" else "<i8").ravel()
        numbers = np.where(null, 0, numbers)
        if state.kind == "moments":
            found[f"s{i}_mean"] = numbers
        elif state.exact:
            # In two halves: each is summed over 2**31 cells without overflow.
            found[f"s{i}_high"], found[f"s{i}_low"] = np.divmod(numbers, LOW)
        else:
            found[f"s{i}"] = numbers
        return ok | null

    def tokens(
        self, column: pa.ChunkedArray, test: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """A 64-bit number per value, the same for equal values, and which are missing."""
        null: NDArray[np.bool_] = column.is_null().to_numpy()
        values = decode_dictionary(column)
        sketch = test >= len(self.caps) - self.sketches
        if pa.types.is_integer(values.type) and values.type != pa.uint64() and not sketch:
            return values.cast(pa.int64()).fill_null(0).to_numpy(), null
        # Keyed by the secret of the group: nobody without a cell can choose values whose digests
        # are small, or collide.
        coded = values.combine_chunks().dictionary_encode()
        salt = hashlib.blake2b(self.salt, digest_size=16, person=f"test{test}".encode()).digest()
        made = [
            int.from_bytes(
                hashlib.blake2b(repr(v).encode(), digest_size=8, key=salt).digest(),
                "little",
                signed=True,
            )
            for v in coded.dictionary.to_pylist()
        ]
        codes = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        found = (
            np.array(made or [0], dtype=np.int64)[codes] if len(codes) else codes.astype(np.int64)
        )
        return found, null

    # -- groups

    def decode(
        self, records: Records, tests: tuple[DistinctTest, ...], states: tuple[AggregateState, ...]
    ) -> pa.Table:
        """Groups in the shape that an engine's ``collect`` returns."""
        raw = _raw(records, self.key_width)
        columns: dict[str, pa.Array] = {"level": pa.array(raw[:, 1].astype(np.int64))}
        at = 2
        for i, field in enumerate(self.keys):
            null = raw[:, at].astype(bool)
            columns[f"g{i}"] = unpack_key(field, raw[:, at + 1 : at + 1 + field.width], null)
            at += 1 + field.width
        for name in ("rows", "k", "l"):
            columns[name] = pa.array(records[name])
        for i in range(len(states)):
            columns |= self._decode_state(records, i)
        for j in range(len(tests)):
            counts = records[f"t{j}_n"]
            filled = np.arange(self.caps[j]) < counts[:, None]
            offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
            columns[f"t{j}_n"] = pa.array(counts)
            columns[f"t{j}_values"] = pa.ListArray.from_arrays(
                pa.array(offsets), pa.array(records[f"t{j}"][filled])
            )
        return pa.table(columns)

    def _decode_state(self, records: Records, i: int) -> dict[str, pa.Array]:
        state = self.states[i]
        count = records[f"s{i}_n"]
        if state.kind == "count":
            return {f"s{i}": pa.array(count)}
        none = count == 0
        if state.kind == "moments":
            return {
                f"s{i}_n": pa.array(count),
                f"s{i}_mean": pa.array(records[f"s{i}_mean"], mask=none),
                f"s{i}_m2": pa.array(records[f"s{i}_m2"], mask=none),
            }
        if state.exact:
            from decimal import Context, Decimal

            places, wide = Decimal(1).scaleb(-state.scale), Context(prec=60)
            whole = [
                None if empty else wide.multiply(Decimal(high * LOW + low), places)
                for high, low, empty in zip(
                    records[f"s{i}_high"].tolist(),
                    records[f"s{i}_low"].tolist(),
                    none.tolist(),
                    strict=True,
                )
            ]
            return {f"s{i}": pa.array(whole, pa.decimal128(38, state.scale))}
        stored = records[f"s{i}"]
        if state.packing == "text":
            width = state.width
            raw = np.frombuffer(stored.astype(f"S{width}").tobytes(), np.uint8).reshape(-1, width)
        else:
            raw = np.ascontiguousarray(stored).view(np.uint8).reshape(-1, 8)
        return {f"s{i}": unpack_values(state.packing, state.type, raw, none)}


def _raw(records: Records, width: int) -> NDArray[np.uint8]:
    keys = np.ascontiguousarray(records["key"])
    return keys.view(np.uint8).reshape(len(records), width)


@dataclass(frozen=True, slots=True)
class ContributionCount:
    """How many contributions were counted: all, those that are no dummies, and void ones."""

    contributions: int
    real: int
    void: int


def fold_contributions(layout: RecordLayout, contributions: Records, void: int = 0) -> Records:
    """What a partition of single contributions comes to: groups, and how many took part.

    ``void`` so many more came without a credential, and count for nothing else.
    """
    real = contributions[layout.tags(contributions) == GROUP]
    sums = layout.sums(len(contributions) + void, len(real), void)
    return np.concatenate((sums, combine_records(layout, real)))


def combine_records(layout: RecordLayout, records: Records) -> Records:
    """Sort by key, merge equal keys, drop what is empty and husks."""
    records = _sort(records[~layout.hollow(records)])
    first = _first(records)
    return records if first.all() else _merge(layout, records, first)


def _sort(records: Records) -> Records:
    return records[np.argsort(records["key"], kind="stable")]


def _first(records: Records) -> NDArray[np.bool_]:
    """Which sorted records are the first with their key."""
    found = np.ones(len(records), dtype=bool)
    found[1:] = records["key"][1:] != records["key"][:-1]
    return found


def _merge(layout: RecordLayout, records: Records, first: NDArray[np.bool_]) -> Records:
    """Sorted records, of which those with equal keys become one."""
    starts = np.flatnonzero(first)
    ids = np.cumsum(first) - 1
    merged = records[starts]
    merged["rows"] = np.add.reduceat(records["rows"], starts)
    for name in ("k", "l"):
        merged[name] = np.maximum.reduceat(records[name], starts)
    if layout.noisy:
        merged["w"] = np.add.reduceat(records["w"], starts)
    for i, state in enumerate(layout.states):
        _merge_state(merged, records, i, state, starts, ids)
    for i in range(len(layout.histograms)):
        merged[f"h{i}"] = np.add.reduceat(records[f"h{i}"], starts, axis=0)
    # Sets are the dear part: only those of keys that did meet another are united.
    several = np.diff(np.append(starts, len(records))) > 1
    inside = several[ids]
    numbers = (np.cumsum(several) - 1)[ids[inside]]
    for j, cap in enumerate(layout.caps):
        sizes, values = records[f"t{j}_n"][inside], records[f"t{j}"][inside]
        counts, united = _unite(sizes, values, cap, numbers, int(several.sum()))
        merged[f"t{j}_n"][several] = counts
        merged[f"t{j}"][several] = united
    return merged


def frames(layout: RecordLayout, records: Records, size: int, count: int) -> list[Records]:
    """Cut sorted records into so many frames of one size, filled up with empty records.

    Raises:
        OverflowError: they do not fit.
    """
    if len(records) > size * count:
        raise OverflowError
    padded = np.concatenate((records, layout.empty(size * count - len(records))))
    return [padded[i * size : (i + 1) * size] for i in range(count)]


def split_frames(layout: RecordLayout, left: Records, right: Records) -> tuple[Records, Records]:
    """Two frames merged into a lower and an upper one of the same size.

    Husks stay where their keys are: a network of such steps sorts only what keeps its number.
    """
    both = _sort(np.concatenate((left, right)))
    first = _first(both) | (layout.tags(both) == EMPTY)
    if not first.all():
        whole = np.zeros_like(both)
        whole["key"] = both["key"]
        whole[first] = _merge(layout, both, first)
        both = whole
    return both[: len(left)], both[len(left) :]


def pack_frames(layout: RecordLayout, left: Records, right: Records) -> tuple[Records, Records]:
    """Two frames merged into a lower and an upper one, without husks: empty places come last."""
    low, high = frames(layout, combine_records(layout, np.concatenate((left, right))), len(left), 2)
    return low, high


def groups(layout: RecordLayout, records: Records) -> tuple[Records, ContributionCount]:
    """The groups among records, and how many contributions were counted."""
    records = records[~layout.hollow(records)]
    tags = layout.tags(records)
    sums = records[tags == SUM]
    counted = {key: int(rows) for key, rows in zip(sums["key"].tolist(), sums["rows"], strict=True)}
    tally = ContributionCount(
        *(counted.get(key, 0) for key in (b"", bytes([SUM, 1]), bytes([SUM, 2])))
    )
    return records[tags == GROUP], tally


def _merge_state(
    merged: Records,
    records: Records,
    i: int,
    state: StateField,
    starts: NDArray[np.int64],
    ids: NDArray[np.int64],
) -> None:
    count = records[f"s{i}_n"]
    total = np.add.reduceat(count, starts)
    merged[f"s{i}_n"] = total
    if state.kind == "count":
        return
    if state.kind == "moments":
        mean = records[f"s{i}_mean"]
        middle = np.add.reduceat(count * mean, starts) / np.maximum(total, 1)
        apart = np.where(count > 0, mean - middle[ids], 0.0)
        merged[f"s{i}_mean"] = middle
        merged[f"s{i}_m2"] = np.add.reduceat(records[f"s{i}_m2"] + count * apart * apart, starts)
    elif state.exact:
        for half in ("high", "low"):
            merged[f"s{i}_{half}"] = np.add.reduceat(records[f"s{i}_{half}"], starts)
    elif state.kind == "sum":
        merged[f"s{i}"] = np.add.reduceat(records[f"s{i}"], starts)
    else:
        # The extreme of those that have a value: sorted by group, then absent last, then value.
        values = records[f"s{i}"]
        rank = np.unique(values, return_inverse=True)[1]
        rank = -rank if state.kind == "max" else rank
        best = np.lexsort((rank, count == 0, ids))[starts]
        merged[f"s{i}"] = values[best]


def _unite(
    sizes: NDArray[np.int64],
    values: NDArray[np.int64],
    cap: int,
    ids: NDArray[np.int64],
    count: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The union of sets, of which the ``cap`` smallest values are kept: exact below the cap."""
    filled = np.arange(cap) < sizes[:, None]
    flat = values[filled]
    owners = np.repeat(ids, sizes)
    order = np.lexsort((flat, owners))
    flat, owners = flat[order], owners[order]
    if len(flat):
        new = np.concatenate(([True], (flat[1:] != flat[:-1]) | (owners[1:] != owners[:-1])))
        flat, owners = flat[new], owners[new]
    found = np.bincount(owners, minlength=count)
    rank = np.arange(len(flat)) - (np.cumsum(found) - found)[owners]
    kept = rank < cap
    out = np.zeros((count, cap), np.int64)
    out[owners[kept], rank[kept]] = flat[kept]
    return np.minimum(found, cap), out
