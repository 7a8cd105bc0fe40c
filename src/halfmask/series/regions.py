"""The classes of several releases as boxes over common leaves, and the cuts between them.

A cut is a smallest set of classes of all releases that nobody can stand half inside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InputError
from halfmask.metrics.weighted import dense, joint, pairs
from halfmask.series.common_leaves import column_leaves, label_numbers
from halfmask.table.hierarchy import canonical
from halfmask.table.table import encode_column
from halfmask.table.tuples import tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from halfmask.kernels.coverage import Meeting, RegionEntries
    from halfmask.series.common_leaves import ColumnLeaves, Label
    from halfmask.table.schema import Schema
    from halfmask.table.tuples import Tuples

    # places, people, fewest people in one, fewest values in one, people whose value is certain
    Facts = tuple[int, int, int, int, int]

MOST_RELEASES = 64  # a box remembers its releases in one word


@dataclass(frozen=True, slots=True, eq=False)
class ValueRows:
    """The values of one sensitive column in every class of every release.

    Attributes:
        name: the column.
        known: how many different values there are.
        entries: as the kernel sees them; a class of a release is an entry.
        release: per entry, its release; ``box`` its box; ``rows`` its rows.
    """

    name: str
    known: int
    entries: RegionEntries
    release: NDArray[np.int32]
    box: NDArray[np.int32]
    rows: NDArray[np.int64]

    @property
    def distinct(self) -> NDArray[np.int64]:
        """Per entry, how many values it holds."""
        return np.diff(self.entries.starts)

    @property
    def owner(self) -> NDArray[np.int64]:
        """The entry of each of its values."""
        return np.repeat(np.arange(len(self.rows)), self.distinct)


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """The classes of several releases.

    Attributes:
        columns: the quasi-identifiers, those that tell most apart first.
        meeting: the boxes in lexicographic order, and which labels meet.
        held: per box, the releases that hold it, as bits.
        rows: per release, its rows.
        ids: per release, the box of each entry; ``counts`` the rows of each.
        values: the sensitive columns.
        texts: per sensitive column, its values as text.
        whole: all columns that are no quasi-identifiers taken as one, where there are several: a
            row is known by all of them together.
    """

    columns: tuple[ColumnLeaves, ...]
    meeting: Meeting
    held: NDArray[np.uint64]
    rows: tuple[int, ...]
    ids: tuple[NDArray[np.int64], ...]
    counts: tuple[NDArray[np.int64], ...]
    values: tuple[ValueRows, ...]
    texts: tuple[dict[Label, int], ...]
    whole: ValueRows | None

    @property
    def boxes(self) -> int:
        """How many different classes there are."""
        return len(self.held)

    @property
    def unread(self) -> list[str]:
        """The columns with labels that cannot be read."""
        return [column.name for column in self.columns if column.unread]

    def same_unread(self, pairs: NDArray[np.int32]) -> NDArray[np.bool_]:
        """The pairs of boxes that have equal labels in all columns that cannot be read."""
        places = [place for place, column in enumerate(self.columns) if column.unread]
        boxes = self.meeting.boxes[:, places]
        return np.asarray((boxes[pairs[:, 0]] == boxes[pairs[:, 1]]).all(axis=1))

    def by_leaves(self) -> Meeting:
        """The same boxes, met by leaves in place of labels."""
        return _boxes_by_parts(self.meeting.boxes, [one.covered.T.tocsr() for one in self.columns])

    def leaves_of(self, people: Tuples) -> NDArray[np.int32]:
        """(entries, columns) the leaf of each person; -1 where a release knows no such value."""
        out = np.empty((len(people), len(self.columns)), dtype=np.int32)
        for place, column in enumerate(self.columns):
            number = {text: n for n, text in enumerate(column.leaves)}
            texts, codes = _texts(people.table.arrow[column.name])
            out[:, place] = np.array([number.get(text, -1) for text in texts], dtype=np.int32)[
                codes
            ]
        return out


def regions_of(
    releases: Sequence[Tuples],
    schema: Schema,
    people: Tuples | None,
    *,
    declared: Sequence[str] | None = None,
    blind: Sequence[str] = (),
) -> Regions:
    """Group the rows of each release, and put all classes on common leaves.

    ``declared`` are the columns of which the schema says for sure that they have no hierarchy; all
    that have none, where nothing is said. ``blind`` are columns whose labels are not looked at.

    Raises:
        InputError: there are fewer than two releases or too many, one is empty or lacks a column.
    """
    _require(releases, schema)
    tables = [one.table.arrow for one in releases]
    quasi = [
        [_one_label(rows) if name in blind else _texts(rows[name]) for name in schema.quasi]
        for rows in tables
    ]
    columns = [
        column_leaves(
            None if name in blind else schema.columns.get(name),
            name,
            [text for one in quasi for text in one[i][0]],
            () if people is None or name in blind else people.table.encode(name).values.to_pylist(),
            declared=declared is None or name in declared,
        )
        for i, name in enumerate(schema.quasi)
    ]
    columns, stacked = _number_labels(columns, quasi)
    ids, count = joint([(c, len(k.labels)) for c, k in zip(stacked, columns, strict=True)])
    first = np.empty(count, dtype=np.int64)
    first[ids] = np.arange(len(ids))
    boxes = np.column_stack([codes[first] for codes in stacked]).astype(np.int32)
    ends = np.cumsum([len(one) for one in releases])
    parts = np.split(ids, ends[:-1])
    held = np.zeros(count, dtype=np.uint64)
    for place, part in enumerate(parts):
        held[np.unique(part)] |= np.uint64(1 << place)
    numbered_values = [_value_codes(releases, name) for name in schema.sensitive]
    found = [
        _value_rows(name, codes, len(texts), (parts, count), releases)
        for name, (codes, texts) in zip(schema.sensitive, numbered_values, strict=True)
    ]
    return Regions(
        tuple(columns),
        _boxes_by_parts(boxes, [column.overlaps() for column in columns]),
        held,
        tuple(one.rows for one in releases),
        tuple(parts),
        tuple(one.counts for one in releases),
        tuple(found),
        tuple(texts for _, texts in numbered_values),
        _whole_rows(releases, schema, (parts, count)),
    )


def _number_labels(
    columns: Sequence[ColumnLeaves],
    quasi: Sequence[Sequence[tuple[list[Label], NDArray[np.int32]]]],
) -> tuple[list[ColumnLeaves], list[NDArray[np.int32]]]:
    """The columns, and the number of the label of every row of all releases in each of them."""
    # Most labels first: the walk over pairs tells most boxes apart by its first column.
    order = sorted(range(len(columns)), key=lambda i: -len(columns[i].labels))
    stacked = [
        np.concatenate([label_numbers(columns[i], one[i][0])[one[i][1]] for one in quasi])
        for i in order
    ]
    return [columns[i] for i in order], stacked


def _require(releases: Sequence[Tuples], schema: Schema) -> None:
    if len(releases) < 2:
        raise InputError("Give two or more releases: one alone is checked by `halfmask check`.")
    if len(releases) > MOST_RELEASES:
        raise InputError(f"Give at most {MOST_RELEASES} releases at once.")
    schema.require_quasi()
    for place, rows in enumerate((one.table.arrow for one in releases), 1):
        lacking = [
            name for name in (*schema.quasi, *schema.sensitive) if name not in rows.column_names
        ]
        if lacking:
            raise InputError(
                f"Release {place} lacks the column {lacking[0]!r} of the schema: give releases of "
                "the same table, or the schema that all of them have."
            )
        if not rows.num_rows:
            raise InputError(f"Release {place} has no rows: there is nothing to compare.")


def _texts(column: pa.ChunkedArray) -> tuple[list[Label], NDArray[np.int32]]:
    """The distinct labels of a column as text, and the place of each row's."""
    encoded = encode_column(column)
    texts = [None if v is None else canonical(v) for v in encoded.values.to_pylist()]
    return texts, encoded.codes


