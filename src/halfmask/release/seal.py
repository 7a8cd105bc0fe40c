"""The one door out: a candidate becomes a release only if its own rows keep every promise.

Every check here is made by code that the makers of candidates do not share.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa

from halfmask.errors import InternalError, ParameterError, PrivacyError, SchemaError
from halfmask.release.candidate import (
    AnswerCandidate,
    Candidate,
    MaskedCandidate,
    NoiseCandidate,
    SeriesCandidate,
    SyntheticCandidate,
    TabulationCandidate,
)
from halfmask.release.demands import DemandsStatement, enforce_demands, order_notes
from halfmask.release.document import (
    ColumnChange,
    column_changes,
    counted_change,
    counted_changes,
    other_change,
)
from halfmask.release.doors.confidentiality import require_blind_cuts
from halfmask.release.doors.stored_rows import WrittenRows, origin_of, write_labels
from halfmask.release.files import kept_columns, types_of_rows
from halfmask.release.partition import (
    ClassSizes,
    Perturbation,
    PublishedColumns,
    RowPartition,
    label_texts,
    table_loss,
)
from halfmask.release.pseudonyms import person_tokens, require_tied
from halfmask.release.record import released_schema
from halfmask.release.release import DOOR, Release, SealedGuarantee
from halfmask.release.verification import (
    cell_truth,
    class_risk,
    recheck_models,
    repack,
    require_cover,
    require_own_values,
    require_round_bounds,
    require_verdicts,
    secret_order,
)
from halfmask.table.demands import states
from halfmask.table.policies import DEMANDS
from halfmask.table.schema import NO_QUASI
from halfmask.table.table import encode_column
from halfmask.table.tuples import distinct_numbers, pick_counts, rows_in, tally

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.engines.staging import StagedRows
    from halfmask.models.verdict import Verdict
    from halfmask.release.doors.masked import MaskedRelease
    from halfmask.release.doors.series import SeriesRelease
    from halfmask.release.recoding import Recoding
    from halfmask.release.release import Answer, PrivateRelease, SyntheticRelease
    from halfmask.release.tabulation.door import TableRelease
    from halfmask.release.verification import CellTruth
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table


@overload
def seal(candidate: Candidate) -> Release: ...
@overload
def seal(candidate: AnswerCandidate) -> Answer: ...
@overload
def seal(candidate: NoiseCandidate) -> PrivateRelease: ...
@overload
def seal(candidate: SyntheticCandidate) -> SyntheticRelease: ...
@overload
def seal(candidate: TabulationCandidate) -> TableRelease: ...
@overload
def seal(candidate: MaskedCandidate) -> MaskedRelease: ...
@overload
def seal(candidate: SeriesCandidate) -> SeriesRelease: ...
def seal(
    candidate: Candidate
    | AnswerCandidate
    | NoiseCandidate
    | SyntheticCandidate
    | TabulationCandidate
    | MaskedCandidate
    | SeriesCandidate,
) -> Release:
    """Check what would leave, with code that its maker does not share, and release it.

    Raises:
        SchemaError: a column is not declared, so that nobody decided whether it may leave.
        PrivacyError: no row would leave, no promise was asked for, or noise is not secure.
        InternalError: the candidate does not keep what its maker claims, or what somebody in it
            demands; nothing leaves.
        LedgerError: another release of the series was noted meanwhile.
    """
    if isinstance(candidate, Candidate):
        return _seal_table(candidate)
    if isinstance(candidate, AnswerCandidate):
        from halfmask.release.doors.answer import seal_answer

        return seal_answer(candidate)
    if isinstance(candidate, NoiseCandidate):
        from halfmask.release.doors.synthetic import seal_noise

        return seal_noise(candidate)
    if isinstance(candidate, SyntheticCandidate):
        from halfmask.release.doors.synthetic import seal_synthetic

        return seal_synthetic(candidate, published_columns(candidate.table))
    if isinstance(candidate, MaskedCandidate):
        from halfmask.release.doors.masked import seal_masked
        from halfmask.release.doors.responses import ResponseClaim

        told = [c.column for c in candidate.claims if isinstance(c, ResponseClaim)]
        names = published_columns(candidate.rows, told)
        if candidate.tuples is None:
            return seal_masked(candidate, names)
        return seal_masked(candidate, names, published_columns(origin_of(candidate.tuples), told))
    if isinstance(candidate, SeriesCandidate):
        from halfmask.release.doors.series import seal_series

        return seal_series(candidate, published_columns(candidate.table))
    if isinstance(candidate, TabulationCandidate):
        from halfmask.release.tabulation.door import seal_tabulation

        return seal_tabulation(candidate)
    raise ParameterError("candidate", type(candidate).__name__, "a candidate for a release")


def published_columns(table: Table, told: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns that leave, in their order: all but identifiers, the person and policies.

    Nobody's silence counts as consent. Where all that leaves is ``told`` by chance, nobody is found
    by it, and no quasi-identifier need be declared.

    Raises:
        SchemaError: columns that are not declared or not there; all of them at once.
    """
    schema, names = table.schema, table.column_names
    faults = _undeclared_faults(schema.undeclared(names))
    faults += schema.unknown(names)
    leaving = tuple(name for name in names if name not in schema.private)
    if not schema.quasi and not (told and set(leaving) <= set(told)):
        faults.append(NO_QUASI)
    if faults:
        raise SchemaError(*faults)
    return leaving


