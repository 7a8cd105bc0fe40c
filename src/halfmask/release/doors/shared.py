"""What the rows that leave hold is counted again among the people they were made of.

A value leaves where enough people share it. So do pairs, or larger sets, of columns: names count by
their value, numbers by the intervals that rows were drawn in, and in pairs by stretches of these.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.coclustering.stretches import levels_together, stretches
from halfmask.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.stretches import Stretches
    from halfmask.table.table import Table

    Ints = NDArray[np.int64]


def require_shared(table: Table, rows: pa.Table, least: int) -> None:
    """Refuse rows with a value that fewer than ``least`` people share.

    A value leaves where ``least`` people hold it. A number may also be new, where as many people
    have one that is as large, and one that is as small; an interval, where as many lie in it.

    Raises:
        InternalError: a column holds such a value; nothing leaves.
    """
    for name in rows.column_names:
        if not _shared(table, name, rows[name].combine_chunks(), least):
            raise InternalError(
                f"Column {name!r} would publish a value that fewer than {least:,} people share."
            )


def require_shared_together(
    table: Table,
    rows: pa.Table,
    least: int,
    *,
    columns: int,
    cuts: Mapping[str, Sequence[float]],
) -> None:
    """Refuse rows of which fewer than ``least`` people share what some columns hold together.

    Names count by their value, numbers by the interval between ``cuts`` that they lie in, or in
    pairs by a stretch of these, what is missing as a value of its own.

    Raises:
        InternalError: some columns hold such a combination; nothing leaves.
    """
    if columns < 2 or least < 2:
        return
    names = rows.column_names
    person = table.schema.person
    owner = None if person is None else table.encode(person).codes.astype(np.int64)
    sides = [_classes(table.arrow[name], rows[name], cuts.get(name)) for name in names]
    wide = None
    if columns == 2:
        wide = [
            _stretches(one, table.arrow[name], _intervals(rows[name], cuts.get(name)), owner)
            for one, name in zip(sides, names, strict=True)
        ]
    for chosen in combinations(range(len(names)), min(columns, len(names))):
        mine, theirs = _numbered([sides[place] for place in chosen])
        if wide is None or len(chosen) != 2:
            fine = _people(mine, owner, int(max(mine.max(initial=0), theirs.max(initial=0))) + 1)
            held = bool((fine[np.unique(theirs)] >= least).all())
        else:
            both = [(sides[place], wide[place]) for place in chosen]
            held = _pairs_shared(both, owner, least)
        if not held:
            words = ", ".join(repr(names[place]) for place in chosen)
            raise InternalError(
                f"Columns {words} would publish a combination that fewer than {least:,} people "
                "share."
            )


def _numbered(sides: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """One number for what each row of either side holds in all columns."""
    count = len(sides[0][0])
    number = np.zeros(count + len(sides[0][1]), np.int64)
    for mine, theirs in sides:
        both = np.unique(np.r_[mine, theirs], return_inverse=True)[1].reshape(-1)
        number = np.unique(number * (int(both.max(initial=0)) + 1) + both, return_inverse=True)[1]
    return number.reshape(-1)[:count], number.reshape(-1)[count:]


def _people(group: Ints, owner: Ints | None, count: int) -> Ints:
    """How many people the rows of each group are about."""
    if owner is None:
        return np.bincount(group, minlength=count)
    everybody = int(owner.max(initial=-1)) + 1
    return np.bincount(np.unique(group * everybody + owner) // everybody, minlength=count)


def _intervals(released: pa.ChunkedArray, cuts: Sequence[float] | None) -> int:
    """How many intervals of numbers there are that may be counted together."""
    return len(cuts) + 1 if cuts is not None and ordered(_plain_type(released.type)) else 0


def _stretches(
    side: tuple[Ints, Ints], values: pa.ChunkedArray, intervals: int, owner: Ints | None
) -> Stretches:
    """The stretches of a column's classes; the last class is of missing values."""
    last = max(intervals, int(max(one.max(initial=0) for one in side)) + 1)
    mine, count = np.where(side[0] < 0, last, side[0]), last + 1
    held = plain(values.combine_chunks()).dictionary_encode().indices.fill_null(-1)
    distinct = np.unique(np.stack([mine, np.asarray(held).astype(np.int64)]), axis=1)
    single = np.bincount(distinct[0], minlength=count) == 1
    everybody = len(mine) if owner is None else int(owner.max(initial=-1)) + 1
    return stretches(_people(mine, owner, count), intervals, single, everybody)


def _pairs_shared(
    both: Sequence[tuple[tuple[Ints, Ints], Stretches]], owner: Ints | None, least: int
) -> bool:
    """Whether enough people share each pair of classes that leaves, numbers by stretches."""
    wide, broad = both[0][1], both[1][1]
    size = [held.first.shape[1] for held in (wide, broad)]
    # What is missing is the last class.
    mine = [np.where(side[0] < 0, n - 1, side[0]) for (side, _), n in zip(both, size, strict=True)]
    left = [np.where(side[1] < 0, n - 1, side[1]) for (side, _), n in zip(both, size, strict=True)]
    seen = np.unique(left[0] * size[1] + left[1])
    a, b = seen // size[1], seen % size[1]
    everybody = len(mine[0]) if owner is None else int(owner.max(initial=-1)) + 1
    levels = [level[a, b] for level in levels_together(wide, broad, least, everybody)]
    for up, across in sorted({*zip(*(level.tolist() for level in levels), strict=True)}):
        here = (levels[0] == up) & (levels[1] == across)
        group = wide.first[up][mine[0]] * size[1] + broad.first[across][mine[1]]
        asked = wide.first[up][a[here]] * size[1] + broad.first[across][b[here]]
        number, place = np.unique(np.r_[group, asked], return_inverse=True)
        place = place.reshape(-1)
        people = _people(place[: len(group)], owner, len(number))
        if not (people[place[len(group) :]] >= least).all():
            return False
    return True


