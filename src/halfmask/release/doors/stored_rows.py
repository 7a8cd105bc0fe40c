"""Rows that an engine writes: what it is asked for, and what the door finds when it counts them.

The engine is not trusted. The door has the written rows counted by a query of its own and compares
them, group by group, with what the entries that were checked say: rows with the same labels and
the same values of every column that a promise reads can be exchanged, so that what was proven of
the entries then holds of the written rows. No private column is ever written.

Steps that mask saw one entry a row. Of rows whose counted columns are the same so many, in an order
that nobody knows, take the cells of the first of their entries, so many of the next, and so many do
not leave.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.engines.counting.tuples import bind_values
from halfmask.engines.staging import Labeling, first_of_each, label_columns, reach, stage_rows
from halfmask.errors import EngineError, HalfmaskError, InternalError, SchemaError
from halfmask.release.labels import decode_labels, decoded_type, encode_labels
from halfmask.release.partition import Perturbation, RowPartition, label_texts
from halfmask.release.verification import recheck_models, require_verdicts
from halfmask.table.demands import without_policies
from halfmask.table.files.rows import normalize
from halfmask.table.table import Table, encode_column
from halfmask.table.tuples import Tuples, all_ones

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.engines.staging import StagedRows
    from halfmask.release.candidate import Candidate, MaskedCandidate
    from halfmask.release.recoding import Recoding

    Ints = NDArray[np.int64]

_ROWS = "hm_rows"
_REPEATED = 4  # rows an entry, above which they are counted before they are sorted


@dataclass(frozen=True, slots=True, eq=False)
class WrittenRows:
    """What was written aside, after the door has counted it.

    Attributes:
        aside: the rows.
        source: the table that they come from.
        labels: what the entries publish.
        distinct: per column that leaves as it is, how many values it holds.
        sample: some of the combinations that leave, to be shown.
    """

    aside: StagedRows
    source: Table
    labels: pa.Table
    distinct: Mapping[str, int]
    sample: pa.Table


def origin_of(tuples: Tuples) -> Table:
    """The table whose rows were counted."""
    if tuples.origin is None or tuples.raw is None:
        raise InternalError("The candidate does not say where its rows are.")
    return tuples.origin


def write_labels(
    candidate: Candidate,
    recoding: Recoding | RowPartition | Perturbation,
    labels: pa.Table,
    names: tuple[str, ...],
    tokens: pa.Array | None = None,
) -> WrittenRows:
    """Have the rows written with their labels, and count what was written.

    Args:
        candidate: entries that stand for rows elsewhere; all else of it was checked.
        recoding: how they are generalized.
        labels: what the entries publish that leave, in their order.
        names: the columns that leave.
        tokens: the pseudonyms of the people of these entries, which leave in front; None: none.

    Raises:
        EngineError: the rows cannot be written, or changed since they were counted.
        InternalError: other rows were written than those that were checked; nothing leaves.
    """
    tuples = candidate.tuples
    assert tuples is not None  # noqa: S101 - the caller looked
    source = origin_of(tuples)
    stored: Any = source.stored
    _require_floors(tuples, source, recoding)
    quasi = labels.column_names
    if tokens is not None:
        person = str(candidate.table.schema.person)
        labels, names = labels.append_column(person, tokens), (person, *names)
    with _stage_checked(stored, propose_labeling(candidate, recoding, labels, names)) as aside:
        found = _require_same_rows(candidate, labels, names, aside)
        _require_models(candidate, recoding, quasi, found)
        kept = [name for name in names if name not in labels.column_names]
        unread = [name for name in kept if name not in found[0].column_names]
        require_kept_values(labels.column_names, unread, aside)
        distinct = aside.distinct(kept)
        aside.groups = found
    sample = found[0].slice(0, 20)
    return WrittenRows(aside, source, labels, distinct, sample)


@contextmanager
def _stage_checked(stored: Any, labeling: Labeling) -> Iterator[StagedRows]:
    """Rows written aside while they are checked; gone again where a check refuses them."""
    aside = stage_rows(stored, labeling)
    try:
        yield aside
        aside.connection.settle()
    except HalfmaskError:
        aside.close()
        raise
    reach("checked")


def _require_floors(
    tuples: Tuples, source: Table, recoding: Recoding | RowPartition | Perturbation
) -> None:
    """Demand that values which were counted as one get one label, by a hierarchy made of all.

    Raises:
        InternalError: a label is finer than what was counted, or not that of all its values.
    """
    for name, floor in tuples.floors.items():
        if isinstance(recoding, RowPartition | Perturbation):
            raise InternalError("Rows that were counted at coarser levels cannot be divided.")
        values, codes = tuples.spelled(name)
        every = bind_values(source.rows, source.schema, pa.table({name: values}))
        own = every.encode(name).codes
        for level in sorted({one.levels[name] for one in recoding.steps}):
            maps, labels = label_texts(tuples.table, name, level)
            right_maps, right = label_texts(every, name, level)
            pairs = np.unique(np.stack([maps[codes], right_maps[own]]), axis=1).T.tolist()
            wrong = sum(labels[one] != right[other] for one, other in pairs)
            if level < floor.level or wrong:
                raise InternalError(
                    f"Column {name!r} was counted at level {floor.level}, and would leave with "
                    f"labels that its values do not share; nothing was released."
                )


def propose_labeling(
    candidate: Candidate,
    recoding: Recoding | RowPartition | Perturbation,
    labels: pa.Table,
    names: tuple[str, ...],
) -> Labeling:
    """What the engine is asked to write."""
    tokens = candidate.pseudonym is not None
    if tokens or isinstance(recoding, Perturbation):
        assert candidate.tuples is not None  # noqa: S101 - the caller looked
        entries = replace(candidate.tuples, table=candidate.table)
        kept = np.flatnonzero(candidate.step >= 0)
        cells = {
            name: decode_labels(encode_labels(labels[name]))
            for name in labels.column_names
            if labels.schema.field(name).type != candidate.table.arrow.schema.field(name).type
            or not labels[name].equals(candidate.table.arrow[name].take(pa.array(kept)))
        }
        # Rows that were left out before may be alike with some that leave.
        return join_cells(entries, kept, cells, names, whole=not candidate.left_out)
    if isinstance(recoding, RowPartition):
        return _label_pieces(candidate, recoding, labels, names)
    table, step, tuples = candidate.table, candidate.step, candidate.tuples
    assert tuples is not None  # noqa: S101 - the caller looked
    assert tuples.raw is not None  # noqa: S101 - as the origin says
    kept = np.flatnonzero(step >= 0)
    taken = np.unique(step[kept])
    columns, together = {}, {}
    # Whoever is left out for a demand may share the quasi-identifiers of rows that leave.
    for name in tuples.raw.column_names if candidate.left_out else recoding.columns:
        encoded = table.encode(name)
        levels = [recoding.steps[i].levels.get(name, 0) for i in taken.tolist()]
        exact = not any(levels)
        per_code = None if exact else _labels_by_code(encoded.codes[kept], labels[name], encoded)
        if not exact and per_code is None:
            together[name] = labels[name]
        columns[name] = label_columns(*tuples.spelled(name), len(encoded.values), per_code)
    codes, cells = None, {}
    if together or len(kept) < len(step) or candidate.left_out:
        each = [table.encode(name).codes[kept].astype(np.int64) for name in columns]
        first = first_of_each(each)
        codes = [one[first] for one in each]
        cells = {
            n: decode_labels(encode_labels(one)).take(pa.array(first))
            for n, one in together.items()
        }
    repeated = _are_repeated(candidate, names, len(kept), int(candidate.counts[kept].sum()))
    return Labeling(columns, codes, cells, names, _floats(tuples, names), repeated)


def _floats(tuples: Tuples, names: tuple[str, ...]) -> frozenset[str]:
    kinds = origin_of(tuples).rows.columns()
    return frozenset(name for name in names if pa.types.is_floating(kinds[name]))


def _are_repeated(candidate: Candidate, names: tuple[str, ...], entries: int, rows: int) -> bool:
    """Whether far fewer combinations leave than rows."""
    return set(names) <= set(candidate.table.arrow.column_names) and entries * _REPEATED <= rows


def _label_pieces(
    candidate: Candidate, partition: RowPartition, labels: pa.Table, names: tuple[str, ...]
) -> Labeling:
    """What the engine is asked to write of classes that rows with the same values may share.

    All rows with the same values of every counted column can be exchanged: so many of them, in an
    order that nobody knows, go to the first of their classes, so many to the next.
    """
    table, step, tuples = candidate.table, candidate.step, candidate.tuples
    assert tuples is not None  # noqa: S101 - the caller looked
    assert tuples.raw is not None  # noqa: S101 - as the origin says
    kept = np.flatnonzero(step >= 0)
    used = np.zeros(len(partition), dtype=np.bool_)
    used[step[kept]] = True
    encoded = {name: table.encode(name) for name in tuples.raw.column_names}
    columns = {
        name: label_columns(tuples.raw[name], one.codes, len(one.values), None)
        for name, one in encoded.items()
    }
    keys = [one.codes[kept].astype(np.int64) for one in encoded.values()]
    first, low, high, whole = split_combinations(keys, step[kept].astype(np.int64))
    cells = {
        name: decode_labels(encode_labels(labels[name])).take(pa.array(first))
        for name in labels.column_names
        if not partition.labels[name].exact(used)
    }
    return Labeling(
        columns,
        [key[first] for key in keys],
        cells,
        names,
        _floats(tuples, names),
        _are_repeated(candidate, names, len(first), len(kept)),
        None if whole else (low, high),
    )


def join_cells(
    tuples: Tuples,
    kept: NDArray[np.int64],
    cells: Mapping[str, pa.ChunkedArray | pa.Array],
    names: Sequence[str],
    *,
    whole: bool = True,
) -> Labeling:
    """What the engine is asked to write of cells that are stated row by row.

    Args:
        tuples: entries that stand for one row each.
        kept: which of them leave.
        cells: what these show in columns that are changed or new.
        names: the columns that leave.
        whole: whether the entries are all rows, so that what no entry speaks of is not there.
    """
    table = tuples.table
    assert tuples.raw is not None  # noqa: S101 - as the origin says
    if not all_ones(tuples.counts):
        raise InternalError("Cells are stated row by row.")
    encoded = {name: table.encode(name) for name in tuples.raw.column_names}
    columns = {
        name: label_columns(tuples.raw[name], one.codes, len(one.values), None)
        for name, one in encoded.items()
    }
    classes = np.full(len(table), -1, dtype=np.int64)
    classes[kept] = _number_rows(cells.values(), len(kept))
    keys = [one.codes.astype(np.int64) for one in encoded.values()]
    first, low, high, alike = split_combinations(keys, classes)
    leaving = classes[first] >= 0
    first, low, high = first[leaving], low[leaving], high[leaving]
    place = np.full(len(table), -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    at = pa.array(place[first])
    kinds = origin_of(tuples).rows.columns()
    floats = frozenset(n for n in names if n in kinds and pa.types.is_floating(kinds[n]))
    return Labeling(
        columns,
        [key[first] for key in keys],
        {name: decode_labels(one).take(at) for name, one in cells.items()},
        tuple(names),
        floats - set(cells),
        set(names) <= {*encoded, *cells} and len(first) * _REPEATED <= len(kept),
        None if whole and alike else (low, high),
    )


def _number_rows(columns: Iterable[pa.ChunkedArray | pa.Array], size: int) -> NDArray[np.int64]:
    """Per row a number that rows with the same cells share."""
    ids = np.zeros(size, dtype=np.int64)
    for column in columns:
        whole = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        one = encode_column(whole)
        _, ids = np.unique(ids * max(len(one.values), 1) + one.codes, return_inverse=True)
    return ids


def split_combinations(
    keys: Sequence[NDArray[np.int64]], classes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], bool]:
    """Which of the rows of each combination go to which class.

    Gives per combination and class its first row, the first and the last of the combination's rows
    that go there, numbered from 1, and whether all of each combination go to one class.
    """
    order = np.lexsort((classes, *keys[::-1]))
    same = np.ones(len(order), dtype=bool)  # as the row before: of one combination and class
    same[:1] = False
    for key in keys:
        same[1:] &= key[order[1:]] == key[order[:-1]]
    alike = same.copy()
    same[1:] &= classes[order[1:]] == classes[order[:-1]]
    starts = np.flatnonzero(~same)
    sizes = np.diff(np.append(starts, len(order)))
    begins = np.maximum.accumulate(np.where(alike, 0, np.arange(len(order))))[starts]
    low = starts - begins + 1
    whole = len(starts) == int(np.count_nonzero(~alike))
    return order[starts], low, low + sizes - 1, whole


def _labels_by_code(
    codes: NDArray[np.int32], labels: pa.ChunkedArray, encoded: Any
) -> pa.Array | None:
    """Per code its label, where every code has one; codes of no leaving entry have none."""
    texts = decode_labels(encode_labels(labels))
    seen = pa.table({"code": codes, "label": texts}).group_by(["code", "label"]).aggregate([])
    numbers = seen["code"].to_numpy()
    if len(np.unique(numbers)) < len(numbers):
        return None
    place = np.full(len(encoded.values), len(numbers), dtype=np.int64)
    place[numbers] = np.arange(len(numbers))
    held = pa.concat_arrays([*seen["label"].cast(pa.string()).chunks, pa.nulls(1, pa.string())])
    return held.take(pa.array(place))


def _require_same_rows(
    candidate: Candidate, labels: pa.Table, names: tuple[str, ...], aside: StagedRows
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Demand that the written rows are those of the entries, group by group; gives the groups."""
    table, kept = candidate.table, np.flatnonzero(candidate.step >= 0)
    counted = [n for n in names if n in table.arrow.column_names and n not in labels.column_names]
    return require_written(
        {n: labels[n] for n in labels.column_names},
        {n: table.arrow[n].take(pa.array(kept)) for n in counted},
        candidate.counts[kept],
        candidate.everybody + candidate.left_out,
        aside,
    )