def _one_label(rows: pa.Table) -> tuple[list[Label], NDArray[np.int32]]:
    """One and the same label for all rows."""
    return ["0"], np.zeros(rows.num_rows, dtype=np.int32)


def hold_same_rows(releases: Sequence[Tuples]) -> bool:
    """Whether all releases hold the very same rows, each as often."""
    names = releases[0].table.column_names
    if any(sorted(one.table.column_names) != sorted(names) for one in releases):
        return False
    if len({one.rows for one in releases}) > 1:
        return False
    coded = [_value_codes(releases, name) for name in names]
    ids, count = joint([(np.concatenate(codes), len(texts)) for codes, texts in coded])
    parts = np.split(ids, np.cumsum([len(one) for one in releases])[:-1])
    first, *rest = (
        tally(part, count, one.counts) for part, one in zip(parts, releases, strict=True)
    )
    return all(np.array_equal(first, one) for one in rest)


def _boxes_by_parts(boxes: NDArray[np.int32], met: Sequence[csr_array]) -> Meeting:
    from halfmask.kernels.coverage import Meeting

    shifts = np.cumsum([0] + [one.nnz for one in met[:-1]])
    starts = [one.indptr[:-1].astype(np.int64) + s for one, s in zip(met, shifts, strict=True)]
    ends = np.array([int(shifts[-1]) + met[-1].nnz], dtype=np.int64)
    return Meeting(
        np.ascontiguousarray(boxes),
        np.concatenate([*starts, ends]),
        np.concatenate([_sorted_indices(one) for one in met]).astype(np.int32),
        np.cumsum([0] + [one.shape[0] for one in met[:-1]]).astype(np.int64),
    )


