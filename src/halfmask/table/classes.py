"""Class statistics: all that models, metrics and the search ever see of the rows.

At level 0 of every column the classes are the distinct tuples of the table with their counts; a
coarser grouping is always computed from a finer one (``Classes.coarsen``), never from rows. Also
here: which columns, taken together, single rows out.

Definition: Q is a quasi-identifier of a table iff ``GROUP BY Q HAVING COUNT(*) = 1`` is not empty.
    It is minimal iff no part of it is one; everything that contains one is one too.
Source: Nguyen and Castelluccia, "Techniques d'anonymisation tabulaire", 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from halfmask.errors import InputError
from halfmask.table.tuples import Owners, contiguous, pack_tuples, pick_counts, tally
from halfmask.table.values import dictionary_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table
    from halfmask.table.tuples import KeyLayout, PackedTuples, Tuples

    Codes = NDArray[np.int32]
    RowCounts = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """How often each value of one column occurs in each class, as sparse rows.

    The entries of class ``i`` are ``starts[i]`` to ``starts[i + 1]``; no count is zero.

    Attributes:
        starts: (classes + 1) where each class begins.
        values: per entry, the code of the value.
        counts: per entry, how many rows hold it.
        domain: how many distinct values the column has.
        numbers: per value code, the value as a number where the column is numeric, else None.
        hierarchy: the column's hierarchy, where it has one.
        labels: the values themselves, by code; their order is the ascending or the declared one.
        people: of a demand, per value code, how many people state it in all classes together; None
            where every row is another person.
        reference: per value code, how many rows hold it in the table that a search began with,
            also those that do not leave; None where nobody counted them.
    """

    starts: NDArray[np.int64]
    values: NDArray[np.int32]
    counts: NDArray[np.int64]
    domain: int
    numbers: NDArray[np.float64] | None = None
    hierarchy: Hierarchy | None = None
    labels: pa.Array | None = None
    people: NDArray[np.int64] | None = None
    reference: NDArray[np.int64] | None = None
    _sums: NDArray[np.int64] | None = field(default=None, init=False, repr=False)

    @property
    def owners(self) -> NDArray[np.int64]:
        """Per entry, the class it belongs to."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def totals(self) -> NDArray[np.int64]:
        """How often each value occurs in all classes together."""
        if self._sums is not None:
            return self._sums.copy()  # who asked may take rows out of it
        found = np.bincount(self.values, weights=self.counts, minlength=self.domain)
        return found.astype(np.int64)

    def in_merged(
        self, starts: NDArray[np.int64], values: NDArray[np.int32], counts: NDArray[np.int64]
    ) -> Histogram:
        """The same rows in coarser classes (``replace`` takes longer than a small search step)."""
        found = Histogram(
            starts, values, counts, self.domain, self.numbers, self.hierarchy, self.labels,
            self.people, self.reference,
        )  # fmt: skip
        object.__setattr__(found, "_sums", self.totals())  # merging changes no sum
        return found

    def drop_missing(self) -> Histogram:
        """The same without the missing value, which tells nobody apart and hides nobody."""
        if self.labels is None or not self.labels.null_count:
            return self
        valid = self.labels.is_valid().to_numpy(zero_copy_only=False)
        present = valid[self.values]
        before = np.concatenate(([0], np.cumsum(present)))
        return replace(
            self,
            starts=before[self.starts],
            values=self.values[present],
            counts=self.counts[present],
            reference=None if self.reference is None else np.where(valid, self.reference, 0),
        )

    def select(self, mask: NDArray[np.bool_]) -> Histogram:
        """The histograms of the classes in ``mask``."""
        lengths = np.diff(self.starts)
        keep = np.repeat(mask, lengths)
        starts = np.concatenate(([0], np.cumsum(lengths[mask])))
        return replace(
            self,
            starts=starts,
            values=self.values[keep],
            counts=self.counts[keep],
            people=self.people if keep.all() else None,
        )


