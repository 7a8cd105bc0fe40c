"""The door for masked rows: what steps changed, held against what is promised of the rows.

Masking promises nothing by itself. What models and people's own demands ask for is checked on the
rows that leave, and so is what a step claims of its own (k-anonymity by its reading of blank cells,
groups of Anatomy, tokens in place of identifiers), by code that the steps do not share.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.engines.sources import is_address
from halfmask.errors import InputError, InternalError, PrivacyError, usable_path
from halfmask.models.blank_cells import CLAIMS, WildcardAnonymity
from halfmask.release.demands import enforce_demands, order_notes, refuse_diversity
from halfmask.release.document import AS_IT_WAS, PSEUDONYMS, ColumnChange, risk_figures
from halfmask.release.doors.claims import AnatomyClaim, BucketClaim, PseudonymClaim, drawn_copies
from halfmask.release.doors.responses import (
    covers_all,
    hold_responses,
    not_claimed,
    receipt,
    settle_demands,
)
from halfmask.release.doors.stored_rows import origin_of, write_masked
from halfmask.release.files import has_fraction, types_of_rows, write_table
from halfmask.release.partition import Perturbation
from halfmask.release.pseudonyms import require_tied
from halfmask.release.record import FileRecord, is_folder, released_schema
from halfmask.release.release import DOOR, Release, SealedGuarantee
from halfmask.release.verification import (
    class_risk,
    recheck_models,
    repack,
    require_verdicts,
    secret_order,
)
from halfmask.table.read import BLANK
from halfmask.table.tuples import ones

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.engines.staging import StagedRows
    from halfmask.models.verdict import Model, Verdict
    from halfmask.release.candidate import MaskedCandidate
    from halfmask.release.demands import DemandsStatement
    from halfmask.release.doors.responses import ResponseClaim
    from halfmask.release.doors.stored_rows import MaskedRows
    from halfmask.table.files.rows import Incoming
    from halfmask.table.table import Table

    Ints = NDArray[np.int64]

# What follows from cells that do not leave, and would give one of them away to whoever knows the
# others.
CONTROLLER = ("facts", "figures")
NOT_CLAIMED = "that a cell is as it was, where a step changed its column"


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class MaskedRelease(Release):
    """Masked rows: what was done to them step by step, and what holds of them.

    Attributes:
        steps: each mask with its parameters and sentence, in order; what it found and its figures
            are for the controller only.
        tables: what leaves beside the rows, by its name (the sensitive values of Anatomy).
        figures: what each step found and changed, means, variances and correlations before and
            after it. For the controller only: they can give single people away, and no document
            holds them.
        blanked: columns some of whose cells were blanked, so that a missing one is suppressed.
        shared: what local suppression claims, by its reading of a blank cell.
        vaults: the private files of tokens, beside which the rows are not written; no document
            tells where they are.
    """

    kind: ClassVar[str] = "masked"
    _made_by: ClassVar[str] = "A masked release is made by checking rows: call halfmask.mask."

    steps: tuple[Mapping[str, Any], ...] = ()
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    figures: tuple[Mapping[str, Any], ...] = ()
    blanked: tuple[str, ...] = ()
    shared: tuple[WildcardAnonymity, ...] = ()
    vaults: tuple[Path, ...] = ()

    @property
    def measured(self) -> Mapping[str, Any]:
        """What was measured of the rows beside their originals: for the controller only."""
        found: Mapping[str, Any] = self.statement["measured"]
        return found

    def write(self, path: str | PathLike[str], *, table: str | None = None) -> None:
        """Write the rows, and beside them, as ``name.table.suffix``, what leaves with them.

        What the columns are and what was promised stands in the file, or in a ``.toml`` beside it.

        Args:
            path: a file, a folder or the address of a database, as for other releases.
            table: the table of the database.

        Raises:
            InputError: a vault of tokens stands in that folder, the file cannot be written, or
                tables leave beside the rows, which only files hold.
        """
        refuse_beside(self.vaults, path)
        if self.tables and (table is not None or is_folder(path) or is_address(path)):
            named = ", ".join(self.tables)
            raise InputError(f"Beside the rows leaves {named}: write them to files.")
        super(MaskedRelease, self).write(path, table=table)
        for name, beside in self.tables.items():
            write_table(beside, companion_path(path, name), given=self.given)

    def record(self) -> FileRecord:
        """What a file of these rows says of itself, and how its missing cells are to be read."""
        found = super(MaskedRelease, self).record()
        said = {
            BLANK: list(self.blanked),
            CLAIMS: [claim.to_dict() for claim in self.shared],
        }
        facts = {**found.facts, **{name: one for name, one in said.items() if one}}
        return replace(found, facts=facts)

    def _summary(self) -> str:
        names = ", ".join(str(step["mask"]) for step in self.steps)
        names_told = [f"randomized {name}" for name in self._randomized_columns()]
        promises = ", ".join([*(v.model for v in self.verdicts), *names_told])
        promises = promises or "no formal guarantee"
        return f"{self.rows:,} rows, {self.suppressed:,} left out; {names}; {promises}"

    def _facts(self) -> dict[str, Any]:
        total = self.rows + self.suppressed
        hidden = {"required": None, "achieved": None}
        return {
            "outcome": self._outcome(),
            "rows": {"original": total, "published": self.rows, "suppressed": self.suppressed},
            "steps": [
                {name: value for name, value in step.items() if name not in CONTROLLER}
                for step in self.steps
            ],
            "models": [model.to_dict() for model in self.models],
            "verdicts": [
                v.to_dict() | (hidden if v.model in self._personal() else {}) for v in self.verdicts
            ],
            "columns": self.columns,
            "risk": None if self.risk is None else risk_figures(self.risk),
            "tables": {name: table.column_names for name, table in self.tables.items()},
            "statement": {n: one for n, one in self.statement.items() if n != "measured"},
            "method": self.method,
            "parameters": self.parameters,
        }

    def _randomized_columns(self) -> list[str]:
        """The columns whose answers have local differential privacy."""
        found = self.statement.get("randomized", ())
        return [f"'{one['column']}'" for one in found if one["secure_noise"]]

    def _outcome(self) -> str:
        done = f"{len(self.steps)} step{'s' * (len(self.steps) != 1)}"
        if self.verdicts:
            count = len(self.verdicts)
            kept = "the one promise asked for was" if count == 1 else f"all {count} promises were"
            kept = f"{kept} checked on these very rows and kept"
        elif names := self._randomized_columns():
            kept = f"answers in {', '.join(names)} have local differential privacy"
        elif self.shared:
            kept = f"no model was asked for; claimed is {self.shared[0].words}"
        else:
            kept = "no formal promise was asked for, and none is made"
        return f"{self._warning()}{self.rows:,} rows may leave after {done}: {kept}."

    def _page(self, facts: Mapping[str, Any]) -> str:  # noqa: ARG002 - certificates are of tables
        from halfmask.report import words
        from halfmask.report.page import render_template
        from halfmask.report.plots import response_plots

        document, plots = self.to_dict(), response_plots
        return render_template("masked.html", document=document, plots=plots(document), say=words)


def companion_path(path: str | PathLike[str], name: str) -> Path:
    """Where a table is written that leaves beside the rows."""
    file = Path(path)
    safe = "".join(one if one.isalnum() or one in "-_" else "_" for one in name)
    return file.with_name(f"{file.stem}.{safe}{file.suffix}")


def seal_masked(
    candidate: MaskedCandidate, names: Sequence[str], elsewhere: Sequence[str] = ()
) -> MaskedRelease:
    """Check masked rows, of which the columns ``names`` may leave, and release them.

    ``elsewhere`` are all columns that may leave of rows that stay elsewhere: those that no step
    looked at leave as they are.

    Raises:
        PrivacyError: no row would leave, or a later step undid what an earlier one claims.
        InternalError: a promise is broken, or a column would leave that must not.
    """
    rows, source = candidate.rows, candidate.source
    if not len(rows):
        raise PrivacyError("No row would leave: mask less.")
    claimed = [c for c in candidate.claims if isinstance(c, PseudonymClaim)]
    tokens = [c.column for c in claimed]
    if len(source) != len(rows) or len(np.unique(source)) != len(source):
        raise InternalError("The masked rows are not those of the table.")
    held = _with_private_columns(candidate.table, rows, source)
    leaving = [n for n in rows.arrow.column_names if n in names or n in tokens]
    told = hold_responses(candidate, held)
    found, ids, own = _check_promises(candidate, held, tokens, noisy=covers_all(told, leaving))
    _check_claims(candidate, held, leaving, tokens, demanded=own is not None)
    own, more_notes = settle_demands(own, told)
    # Whoever reads the rows knows people by a token, if one names them.
    named = held if not tokens or held.schema.person in tokens else _by_token(held, tokens[0])
    left = _publish_masked(candidate, leaving, elsewhere, tokens, told)
    table = candidate.table if candidate.tuples is None else origin_of(candidate.tuples)
    known = {**rows.schema.columns, **table.schema.columns}  # what steps added, and what was there
    return MaskedRelease(
        guarantee=SealedGuarantee(
            verdicts=found,
            models=tuple(candidate.models),
            statement={
                "kind": "masked",
                "claimed": [m.name for m in candidate.models] + [c.words for c in candidate.claims],
                "not_claimed": [*not_claimed(told, leaving), NOT_CLAIMED],
                "measured": dict(candidate.measured),
                **({"randomized": [receipt(c, table, left.rows) for c in told]} if told else {}),
            },
            demands=own,
        ),
        method="mask",
        parameters=dict(candidate.parameters),
        notes=order_notes(own, (*candidate.notes, *more_notes)),
        suppressed=len(candidate.table) - len(rows),
        risk=class_risk(named, np.arange(len(rows)), ids, ones(len(rows)))
        if held.schema.quasi
        else None,
        blanked=tuple(n for n in leaving if _has_blanks(candidate.table, rows, source, n)),
        shared=tuple(c for c in candidate.claims if isinstance(c, WildcardAnonymity)),
        columns=left.columns,
        schema=released_schema(
            replace(table.schema, columns=known), left.columns, left.kinds, labels=False
        ),
        origin=table.origin,
        given=left.given,
        steps=tuple(candidate.steps),
        tables=left.tables,
        figures=tuple(candidate.figures),
        vaults=tuple(c.vault for c in claimed if c.vault is not None),
        _arrow=left.rows,
        _aside=left.aside,
        door=DOOR,
    )


def refuse_compared_models(models: Sequence[Model]) -> None:
    """Refuse promises that hold masked rows against others than those that leave."""
    if any(model.population is not None for model in models):
        raise PrivacyError(
            "A promise that compares with a population cannot be checked on masked rows: use "
            "anonymize."
        )
    if any(model.original for model in models):
        raise PrivacyError(
            "A promise against the original table cannot be checked on masked rows: use anonymize."
        )


def _check_promises(
    candidate: MaskedCandidate, held: Table, tokens: Sequence[str], *, noisy: bool
) -> tuple[tuple[Verdict, ...], Ints, DemandsStatement | None]:
    """Check models and people's demands on the rows that leave; gives also the class of each.

    Args:
        candidate: the masked rows.
        held: the same with whose they are and what these people demand.
        tokens: the columns of pseudonyms.
        noisy: whether all that leaves is told by chance.
    """
    models, choice = candidate.models, candidate.demands
    refuse_compared_models(models)
    places = np.arange(len(held))
    quasi = held.arrow.select(list(held.schema.quasi))
    none = Perturbation({}, quasi, {})
    found, ids = recheck_models(models, quasi, held, places, none)
    require_verdicts(found, expected=len(held))
    for token in tokens:  # each ties the rows together that share it
        tied = _by_token(held, token)
        whose = tied.encode(token).codes
        more, parted = recheck_models(models, quasi, tied, places, none, tied=whose)
        require_tied(more)
        pairs = ids.astype(np.int64) << 32 | parted
        ids = np.unique(pairs, return_inverse=True)[1].reshape(-1)
    own = enforce_demands(held, places, ids, models, choice, noisy=noisy)
    # Noise of next to nothing would make many values of one, and so keep l and t on paper.
    true = with_true_values(candidate.table, held, candidate.source, models)
    if models and not all(v.holds for v in recheck_models(models, quasi, true, places, none)[0]):
        raise InternalError("A promise holds only because a step moved the values it speaks of.")
    enforce_demands(true, places, ids, models, choice, noisy=noisy)
    return tuple(found), ids, own


def _by_token(held: Table, token: str) -> Table:
    """The rows, each of which is of whom its token names."""
    columns = {n: one for n, one in held.schema.columns.items() if n != token}
    return held.with_schema(replace(held.schema, person=token, columns=columns))


def _check_claims(
    candidate: MaskedCandidate,
    held: Table,
    leaving: Sequence[str],
    tokens: Sequence[str],
    *,
    demanded: bool,
) -> None:
    """Hold the rows to what steps claim of their own, and let no other column leave."""
    table, rows = candidate.table, candidate.rows
    for claim in candidate.claims:
        claim.verify(rows, candidate.tables, table)
        if isinstance(claim, AnatomyClaim) and candidate.demands == "keep" and demanded:
            what = "Bucketize" if isinstance(claim, BucketClaim) else "Anatomy"
            refuse_diversity(table, what, "anonymize")
    groups = [c.group for c in candidate.claims if isinstance(c, AnatomyClaim)]
    seen = [n for n in table.schema.quasi if n in rows.arrow.column_names]
    copies = drawn_copies(candidate.claims)  # each is what its column is
    groups += [n for n, like in copies.items() if like not in table.schema.quasi]
    seen += [n for n in leaving if n not in table.arrow.column_names and n not in groups]
    if any(n in table.schema.private and n not in tokens for n in leaving) or (
        sorted(held.schema.quasi) != sorted(seen)
    ):
        raise InternalError("A column would leave that must not; nothing leaves.")


@dataclass(frozen=True, slots=True, eq=False)
class _LeavingRows:
    """Masked rows as they leave.

    Attributes:
        rows: in an order that tells nothing; some of them, where an engine holds all.
        tables: what leaves beside them.
        columns: what became of each column.
        kinds: the types of those that leave.
        given: how they are written.
        aside: where an engine holds the rows.
    """

    rows: pa.Table
    tables: Mapping[str, pa.Table]
    columns: tuple[ColumnChange, ...]
    kinds: Mapping[str, pa.DataType]
    given: Mapping[str, Incoming]
    aside: StagedRows | None = None


def _publish_masked(
    candidate: MaskedCandidate,
    leaving: Sequence[str],
    elsewhere: Sequence[str],
    tokens: Sequence[str],
    told: Sequence[ResponseClaim],
) -> _LeavingRows:
    """The rows that were checked, as they leave."""
    table, rows = candidate.table, candidate.rows
    given, tables = _written_forms(table, candidate.source, tokens), dict(candidate.tables)
    if candidate.tuples is not None:
        written = write_masked(candidate, _in_order(candidate, leaving, elsewhere))
        changes = _changes(candidate, rows.arrow.select(leaving), tokens, written)
        kinds = {n: rows.arrow.schema.field(n).type for n in leaving} | dict(written.kinds)
        return _LeavingRows(written.sample, tables, changes, kinds, given, written.aside)
    order = secret_order(len(rows))
    if candidate.order is not None:
        order = pa.array(np.random.default_rng(candidate.order).permutation(len(rows)))
    published = pa.table({name: repack(rows.arrow[name].take(order)) for name in leaving})
    if len(rows) < len(table):  # a type that only a row which stays asks for would tell of it
        fixed = {*tokens, *(claim.column for claim in told)}
        values = [name for name in table.arrow.column_names if name not in fixed]
        published, given = types_of_rows(published, table, values, given)
        for name, beside in tables.items():
            tables[name], given = types_of_rows(beside, table, [name], given)
    changes = _changes(candidate, published, tokens)
    kinds = dict(zip(published.column_names, published.schema.types, strict=True))
    return _LeavingRows(published, tables, changes, kinds, given)


def _in_order(
    candidate: MaskedCandidate, leaving: Sequence[str], elsewhere: Sequence[str]
) -> list[str]:
    """All columns that leave, in the order of the table; those that steps added come last."""
    assert candidate.tuples is not None  # noqa: S101 - the caller looked
    counted = candidate.table.arrow.column_names
    names = [
        name
        for name in origin_of(candidate.tuples).column_names
        if name in leaving or (name in elsewhere and name not in counted)
    ]
    return [*names, *(name for name in leaving if name not in names)]


def _has_blanks(table: Table, rows: Table, source: Ints, name: str) -> bool:
    """Whether a cell that held something leaves as a missing one."""
    gone = rows.arrow[name].is_null()
    if name not in table.arrow.column_names or not pc.any(gone).as_py():
        return False
    held = table.arrow[name].is_valid().combine_chunks().take(pa.array(source))
    return bool(pc.any(pc.and_(gone, held)).as_py())


def _written_forms(table: Table, source: Ints, tokens: Sequence[str]) -> Mapping[str, Incoming]:
    """How columns were written, as far as the schema or the rows that leave tell it."""
    found = {n: was for n, was in table.given.items() if n not in tokens}
    for name, was in found.items():
        told = was.declared or was.form != ","
        if not told and not has_fraction(table.arrow[name].take(pa.array(source))):
            found[name] = replace(was, form="")
    return found


def refuse_beside(vaults: Sequence[Path], output: str | PathLike[str]) -> None:
    """Refuse to write a release into the folder of a vault, from where it might leave with it.

    Raises:
        InputError: both stand in one folder.
    """
    folder = os.fspath(output).endswith("/")
    given = usable_path(output)
    target = (given if folder else given.parent).resolve()
    for vault in vaults:
        if target in (vault.parents if folder else [vault.parent]):
            raise InputError(
                f"The vault {vault.name!r} stands beside the release: keep it in a folder of its "
                "own."
            )


def with_true_values(table: Table, rows: Table, source: Ints, models: Sequence[Model]) -> Table:
    """The masked rows with the original values of what models speak of and of sensitive columns.

    A step that moves values by next to nothing would else make many of one.
    """
    arrow = rows.arrow
    spoken = {name for model in models for name in model.columns} | set(table.schema.sensitive)
    for name in sorted(spoken - set(rows.schema.quasi)):
        if name in arrow.column_names and name in table.arrow.column_names:
            true = table.arrow[name].take(pa.array(source))
            arrow = arrow.set_column(arrow.column_names.index(name), name, true)
    return rows.with_schema(rows.schema, arrow)


def _with_private_columns(table: Table, rows: Table, source: Ints) -> Table:
    """The masked rows with whose they are and what these people demand, from the original."""
    arrow = rows.arrow
    for name in table.schema.private:
        if name not in table.arrow.column_names:
            continue
        true = table.arrow[name].take(pa.array(source))
        if name not in arrow.column_names:
            raise InternalError("A column that says whose rows they are is gone.")
        arrow = arrow.set_column(arrow.column_names.index(name), name, true)
    return rows.with_schema(rows.schema, arrow)


def _changes(
    candidate: MaskedCandidate,
    published: pa.Table,
    tokens: Sequence[str],
    written: MaskedRows | None = None,
) -> tuple[ColumnChange, ...]:
    """What became of each column, and which are new; ``written`` knows those that nobody read."""
    table, names = candidate.table, published.column_names
    if candidate.tuples is not None:
        table = origin_of(candidate.tuples)
    unread = {} if written is None else written.distinct
    done: dict[str, list[str]] = {}
    for step in candidate.steps:
        for name in step["changes"]:
            done.setdefault(name, []).append(str(step["mask"]))
    out = []
    there = table.column_names
    for name in dict.fromkeys([*there, *names]):
        role = _role(table, name)
        steps = ", ".join(done.get(name, ()))
        if name in tokens:
            action = PSEUDONYMS
        elif name not in names and name not in unread:
            action = "removed: it never leaves"
            if name not in table.schema.private:
                action = f"removed by {steps or 'a step'}"
        else:
            action = f"masked: {steps}" if steps else AS_IT_WAS
        new = name not in there
        counted = name in names and not pa.types.is_floating(published[name].type)
        after = len(pc.unique(published[name])) if counted else _unread(written, name)
        out.append(
            ColumnChange(
                name=name,
                role=role,
                action=f"added by {steps or 'a step'}" if new else action,
                published=name in names or name in unread,
                after=after,
            )
        )
    return tuple(out)


def _unread(written: MaskedRows | None, name: str) -> int | None:
    """How many values a column holds that no step looked at; None where these are floating."""
    if written is None or name not in written.kinds or pa.types.is_floating(written.kinds[name]):
        return None
    return written.distinct[name]


def _role(table: Table, name: str) -> str:
    schema = table.schema
    if name in schema.policy_names:
        return "policy"
    for what in ("person", "household"):
        if name == getattr(schema, what):
            return what
    if name == schema.weight and name not in schema.columns:
        return "weight"
    return schema.columns[name].role if name in schema.columns else "other"