def _sorted_indices(one: csr_array) -> NDArray[np.int32]:
    one.sort_indices()
    indices: NDArray[np.int32] = one.indices
    return indices


def _whole_rows(
    releases: Sequence[Tuples], schema: Schema, where: tuple[Sequence[NDArray[np.int64]], int]
) -> ValueRows | None:
    """All columns beside the quasi-identifiers as one; None where no release has several."""
    beside = [[n for n in one.table.column_names if n not in schema.quasi] for one in releases]
    if max(map(len, beside)) < 2:
        return None
    common = [name for name in beside[0] if all(name in others for others in beside)]
    coded = [_value_codes(releases, name) for name in common]
    columns = [(np.concatenate(codes), len(texts)) for codes, texts in coded]
    ids, known = joint(columns)
    codes = np.split(ids.astype(np.int32), np.cumsum([len(one) for one in releases])[:-1])
    return _value_rows("all", codes, known, where, releases)


def _value_codes(
    releases: Sequence[Tuples], name: str
) -> tuple[list[NDArray[np.int32]], dict[Label, int]]:
    """The number of each entry's value in every release, and the values."""
    place: dict[Label, int] = {}
    codes = []
    for one in releases:
        texts, own = _texts(one.table.arrow[name])
        numbers = np.array([place.setdefault(text, len(place)) for text in texts], dtype=np.int32)
        codes.append(numbers[own])
    return codes, place


