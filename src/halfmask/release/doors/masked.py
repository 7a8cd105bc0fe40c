"""The door for masked rows: what steps changed, held against what is promised of the rows.

Masking promises nothing by itself. What models and people's own demands ask for is checked on the
rows that leave, and so is what a step claims of its own (k-anonymity by its reading of blank cells,
groups of Anatomy, tokens in place of identifiers), by code that the steps do not share.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, InternalError, PrivacyError, usable_path
from halfmask.release.column_types import types_of_rows
from halfmask.release.demands import enforce_demands, order_notes, refuse_diversity
from halfmask.release.document import AS_IT_WAS, ColumnChange
from halfmask.release.doors.responses import (
    ResponseClaim,
    covers_all,
    hold_responses,
    not_claimed,
    receipt,
    settled_demands,
)
from halfmask.release.files import has_fraction, write_table
from halfmask.release.labels import encode_labels
from halfmask.release.partition import Perturbation
from halfmask.release.pseudonyms import require_tied
from halfmask.release.recheck import recheck_models, repack, require_verdicts, secret_order
from halfmask.release.record import released_schema, write_release
from halfmask.release.release import DOOR, Release, SealedGuarantee
from halfmask.table.hierarchies.arx_csv import Csv
from halfmask.table.hierarchies.tree import Tree
from halfmask.table.hierarchy import TOP, canonical, flat
from halfmask.table.table import encode_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.models.verdict import Model
    from halfmask.release.candidate import MaskedCandidate
    from halfmask.table.files.rows import Incoming
    from halfmask.table.table import Table

    Ints = NDArray[np.int64]

# What follows from cells that do not leave, and would give one of them away to whoever knows the
# others.
CONTROLLER = ("facts", "figures")
NOT_CLAIMED = "that a cell is as it was, where a step changed its column"


@dataclass(frozen=True, slots=True)
class WildcardAnonymity:
    """Claims that everybody shares ``columns`` with ``k`` people, a blank cell read as stated."""

    k: int
    columns: tuple[str, ...]
    reading: str

    @property
    def words(self) -> str:
        """What is claimed."""
        how = "a value of its own" if self.reading == "value" else "matching any value"
        names = ", ".join(f"'{name}'" for name in self.columns)
        return f"k-anonymity of {names} with k = {self.k}, a blank cell counting as {how}"

    def hold(self, rows: Table, tables: Mapping[str, pa.Table], original: Table) -> None:  # noqa: ARG002
        """Demand it of the rows that leave."""
        gone = [name for name in self.columns if name not in rows.arrow.column_names]
        if gone:
            raise InternalError("A column that a step speaks of does not leave.")
        codes = [encode_column(rows.arrow[name]) for name in self.columns]
        people = _people(rows)
        block = np.array([one.codes for one in codes]).T.astype(np.int64)
        blank = np.array([one.codes >= len(one.values.drop_null()) for one in codes]).T
        short = np.flatnonzero(_sharing(block, people) < self.k)
        if len(short) and self.reading == "any":
            # Matches through blanks are counted in rows, so each person must have one.
            if people is not None and len(np.unique(people)) < len(people):
                raise _broken(self, len(short))
            short = short[_matches(block, blank, short) < self.k]
        if len(short):
            raise _broken(self, len(short))


def _broken(claim: WildcardAnonymity, rows: int) -> PrivacyError:
    return PrivacyError(
        f"{rows:,} rows would leave with fewer than {claim.k} like them: a later step undid the "
        "local suppression. Suppress last."
    )


def _people(rows: Table) -> Ints | None:
    person = rows.schema.person
    return None if person is None else rows.encode(person).codes.astype(np.int64)


def _sharing(block: Ints, people: Ints | None) -> Ints:
    """Per row, how many people have the same codes, by sorting."""
    group = _numbered(block, range(block.shape[1]))
    if people is None:
        return np.bincount(group)[group]
    many = int(people.max(initial=0)) + 1
    pairs = np.unique(group * many + people)
    return np.bincount(pairs // many)[group]


def _numbered(block: Ints, columns: Sequence[int]) -> Ints:
    """Per row a number, the same where rows agree on the columns; column by column, exactly."""
    group = np.zeros(len(block), np.int64)
    size = 1
    for c in columns:
        wide = int(block[:, c].max(initial=0)) + 1
        if size > 2**62 // wide:  # numbered anew before they outgrow their type
            group = np.unique(group, return_inverse=True)[1].reshape(-1)
            size = int(group.max(initial=0)) + 1
        group = group * wide + block[:, c]
        size *= wide
    return np.unique(group, return_inverse=True)[1].reshape(-1)


def _matches(block: Ints, blank: NDArray[np.bool_], short: Ints) -> Ints:
    """For rows ``short``, how many rows agree with them where both show something.

    Rows are put together by what they leave blank; between two such patterns, rows are matched on
    the columns that both show.
    """
    pattern = blank @ (1 << np.arange(blank.shape[1], dtype=np.int64))
    found = np.zeros(len(block), np.int64)
    wanted = np.zeros(len(block), dtype=bool)
    wanted[short] = True
    kinds, place = np.unique(pattern, return_inverse=True)
    members = [np.flatnonzero(place.reshape(-1) == i) for i in range(len(kinds))]
    for a, mine in zip(kinds.tolist(), members, strict=True):
        mine = mine[wanted[mine]]
        if not len(mine):
            continue
        for b, theirs in zip(kinds.tolist(), members, strict=True):
            shown = [c for c in range(block.shape[1]) if not (a | b) >> c & 1]
            if not shown:
                found[mine] += len(theirs)
                continue
            both = np.concatenate([mine, theirs])
            ids = _numbered(block[both], shown)
            counts = np.bincount(ids[len(mine) :], minlength=int(ids.max()) + 1)
            found[mine] += counts[ids[: len(mine)]]
    return found[short]


@dataclass(frozen=True, slots=True)
class AnatomyClaim:
    """Claims that a sensitive column leaves apart, by groups of at least ``l`` values."""

    l: int  # noqa: E741 - the literature's name
    column: str
    group: str

    @property
    def words(self) -> str:
        """What is claimed."""
        return (
            f"no value of '{self.column}' makes up more than 1 in {self.l} rows of a group, and "
            "groups are all that joins it to the rows"
        )

    def hold(self, rows: Table, tables: Mapping[str, pa.Table], original: Table) -> None:  # noqa: ARG002
        """Demand it of the rows and the table beside them."""
        beside = tables.get(self.column)
        names = rows.arrow.column_names
        if beside is None or self.column in names or self.group not in names:
            raise InternalError("A sensitive column would leave beside its rows.")
        groups = rows.arrow[self.group].to_numpy()
        if beside.column_names != [self.group, self.column, "count"]:
            raise InternalError("The table of sensitive values has other columns than it should.")
        sizes = np.bincount(groups, minlength=int(groups.max(initial=-1)) + 1)
        totals = np.zeros_like(sizes)
        owner, count = beside[self.group].to_numpy(), beside["count"].to_numpy()
        if len(owner) and (owner.min() < 0 or owner.max() >= len(sizes)):
            raise PrivacyError("A later step took rows of a group away: use Anatomy last.")
        np.add.at(totals, owner, count)
        if not np.array_equal(totals, sizes):
            raise PrivacyError("A later step took rows of a group away: use Anatomy last.")
        if np.any(count * self.l > sizes[owner]):
            raise InternalError(f"A group has fewer than {self.l} values; nothing was released.")


@dataclass(frozen=True, slots=True)
class BucketClaim(AnatomyClaim):
    """Claims that the values of a column stand in random order inside buckets of ``l`` values."""

    @property
    def words(self) -> str:
        """What is claimed."""
        return (
            f"no value of '{self.column}' makes up more than 1 in {self.l} rows of a bucket, "
            "inside which rows and values stand in random order"
        )

    def hold(self, rows: Table, tables: Mapping[str, pa.Table], original: Table) -> None:  # noqa: ARG002
        """Demand it of the rows that leave."""
        if not {self.column, self.group} <= set(rows.arrow.column_names):
            raise InternalError("A column of buckets does not leave.")
        block = np.array(
            [encode_column(rows.arrow[name]).codes for name in (self.group, self.column)]
        ).T.astype(np.int64)
        together, sizes = _sharing(block, None), _sharing(block[:, :1], None)
        if np.any(together * self.l > sizes):
            raise PrivacyError(
                f"A value would make up more than 1 in {self.l} rows of a bucket: a later step "
                "took rows or values away. Bucketize last."
            )


@dataclass(frozen=True, slots=True)
class PseudonymClaim:
    """Claims that a column that identifies leaves as tokens, none of them one of its values.

    ``vault`` is the private file that ties them to these, where there is one.
    """

    column: str
    vault: Path | None = field(default=None, repr=False)

    @property
    def words(self) -> str:
        """What is claimed; next to nothing."""
        return f"tokens in place of '{self.column}', which are not anonymous"

    def hold(self, rows: Table, tables: Mapping[str, pa.Table], original: Table) -> None:  # noqa: ARG002
        """Demand that no value is told."""
        tokens = pc.drop_null(pc.unique(rows.arrow[self.column]))
        told = encode_labels(original.arrow[self.column]).dictionary
        same = not pa.types.is_string(tokens.type)
        if not same:
            lengths = pc.unique(pc.binary_length(tokens))  # texts of other lengths are other texts
            told = told.filter(pc.is_in(pc.binary_length(told), value_set=lengths))
            same = pc.any(pc.is_in(tokens, value_set=told)).as_py()
        if same:
            raise InternalError(f"Column {self.column!r} would leave as it was; nothing leaves.")


@dataclass(frozen=True, slots=True)
class DrawClaim:
    """Claims that a column, and its further draws ``copies``, show nothing that few people hold."""

    column: str
    copies: tuple[str, ...]
    k: int

    @property
    def words(self) -> str:
        """What is claimed."""
        return (
            f"'{self.column}' is drawn: it shows no category that fewer than {self.k} people hold, "
            "and no number beyond which fewer stand"
        )

    def hold(self, rows: Table, tables: Mapping[str, pa.Table], original: Table) -> None:  # noqa: ARG002
        """Demand it of every draw, by the original column."""
        true = encode_column(original.arrow[self.column])
        owner = _people(original)
        block = true.codes[:, None].astype(np.int64)
        held = np.zeros(len(true.values), np.int64)
        held[true.codes] = _sharing(block, owner)
        for name in (self.column, *self.copies):
            if name not in rows.arrow.column_names:
                raise InternalError("A draw of a column does not leave.")
            shown = pc.drop_null(pc.unique(rows.arrow[name]))
            if pa.types.is_dictionary(shown.type):
                shown = shown.dictionary_decode()
            values = true.values.drop_null()
            if _on_a_line(values.type):
                lasting = self._within(original, owner, shown, true)
            else:
                places = pc.index_in(shown.cast(values.type), value_set=values)
                lasting = not places.null_count and bool((held[places.to_numpy()] >= self.k).all())
            if not lasting:
                raise PrivacyError(
                    f"Column '{name}' would show values that fewer than {self.k} people hold: let "
                    "no other step change a column that is drawn."
                )

    def _within(self, original: Table, owner: Ints | None, shown: pa.Array, true: Any) -> bool:
        """Whether ``k`` people stand at or beyond the lowest and the highest number shown.

        A declared order does not change what is a number.
        """
        if not len(shown):
            return True
        owner = np.arange(len(original)) if owner is None else owner
        values = true.values.cast(shown.type, safe=False)
        extremes = pc.min_max(shown)
        for beyond, edge in ((pc.less_equal, "min"), (pc.greater_equal, "max")):
            far = pc.fill_null(beyond(values, extremes[edge]), fill_value=False)
            at = np.asarray(far, dtype=bool)[true.codes]
            if len(np.unique(owner[at])) < self.k:
                return False
        return True


@dataclass(frozen=True, slots=True)
class GuardClaim:
    """Claims that no label of a column tells its person's guarded values beyond the chance p."""

    column: str
    guard: str
    p: float

    @property
    def words(self) -> str:
        """What is claimed."""
        return (
            f"of the values that a label of '{self.column}' can stand for, and of the rows of "
            f"people who guard nothing, at most the share {self.p:g} is what its person guards"
        )

    def hold(self, rows: Table, tables: Mapping[str, pa.Table], original: Table) -> None:  # noqa: ARG002
        """Demand it of every label beside every node, by declared values and rows shown as is."""
        if not {self.column, self.guard} <= set(rows.arrow.column_names):
            raise InternalError("A column of guarded values does not leave.")
        pairs = pa.table(
            {
                "label": encode_labels(rows.arrow[self.column]).cast(pa.string()),
                "node": encode_labels(rows.arrow[self.guard]).cast(pa.string()),
            }
        )
        seen = pairs.filter(pc.and_(*(pc.is_valid(one) for one in pairs.columns)))
        shown = original.arrow.filter(pc.is_null(original.arrow[self.guard]))[self.column]
        each = pc.value_counts(shown.drop_null()).to_pylist()
        held = {canonical(one["values"]): int(one["counts"]) for one in each}
        nodes = {canonical(one) for one in pc.unique(seen["node"]).to_pylist()}
        meaning = _meanings(original, self.column, held.keys() | (nodes - {TOP}))
        limit = Fraction(str(self.p))
        for one in seen.group_by(["label", "node"]).aggregate([]).to_pylist():
            label, node = (meaning.get(one[side], frozenset()) for side in ("label", "node"))
            for weigh in (lambda value: held.get(value, 0), lambda _: 1):
                part, whole = (sum(map(weigh, found)) for found in (label & node, label))
                if (not label and limit < 1) or part > limit * whole:
                    raise PrivacyError(
                        f"A label of '{self.column}' would tell what its person guards: let no "
                        "other step change that column."
                    )


