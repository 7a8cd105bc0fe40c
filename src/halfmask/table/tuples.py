"""Distinct tuples with their counts: the one thing that models, measures and searches see.

Rows in memory are tuples that stand for one row each; an engine that counts gives tuples that stand
for many. Over some columns their codes are packed side by side into one or two machine words.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.table.table import Encoded, require_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.table.table import StoredRows, Table
    from halfmask.table.weights import Weights

    Counts = NDArray[np.int64]
    CodePlaces = tuple[NDArray[np.int32], int]  # per code its place, and how many places there are


def ones(entries: int) -> Counts:
    """Counts of entries that stand for one row each; they take no room, however many there are."""
    return np.broadcast_to(np.int64(1), entries)


def all_ones(counts: NDArray[Any]) -> bool:
    """Whether every entry stands for one row, for which plain counting is exact and faster."""
    return counts.strides == (0,) or bool((counts == 1).all())


def rows_in(counts: Counts) -> int:
    """How many rows entries with these counts stand for."""
    return len(counts) if counts.strides == (0,) else int(counts.sum())


def pick_counts(counts: Counts, at: NDArray[Any]) -> Counts:
    """The counts of some entries, by their places or a mask."""
    if counts.strides != (0,):
        found: Counts = counts[at]
        return found
    return ones(int(np.count_nonzero(at)) if at.dtype == np.bool_ else len(at))


def tally(ids: NDArray[Any], size: int, counts: Counts) -> Counts:
    """How many rows the entries of each id stand for; of ``size`` ids at least."""
    # As doubles, which is faster than adding whole numbers, and exact below 2 ** 53 rows.
    weights = None if all_ones(counts) else counts
    return np.bincount(ids, weights, minlength=size).astype(np.int64, copy=False)


_SPARSE = 8  # numbers that there could be, for each that there is, up to which they are counted


def distinct_numbers(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """The different ones of some numbers from 0, ascending."""
    size = int(numbers.max(initial=-1)) + 1
    if size > _SPARSE * len(numbers) + 1_000:
        return np.asarray(np.unique(numbers), dtype=np.int64)
    return np.flatnonzero(np.bincount(numbers, minlength=size))


def contiguous(counts: Counts) -> Counts:
    """The same counts in memory of their own, as compiled code takes them."""
    return np.ascontiguousarray(counts) if counts.flags.writeable else counts.copy()


@dataclass(frozen=True, slots=True, eq=False)
class Floor:
    """A column whose tuples were counted at a level of its hierarchy: nothing finer is known.

    In the entries, one value stands for all values that have its label there.

    Attributes:
        level: the finest level that may be published.
        values: all values of the column as the engine spells them.
        codes: per such value, the code of the one that stands for it; -1: of no entry.
    """

    level: int
    values: pa.ChunkedArray
    codes: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Tuples:
    """Entries that stand for rows: the rows themselves, or distinct tuples with their counts.

    Attributes:
        table: the entries; of counted rows only the columns that were counted.
        counts: how many rows each entry stands for.
        note: what a reader should know, or nothing.
        engine: who counted; nothing where rows were read.
        left_out: the columns of the source that were not counted.
        private: the columns of the source that must not leave.
        source: where the rows stayed, if an engine counted them.
        origin: the table whose rows were counted; ``raw`` the values as the engine spells them.
        weights: how many people of the population the rows stand for, where that was asked.
        floors: the columns that were counted at a coarser level, because all tuples did not fit.
    """

    table: Table
    counts: Counts
    note: str = ""
    engine: str = ""
    left_out: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    source: StoredRows | None = field(default=None, repr=False)
    weights: Weights | None = field(default=None, repr=False)
    origin: Table | None = field(default=None, repr=False)
    raw: pa.Table | None = field(default=None, repr=False)
    floors: Mapping[str, Floor] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, rows: Table | Tuples, note: str = "") -> Tuples:
        """Rows as tuples that stand for one row each; tuples as they are."""
        if isinstance(rows, Tuples):
            return rows
        return cls(require_table(rows), ones(len(rows)), note, private=rows.schema.private)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return rows_in(self.counts)

    @property
    def in_order(self) -> bool:
        """Whether entries are rows in their own order, so that their places mean something."""
        return not self.engine and all_ones(self.counts)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the source, those that were counted first."""
        return (*self.table.arrow.column_names, *self.left_out)

    def keep(self, mask: NDArray[np.bool_]) -> Tuples:
        """The entries that ``mask`` marks, which know nothing of the others."""
        raw = None if self.raw is None else self.raw.filter(pa.array(mask))
        table, floors = self.table.keep(mask), {}
        for name, floor in self.floors.items():
            whole = self.table.encode(name)
            used = np.unique(whole.codes[mask])
            place = np.full(len(whole.values) + 1, -1, dtype=np.int32)  # and what stood for nobody
            place[used] = np.arange(len(used), dtype=np.int32)
            table.bind_codes(
                name,
                Encoded(whole.values.take(pa.array(used)), place[whole.codes[mask]]),
                self.table.hierarchy(name).select(used),
            )
            floors[name] = replace(floor, codes=place[floor.codes])
        counts = pick_counts(self.counts, mask)
        return replace(self, table=table, counts=counts, raw=raw, floors=floors)

    def floor(self, name: str) -> int:
        """The finest level of a column that may be published."""
        return self.floors[name].level if name in self.floors else 0

    def spelled(self, name: str) -> tuple[pa.ChunkedArray, NDArray[np.int32]]:
        """The values of a counted column as the engine spells them, and the code of each."""
        if name in self.floors:
            floor = self.floors[name]
            held = floor.codes >= 0
            return floor.values.filter(pa.array(held)), floor.codes[held]
        assert self.raw is not None  # noqa: S101 - engines say how they spell
        return self.raw[name], self.table.encode(name).codes

    def unfold(self) -> Tuples:
        """One entry a row, in the order of all values: as the same rows in memory would be."""
        names = self.table.arrow.column_names
        encoded = {name: self.table.encode(name) for name in names}
        order = np.lexsort([encoded[name].codes for name in reversed(names)])
        each = np.repeat(order, self.counts[order])
        places = pa.array(each)
        table = self.table.with_schema(self.table.schema, self.table.arrow.take(places))
        for name, one in encoded.items():
            table._encoded[name] = replace(one, codes=one.codes[each])  # noqa: SLF001 - the same
        raw = None
        if self.raw is not None:
            listed = [pc.dictionary_encode(column) for column in self.raw.columns]
            raw = pa.table(listed, names=self.raw.column_names).take(places)
        return replace(self, table=table, counts=ones(len(each)), raw=raw)

    def texts(self, name: str, most: int) -> tuple[pa.Array, bool]:
        """Distinct values of a column as texts, ``most`` of them, and whether these are all."""
        if name not in self.left_out or self.source is None:
            values, whole = self.table.arrow[name].unique(), True
        else:
            values, whole = self.source.distinct_values(name, most)
        return pc.drop_null(pc.cast(values, pa.string())), whole