def _value_rows(
    name: str,
    codes: Sequence[NDArray[np.int32]],
    known: int,
    where: tuple[Sequence[NDArray[np.int64]], int],
    releases: Sequence[Tuples],
) -> ValueRows:
    """The values of every class; ``where``: the box of each entry, and how many boxes there are."""
    from halfmask.kernels.coverage import RegionEntries

    parts, boxes = where
    at = np.full((len(releases), boxes), -1, dtype=np.int32)
    release, box, widths, values, counts = [], [], [], [], []
    total = 0
    for t, (ids, held) in enumerate(zip(parts, codes, strict=True)):
        owner, value, count = pairs(ids, held, known, boxes, releases[t].counts)
        present, width = np.unique(owner, return_counts=True)
        at[t, present] = total + np.arange(len(present))
        release.append(np.full(len(present), t, dtype=np.int32))
        box.append(present.astype(np.int32))
        widths.append(width)
        values.append(value.astype(np.int32))
        counts.append(count)
        total += len(present)
    starts = np.concatenate(([0], np.cumsum(np.concatenate(widths)))).astype(np.int64)
    counted = np.concatenate(counts)
    entries = RegionEntries(at, starts, np.concatenate(values), counted, known)
    rows_in = np.add.reduceat(counted, starts[:-1])
    return ValueRows(name, known, entries, np.concatenate(release), np.concatenate(box), rows_in)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnDifferences:
    """What changes in the values of one column.

    Attributes:
        name: the column.
        differences: per earlier and later release, and 0 (more) or 1 (fewer), in how many cuts few
            rows are more or fewer; how many, the fewest in one cut, the fewest values in one, and
            how many of the rows have one value in their cut.
    """

    name: str
    differences: dict[tuple[int, int, int], Facts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class CutFindings:
    """The cuts of all releases together.

    Attributes:
        of_box: per box, its cut.
        count: how many there are.
        proven: per cut, whether nothing further is revealed in it, of any column.
        revealed: per cut, whether something is.
        columns: what changes, per sensitive column.
    """

    of_box: NDArray[np.int64]
    count: int
    proven: NDArray[np.bool_]
    revealed: NDArray[np.bool_]
    columns: tuple[ColumnDifferences, ...]

    def undecided_people(self, found: Regions) -> int:
        """How many people stand in cuts that are neither, in the release that has most there."""
        open_ = ~self.proven & ~self.revealed
        per = [
            tally(self.of_box[ids], self.count, counts)
            for ids, counts in zip(found.ids, found.counts, strict=True)
        ]
        return int(np.max(per, axis=0)[open_].sum())


def components(count: int, pairs: NDArray[np.int32]) -> tuple[NDArray[np.int64], int]:
    """The connected set of each of ``count`` things, and how many sets there are."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    cells = (np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1]))
    graph = coo_array(cells, shape=(count, count)).tocsr()
    number, of = connected_components(graph, directed=False)
    return of.astype(np.int64), int(number)


def find_cuts(found: Regions, pairs: NDArray[np.int32], classes: Regions) -> CutFindings:
    """The cuts of all releases, what changes between each two of them, and what is proven.

    ``classes`` are those that the releases publish, where ``found`` does not look at some columns.
    """
    of_box, count = components(found.boxes, pairs)
    proven, revealed = np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
    columns = []
    for values, published in zip(found.values, classes.values, strict=True):
        least = _least(published, len(found.rows))
        one = ColumnDifferences(values.name)
        _compare(found, values, pairs, least, (one, of_box, revealed))
        proven &= _prove_cuts(values, of_box, count, least, alone=found.whole is None)
        columns.append(one)
    if found.whole is not None:  # rows are known by all their columns together
        proven &= _prove_cuts(found.whole, of_box, count, _least(found.whole, len(found.rows)),
                          alone=False)  # fmt: skip
    if not found.values:
        proven[:] = False
    return CutFindings(of_box, count, proven, revealed, tuple(columns))


def _least(values: ValueRows, releases: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per release, the rows of its smallest class and the fewest values of a class."""
    rows, distinct = (np.full(releases, np.iinfo(np.int64).max) for _ in range(2))
    np.minimum.at(rows, values.release, values.rows)
    np.minimum.at(distinct, values.release, values.distinct)
    return rows, distinct


def _compare(
    found: Regions,
    values: ValueRows,
    pairs: NDArray[np.int32],
    least: tuple[NDArray[np.int64], NDArray[np.int64]],
    into: tuple[ColumnDifferences, NDArray[np.int64], NDArray[np.bool_]],
) -> None:
    """Difference the values of each cut of each two releases."""
    one, of_box, revealed = into
    bits = [(found.held >> np.uint64(t)) & np.uint64(1) == 1 for t in range(len(found.rows))]
    first, second = pairs[:, 0], pairs[:, 1]
    owner, release = values.owner, values.release[values.owner]
    for t in range(1, len(found.rows)):
        for s in range(t):
            across = (bits[s][first] & bits[t][second]) | (bits[t][first] & bits[s][second])
            cut, count = components(found.boxes, pairs[across])
            whole = np.empty(count, dtype=np.int64)
            whole[cut] = of_box
            few = tuple(max(2, int(min(held[s], held[t]))) for held in least)
            change = _change(values, (owner, release), cut, (s, t))
            both = _in_both(values, cut, count, (s, t))
            for side, sign in enumerate((1, -1)):
                facts = _few(change, sign, count, both, few)
                if facts is not None:
                    places, told = facts
                    one.differences[s, t, side] = told
                    revealed[whole[places]] = True


def _change(
    values: ValueRows,
    whose: tuple[NDArray[np.int64], NDArray[np.int32]],
    cut: NDArray[np.int64],
    releases: tuple[int, int],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cuts of values that are more or fewer in the later release, and by how many."""
    # Classes stand in the order of their releases.
    owner, release = whose
    ends = [np.searchsorted(release, (t, t + 1)) for t in releases]
    inside = np.concatenate([np.arange(*one) for one in ends])
    sign = np.repeat([-1, 1], [int(b - a) for a, b in ends])
    key = cut[values.box[owner[inside]]] * values.known + values.entries.values[inside]
    place, count = dense(key, int(key.max()) + 1)
    more = sign * values.entries.counts[inside]
    change = np.bincount(place, more, minlength=count).astype(np.int64)
    kept = np.empty(count, dtype=np.int64)
    kept[place] = key
    changed = change != 0
    return kept[changed] // values.known, change[changed]


def _in_both(
    values: ValueRows, cut: NDArray[np.int64], count: int, releases: tuple[int, int]
) -> NDArray[np.bool_]:
    """The cuts that both releases have rows in."""
    there = []
    for one in releases:
        held = np.zeros(count, dtype=bool)
        held[cut[values.box[values.release == one]]] = True
        there.append(held)
    return np.asarray(there[0] & there[1])


def _few(
    change: tuple[NDArray[np.int64], NDArray[np.int64]],
    sign: int,
    count: int,
    both: NDArray[np.bool_],
    least: tuple[int, ...],
) -> tuple[NDArray[np.int64], Facts] | None:
    """The cuts where what came (or left) is less than any class, and how much that is."""
    cut, number = change
    ours = number * sign > 0
    rows = np.bincount(cut[ours], np.abs(number[ours]), minlength=count).astype(np.int64)
    distinct = np.bincount(cut[ours], minlength=count)
    few = np.flatnonzero(both & (rows > 0) & ((rows < least[0]) | (distinct < least[1])))
    if not len(few):
        return None
    facts = (
        len(few),
        int(rows[few].sum()),
        int(rows[few].min()),
        int(distinct[few].min()),
        int(rows[few][distinct[few] == 1].sum()),
    )
    return few, facts


def _prove_cuts(
    values: ValueRows,
    of_box: NDArray[np.int64],
    count: int,
    least: tuple[NDArray[np.int64], NDArray[np.int64]],
    *,
    alone: bool,
) -> NDArray[np.bool_]:
    """The cuts in which no knowledge of who was there when tells a value further.

    Values can be exchanged only where the column stands ``alone`` beside the quasi-identifiers.
    """
    cut = of_box[values.box]
    releases = np.unique(cut * len(least[0]) + values.release) // len(least[0])
    once = np.bincount(releases, minlength=count) <= 1
    few = (max(2, int(least[0].min())), max(2, int(least[1].min())))
    found = once | _find_growth(values, cut, count, few)
    return found | _exchangeable(values, cut, count, few[1]) if alone else found


def _exchangeable(
    values: ValueRows, cut: NDArray[np.int64], count: int, orbit: int
) -> NDArray[np.bool_]:
    """The cuts whose values each have ``orbit`` - 1 others that all classes hold equally often.

    Exchanging two such values everywhere gives the same releases, so nobody can tell them apart.
    """
    random = np.random.default_rng(0).integers(1, 2**62, (2, len(values.rows)), dtype=np.uint64)
    owner, entries = values.owner, values.entries
    key = cut[owner] * values.known + entries.values
    place, cells = dense(key, int(key.max()) + 1)
    held = np.empty(cells, dtype=np.int64)
    held[place] = key // values.known
    marks = np.zeros((cells, 2), dtype=np.uint64)
    counts = entries.counts.astype(np.uint64)
    for side in range(2):  # sums of products modulo 2**64: alike where the counts are
        np.add.at(marks[:, side], place, counts * random[side][owner])
    rows = np.column_stack([held.astype(np.uint64), marks])
    alike, number = np.unique(rows, axis=0, return_counts=True)
    few = alike[number < orbit, 0].astype(np.int64)
    out = np.ones(count, dtype=bool)
    out[few] = False
    return out


def _find_growth(
    values: ValueRows, cut: NDArray[np.int64], count: int, least: tuple[int, int]
) -> NDArray[np.bool_]:
    """The cuts that only grow, or only shrink, by whole groups whose place is known exactly.

    Several releases must have one and the same class there. Of two, the one with more rows must
    have one class: those who came (or left) all stand in it, and their values are the difference.
    """
    releases = int(values.release.max()) + 1
    classes = np.zeros((releases, count), dtype=np.int64)
    np.add.at(classes, (values.release, cut), 1)
    present, all_ = classes > 0, np.arange(count)
    lowest = np.full(count, np.iinfo(np.int32).max)
    highest = np.full(count, -1)
    np.minimum.at(lowest, cut, values.box)
    np.maximum.at(highest, cut, values.box)
    first = classes[np.argmax(present, axis=0), all_] == 1
    last = classes[releases - 1 - np.argmax(present[::-1], axis=0), all_] == 1
    grows, shrinks = (_steps(values, cut, count, sign, least) for sign in (1, -1))
    two = (last & grows) | (first & shrinks) | ((first | last) & grows & shrinks)
    same = (lowest == highest) & (grows | shrinks)
    return np.where(present.sum(axis=0) == 2, two, same)


def _steps(
    values: ValueRows, cut: NDArray[np.int64], count: int, sign: int, least: tuple[int, int]
) -> NDArray[np.bool_]:
    """The cuts whose values, from release to release, only become more (or fewer), by groups."""
    owner, entries = values.owner, values.entries
    releases = int(values.release.max()) + 1
    key = cut[owner] * values.known + entries.values
    place, cells = dense(key, int(key.max()) + 1)
    of = np.empty(cells, dtype=np.int64)
    of[place] = key // values.known
    before = np.zeros(cells, dtype=np.int64)
    seen = np.zeros(count, dtype=bool)
    out = np.ones(count, dtype=bool)
    for t in range(releases):
        ours = values.release[owner] == t
        there = np.zeros(count, dtype=bool)
        there[cut[values.release == t]] = True
        now = np.bincount(place[ours], entries.counts[ours], minlength=cells).astype(np.int64)
        change = np.where(there[of], (now - before) * sign, 0)
        rows = np.bincount(of, change, minlength=count)
        distinct = np.bincount(of[change > 0], minlength=count)
        wrong = np.zeros(count, dtype=bool)
        wrong[of[change < 0]] = True
        small = (rows > 0) & ((rows < least[0]) | (distinct < least[1]))
        out[seen & there & (wrong | small)] = False
        before = np.where(there[of], now, before)
        seen |= there
    return out
