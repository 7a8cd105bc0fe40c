"""Masked rows that an engine writes: what it is asked for, and what the door finds in them.

Steps saw one entry a row. Rows whose counted columns are the same can be exchanged: so many of
them, in an order that nobody knows, take the cells of the first of their entries, so many of the
next, and so many do not leave. What was written is counted again and compared, group by group, with
the masked entries that were checked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.engines.staging import reach, write_aside
from halfmask.errors import HalfmaskError, InternalError, SchemaError
from halfmask.release.doors.written import (
    join_cells,
    origin_of,
    plain_values,
    require_kept_values,
    require_written,
)
from halfmask.release.partition import Perturbation
from halfmask.release.recheck import recheck_models, require_verdicts
from halfmask.table.demands import without_policies
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.engines.staging import AsideRows, Labeling
    from halfmask.release.candidate import MaskedCandidate
    from halfmask.table.tuples import Tuples

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class MaskedRows:
    """What was written aside, after the door has counted it.

    Attributes:
        aside: the rows.
        distinct: per column that no step looked at, how many values it holds.
        kinds: the types of these columns.
        sample: some of the combinations that leave, to be shown.
    """

    aside: AsideRows
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
    aside = write_aside(stored, _labeling(candidate, tuples, names))
    try:
        expected = {name: _settled(rows[name]) for name in told}
        counts = np.ones(len(candidate.rows), dtype=np.int64)
        groups = require_written({}, expected, counts, len(candidate.table), aside)
        _require_models(candidate, *groups)
        require_kept_values(told, list(unread), aside)
        distinct = aside.distinct(list(unread))
        aside.groups = groups
        aside.connection.settle()
    except HalfmaskError:
        aside.close()
        raise
    reach("checked")
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
    cells = {name: _settled(rows[name]) for name in changed}
    return join_cells(replace(tuples, table=candidate.table), candidate.source, cells, names)


def _settled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as engines group them: zero has one sign, and what is no number is missing."""
    plain: pa.ChunkedArray = plain_values(column)
    if not pa.types.is_floating(plain.type):
        return plain
    known = pc.if_else(pc.is_nan(plain), pa.scalar(None, plain.type), plain)
    return pc.add(known, pa.scalar(0.0, plain.type))


def _require_models(candidate: MaskedCandidate, shown: pa.Table, counts: Ints) -> None:
    """Check promises again on the groups of the written rows, where these alone decide."""
    rows = candidate.rows
    models = [m for m in candidate.models if not (m.policy or m.units or m.original)]
    if not models or rows.schema.person is not None:
        return
    schema = without_policies(rows.schema)
    columns = {n: c for n, c in schema.columns.items() if n in shown.column_names}
    bare = replace(schema, columns=columns, person=None, household=None, weight=None)
    groups = pa.table({n: shown[n].cast(_kind(rows.arrow, n)) for n in shown.column_names})
    quasi = groups.select(list(rows.schema.quasi))
    every = np.arange(groups.num_rows, dtype=np.int64)
    found, _ = recheck_models(
        models, quasi, Table(groups, bare), every, Perturbation({}, quasi, {}), counts=counts
    )
    if sum(counts) != len(rows):
        raise InternalError("Other rows were written than those that were checked.")
    require_verdicts(found, expected=len(rows))


def _kind(rows: pa.Table, name: str) -> pa.DataType:
    kind = rows.schema.field(name).type
    return kind.value_type if pa.types.is_dictionary(kind) else kind