class ValueFacts(TypedDict):
    """What a histogram knows of the values of its column, whatever the classes."""

    domain: int
    numbers: NDArray[np.float64] | None
    hierarchy: Hierarchy | None
    labels: pa.Array


def value_facts(table: Table, name: str) -> ValueFacts:
    """The part of a histogram of column ``name`` that does not depend on the classes."""
    import pyarrow as pa

    values = table.encode(name).values
    numbers = None
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
    column = table.schema.columns.get(name)
    hierarchy = table.hierarchy(name) if column is not None and column.hierarchy else None
    return ValueFacts(domain=len(values), numbers=numbers, hierarchy=hierarchy, labels=values)


def people_by_demand(
    table: Table, name: str, rows: NDArray[np.int64] | slice = slice(None)
) -> NDArray[np.int64] | None:
    """Per value of the demand ``name``, how many people of ``rows`` state it.

    None where every row is another person, and of a column that is no demand.
    """
    from halfmask.table.demands import KEY

    if table.schema.person is None or not name.startswith(KEY):
        return None
    demand, person = table.encode(name), table.encode(table.schema.person)
    # Both codes in one number: pairs would be sorted as rows, far slower.
    pairs = np.unique(person.codes[rows].astype(np.int64) << 32 | demand.codes[rows])
    return np.bincount(pairs & 0xFFFFFFFF, minlength=len(demand.values)).astype(np.int64)


COUNTERS = 16  # for each entry: up to here a plain array of counters is faster than sorting
_PER_SET = 4000  # what deciding a set costs beside its entries, in entries
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2 ** 64 by the golden ratio: neighbors fall apart


@dataclass(frozen=True, slots=True)
class QuasiIdentifiers:
    """The sets of columns that single rows out.

    Attributes:
        sets: the minimal quasi-identifiers, smallest first.
        size: all sets of up to this many columns were decided.
    """

    sets: tuple[tuple[str, ...], ...]
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class JointCodes:
    """The tuples of several columns.

    Attributes:
        columns: per name, the code of each tuple and the number of codes.
        rows: how many rows hold each tuple; None: one.
        entries: what looking at one set of columns costs, in tuples.
    """

    columns: Mapping[str, tuple[Codes, int]]
    rows: RowCounts | None
    entries: int


def search_quasi_identifiers(
    names: list[str],
    rows: int,
    alone: Callable[[str], bool],
    joint: Callable[[list[str], float], JointCodes | None],
    effort: tuple[int, float],
) -> QuasiIdentifiers:
    """Decide sets of growing size, skipping all that contain a known one.

    Args:
        names: the columns.
        rows: how many rows there are.
        alone: whether a column alone singles rows out.
        joint: the tuples of several columns, or None where there are more than a number.
        effort: the largest size, and the work: stop before a size whose sets would look at more
            tuples than this; a set costs some thousand besides.
    """
    found: list[tuple[str, ...]] = []
    known = JointCodes({}, None, rows if names else 0)
    limit, work = effort
    for size in range(1, min(limit, len(names)) + 1):
        if size == 2:
            names = [name for name in names if (name,) not in found]
            together = joint(names, work / max(comb(len(names), 2), 1) - _PER_SET)
            if together is None:
                return QuasiIdentifiers(tuple(found), 1)
            known = together
        work -= (known.entries + _PER_SET) * comb(len(names), size)
        if work < 0:
            return QuasiIdentifiers(tuple(found), size - 1)
        if size == 1:
            found += [(name,) for name in names if alone(name)]
            continue
        open_sets = list(_open_sets(names, found, size))
        found += [
            chosen
            for chosen in open_sets
            if _singles_out([known.columns[name] for name in chosen], known.rows)
        ]
    return QuasiIdentifiers(tuple(found), limit)


def collapse_tuples(columns: Mapping[str, tuple[Codes, int]]) -> JointCodes:
    """The distinct tuples and how many rows have each, where that is much less than all rows."""
    entries = min((len(codes) for codes, _ in columns.values()), default=0)
    if len(columns) < 2:
        return JointCodes(columns, None, entries)
    key = _key(list(columns.values()))[0]
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    if tuples_cost(len(first), len(key)) == len(key):
        return JointCodes(columns, None, entries)
    kept = {name: (codes[first], count) for name, (codes, count) in columns.items()}
    return JointCodes(kept, counts.astype(np.float64), len(first))