def require_written(
    labels: Mapping[str, pa.ChunkedArray],
    counted: Mapping[str, pa.ChunkedArray],
    counts: NDArray[np.int64],
    everybody: int,
    aside: StagedRows,
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Demand that the written rows are those that were checked, group by group; gives the groups.

    Args:
        labels: columns that are compared as they are written in text, one cell an entry.
        counted: columns that are compared by their values.
        counts: how many rows each entry stands for.
        everybody: how many rows there were when they were counted.
        aside: what was written.

    Raises:
        EngineError: the rows changed since they were counted.
        InternalError: other rows were written.
    """
    said = {n: decode_labels(encode_labels(one)) for n, one in labels.items()}
    said |= {n: decode_labels(one) for n, one in counted.items()}
    expected = pa.table(said)
    written, rows = aside.count([*labels, *counted])
    shown = normalize(written, ()) if written.num_rows else written
    there = {n: decode_labels(encode_labels(shown[n])) for n in labels}
    try:
        there |= {n: decode_labels(shown[n]).cast(expected.schema.field(n).type) for n in counted}
    except pa.ArrowInvalid:
        raise InternalError(
            "Other values were written than those that were counted; nothing was released."
        ) from None
    both = pa.concat_tables(
        [
            expected.append_column(_ROWS, pa.array(counts)),
            pa.table(there).append_column(_ROWS, pa.array(-rows.astype(np.int64))),
        ],
        promote_options="permissive",
    )
    sums = both.group_by(expected.column_names).aggregate([(_ROWS, "sum")])
    wrong = int(np.count_nonzero(sums[f"{_ROWS}_sum"].to_numpy()))
    if wrong:
        if aside.source_rows() != everybody:
            raise EngineError("The rows changed while they were read; nothing was released.")
        raise InternalError(
            f"The engine wrote other rows than those that were checked: {wrong} groups differ; "
            "nothing was released."
        )
    return shown, rows.astype(np.int64)


def _require_models(
    candidate: Candidate,
    recoding: Recoding | RowPartition | Perturbation,
    quasi: list[str],
    found: tuple[pa.Table, NDArray[np.int64]],
) -> None:
    """Check promises again on the groups of the written rows, where these alone decide."""
    shown, counts = found
    table = candidate.table
    models = [m for m in candidate.models if not (m.policy or m.units or m.original)]
    if not models or table.schema.person is not None:
        return
    schema = without_policies(table.schema)
    columns = {n: c for n, c in schema.columns.items() if n in shown.column_names}
    groups = pa.table({n: _as_original_type(shown[n], table, n, quasi) for n in shown.column_names})
    bare = Table(groups, _bare(schema, columns))
    there = Tuples(bare, counts, engine=candidate.entries.engine)
    every = np.arange(groups.num_rows, dtype=np.int64)
    verdicts, _ = recheck_models(models, groups.select(quasi), there, every, recoding)
    require_verdicts(verdicts, expected=int(counts.sum()))


def _as_original_type(
    column: pa.ChunkedArray, table: Table, name: str, quasi: list[str]
) -> pa.ChunkedArray:
    kind = table.arrow.schema.field(name).type
    return column if name in quasi or column.type == kind else column.cast(kind)


def _bare(schema: Any, columns: Mapping[str, Any]) -> Any:
    return replace(schema, columns=dict(columns), person=None, household=None, weight=None)


def require_kept_values(labels: list[str], kept: list[str], aside: StagedRows) -> None:
    """Demand that columns which were not counted leave as they are, class by class."""
    wrong = aside.changed_classes(labels, kept) if kept else 0
    if wrong:
        raise InternalError(
            f"The engine wrote other values than the table holds: {wrong} classes differ; nothing "
            "was released."
        )


@dataclass(frozen=True, slots=True, eq=False)
class MaskedRows:
    """What was written aside, after the door has counted it.

    Attributes:
        aside: the rows.
        distinct: per column that no step looked at, how many values it holds.
        kinds: the types of these columns.
        sample: some of the combinations that leave, to be shown.
    """

    aside: StagedRows
    distinct: Mapping[str, int]
    kinds: Mapping[str, pa.DataType]
    sample: pa.Table


def write_masked(candidate: MaskedCandidate, names: Sequence[str]) -> MaskedRows:
    """Have the rows written with their masked cells, and count what was written.

    Args:
        candidate: masked entries that stand for one row each elsewhere; they were checked.
        names: the columns that leave.

    Raises:
        SchemaError: a step adds a column whose name is taken.
        EngineError: the rows cannot be written, or changed since they were counted.
        InternalError: other rows were written than those that were checked; nothing leaves.
    """
    tuples, rows = candidate.tuples, candidate.rows.arrow
    assert tuples is not None  # noqa: S101 - the caller looked
    stored: Any = origin_of(tuples).stored
    kinds = stored.columns()
    told = [name for name in names if name in rows.column_names]
    unread = {name: kinds[name] for name in names if name not in rows.column_names}
    _require_free(candidate, list(kinds))
    with _stage_checked(stored, _labeling(candidate, tuples, names)) as aside:
        expected = {name: _as_grouped(rows[name]) for name in told}
        counts = np.ones(len(candidate.rows), dtype=np.int64)
        groups = require_written({}, expected, counts, len(candidate.table), aside)
        _require_masked_models(candidate, *groups)
        require_kept_values(told, list(unread), aside)
        distinct = aside.distinct(list(unread))
        aside.groups = groups
    return MaskedRows(aside, distinct, unread, groups[0].slice(0, 20))


def _require_free(candidate: MaskedCandidate, there: Sequence[str]) -> None:
    """Refuse new columns that are called as one of the source that no step looked at."""
    counted = candidate.table.arrow.column_names
    taken = {name.casefold() for name in there}
    for name in candidate.rows.arrow.column_names:
        if name not in counted and name.casefold() in taken:
            raise SchemaError(f"There is a column '{name}' already: name the new one otherwise.")


def _labeling(candidate: MaskedCandidate, tuples: Tuples, names: Sequence[str]) -> Labeling:
    """What the engine is asked to write."""
    rows, known = candidate.rows.arrow, candidate.table.arrow.column_names
    named = {name for step in candidate.steps for name in step["changes"]}
    changed = [n for n in names if n in rows.column_names and (n in named or n not in known)]
    cells = {name: _as_grouped(rows[name]) for name in changed}
    return join_cells(replace(tuples, table=candidate.table), candidate.source, cells, names)


def _as_grouped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as engines group them: zero has one sign, and what is no number is missing."""
    plain: pa.ChunkedArray = decode_labels(column)
    if not pa.types.is_floating(plain.type):
        return plain
    known = pc.if_else(pc.is_nan(plain), pa.scalar(None, plain.type), plain)
    return pc.add(known, pa.scalar(0.0, plain.type))


def _require_masked_models(candidate: MaskedCandidate, shown: pa.Table, counts: Ints) -> None:
    """Check promises again on the groups of the written rows, where these alone decide."""
    rows = candidate.rows
    models = [m for m in candidate.models if not (m.policy or m.units or m.original)]
    if not models or rows.schema.person is not None:
        return
    schema = without_policies(rows.schema)
    columns = {n: c for n, c in schema.columns.items() if n in shown.column_names}
    bare = replace(schema, columns=columns, person=None, household=None, weight=None)
    groups = pa.table(
        {
            n: shown[n].cast(decoded_type(rows.arrow.schema.field(n).type))
            for n in shown.column_names
        }
    )
    quasi = groups.select(list(rows.schema.quasi))
    every = np.arange(groups.num_rows, dtype=np.int64)
    engine = "" if candidate.tuples is None else candidate.tuples.engine
    entries = Tuples(Table(groups, bare), counts, engine=engine)
    found, _ = recheck_models(models, quasi, entries, every, Perturbation({}, quasi, {}))
    if sum(counts) != len(rows):
        raise InternalError("Other rows were written than those that were checked.")
    require_verdicts(found, expected=len(rows))
