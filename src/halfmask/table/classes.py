"""Class statistics: all that models, metrics and the search ever see of the rows.

At level 0 of every column the classes are the weighted distinct tuples of the table; a coarser
grouping is always computed from a finer one (``Classes.coarsen``), never from rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.table.histogram import Histogram, value_facts
from halfmask.table.packed_key import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """Who stands in which class, in order of person; only where a person has several rows."""

    unit: NDArray[np.int32]
    person: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Rows that share all their (generalized) quasi-identifiers, with what models need of them.

    Attributes:
        keys: (classes, words) the packed label codes of each class.
        rows: how many rows each class holds.
        people: how many distinct people each class holds; the same as ``rows`` where every row
            is another person. Promises that count people (k) read this.
        histograms: per sensitive or policy column, the values inside each class.
        population: how many people of a population table fall into each class, where one is given
            (such classes may hold no row of the table itself).
        layout: how ``keys`` are packed.
        members: who stands where, if people have several rows.
    """

    keys: NDArray[np.uint64]
    rows: NDArray[np.int64]
    people: NDArray[np.int64]
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    population: NDArray[np.int64] | None = None
    layout: Layout | None = None
    members: Members | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def coarsen(self, columns: Sequence[int], maps: Sequence[NDArray[np.int32]]) -> Classes:
        """Replace the codes of ``columns`` through ``maps`` and merge classes that become equal."""
        return self.merged(*self.regroup(columns, maps))

    def regroup(
        self, columns: Sequence[int], maps: Sequence[NDArray[np.int32]]
    ) -> tuple[NDArray[np.int32], NDArray[np.uint64], NDArray[np.int64]]:
        """Where each class goes in ``coarsen``, with the keys and rows of the coarser classes.

        Coarser classes are numbered by first occurrence, so the numbers do not depend on the steps
        in which a grouping is reached.
        """
        from halfmask.kernels import group

        assert self.layout is not None  # noqa: S101 - classes that can be coarsened carry a layout
        picked = np.asarray(columns, dtype=np.int64)
        offsets = np.cumsum([0] + [len(m) for m in maps], dtype=np.int64)
        flat = np.concatenate(maps).astype(np.uint64) if maps else np.empty(0, np.uint64)
        ids, keys, rows = group.regroup(
            self.keys,
            self.rows,
            self.layout.words[picked],
            self.layout.shifts[picked],
            self.layout.masks[picked],
            offsets,
            flat,
        )
        return ids, keys, rows

    def merged(
        self, ids: NDArray[np.int32], keys: NDArray[np.uint64], rows: NDArray[np.int64]
    ) -> Classes:
        """The classes ``keys`` that arise when each class goes where ``ids`` says."""
        from halfmask.kernels import group

        n = len(keys)
        members, people = None, rows
        if self.members is not None:
            people = group.count_people(ids, n, self.members.unit, self.members.person)
            members = Members(ids[self.members.unit], self.members.person)
        histograms = {
            name: replace(h, starts=merged[0], values=merged[1], counts=merged[2])
            for name, h in self.histograms.items()
            for merged in [group.merge_histograms(ids, n, h.starts, h.values, h.counts, h.domain)]
        }
        population = None if self.population is None else group.add_up(ids, self.population, n)
        return Classes(keys, rows, people, histograms, population, self.layout, members)

    def select(self, mask: NDArray[np.bool_]) -> Classes:
        """The classes in ``mask`` only, as if the other rows had left the table."""
        members = None
        if self.members is not None:
            new = np.cumsum(mask, dtype=np.int32) - 1
            keep = mask[self.members.unit]
            members = Members(
                new[self.members.unit[keep]].astype(np.int32), self.members.person[keep]
            )
        return Classes(
            self.keys[mask],
            self.rows[mask],
            self.people[mask],
            {name: h.select(mask) for name, h in self.histograms.items()},
            None if self.population is None else self.population[mask],
            self.layout,
            members,
        )


def classes_of(
    table: Table,
    quasi: Sequence[str],
    *,
    columns: Sequence[str] = (),
    population: Table | None = None,
    counts: NDArray[np.int64] | None = None,
) -> Classes:
    """Group the rows of ``table`` by ``quasi`` as they stand, with histograms of ``columns``.

    With ``counts``, each row of ``table`` stands for so many.
    """
    return distinct(table, quasi, columns=columns, population=population, counts=counts)[0]