@dataclass(frozen=True, slots=True, eq=False)
class KeyLayout:
    """Where each column's code stands inside the packed key."""

    words: NDArray[np.int64]
    shifts: NDArray[np.uint64]
    masks: NDArray[np.uint64]

    @classmethod
    def of(cls, sizes: Sequence[int]) -> KeyLayout:
        """Place columns with ``sizes`` distinct values one after the other, none across words."""
        words, shifts, masks = [], [], []
        word = shift = 0
        for size in sizes:
            width = max(1, int(size - 1).bit_length())
            if shift + width > 64:
                word, shift = word + 1, 0
            words.append(word)
            shifts.append(shift)
            masks.append((1 << width) - 1)
            shift += width
        return cls(
            np.array(words, dtype=np.int64),
            np.array(shifts, dtype=np.uint64),
            np.array(masks, dtype=np.uint64),
        )

    @property
    def width(self) -> int:
        """How many words a key takes."""
        return int(self.words.max(initial=0)) + 1

    def codes(self, keys: NDArray[np.uint64], column: int) -> NDArray[np.int64]:
        """Unpack one column from ``keys``."""
        word = keys[:, self.words[column]]
        codes = (word >> self.shifts[column]) & self.masks[column]
        return np.asarray(codes, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Owners:
    """Who holds which tuple or class, in order of person; only where a person has several rows.

    Attributes:
        unit: the tuple or class; ``person`` who holds it; ``rows`` in how many rows.
    """

    unit: NDArray[np.int32]
    person: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, tuples: Tuples, ids: NDArray[np.int32]) -> Owners | None:
        """The owners of the units ``ids`` of each entry; None where every row is another person."""
        name = tuples.table.schema.person
        return None if name is None else cls.by(name, tuples, ids)

    @classmethod
    def by(cls, name: str, tuples: Tuples, ids: NDArray[np.int32]) -> Owners | None:
        """The same, where column ``name`` says whose row it is."""
        person = tuples.table.encode(name)
        if len(person.values) == tuples.rows:
            return None
        pairs = person.codes.astype(np.int64) << 32 | ids.astype(np.int64)
        if all_ones(tuples.counts):
            found, rows = np.unique(pairs, return_counts=True)
        else:
            found, place = np.unique(pairs, return_inverse=True)
            rows = np.bincount(place, tuples.counts, minlength=len(found)).astype(np.int64)
        return cls((found & 0xFFFFFFFF).astype(np.int32), found >> 32, rows)

    def profiles(self) -> NDArray[np.int64]:
        """Per person, a number that those share who hold the same units in as many rows each."""
        import pyarrow as pa

        pairs, place = np.unique(self.person << 32 | self.unit, return_inverse=True)
        rows = np.bincount(place.reshape(-1), self.rows).astype(np.int64)
        people, starts = np.unique(pairs >> 32, return_index=True)
        held = np.stack([pairs & 0xFFFFFFFF, rows], axis=1).astype(np.int64)
        ends = np.append(starts, len(pairs)).astype(np.int64) * held.itemsize * 2
        parts = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(held))]
        whole = pa.Array.from_buffers(pa.large_binary(), len(people), parts)
        found = np.full(int(people.max(initial=-1)) + 1, -1, dtype=np.int64)
        found[people] = whole.dictionary_encode().indices.to_numpy()
        return found

    def at(self, units: NDArray[np.int32], keep: NDArray[np.bool_] | None = None) -> Owners:
        """The same people in other units, where each unit goes; only those ``keep`` marks."""
        if keep is None:
            return Owners(units[self.unit], self.person, self.rows)
        mine = keep[self.unit]
        return Owners(units[self.unit[mine]], self.person[mine], self.rows[mine])