def _classes(
    own: pa.ChunkedArray, released: pa.ChunkedArray, cuts: Sequence[float] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per row of either side, a number that stands for what is counted as one value."""
    mine, theirs = plain(own.combine_chunks()), plain(released.combine_chunks())
    if cuts is not None and ordered(theirs.type):
        ends = np.asarray(cuts, dtype=np.float64)
        found = [
            np.where(np.asarray(side.is_null()), -1, np.searchsorted(ends, as_floats(side)))
            for side in (mine, theirs)
        ]
        return found[0], found[1]
    if cuts is not None:
        mine = into_intervals(pa.chunked_array([mine]), pc.unique(theirs.drop_null()).to_pylist())
    elif mine.type != theirs.type:
        theirs = theirs.cast(mine.type)
    known = pc.unique(pa.chunked_array([mine, theirs]))
    sides = (pc.index_in(side, value_set=known) for side in (mine, theirs))
    first, second = (np.asarray(side.fill_null(-1)).astype(np.int64) for side in sides)
    return first, second


def _shared(table: Table, name: str, released: pa.Array, least: int) -> bool:
    own, released = plain(table.arrow[name].combine_chunks()), plain(released)
    person = table.schema.person
    whose = pa.array(np.arange(len(own))) if person is None else table.arrow[person]
    held = pa.table({"value": own, "person": whose})
    distinct = held.group_by(["value", "person"]).aggregate([])
    counts = distinct.group_by("value").aggregate([([], "count_all")])
    common = counts.filter(pc.greater_equal(counts["count_all"], least))["value"]
    if released.null_count and not common.null_count:
        return False
    released = released.drop_null()
    kind = table.schema.columns[name].kind if name in table.schema.columns else None
    if not ordered(own.type) or kind in ("nominal", "ordinal"):
        return bool(
            pc.all(pc.is_in(released, value_set=common.combine_chunks())).as_py() is not False
        )
    if not ordered(released.type):
        return _intervals_shared(held, released, least)
    new = released.filter(pc.invert(pc.is_in(released, value_set=common.combine_chunks())))
    if not len(new):
        return True
    ends = (
        held.filter(pc.is_valid(held["value"]))
        .group_by("person")
        .aggregate([("value", "min"), ("value", "max")])
    )
    if len(ends) < least:
        return False
    low = np.sort(as_floats(ends["value_min"]))[least - 1]
    high = np.sort(as_floats(ends["value_max"]))[-least]
    found = as_floats(new)
    return bool(((found >= low) & (found <= high)).all())


def _intervals_shared(held: pa.Table, released: pa.Array, least: int) -> bool:
    """Whether every interval that leaves holds the numbers of enough people."""
    held = held.filter(pc.is_valid(held["value"]))
    numbers, whose = as_floats(held["value"]), held["person"].to_numpy()
    for label in pc.unique(released).to_pylist():
        low, high = interval_ends(label, held["value"].type)
        inside = (numbers > low) & (numbers <= high)
        if len(np.unique(whose[inside])) < least:
            return False
    return True


def interval_ends(label: str, kind: pa.DataType) -> tuple[float, float]:
    """The ends of an interval that is written as ``]1,2]``, ``<=1``, ``>2`` or ``any``."""
    low, high = "", ""
    if label.startswith("<="):
        high = label[2:]
    elif label.startswith(">"):
        low = label[1:]
    elif label.startswith("]"):
        low, high = label[1:-1].split(",")
    return _end(low, kind, -np.inf), _end(high, kind, np.inf)


def _end(text: str, kind: pa.DataType, otherwise: float) -> float:
    if not text:
        return otherwise
    if pa.types.is_time(kind):  # Arrow reads a time of day as part of a day only
        text, kind = f"1970-01-01 {text}", pa.timestamp(kind.unit)
    if pa.types.is_temporal(kind):
        return float(as_floats(pa.array([text]).cast(kind))[0])
    return float(text)


def ordered(kind: pa.DataType) -> bool:
    """Whether values are numbers or times."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_temporal(kind)
    )


def as_floats(values: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
    """Numbers or times as doubles, what is missing as NaN."""
    if pa.types.is_temporal(values.type):
        narrow = pa.types.is_date32(values.type) or pa.types.is_time32(values.type)
        values = values.cast(pa.int32() if narrow else pa.int64())
    return np.asarray(values.cast(pa.float64(), safe=False), dtype=np.float64)


def plain(values: pa.Array) -> pa.Array:
    """Values that are not categories."""
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def into_intervals(values: pa.ChunkedArray, labels: Sequence[str]) -> pa.Array:
    """The interval of each number; a text of its own where none of those that leave holds it."""
    numbers = as_floats(values)
    out = np.full(len(numbers), "(none of these)", dtype=object)
    for label in labels:
        low, high = interval_ends(label, values.type)
        out[(numbers > low) & (numbers <= high)] = label
    return pa.array(out, pa.string(), mask=np.asarray(values.is_null()))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