def tuples_cost(tuples: int, rows: int) -> int:
    """What looking at a set costs: so many tuples, or all rows where tuples are hardly fewer."""
    return rows if 2 * tuples > rows else tuples


def _open_sets(
    names: list[str], found: list[tuple[str, ...]], size: int
) -> Iterator[tuple[str, ...]]:
    """Sets of one size that contain no quasi-identifier known so far."""
    alone = {known[0] for known in found if len(known) == 1}
    several = [frozenset(known) for known in found if len(known) > 1]
    for chosen in combinations([name for name in names if name not in alone], size):
        members = set(chosen)
        if not any(known <= members for known in several):
            yield chosen


def _key(columns: list[tuple[Codes, int]]) -> tuple[NDArray[np.int64], int]:
    """One number per combination of codes, and how large these numbers can be."""
    key = np.zeros(len(columns[0][0]), dtype=np.int64)
    space = 1
    for codes, count in sorted(columns, key=lambda column: column[1]):
        if space * count >= 2**62:  # those that occur are numbered anew, before they overflow
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            space = len(key)
        key = key * count + codes
        space *= count
    return key, space


def _singles_out(columns: list[tuple[Codes, int]], rows: RowCounts | None) -> bool:
    """Whether some combination of codes occurs in exactly one row."""
    key, space = _key(columns)
    if space <= COUNTERS * len(key):
        return bool((np.bincount(key, rows) == 1).any())
    bits = min(22, (COUNTERS * len(key)).bit_length())
    places = (key.view(np.uint64) * _MIX) >> np.uint64(64 - bits)
    if (np.bincount(places.astype(np.int64), rows) == 1).any():
        return True  # a row alone in its place is alone in its class
    classes = np.unique(key, return_inverse=True)[1]
    return bool((np.bincount(classes, rows) == 1).any())


def codes_of(column: pa.ChunkedArray) -> tuple[Codes, int]:
    """The code of each row in any order of values, and how many codes there are (null is one)."""
    array = dictionary_of(column)
    size = len(array.dictionary)
    codes = array.indices.fill_null(size) if array.null_count else array.indices
    return codes.to_numpy(zero_copy_only=False).astype(np.int32), size + 1


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
        owners: who stands where, if people have several rows.
        stands: per person, for how many people of the population, where weights were asked for and
            people have several rows; ``population`` then adds up each person once.
    """

    keys: NDArray[np.uint64]
    rows: NDArray[np.int64]
    people: NDArray[np.int64]
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    population: NDArray[np.int64] | None = None
    layout: KeyLayout | None = None
    owners: Owners | None = None
    stands: NDArray[np.int64] | None = None

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
        return self.recode(self.field_maps(columns, maps))

    def field_maps(
        self, columns: Sequence[int], maps: Sequence[NDArray[np.int32]]
    ) -> tuple[NDArray[Any], ...]:
        """What ``recode`` needs of ``columns`` and ``maps``; the same for all coarser classes."""
        assert self.layout is not None  # noqa: S101 - classes that can be coarsened carry a layout
        picked = np.asarray(columns, dtype=np.int64)
        offsets = np.cumsum([0] + [len(m) for m in maps], dtype=np.int64)
        flat = np.concatenate(maps).astype(np.uint64) if maps else np.empty(0, np.uint64)
        layout = self.layout
        return layout.words[picked], layout.shifts[picked], layout.masks[picked], offsets, flat

    def recode(
        self, fields: tuple[NDArray[Any], ...]
    ) -> tuple[NDArray[np.int32], NDArray[np.uint64], NDArray[np.int64]]:
        """As ``regroup``, with ``field_maps`` made before."""
        ids, keys, rows = _grouping().regroup(self.keys, self.rows, *fields)
        return ids, keys, rows

    def merged(
        self, ids: NDArray[np.int32], keys: NDArray[np.uint64], rows: NDArray[np.int64]
    ) -> Classes:
        """The classes ``keys`` that arise when each class goes where ``ids`` says."""
        grouping, n = _grouping(), len(keys)
        owners, people = None, rows
        if self.owners is not None:
            people = grouping.people_per_group(ids, n, self.owners.unit, self.owners.person)
            owners = self.owners.at(ids)
        histograms = {
            name: h.in_merged(*merged)
            for name, h in self.histograms.items()
            for merged in [
                grouping.merge_histograms(ids, n, h.starts, h.values, h.counts, h.domain)
            ]
        }
        population: NDArray[np.int64] | None = None
        if owners is not None and self.stands is not None:
            population = _stood_for(owners, self.stands, n)
        elif self.population is not None:
            population = grouping.add_up(ids, self.population, n)
        return Classes(keys, rows, people, histograms, population, self.layout, owners, self.stands)

    def select(self, mask: NDArray[np.bool_]) -> Classes:
        """The classes in ``mask`` only, as if the other rows had left the table."""
        owners = None
        if self.owners is not None:
            owners = self.owners.at(np.cumsum(mask, dtype=np.int32) - np.int32(1), mask)
        return Classes(
            self.keys[mask],
            self.rows[mask],
            self.people[mask],
            {name: h.select(mask) for name, h in self.histograms.items()},
            None if self.population is None else self.population[mask],
            self.layout,
            owners,
            self.stands,
        )


def _stood_for(owners: Owners, stands: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Per class, how many people of the population its people stand for, each counted once."""
    pairs = np.unique(owners.person << 32 | owners.unit.astype(np.int64))
    found = np.zeros(count, dtype=np.int64)
    np.add.at(found, pairs & 0xFFFFFFFF, stands[pairs >> 32])
    return found