def _meanings(table: Table, column: str, plain: set[str]) -> dict[str, frozenset[str]]:
    """Which declared values each label of a hierarchy stands for; without one, of ``plain``."""
    declared = table.schema.columns.get(column)
    builder = None if declared is None else declared.hierarchy
    if isinstance(builder, Tree | Csv):
        leaves: list[object] = list(builder.leaves())
        tree = builder.build(column, pa.array(leaves, pa.string()))
    else:
        leaves = list(plain)
        tree = flat(leaves)
    found: dict[str, set[str]] = {}
    for level, labels in zip(tree.maps.tolist(), tree.labels, strict=True):
        for value, place in zip(leaves, level, strict=True):
            found.setdefault(canonical(labels[place]), set()).add(canonical(value))
    return {label: frozenset(under) for label, under in found.items()}


def _on_a_line(kind: pa.DataType) -> bool:
    """Whether values of this type are drawn between those that people hold."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_temporal(kind)
    )


def drawn_copies(claims: Sequence[Claim]) -> dict[str, str]:
    """The further draws that steps claim, and the column that each is one of."""
    found = [c for c in claims if isinstance(c, DrawClaim)]
    return {copy: claim.column for claim in found for copy in claim.copies}


Claim = (
    WildcardAnonymity
    | AnatomyClaim
    | BucketClaim
    | PseudonymClaim
    | DrawClaim
    | GuardClaim
    | ResponseClaim
)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class MaskedRelease(Release):
    """Masked rows: what was done to them step by step, and what holds of them.

    Attributes:
        steps: each mask with its parameters and sentence, in order; what it found and its figures
            are for the controller only.
        tables: what leaves beside the rows, by its name (the sensitive values of Anatomy).
        figures: means, variances and correlations before and after each step. For the controller
            only: they can give single people away, and no document holds them.
        vaults: the private files of tokens, beside which the rows are not written; no document
            tells where they are.
    """

    kind: ClassVar[str] = "masked"
    _made_by: ClassVar[str] = "A masked release is made by checking rows: call halfmask.mask."

    steps: tuple[Mapping[str, Any], ...] = ()
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    figures: tuple[Mapping[str, Any], ...] = ()
    vaults: tuple[Path, ...] = ()

    @property
    def measured(self) -> Mapping[str, Any]:
        """What was measured of the rows beside their originals: for the controller only."""
        found: Mapping[str, Any] = self.statement["measured"]
        return found

    def write(self, path: str | PathLike[str]) -> None:  # type: ignore[override]  # files
        """Write the rows, and beside them, as ``name.table.suffix``, what leaves with them.

        What the columns are and what was promised stands in the file, or in a ``.toml`` beside it.

        Raises:
            InputError: a vault of tokens stands in that folder, or the file cannot be written.
        """
        refuse_beside(self.vaults, path)
        write_release(self.to_arrow(), path, self.record(), self.given)
        for name, table in self.tables.items():
            write_table(table, companion_path(path, name), given=self.given)

    def _summary(self) -> str:
        names = ", ".join(str(step["mask"]) for step in self.steps)
        names_told = [f"randomized {name}" for name in self._told()]
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
            "columns": [column.to_dict() for column in self.columns],
            "tables": {name: table.column_names for name, table in self.tables.items()},
            "statement": {n: one for n, one in self.statement.items() if n != "measured"},
            "method": self.method,
            "parameters": dict(self.parameters),
        }

    def _told(self) -> list[str]:
        """The columns whose answers have local differential privacy."""
        found = self.statement.get("randomized", ())
        return [f"'{one['column']}'" for one in found if one["secure_noise"]]

    def _outcome(self) -> str:
        done = f"{len(self.steps)} step{'s' * (len(self.steps) != 1)}"
        if self.verdicts:
            count = len(self.verdicts)
            kept = "the one promise asked for was" if count == 1 else f"all {count} promises were"
            kept = f"{kept} checked on these very rows and kept"
        elif self._told():
            kept = f"answers in {', '.join(self._told())} have local differential privacy"
        else:
            kept = "no formal promise was asked for, and none is made"
        return f"{self._warning()}{self.rows:,} rows may leave after {done}: {kept}."

    def _page(self, facts: Mapping[str, Any]) -> str:  # noqa: ARG002 - certificates are of tables
        from halfmask.report.page import render_template
        from halfmask.report.responses import response_plots

        document = self.to_dict()
        return render_template("masked.html", document=document, plots=response_plots(document))


def companion_path(path: str | PathLike[str], name: str) -> Path:
    """Where a table is written that leaves beside the rows."""
    file = Path(path)
    safe = "".join(one if one.isalnum() or one in "-_" else "_" for one in name)
    return file.with_name(f"{file.stem}.{safe}{file.suffix}")


def seal_masked(candidate: MaskedCandidate, names: Sequence[str]) -> MaskedRelease:
    """Check masked rows, of which the columns ``names`` may leave, and release them.

    Raises:
        PrivacyError: no row would leave, or a later step undid what an earlier one claims.
        InternalError: a promise is broken, or a column would leave that must not.
    """
    table, rows, source = candidate.table, candidate.rows, candidate.source
    if not len(rows):
        raise PrivacyError("No row would leave: mask less.")
    claimed = [c for c in candidate.claims if isinstance(c, PseudonymClaim)]
    tokens = [c.column for c in claimed]
    if len(source) != len(rows) or len(np.unique(source)) != len(source):
        raise InternalError("The masked rows are not those of the table.")
    held = _with_private_columns(table, rows, source)
    if any(model.population is not None for model in candidate.models):
        raise PrivacyError(
            "A promise that compares with a population cannot be checked on masked rows: use "
            "anonymize."
        )
    if any(model.original for model in candidate.models):
        raise PrivacyError(
            "A promise against the original table cannot be checked on masked rows: use anonymize."
        )
    leaving = [n for n in rows.arrow.column_names if n in names or n in tokens]
    told = hold_responses(candidate, held)
    noisy = covers_all(told, leaving)
    places = np.arange(len(rows))
    quasi = held.arrow.select(list(held.schema.quasi))
    none = Perturbation({}, quasi, {})
    found, ids = recheck_models(candidate.models, quasi, held, places, none)
    require_verdicts(found, expected=len(rows))
    for token in tokens:  # each ties the rows together that share it
        columns = {n: one for n, one in held.schema.columns.items() if n != token}
        tied = held.with_schema(replace(held.schema, person=token, columns=columns))
        whose = tied.encode(token).codes
        more, ids = recheck_models(candidate.models, quasi, tied, places, none, tied=whose)
        require_tied(more)
    own = enforce_demands(held, places, ids, candidate.models, candidate.demands, noisy=noisy)
    true = with_true_values(table, held, source, candidate.models)
    if candidate.models and not all(
        v.holds for v in recheck_models(candidate.models, quasi, true, places, none)[0]
    ):
        raise InternalError("A promise holds only because a step moved the values it speaks of.")
    enforce_demands(true, places, ids, candidate.models, candidate.demands, noisy=noisy)
    for claim in candidate.claims:
        claim.hold(rows, candidate.tables, table)
        if isinstance(claim, AnatomyClaim) and candidate.demands == "keep" and own is not None:
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
    own, more_notes = settled_demands(own, told)
    order = secret_order(len(rows))
    if candidate.order is not None:
        order = pa.array(np.random.default_rng(candidate.order).permutation(len(rows)))
    published = pa.table({name: repack(rows.arrow[name].take(order)) for name in leaving})
    given, tables = _told_forms(table, source, tokens), dict(candidate.tables)
    if len(rows) < len(table):
        fixed = {*tokens, *(claim.column for claim in told)}
        values = [name for name in table.arrow.column_names if name not in fixed]
        published, given = types_of_rows(published, table, values, given)
        for name, beside in tables.items():
            tables[name], given = types_of_rows(beside, table, [name], given)
    changes = _changes(candidate, published, tokens)
    held_types = dict(zip(published.column_names, published.schema.types, strict=True))
    known = {**rows.schema.columns, **table.schema.columns}  # what steps added, and what was there
    return MaskedRelease(
        guarantee=SealedGuarantee(
            verdicts=tuple(found),
            models=tuple(candidate.models),
            statement={
                "kind": "masked",
                "claimed": [m.name for m in candidate.models] + [c.words for c in candidate.claims],
                "not_claimed": [*not_claimed(told, leaving), NOT_CLAIMED],
                "measured": dict(candidate.measured),
                **({"randomized": [receipt(c, table, published) for c in told]} if told else {}),
            },
            demands=own,
        ),
        method="mask",
        parameters=dict(candidate.parameters),
        notes=order_notes(own, (*candidate.notes, *more_notes)),
        suppressed=len(table) - len(rows),
        columns=tuple(changes),
        schema=released_schema(
            replace(table.schema, columns=known), changes, held_types, labels=False
        ),
        origin=table.origin,
        given=given,
        steps=tuple(candidate.steps),
        tables=tables,
        figures=tuple(candidate.figures),
        vaults=tuple(c.vault for c in claimed if c.vault is not None),
        _arrow=published,
        door=DOOR,
    )


def _told_forms(table: Table, source: Ints, tokens: Sequence[str]) -> Mapping[str, Incoming]:
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
    candidate: MaskedCandidate, published: pa.Table, tokens: Sequence[str]
) -> list[ColumnChange]:
    """What became of each column, and which are new."""
    table, names = candidate.table, published.column_names
    done: dict[str, list[str]] = {}
    for step in candidate.steps:
        for name in step["changes"]:
            done.setdefault(name, []).append(str(step["mask"]))
    out = []
    for name in dict.fromkeys([*table.arrow.column_names, *names]):
        role = _role(table, name)
        steps = ", ".join(done.get(name, ()))
        if name in tokens:
            action = "replaced by pseudonyms: not anonymous"
        elif name not in names:
            action = "removed: it never leaves"
            if name not in table.schema.private:
                action = f"removed by {steps or 'a step'}"
        else:
            action = f"masked: {steps}" if steps else AS_IT_WAS
        new = name not in table.arrow.column_names
        counted = name in names and not pa.types.is_floating(published[name].type)
        after = len(pc.unique(published[name])) if counted else None
        out.append(
            ColumnChange(
                name=name,
                role=role,
                action=f"added by {steps or 'a step'}" if new else action,
                published=name in names,
                after=after,
            )
        )
    return out


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