def distinct(
    table: Table,
    quasi: Sequence[str],
    *,
    columns: Sequence[str] = (),
    population: Table | None = None,
    counts: NDArray[np.int64] | None = None,
) -> tuple[Classes, NDArray[np.int32]]:
    """The weighted distinct tuples of ``table`` over ``quasi``, and the tuple of each row.

    With a population, to which the table must have been widened, tuples that only the population
    holds come along with no rows.
    """
    from halfmask.kernels import group

    layout = Layout.of([len(table.encode(name).values) for name in quasi])
    keys = _keys(table, quasi, layout, population)
    weights = np.zeros(len(keys), dtype=np.int64)
    weights[: len(table)] = 1 if counts is None else counts
    nothing, none = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
    ids, unique, rows = group.regroup(keys, weights, nothing, none, none, nothing, none)
    del keys
    others = None
    if population is not None:
        others = np.bincount(ids[len(table) :], minlength=len(unique)).astype(np.int64)
        ids = ids[: len(table)]
    members = _members(table, ids, len(table) if counts is None else int(counts.sum()))
    people = rows
    if members is not None:
        same = np.arange(len(unique), dtype=np.int32)
        people = group.count_people(same, len(unique), members.unit, members.person)
    histograms = {name: _histogram(table, name, ids, len(unique), counts) for name in columns}
    classes = Classes(unique, rows, people, histograms, others, layout, members)
    return classes, ids


def grouped(
    table: Table, rows: NDArray[np.int64], ids: NDArray[np.int64], *, columns: Mapping[str, str]
) -> Classes:
    """The classes that ``ids`` states for some ``rows``, with histograms of ``columns`` by key."""
    from halfmask.kernels import group

    count = int(ids.max(initial=-1)) + 1
    sizes = np.bincount(ids, minlength=count).astype(np.int64)
    small = ids.astype(np.int32)
    people = sizes
    if table.schema.person is not None:
        person = table.encode(table.schema.person).codes[rows].astype(np.int64)
        people = np.bincount(np.unique(person << 32 | ids) & 0xFFFFFFFF, minlength=count)
    each, one = np.arange(len(rows) + 1, dtype=np.int64), np.ones(len(rows), dtype=np.int64)
    histograms = {}
    for key, name in columns.items():
        facts = value_facts(table, name)
        merged = group.merge_histograms(
            small, count, each, table.encode(name).codes[rows], one, facts["domain"]
        )
        histograms[key] = Histogram(*merged, **facts)
    keys = np.arange(count, dtype=np.uint64).reshape(-1, 1)
    return Classes(keys, sizes, people.astype(np.int64), histograms)


def tuple_codes(
    table: Table, names: Sequence[str]
) -> tuple[list[NDArray[np.int32]], NDArray[np.int32]]:
    """The codes of the distinct tuples over ``names``, column by column, and each row's tuple."""
    from halfmask.kernels import group

    layout = Layout.of([len(table.encode(name).values) for name in names])
    keys = _keys(table, names, layout, None)
    nothing, none = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
    weights = np.zeros(len(keys), dtype=np.int64)
    ids, unique, _ = group.regroup(keys, weights, nothing, none, none, nothing, none)
    return [layout.codes(unique, c).astype(np.int32) for c in range(len(names))], ids


def _keys(
    table: Table, quasi: Sequence[str], layout: Layout, population: Table | None
) -> NDArray[np.uint64]:
    """The packed codes of each row, those of the population last."""
    from halfmask.kernels import group
    from halfmask.table.population import codes

    width = int(layout.words.max(initial=0)) + 1
    keys = np.zeros((len(table) + len(population or ()), width), dtype=np.uint64)
    for j, name in enumerate(quasi):
        word, shift = int(layout.words[j]), int(layout.shifts[j])
        group.pack(keys[: len(table)], word, shift, table.encode(name).codes)
        if population is not None:
            group.pack(keys[len(table) :], word, shift, codes(table, population, name))
    return keys


def _members(table: Table, ids: NDArray[np.int32], rows: int) -> Members | None:
    if table.schema.person is None:
        return None
    person = table.encode(table.schema.person)
    if len(person.values) == rows:
        return None
    pairs = np.unique(person.codes.astype(np.int64) << 32 | ids.astype(np.int64))
    return Members((pairs & 0xFFFFFFFF).astype(np.int32), pairs >> 32)


def _histogram(
    table: Table,
    name: str,
    ids: NDArray[np.int32],
    groups: int,
    counts: NDArray[np.int64] | None = None,
) -> Histogram:
    from halfmask.kernels import group

    encoded = table.encode(name)
    each = np.arange(len(encoded.codes) + 1, dtype=np.int64)
    held = np.ones(len(encoded.codes), dtype=np.int64) if counts is None else counts
    starts, values, merged = group.merge_histograms(
        ids, groups, each, encoded.codes, held, len(encoded.values)
    )
    return Histogram(starts, values, merged, **value_facts(table, name))
