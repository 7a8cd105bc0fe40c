"""The one door out: a candidate becomes a release only if its own rows keep every promise."""

from __future__ import annotations

import secrets
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.errors import InternalError, PrivacyError
from halfmask.release.columns import changes
from halfmask.release.demands import hold_demands, told_first
from halfmask.release.document import versions
from halfmask.release.labels import label_texts
from halfmask.release.leaving import leaving
from halfmask.release.loss import column_loss, table_loss
from halfmask.release.partition import Partition
from halfmask.release.recheck import covers, verdicts
from halfmask.release.release import Release
from halfmask.release.sealed import DOOR
from halfmask.release.sizes import ClassSizes
from halfmask.table.table import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.models.verdict import Verdict
    from halfmask.release.candidate import Candidate
    from halfmask.release.recoding import Recoding
    from halfmask.table.table import Table


def seal(candidate: Candidate) -> Release:
    """Check the rows that would leave, with code that the search does not share, and release them.

    Raises:
        SchemaError: a column is not declared, so that nobody decided whether it may leave.
        PrivacyError: no row would leave, or no promise was asked for.
        InternalError: the candidate does not keep what the search claims, or what somebody in it
            demands; nothing leaves.
    """
    names = leaving(candidate.table)
    if not candidate.models:
        raise PrivacyError("No promise was asked for: name at least one model.")
    recoding = _described(candidate)
    step = candidate.step
    kept = np.flatnonzero(step >= 0)
    if not len(kept):
        raise PrivacyError("Every row would be suppressed: relax a model or declare a hierarchy.")
    quasi = recoding.published(candidate.table, step)
    if quasi.num_rows + int(np.count_nonzero(step == -1)) != len(candidate.table):
        raise InternalError("Rows that leave and suppressed rows do not add up.")
    covers(recoding, candidate.table, quasi, step)
    found, ids = verdicts(candidate.models, quasi, candidate.table, kept, recoding)
    hold(found, expected=len(kept))
    own = hold_demands(candidate.table, kept, ids, candidate.models, candidate.demands)
    losses = {name: column_loss(recoding, candidate.table, step, name) for name in recoding.columns}
    loss = _loss(candidate, losses)
    rows = published_rows(candidate.table, names, quasi, kept)
    return Release(
        verdicts=tuple(found),
        models=tuple(candidate.models),
        loss=loss,
        suppressed=len(step) - len(kept),
        rows=len(kept),
        classes=ClassSizes.of(np.bincount(ids).astype(np.int64)),
        columns=changes(candidate.table, rows, recoding, step, losses),
        recoding=None if isinstance(recoding, Partition) else recoding,
        method=candidate.method,
        metric=candidate.metric,
        gap=candidate.gap,
        parameters=dict(candidate.parameters),
        versions=versions(),
        notes=told_first(own, (*candidate.notes, *_ambiguous(recoding, candidate.table))),
        demands=own,
        origin=candidate.table.origin,
        given=candidate.table.given,
        _arrow=rows,
        door=DOOR,
    )


def require_declared(table: Table) -> None:
    """Refuse a table of which ``seal`` would refuse a column, before a search begins."""
    leaving(table)


def _described(candidate: Candidate) -> Recoding | Partition:
    """The recoding with its published classes stated where it needs them to repeat ``step``."""
    table, recoding, step = candidate.table, candidate.recoding, candidate.step
    quasi = list(table.schema.quasi)
    if sorted(recoding.columns) != sorted(quasi):
        raise InternalError("The recoding does not speak of all quasi-identifiers.")
    _fits(candidate)
    return recoding if isinstance(recoding, Partition) else _repeatable(recoding, table, step)


def _fits(candidate: Candidate) -> None:
    """Demand that the steps are those of the recoding, and that no more rows go than allowed."""
    table, recoding, step = candidate.table, candidate.recoding, candidate.step
    if step.shape != (len(table),) or (
        len(step) and not -1 <= step.min() <= step.max() < len(recoding.steps)
    ):
        raise InternalError("The candidate's steps do not match the table's rows.")
    limit = candidate.parameters.get("suppression")
    if limit is not None and int(np.count_nonzero(step < 0)) > Fraction(str(limit)) * len(table):
        raise InternalError("The candidate suppresses more rows than allowed.")


