"""Column sets that single people out: how far they tell people apart, and who is special.

Sets are visited so that every subset comes first, each grouping refined from the one before. Rows
collapse to distinct tuples once; a tuple that stands alone in its group leaves the walk below that
set, because nothing can split it further.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import ParameterError
from halfmask.table.columns import require_known
from halfmask.table.document import Result, document_field
from halfmask.table.tuples import Owners, pack_tuples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from halfmask.kernels.grouping import Grouping
    from halfmask.table.table import Table
    from halfmask.table.tuples import PackedTuples, Tuples

    _Pairs = tuple[int, int]  # twice the pairs of entries that agree, and twice all pairs


MOST = 2**31 - 1  # rows up to which narrow counters do
_SETS = 4000  # column sets that are looked at without being asked


def narrow_counts(rows: NDArray[np.int64]) -> NDArray[Any]:
    """Counts in 32 bits where the rows together fit, which halves what a walk moves."""
    return rows.astype(np.int32 if int(rows.sum()) <= MOST else np.int64)


def one_group(entries: int) -> NDArray[np.int64]:
    """The starts of the grouping that has all entries in one group."""
    return np.array([0, entries], dtype=np.int64)


def chosen_columns(table: Table, columns: Sequence[str] | None, size: int) -> list[str]:
    """The columns to walk over: those given, or all that may leave."""
    if size < 1:
        raise ParameterError("size", size, "at least 1")
    known = table.arrow.column_names
    if columns is None:
        return [name for name in known if name not in table.schema.private]
    require_known(columns, known)
    if not columns:
        raise ParameterError("columns", (), "at least one column")
    return list(dict.fromkeys(columns))


def by_size(table: Table, columns: Sequence[str]) -> list[str]:
    """``columns`` with those of many values last, so that a walk drops most tuples early."""
    return sorted(columns, key=lambda name: len(table.encode(name).values))


def extensions(mask: int, count: int) -> Iterator[int]:
    """The columns that extend a set, lowest first, so that subsets are visited before it."""
    lowest = (mask & -mask).bit_length() - 1 if mask else count  # the place of the lowest bit
    yield from range(lowest)


def affordable_size(columns: int, size: int) -> int:
    """The largest set size for which there are not too many sets."""
    if size < 1:
        raise ParameterError("size", size, "at least 1")
    size = min(size, columns)
    while size > 1 and sum(comb(columns, s) for s in range(1, size + 1)) > _SETS:
        size -= 1
    return size


@dataclass(frozen=True, slots=True)
class ColumnSet(Result):
    """How far a set of columns tells people apart.

    Attributes:
        columns: the set.
        classes: how many different combinations occur.
        unique_rows: rows of people who are alone with theirs.
        distinction: classes / people in them (a person in two classes counts twice).
        separation: the share of pairs of different people that it tells apart.
        minimal: whether it singles somebody out and no part of it does.
    """

    columns: tuple[str, ...]
    classes: int
    unique_rows: int
    distinction: float
    separation: float
    minimal: bool = False


def column_sets(
    tuples: Tuples, columns: Sequence[str] | None = None, *, size: int = 3
) -> tuple[ColumnSet, ...]:
    """Measure every set of at most ``size`` columns; those with most unique rows first.

    Definition: rows of one person that agree in the set are one entry. Distinction is the share of
    different combinations among all entries; separation the share of pairs of entries of different
    people that differ in the set; a set is a minimal quasi-identifier if it singles a person out
    and no part of it does.
    Source: Motwani and Xu, "Efficient algorithms for masking and finding quasi-identifiers", 2007.
    """
    from halfmask.kernels.grouping import Grouping

    names = chosen_columns(tuples.table, columns, size)
    units = pack_tuples(tuples, by_size(tuples.table, names))
    visits = _Visits(units, names)
    owners = Owners.of(tuples, units.of_entry)
    if owners is None:
        ids = np.arange(len(units), dtype=np.int32)
        start = Grouping(units.keys, visits.rows, ids, one_group(len(units)))
        _descend(visits, size, start, 0, (0, 0, 0))
    else:
        person, everybody = owners.person.astype(np.int32), int(owners.person[-1]) + 1
        rows = narrow_counts(owners.rows)
        start = Grouping(units.keys[owners.unit], rows, person, one_group(len(person)))
        _descend_people(visits, size, start, 0, everybody)
    return tuple(
        sorted(
            visits.sets, key=lambda s: (-s.unique_rows, -s.separation, len(s.columns), s.columns)
        )
    )


class _Visits:
    """The sets that were visited so far, every subset before a set."""

    def __init__(self, units: PackedTuples, names: Sequence[str]) -> None:
        self.units = units
        self.rows, self.total = narrow_counts(units.rows), int(units.rows.sum())
        self.place = {name: i for i, name in enumerate(names)}
        self.minimal: list[int] = []
        self.sets: list[ColumnSet] = []

    def note(self, mask: int, classes: int, entries: int, alone: int, pairs: _Pairs) -> None:
        """Keep the figures of one set: its classes, entries, rows alone, and pairs that agree."""
        first = alone > 0 and not any(known & mask == known for known in self.minimal)
        if first:
            self.minimal.append(mask)
        same, every = pairs
        self.sets.append(
            ColumnSet(
                tuple(sorted(self.units.names(mask), key=self.place.__getitem__)),
                classes,
                alone,
                classes / entries,
                1.0 - same / every if every else 1.0,
                minimal=first,
            )
        )


def _descend(
    visits: _Visits, size: int, grouping: Grouping, mask: int, settled: tuple[int, int, int]
) -> None:
    """Visit all sets that extend ``mask``; ``settled`` counts tuples that left the walk."""
    from halfmask.kernels.grouping import refine

    units = visits.units
    if mask.bit_count() == size:
        return
    for column in extensions(mask, len(units.columns)):
        found = refine(grouping, units.field(column))
        held, sums = found.held.astype(np.int64), found.sums
        alone = (
            settled[0] + len(held),
            settled[1] + int((held == 1).sum()),
            settled[2] + _squares(held),
        )
        finer = mask | 1 << column
        total = visits.total
        pairs = (alone[2] + _squares(sums) - total, total * (total - 1))
        visits.note(finer, alone[0] + len(sums), total, alone[1], pairs)
        _descend(visits, size, found.finer, finer, alone)


def _descend_people(
    visits: _Visits, size: int, grouping: Grouping, mask: int, everybody: int
) -> None:
    """The same where people have several rows."""
    from halfmask.kernels.grouping import refine, tally_people

    if mask.bit_count() == size:
        return
    for column in extensions(mask, len(visits.units.columns)):
        finer = mask | 1 << column
        divided = refine(grouping, visits.units.field(column), everyone=True).finer
        people, alone, own = tally_people(divided, everybody)
        entries = int(people.sum())
        # Entries of one person are no pair of different people.
        pairs = (_squares(people) - entries, entries * entries - int(own))
        visits.note(finer, len(people), entries, int(alone), pairs)
        _descend_people(visits, size, divided, finer, everybody)


def _squares(counts: NDArray[np.int64]) -> int:
    """The sum of squares, exact where machine words would not hold it."""
    if len(counts) and int(counts.max()) ** 2 * len(counts) >= 2**63:
        counts = counts.astype(object)
    return int(counts @ counts) if len(counts) else 0


@dataclass(frozen=True, slots=True)
class ColumnContribution:
    """How often a column takes part in singling somebody out.

    Attributes:
        name: the column.
        sets: in how many minimal unique sets it stands, over all different tuples.
        share: the same as a share of all of them.
        score: the share of the total score that these sets carry.
    """

    name: str
    sets: int
    share: float
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class SpecialUniques(Result):
    """Who stands out, through how few columns.

    Attributes:
        rows: how many rows there are.
        size: the largest column set looked at; ``columns`` the columns.
        special_rows: rows that have a minimal unique set.
        by_size: per set size, how many minimal unique sets (of different tuples) and how many rows
            whose smallest it is.
        by_set: the column sets that single out most rows: (columns, rows).
        contributions: per column, its part in it.
        scores: per row, its score; 0 for rows without a minimal unique set.
        smallest: per row, how many columns suffice to single it out; 0 where none were found.
    """

    rows: int
    size: int
    columns: tuple[str, ...]
    special_rows: int
    by_size: tuple[tuple[int, int, int], ...] = field(
        metadata=document_field(parts=("size", "sets", "rows"))
    )
    by_set: tuple[tuple[tuple[str, ...], int], ...] = field(
        metadata=document_field(parts=("columns", "rows"))
    )
    contributions: tuple[ColumnContribution, ...]
    scores: NDArray[np.float64] = field(repr=False, metadata=document_field(hidden=True))
    smallest: NDArray[np.int64] = field(repr=False, metadata=document_field(hidden=True))


def special_uniques(
    tuples: Tuples, columns: Sequence[str] | None = None, *, size: int = 5, top: int = 10
) -> SpecialUniques:
    """Find the minimal unique sets of up to ``size`` columns of every row (SUDA2).

    Definition: a minimal unique set of a row is a set of columns on which the row is unique (no
    other person shares its values), while it is unique on no part of the set. Its score is prod (A
    - i) for i from its size to M - 1, where A is the number of columns and M the largest size
    looked at; a row's score is the sum over its sets.
    Source: Elliot, Manning and Ford, "A computational algorithm for handling the special uniques
    problem", 2002; Manning, Haglin and Keane, "A recursive search algorithm for statistical
    disclosure assessment", 2008.

    Rows of one person that agree are one: their sets and scores count once, their rows each.

    Args:
        tuples: the rows, or distinct tuples with their counts.
        columns: where to look; None: the quasi-identifiers, or all columns that may leave.
        size: the largest set.
        top: how many column sets to name.
    """
    from halfmask.kernels.grouping import Grouping

    table = tuples.table
    if columns is None and table.schema.quasi:
        columns = table.schema.quasi
    names = chosen_columns(table, columns, size)
    size = min(size, len(names))
    units = pack_tuples(tuples, by_size(table, names))
    only = _only_owners(units, Owners.of(tuples, units.of_entry))
    walk = _MinimalSets(units, size)
    ids = np.arange(len(units), dtype=np.int32)
    walk.descend(Grouping(units.keys, ids, only, one_group(len(units))), 0)
    return _summary(units, tuple(names), size, walk, top)


def _only_owners(units: PackedTuples, owners: Owners | None) -> NDArray[np.int32]:
    """Per tuple, whose it is; -1 where several people hold it."""
    if owners is None:  # every row is another person
        own = np.arange(len(units), dtype=np.int32)
        own[units.rows > 1] = -1
        return own
    own = np.full(len(units), -1, dtype=np.int32)
    single = np.bincount(owners.unit, minlength=len(units))[owners.unit] == 1
    own[owners.unit[single]] = owners.person[single]
    return own


_BITS = 62  # columns in a word of a set
_FULL = (1 << _BITS) - 1


class _MinimalSets:
    """The state of one walk over the column sets."""

    def __init__(self, units: PackedTuples, size: int) -> None:
        self.units, self.size = units, size
        self.heads = np.full(len(units), -1, dtype=np.int64)
        self.links = np.empty(1024, dtype=np.int64)
        self.masks = np.empty((1024, -(-len(units.columns) // _BITS)), dtype=np.int64)
        self.used = 0
        self.runs: list[tuple[int, int]] = []  # a set, and where its entries begin

    def descend(self, grouping: Grouping, mask: int) -> None:
        """Visit all sets that extend ``mask`` by lower columns."""
        from halfmask.kernels.grouping import refine

        if not len(grouping.held):
            return
        for column in extensions(mask, len(self.units.columns)):
            finer = mask | 1 << column
            further = min(column, self.size - finer.bit_count())  # only lower columns extend a set
            found = refine(grouping, self.units.field(column), further=further > 0)
            # A tuple that several people hold singles nobody out.
            self.note(found.held[found.whose >= 0], finer)
            if further:
                self.descend(found.finer, finer)

    def note(self, lone: NDArray[np.int32], mask: int) -> None:
        """Keep the set for the units it singles out first."""
        from halfmask.kernels.grouping import note_minimal

        need = self.used + len(lone)
        if need > len(self.masks):
            room = max(need, 2 * len(self.masks))
            self.links = np.resize(self.links, room)
            self.masks = np.resize(self.masks, (room, self.masks.shape[1]))
        before = self.used
        words = [mask >> _BITS * w & _FULL for w in range(self.masks.shape[1])]
        noted = np.array(words, dtype=np.int64)
        self.used = int(note_minimal(lone, noted, self.heads, self.links, self.masks, before))
        if self.used > before:
            self.runs.append((mask, before))


def _summary(
    units: PackedTuples, names: tuple[str, ...], size: int, walk: _MinimalSets, top: int
) -> SpecialUniques:
    masks = walk.masks[: walk.used]
    owner = _owners(walk)
    counts = _columns_in(masks)
    worth = np.array(
        [prod(range(len(names) - size + 1, len(names) - s + 1)) for s in range(size + 1)],
        dtype=np.float64,
    )
    weights = worth[counts]
    unit_scores = np.zeros(len(units))
    np.add.at(unit_scores, owner, weights)
    smallest = np.full(len(units), 99, dtype=np.int64)  # more columns than any set has
    np.minimum.at(smallest, owner, counts)
    sets = np.bincount(counts, minlength=size + 1)
    special = smallest < 99
    least = np.bincount(smallest[special], weights=units.rows[special], minlength=size + 1)
    runs = np.array([begin for _, begin in walk.runs], dtype=np.int64)
    rows = np.add.reduceat(units.rows[owner], runs) if len(runs) else runs
    order = sorted(range(len(runs)), key=lambda i: (-rows[i], walk.runs[i][0]))[:top]
    place = {name: i for i, name in enumerate(names)}
    by_set = tuple(
        (tuple(sorted(units.names(walk.runs[i][0]), key=place.__getitem__)), int(rows[i]))
        for i in order
    )
    return SpecialUniques(
        rows=int(units.rows.sum()),
        size=size,
        columns=names,
        special_rows=int(units.rows[special].sum()),
        by_size=tuple((s, int(sets[s]), int(least[s])) for s in range(1, size + 1)),
        by_set=by_set,
        contributions=tuple(_contributions(units, names, masks, weights)),
        scores=unit_scores[units.of_entry],
        smallest=np.where(special, smallest, 0)[units.of_entry],
    )


def _columns_in(masks: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many columns each set has."""
    return np.asarray(np.bitwise_count(masks).sum(axis=1), dtype=np.int64)


def _owners(walk: _MinimalSets) -> NDArray[np.int64]:
    """The unit of each noted set."""
    owner = np.empty(walk.used, dtype=np.int64)
    units = np.flatnonzero(walk.heads >= 0)
    entries = walk.heads[units]
    while len(units):  # one round per set of the unit that has most
        owner[entries] = units
        entries = walk.links[entries]
        more = entries >= 0
        units, entries = units[more], entries[more]
    return owner


def _contributions(
    units: PackedTuples,
    names: tuple[str, ...],
    masks: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> list[ColumnContribution]:
    total, scored = len(masks), float(weights.sum())
    out = []
    for name in names:
        word, bit = divmod(units.columns.index(name), _BITS)
        inside = (masks[:, word] >> bit & 1) == 1
        count = int(inside.sum())
        out.append(
            ColumnContribution(
                name,
                count,
                count / total if total else 0.0,
                float(weights[inside].sum()) / scored if scored else 0.0,
            )
        )
    return out