@dataclass(frozen=True, slots=True, eq=False)
class PackedTuples:
    """The distinct tuples of some columns, as packed keys.

    Attributes:
        columns: the names.
        keys: (tuples, words) the packed codes; ``layout`` says where each column stands.
        rows: how many rows hold each tuple.
        of_entry: the tuple of each entry that was packed; those of others come last.
    """

    columns: tuple[str, ...]
    keys: NDArray[np.uint64]
    layout: KeyLayout
    rows: NDArray[np.int64]
    of_entry: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.rows)

    def field(self, column: int) -> tuple[int, np.uint64, np.uint64]:
        """Where a column's code stands in the keys: word, shift and mask."""
        layout = self.layout
        return int(layout.words[column]), layout.shifts[column], layout.masks[column]

    def names(self, mask: int) -> tuple[str, ...]:
        """The columns of a set given as a bit mask."""
        return tuple(name for i, name in enumerate(self.columns) if mask >> i & 1)

    def codes(self, column: int) -> NDArray[np.int64]:
        """The codes of one column."""
        return self.layout.codes(self.keys, column)


def pack_tuples(
    tuples: Tuples,
    columns: Sequence[str],
    *,
    places: Mapping[str, CodePlaces] | None = None,
    others: Table | None = None,
) -> PackedTuples:
    """Collapse ``tuples`` to the distinct ones of ``columns``, numbered by first occurrence.

    Args:
        tuples: the entries.
        columns: which columns.
        places: per column, what its codes are put together to; else they stand for themselves.
        others: another table, to which the first must have been widened: tuples that only this one
            holds come along with no rows.
    """
    from halfmask.kernels import grouping
    from halfmask.table.weights import population_codes as codes_in

    table, merged, size = tuples.table, places or {}, len(tuples)
    sizes = [
        merged[name][1] if name in merged else len(table.encode(name).values) for name in columns
    ]
    layout = KeyLayout.of(sizes)
    keys = np.zeros((size + len(others or ()), layout.width), dtype=np.uint64)
    for j, name in enumerate(columns):
        word, shift = int(layout.words[j]), int(layout.shifts[j])
        codes = table.encode(name).codes
        grouping.pack_codes(
            keys[:size], word, shift, merged[name][0][codes] if name in merged else codes
        )
        if others is not None:
            grouping.pack_codes(keys[size:], word, shift, codes_in(table, others, name))
    weights = np.zeros(len(keys), dtype=np.int64)
    weights[:size] = tuples.counts
    nothing, none = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
    ids, unique, rows = grouping.regroup(keys, weights, nothing, none, none, nothing, none)
    return PackedTuples(tuple(columns), unique, layout, rows, ids)