def _repeatable(recoding: Recoding, table: Table, step: NDArray[np.int32]) -> Recoding:
    quasi = list(table.schema.quasi)
    for index, one in enumerate(recoding.steps):
        top = {name: table.hierarchy(name).height + 1 for name in quasi}
        if sorted(one.levels) != sorted(quasi) or any(
            not 0 <= level <= top[name] for name, level in one.levels.items()
        ):
            raise InternalError(f"Step {index} of the recoding has levels that do not exist.")
    if not np.array_equal(recoding.assign(table), step):
        recoding = recoding.with_classes(table, step)
        if not np.array_equal(recoding.assign(table), step):
            raise InternalError("The recoding does not lead each row to the step it was given.")
    return recoding


def hold(found: Sequence[Verdict], *, expected: int) -> None:
    """Let nothing leave that breaks a promise or was not checked on all rows."""
    broken = [v for v in found if not v.holds or v.rows != expected]
    if broken:
        words = ", ".join(f"{v.model} ({v.failing_classes} classes fail)" for v in broken)
        raise InternalError(f"The rows that would leave break {words}; nothing was released.")


def _loss(candidate: Candidate, losses: dict[str, Fraction]) -> float:
    weights = {name: candidate.table.schema.columns[name].weight for name in losses}
    loss = table_loss(losses, weights)
    if candidate.loss is None or candidate.metric != "loss":
        return loss
    for aggregate in ("geometric", "arithmetic"):
        loss = table_loss(losses, weights, aggregate=aggregate)
        if abs(candidate.loss - loss) <= 1e-9:
            return loss
    raise InternalError("The search claims another loss than the rows that leave have.")


def _levels(recoding: Recoding | Partition, table: Table, name: str) -> set[int]:
    """The levels of which a column publishes labels; ranges have none."""
    if isinstance(recoding, Partition):
        levels = recoding.labels[name].levels(table, name)
        return set() if levels is None else set(np.unique(levels).tolist())
    return {one.levels[name] for one in recoding.steps}


def _ambiguous(recoding: Recoding | Partition, table: Table) -> list[str]:
    """Say where labels of several levels that cover different values are spelled alike."""
    notes = []
    for name in recoding.columns:
        covered: dict[str | None, set[bytes]] = {}
        for level in _levels(recoding, table, name):
            level_map, labels = label_texts(table, name, level)
            for code, text in enumerate(labels):
                covered.setdefault(text, set()).add((level_map == code).tobytes())
        alike = sum(len(values) > 1 for values in covered.values())
        if alike:
            notes.append(
                f"Column {name!r}: {alike} label(s) of different levels are spelled alike, so that "
                "readers cannot tell them apart; the loss counts each as what it is."
            )
    return notes


def published_rows(
    table: Table, names: Sequence[str], quasi: pa.Table, kept: NDArray[np.int64]
) -> pa.Table:
    """The columns that leave, in their order, with rows in an order that tells nothing."""
    order = _shuffled(len(kept))
    columns = {
        name: _fresh(
            quasi[name].take(pa.array(order))
            if name in quasi.column_names
            else table.arrow[name].take(pa.array(kept[order]))
        )
        for name in names
    }
    return pa.table(columns)


def _shuffled(rows: int) -> NDArray[np.int64]:
    """A random order from the system's secure source."""
    return np.argsort(np.frombuffer(secrets.token_bytes(8 * rows), dtype=np.uint64), kind="stable")


def _fresh(column: pa.ChunkedArray) -> pa.Array:
    """One chunk whose dictionary, if any, holds the column's own values in ascending order."""
    if pa.types.is_dictionary(column.type):
        encoded = encode(column)
        present = encoded.values.drop_null()
        missing = encoded.codes == len(present)
        indices = pa.array(np.where(missing, 0, encoded.codes).astype(np.int32), mask=missing)
        return pa.DictionaryArray.from_arrays(indices, present)
    array = column.combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)