def whole_weights(table: Table) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Per row, and per person where some have several, the whole people that a weight stands for.

    Rounded down: nobody hides among parts of people.
    """
    from halfmask.table.weights import weights_of

    found = weights_of(table, str(table.schema.weight))
    each = None if found.of_person is None else np.floor(found.of_person).astype(np.int64)
    return np.floor(found.sums).astype(np.int64), each


def classes_of(
    tuples: Tuples,
    quasi: Sequence[str],
    *,
    columns: Sequence[str] = (),
    population: Table | None = None,
    tied: bool = False,
) -> Classes:
    """Group ``tuples`` by ``quasi`` as they stand, with histograms of ``columns``."""
    return distinct_classes(tuples, quasi, columns=columns, population=population, tied=tied)[0]


def distinct_classes(
    tuples: Tuples,
    quasi: Sequence[str],
    *,
    columns: Sequence[str] = (),
    population: Table | None = None,
    weighted: bool = False,
    tied: bool = False,
) -> tuple[Classes, NDArray[np.int32]]:
    """The distinct tuples over ``quasi`` as classes, and the class of each entry of ``tuples``.

    With a population, to which the table must have been widened, tuples that only the population
    holds come along with no rows; ``weighted``: it is the people for whom the rows stand by the
    weights of the schema; ``tied``: a class is of people all of whose rows are alike, where tokens
    of a release tie the rows of each together.

    Raises:
        InputError: rows that are tied cannot be held against a population.
    """
    from halfmask.kernels import grouping

    found = pack_tuples(tuples, quasi, others=population)
    count, ids = len(found), found.of_entry[: len(tuples)]
    if tied and tuples.table.schema.ties:
        if population is not None:
            raise InputError(_TIED_POPULATION)
        found, ids = _tie_rows(tuples, found, ids)
        count = len(found)
    others = None
    if population is not None:
        others = np.bincount(found.of_entry[len(tuples) :], minlength=count).astype(np.int64)
    people, owners = found.rows, Owners.of(tuples, ids)
    if owners is not None:
        same = np.arange(count, dtype=np.int32)
        people = grouping.people_per_group(same, count, owners.unit, owners.person)
    stands = None
    if weighted:
        each, stands = whole_weights(tuples.table)
        if owners is not None and stands is not None:
            others = _stood_for(owners, stands, count)
        else:
            others = np.bincount(ids, each * tuples.counts, minlength=count).astype(np.int64)
    histograms = {name: _histogram(tuples, name, ids, count) for name in columns}
    layout = found.layout
    return Classes(found.keys, found.rows, people, histograms, others, layout, owners, stands), ids


_TIED_POPULATION = (
    "Tokens of this release tie a person's rows together, and nothing ties those of a population: "
    "leave the population out."
)


def _tie_rows(
    tuples: Tuples, found: PackedTuples, ids: NDArray[np.int32]
) -> tuple[PackedTuples, NDArray[np.int32]]:
    """Tuples parted by what else their people hold: whoever reads the tokens sees all of it."""
    pairs = ids.astype(np.int64)
    for name in tuples.table.schema.ties:
        owners = Owners.by(name, tuples, ids)
        if owners is None:
            continue
        alike = owners.profiles()[tuples.table.encode(name).codes]
        pairs = np.unique(pairs << 32 | alike, return_inverse=True)[1].reshape(-1)
    _, first, parted = np.unique(pairs, return_index=True, return_inverse=True)
    parted = parted.reshape(-1).astype(np.int32)
    rows = tally(parted, len(first), tuples.counts)
    return replace(found, keys=found.keys[ids[first]], rows=rows, of_entry=parted), parted


def classes_by_id(
    tuples: Tuples,
    entries: NDArray[np.int64],
    ids: NDArray[np.int64],
    *,
    columns: Mapping[str, str],
    weighted: bool = False,
) -> Classes:
    """The classes that ``ids`` states for ``entries``, with histograms of ``columns`` by key."""
    from halfmask.kernels import grouping

    table, counts = tuples.table, pick_counts(tuples.counts, entries)
    count = int(ids.max(initial=-1)) + 1
    one = contiguous(counts)
    sizes = tally(ids, count, counts)
    small = ids.astype(np.int32)
    people = sizes
    pairs = None
    if table.schema.person is not None:
        person = table.encode(table.schema.person).codes[entries].astype(np.int64)
        pairs = np.unique(person << 32 | ids)
        people = np.bincount(pairs & 0xFFFFFFFF, minlength=count)
    population = None
    if weighted:
        population = np.zeros(count, dtype=np.int64)
        each, stands = whole_weights(table)
        if pairs is None or stands is None:
            np.add.at(population, ids, each[entries] * one)
        else:
            np.add.at(population, pairs & 0xFFFFFFFF, stands[pairs >> 32])
    each = np.arange(len(entries) + 1, dtype=np.int64)
    histograms = {}
    for key, name in columns.items():
        facts = value_facts(table, name)
        merged = grouping.merge_histograms(
            small, count, each, table.encode(name).codes[entries], one, facts["domain"]
        )
        stating = people_by_demand(table, name, entries)
        everyone = tally(table.encode(name).codes, facts["domain"], tuples.counts)
        histograms[key] = Histogram(*merged, **facts, people=stating, reference=everyone)
    keys = np.arange(count, dtype=np.uint64).reshape(-1, 1)
    return Classes(keys, sizes, people.astype(np.int64), histograms, population)


@cache
def _grouping() -> Any:
    """The kernels that group, loaded when first needed; a search asks thousands of times."""
    from halfmask.kernels import grouping

    return grouping


def _histogram(tuples: Tuples, name: str, ids: NDArray[np.int32], groups: int) -> Histogram:
    from halfmask.kernels import grouping

    encoded = tuples.table.encode(name)
    each = np.arange(len(encoded.codes) + 1, dtype=np.int64)
    held = contiguous(tuples.counts)
    merged = grouping.merge_histograms(ids, groups, each, encoded.codes, held, len(encoded.values))
    people = people_by_demand(tuples.table, name)
    found = Histogram(*merged, **value_facts(tuples.table, name), people=people)
    return replace(found, reference=found.totals())
