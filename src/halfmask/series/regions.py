"""The classes of several releases as boxes over common leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InputError
from halfmask.metrics.weighted import joint, pairs, tally
from halfmask.series.leaves import column_leaves, label_numbers
from halfmask.table.hierarchy import canonical
from halfmask.table.table import encode_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from halfmask.kernels.coverage import Meeting, RegionEntries
    from halfmask.series.leaves import ColumnLeaves, Label
    from halfmask.table.schema import Schema
    from halfmask.table.tuples import Tuples

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

    def covering(self) -> Meeting:
        """The same boxes, met by leaves in place of labels."""
        return _meeting(self.meeting.boxes, [one.covered.T.tocsr() for one in self.columns])

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
        [_unseen(rows) if name in blind else _texts(rows[name]) for name in schema.quasi]
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
    order = sorted(range(len(columns)), key=lambda i: -len(columns[i].labels))
    columns = [columns[i] for i in order]
    numbered = []
    for one in quasi:
        chosen = [one[i] for i in order]
        numbered.append(
            [
                label_numbers(column, texts)[codes]
                for column, (texts, codes) in zip(columns, chosen, strict=True)
            ]
        )
    stacked = [np.concatenate([one[i] for one in numbered]) for i in range(len(columns))]
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
        _meeting(boxes, [column.overlaps() for column in columns]),
        held,
        tuple(one.rows for one in releases),
        tuple(parts),
        tuple(one.counts for one in releases),
        tuple(found),
        tuple(texts for _, texts in numbered_values),
        _whole_rows(releases, schema, (parts, count)),
    )


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


def _unseen(rows: pa.Table) -> tuple[list[Label], NDArray[np.int32]]:
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


def _meeting(boxes: NDArray[np.int32], met: Sequence[csr_array]) -> Meeting:
    from halfmask.kernels.coverage import Meeting

    shifts = np.cumsum([0] + [one.nnz for one in met[:-1]])
    starts = [one.indptr[:-1].astype(np.int64) + s for one, s in zip(met, shifts, strict=True)]
    ends = np.array([int(shifts[-1]) + met[-1].nnz], dtype=np.int64)
    return Meeting(
        np.ascontiguousarray(boxes),
        np.concatenate([*starts, ends]),
        np.concatenate([_ascending(one) for one in met]).astype(np.int32),
        np.cumsum([0] + [one.shape[0] for one in met[:-1]]).astype(np.int64),
    )


def _ascending(one: csr_array) -> NDArray[np.int32]:
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