_LISTED = 5


def _undeclared_faults(names: Sequence[str]) -> list[str]:
    roles = "(identifier, quasi, sensitive, other or drop) in the schema"
    if len(names) <= _LISTED:
        return [
            f"Column {name!r} is not declared, so nobody decided whether it may leave: give it a "
            f"role {roles}."
            for name in names
        ]
    return [
        f"{len(names)} columns are not declared, so nobody decided whether they may leave: give "
        f'each a role {roles}, or all of them one by the entry [columns."*"], such as '
        'role = "drop".'
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _CheckedRows:
    """Rows of a table whose promises were found to hold.

    Attributes:
        kept: which rows (or entries) leave.
        recoding: how they are recoded, as it can be repeated.
        quasi: the labels that they publish.
        verdicts: one a promise.
        ids: the class of each; where tokens leave, of its person's rows together.
        tokens: the pseudonym of each, where pseudonyms leave.
    """

    kept: NDArray[np.int64]
    recoding: Recoding | RowPartition | Perturbation
    quasi: pa.Table
    verdicts: tuple[Verdict, ...]
    ids: NDArray[Any]
    tokens: pa.Array | None


def _check_rows(candidate: Candidate) -> _CheckedRows:
    """Check all that is promised of the rows that would leave.

    Raises:
        PrivacyError: there are none, or pseudonyms would tie too few people's rows together.
        InternalError: something does not hold.
    """
    table, models, tokens = candidate.table, candidate.models, None
    _require_shape(candidate)
    kept = np.flatnonzero(candidate.step >= 0)
    if not len(kept):
        raise PrivacyError("Every row would be suppressed: relax a model or declare a hierarchy.")
    recoding, quasi = _labels(candidate, kept)
    # Labels that are made of the rows, such as ends of ranges, could tell of a row that stays.
    require_own_values(recoding, table, quasi, kept, models)
    if isinstance(recoding, RowPartition):
        require_round_bounds(recoding, table, quasi, kept, models)
    require_blind_cuts(candidate)
    found, ids = recheck_models(models, quasi, candidate.entries, kept, recoding)
    require_verdicts(found, expected=rows_in(pick_counts(candidate.counts, kept)))
    if candidate.pseudonym is not None:
        # Who knows some rows of a person finds the others by the token: all count as one.
        tokens = person_tokens(table, candidate.pseudonym, kept)
        whose = table.encode(str(table.schema.person)).codes[kept]
        found, ids = recheck_models(models, quasi, table, kept, recoding, tied=whose)
        require_tied(found)
    return _CheckedRows(kept, recoding, quasi, tuple(found), ids, tokens)


def _publish_rows(
    candidate: Candidate, checked: _CheckedRows, names: tuple[str, ...]
) -> tuple[pa.Table, _ColumnFacts, StagedRows | None]:
    """The rows that leave, what is known of their columns, and where an engine holds them."""
    table, recoding, tokens = candidate.table, checked.recoding, checked.tokens
    kept, quasi, ids = checked.kept, checked.quasi, checked.ids
    if candidate.tuples is not None:
        written = write_labels(candidate, recoding, quasi, names, tokens)
        if isinstance(recoding, Perturbation):
            facts = _perturbation_facts(candidate, recoding, quasi, ids, written)
        else:
            facts = _written_facts(candidate, written, recoding)
        if tokens is not None:
            facts = _with_tokens(facts, table, tokens)
        return written.sample, facts, written.aside
    rows = _published_rows(table, names, quasi, kept, tokens)
    if isinstance(recoding, Perturbation):
        return rows, _perturbation_facts(candidate, recoding, rows, ids), None
    found = PublishedColumns.of(recoding, table, candidate.step)
    whole = replace(found, losses=_with_left_out(candidate, found.losses))
    columns, notes = column_changes(table, rows, whole), _ambiguity_notes(recoding, table, found)
    return rows, _ColumnFacts(found.losses, columns, notes), None


def _seal_table(candidate: Candidate) -> Release:
    table, elsewhere = candidate.table, candidate.tuples
    names = published_columns(table if elsewhere is None else origin_of(elsewhere))
    if not candidate.models:
        raise PrivacyError("No promise was asked for: name at least one model.")
    checked = _check_rows(candidate)
    kept, recoding, ids = checked.kept, checked.recoding, checked.ids
    own = enforce_demands(candidate.entries, kept, ids, candidate.models, candidate.demands)
    own = own or _left_out_statement(candidate)
    unpromised = () if own is None else own.note_unpromised(candidate.models)
    rows, facts, aside = _publish_rows(candidate, checked, names)
    leaving = pick_counts(candidate.counts, kept)
    suppressed = candidate.everybody - rows_in(leaving) + candidate.left_out
    given = table.given
    if suppressed and elsewhere is None:  # else all rows that a type hangs on leave
        rows, given = types_of_rows(rows, table, kept_columns(facts.columns))
    return Release(
        guarantee=SealedGuarantee(
            verdicts=checked.verdicts,
            models=tuple(candidate.models),
            statement=facts.statement,
            demands=own,
        ),
        method=candidate.method,
        parameters=dict(candidate.parameters),
        notes=order_notes(
            own, (*unpromised, *_token_notes(table, checked.tokens), *candidate.notes, *facts.notes)
        ),
        loss=_loss(candidate, facts.losses),
        suppressed=suppressed,
        classes=ClassSizes.of(tally(ids, 0, leaving)),
        risk=class_risk(table, kept, ids, leaving),
        columns=facts.columns,
        recoding=None if isinstance(recoding, RowPartition | Perturbation) else recoding,
        metric=candidate.metric,
        gap=candidate.gap,
        tried=tuple(candidate.tried),
        absent=tuple(candidate.absent),
        schema=_schema_of(candidate, facts.columns, rows),
        origin=table.origin,
        given=given,
        _arrow=rows,
        _aside=aside,
        door=DOOR,
    )


def _with_tokens(facts: _ColumnFacts, table: Table, tokens: pa.Array) -> _ColumnFacts:
    """What is said of the person column, where pseudonyms stand in it."""
    person = str(table.schema.person)
    own = other_change(table, pa.table({person: tokens}), person)
    return replace(facts, columns=tuple(own if c.name == person else c for c in facts.columns))


def _written_facts(
    candidate: Candidate, written: WrittenRows, recoding: Recoding | RowPartition
) -> _ColumnFacts:
    """What the door finds out about columns whose rows an engine wrote."""
    entries = candidate.entries
    found = PublishedColumns.of(recoding, entries, candidate.step)
    whole = replace(found, losses=_with_left_out(candidate, found.losses))
    columns = counted_changes(written.source, entries, written.labels, whole, written.distinct)
    return _ColumnFacts(found.losses, columns, _ambiguity_notes(recoding, entries.table, found))


def _schema_of(candidate: Candidate, columns: Sequence[ColumnChange], rows: pa.Table) -> Schema:
    if candidate.tuples is None:
        held = dict(zip(rows.column_names, rows.schema.types, strict=True))
        return released_schema(candidate.table.schema, columns, held)
    source = origin_of(candidate.tuples)
    kinds = dict(source.rows.columns())
    if candidate.pseudonym is not None:
        kinds[str(source.schema.person)] = pa.string()
    return released_schema(source.schema, columns, kinds)


def _require_shape(candidate: Candidate) -> None:
    """Demand that the steps are those of the recoding, and that no more rows go than allowed."""
    table, recoding, step = candidate.table, candidate.recoding, candidate.step
    if sorted(recoding.columns) != sorted(table.schema.quasi):
        raise InternalError("The recoding does not speak of all quasi-identifiers.")
    if step.shape != (len(table),) or (
        len(step) and not -1 <= step.min() <= step.max() < len(recoding.steps)
    ):
        raise InternalError("The candidate's steps do not match the table's rows.")
    none = 0 if isinstance(recoding, Perturbation) else None
    limit = candidate.parameters.get("suppression", none)
    out = rows_in(pick_counts(candidate.counts, step < 0))
    everybody = candidate.everybody + candidate.left_out
    if candidate.left_out < 0:
        raise InternalError("The candidate leaves out fewer rows than none.")
    if candidate.left_out and any(model.original for model in candidate.models):
        raise InternalError("The original table cannot be counted without the rows left out.")
    if limit is not None and out + candidate.left_out > Fraction(str(limit)) * everybody:
        raise InternalError("The candidate suppresses more rows than allowed.")


def _labels(
    candidate: Candidate, kept: NDArray[np.int64]
) -> tuple[Recoding | RowPartition | Perturbation, pa.Table]:
    """The recoding as it can be repeated, and the labels that it publishes."""
    table, step, given = candidate.table, candidate.step, candidate.recoding
    if isinstance(given, Perturbation):
        if any(model.population is not None for model in candidate.models):
            raise PrivacyError(
                "A promise that compares with a population cannot be checked on perturbed labels: "
                "use another method."
            )
        names = list(table.schema.quasi)
        if given.labels.column_names != names or given.labels.num_rows != len(kept):
            raise InternalError("The candidate's labels do not match the rows that leave.")
        return given, given.labels
    recoding = given if isinstance(given, RowPartition) else _make_repeatable(given, table, step)
    quasi = recoding.published(table, step)
    if quasi.num_rows + int(np.count_nonzero(step == -1)) != len(table):
        raise InternalError("Rows that leave and suppressed rows do not add up.")
    if sorted(quasi.column_names) != sorted(table.schema.quasi):
        raise InternalError("Labels are for other columns than the quasi-identifiers.")
    require_cover(recoding, table, quasi, step)
    return recoding, quasi


def _make_repeatable(recoding: Recoding, table: Table, step: NDArray[np.int32]) -> Recoding:
    """The recoding with its published classes stated where it needs them to repeat ``step``."""
    top = {name: table.hierarchy(name).height + 1 for name in table.schema.quasi}
    for index, one in enumerate(recoding.steps):
        if sorted(one.levels) != sorted(top) or any(
            not 0 <= level <= top[name] for name, level in one.levels.items()
        ):
            raise InternalError(f"Step {index} of the recoding has levels that do not exist.")
    if not np.array_equal(recoding.assign(table), step):
        recoding = recoding.with_classes(table, step)
        if not np.array_equal(recoding.assign(table), step):
            raise InternalError("The recoding does not lead each row to the step it was given.")
    return recoding


def _left_out_statement(candidate: Candidate) -> DemandsStatement | None:
    """That demands were kept, where all who state any were left out."""
    schema = candidate.table.schema
    stated = candidate.left_out and any(states(schema, demand) for demand in DEMANDS)
    return DemandsStatement(kept=True, people=0, noise=0) if stated else None


def _with_left_out(candidate: Candidate, losses: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """The losses with rows that were left out before, each lost in full; nothing else is known."""
    rows, out = candidate.everybody, candidate.left_out
    return {
        name: Fraction(loss * rows + out, rows + out)
        if candidate.table.hierarchy(name).size > 1
        else loss
        for name, loss in losses.items()
    }


def _loss(candidate: Candidate, losses: Mapping[str, Fraction]) -> float:
    """The loss over all rows, after what the search claims of the table's rows was checked."""
    weights = {name: candidate.table.schema.columns[name].weight for name in losses}
    whole = _with_left_out(candidate, losses)
    if candidate.loss is None or candidate.metric != "loss":
        return table_loss(whole, weights)
    for aggregate in ("geometric", "arithmetic"):
        claimed = table_loss(losses, weights, aggregate=aggregate)
        if abs(candidate.loss - claimed) <= 1e-9:
            return table_loss(whole, weights, aggregate=aggregate)
    raise InternalError("The search claims another loss than the rows that leave have.")


def _ambiguity_notes(
    recoding: Recoding | RowPartition, table: Table, found: PublishedColumns
) -> list[str]:
    """Say where labels of several levels that cover different values are spelled alike.

    Values that no row holds which leaves are not counted: they would be told of.
    """
    notes = []
    for name in recoding.columns:
        covered: dict[str | None, set[bytes]] = {}
        values = found.cells[name].values
        for level in _levels(recoding, table, name):
            level_map, labels = label_texts(table, name, level)
            for code in distinct_numbers(level_map[values]).tolist():
                covered.setdefault(labels[code], set()).add((level_map[values] == code).tobytes())
        alike = sum(len(values) > 1 for values in covered.values())
        if alike:
            notes.append(
                f"Column {name!r}: {alike} label(s) of different levels are spelled alike, so that "
                "readers cannot tell them apart; the loss counts each as what it is."
            )
    return notes


def _levels(recoding: Recoding | RowPartition, table: Table, name: str) -> set[int]:
    """The levels of which a column publishes labels; ranges have none."""
    if isinstance(recoding, RowPartition):
        levels = recoding.labels[name].levels(table, name)
        return set() if levels is None else set(np.unique(levels).tolist())
    return {one.levels[name] for one in recoding.steps}


def _token_notes(table: Table, tokens: pa.Array | None) -> tuple[str, ...]:
    """What pseudonyms are, where they leave."""
    if tokens is None:
        return ()
    return (
        f"Column '{table.schema.person}' holds pseudonyms, which tie a person's rows together: the "
        "promises hold for these rows together. Whoever has the key can find everybody.",
    )


def _published_rows(
    table: Table,
    names: Sequence[str],
    quasi: pa.Table,
    kept: NDArray[np.int64],
    tokens: pa.Array | None = None,
) -> pa.Table:
    """The columns that leave, in their order, with rows in an order that tells nothing."""
    order = secret_order(len(kept))
    columns = {
        name: repack(
            quasi[name].take(order)
            if name in quasi.column_names
            else table.arrow[name].take(pa.array(kept).take(order))
        )
        for name in names
    }
    if tokens is not None:
        columns = {str(table.schema.person): tokens.take(order), **columns}
    return pa.table(columns)


@dataclass(frozen=True, slots=True)
class _ColumnFacts:
    """What the door finds out about the columns of a table that leaves."""

    losses: Mapping[str, Fraction]
    columns: tuple[ColumnChange, ...]
    notes: Sequence[str]
    statement: Mapping[str, Any] = field(default_factory=dict)


def _perturbation_facts(
    candidate: Candidate,
    given: Perturbation,
    rows: pa.Table,
    ids: NDArray[Any],
    written: WrittenRows | None = None,
) -> _ColumnFacts:
    """What false labels do to the cells of each column, and how many cells are true."""
    table, kept = candidate.table, np.flatnonzero(candidate.step >= 0)
    cells = {name: cell_truth(given, table, kept, ids, name) for name in table.schema.quasi}
    every = cells.values()
    true = sum(cell.true for cell in every) / sum(cell.rows for cell in every)
    whole = sum(cell.true_classes for cell in every) / sum(cell.classes for cell in every)
    notes = (
        f"This is a hybrid release: {true:.1%} of the published cells contain the true value, the "
        "others were perturbed.",
        f"{whole:.1%} of the pairs of a class and a column are generalized without perturbation.",
        "The loss counts how wide the labels are; that some are false is not in it.",
    )
    measured = {
        "true_cells": true,
        "true_class_columns": whole,
        "true_cells_by_column": {n: c.true / c.rows for n, c in cells.items()},
        "perturbed_classes_by_column": {n: c.classes - c.true_classes for n, c in cells.items()},
    }
    statement = {
        "kind": "hybrid",
        "claimed": [model.name for model in candidate.models],
        "not_claimed": ["that published cells are true", "differential privacy"],
        "measured": measured,
    }
    losses = {name: cell.loss for name, cell in cells.items()}
    counted = _with_left_out(candidate, losses)
    source = table if written is None else written.source

    def change(name: str) -> ColumnChange:
        if name in cells:
            return _perturbed_change(table, rows, kept, name, (cells[name], counted[name]))
        if written is not None:
            return counted_change(source.schema, name, written.distinct.get(name))
        return other_change(table, rows, name)

    columns = tuple(map(change, source.column_names))
    return _ColumnFacts(losses, columns, notes, statement)


def _perturbed_change(
    table: Table,
    rows: pa.Table,
    kept: NDArray[np.int64],
    name: str,
    found: tuple[CellTruth, Fraction],
) -> ColumnChange:
    cells, loss = found
    share = cells.true / cells.rows
    return ColumnChange(
        name=name,
        role="quasi",
        action=f"replaced by the label of its class, true for {share:.1%} of the rows",
        published=True,
        before=len(distinct_numbers(table.encode(name).codes[kept])),
        after=len(encode_column(rows[name]).values),
        loss=float(loss),
    )
