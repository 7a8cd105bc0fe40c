"""Attacks on a release: whom they are tried on, how they are judged, and what they cannot see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import SchemaError
from halfmask.metrics.estimate import Estimate, excess
from halfmask.metrics.sides import sides
from halfmask.metrics.weighted import entries_of, weighted_mean
from halfmask.table.document import Result
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.common_ground import SharedColumn
    from halfmask.metrics.sides import ReleasedRows, Sides
    from halfmask.table.tuples import Counts


WORK = 40_000_000  # comparisons of one attack


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """An original, its release, and who is attacked.

    Attributes:
        sides: both tables; the control's entries follow those of the original.
        members: entries of the original that are attacked, drawn as rows.
        control: entries of the control that are attacked; empty where there are none.
        size: how many entries the original has.
        random: the source of the attack's choices.
        people: per entry of the original, whose it is; None: every row is another person.
    """

    sides: Sides
    members: NDArray[np.int64]
    control: NDArray[np.int64]
    size: int
    random: np.random.Generator
    people: NDArray[np.int32] | None = None


def targets(
    original: Table | Tuples,
    release: ReleasedRows | Table | Tuples,
    control: Table | Tuples | None = None,
    *,
    attacks: int = 500,
    seed: int = 0,
    known: Sides | None = None,
    blank: Collection[str] | None = None,
) -> Targets:
    """Choose whom to attack; fewer where the tables are large.

    Args:
        original: the rows of the original, or its distinct tuples with their counts.
        release: likewise.
        control: rows of people who are not in the original.
        attacks: how many people at most.
        seed: repeats the choice.
        known: the original and the release on common ground, where that is at hand.
        blank: as for ``sides``.
    """
    random = np.random.default_rng(seed)
    own = Tuples.of(original)
    others = None if control is None else Tuples.of(control)
    if others is not None:
        paired = sides(_together(own, others), release, blank=blank)
    else:
        paired = sides(own, release, blank=blank) if known is None else known
    count = int(min(attacks, max(100, WORK // max(paired.rows.num_rows, 1))))
    members = entries_of(_some(own, count, random), own.counts)
    outside = np.empty(0, dtype=np.int64)
    if others is not None and others.rows:
        outside = entries_of(_some(others, count, random), others.counts) + len(own.table)
    return Targets(paired, members, outside, len(own.table), random, _people(own.table))


def _people(table: Table) -> NDArray[np.int32] | None:
    """Whose each row is, as numbers."""
    name = table.schema.person
    if name is None or name not in table.arrow.column_names:
        return None
    return table.encode(name).codes


def _some(side: Tuples, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    return random.choice(side.rows, min(count, side.rows), replace=False).astype(np.int64)


def _together(original: Tuples, control: Tuples) -> Tuples:
    """The original and the control as one table."""
    schema = original.table.schema
    names = [name for name in original.table.arrow.column_names if name not in schema.private]
    missing = [name for name in names if name not in control.table.arrow.column_names]
    if missing:
        raise SchemaError(f"The control lacks columns of the original: {', '.join(missing)}.")
    plain = [_plain(one.table.arrow.select(names)) for one in (original, control)]
    arrow = pa.concat_tables(_of_one_kind(*plain), promote_options="permissive")
    counts = np.concatenate([original.counts, control.counts])
    return Tuples(Table(arrow, schema), counts, engine=original.engine or control.engine)


def _of_one_kind(original: pa.Table, control: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Both tables, if their columns hold values of the same kind.

    Raises:
        SchemaError: they do not; says which.
    """
    apart = []
    for name in original.column_names:
        own, theirs = original.schema.field(name), control.schema.field(name)
        try:
            pa.unify_schemas([pa.schema([own]), pa.schema([theirs])], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid):
            apart.append(f"{name} ({own.type}, in the control {theirs.type})")
    if apart:
        raise SchemaError(
            "Columns of the control are written otherwise than in the original: "
            f"{', '.join(apart)}. Write them the same way; digits that begin with 0 are text."
        )
    return original, control


def _plain(rows: pa.Table) -> pa.Table:
    for place, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            column = rows.column(place).cast(field.type.value_type)
            rows = rows.set_column(place, field.name, column)
    return rows


LIMIT = 0.09
NO_CONTROL = (
    "There is no control: what the table tells about everybody cannot be told apart from what it "
    "tells about those in it."
)
CriterionOutcome = Literal["met", "not met", "undecided"]
OUTCOMES: tuple[CriterionOutcome, ...] = ("met", "undecided", "not met")  # the worse, the later


@dataclass(frozen=True, slots=True)
class AttackOutcome(Result):
    """The outcome of one attack.

    Attributes:
        name: what is tried.
        attacker: what the attacker knows and does, in words.
        attack: how often it succeeds; ``control`` on people outside; ``baseline`` by guessing.
        risk: how much of what the control leaves open the attack takes.
        limit: the highest acceptable risk.
        outcome: whether the risk is below it: met, not met, or undecided.
        column: the column that is guessed, where it is one.
        notes: what a reader should know.
    """

    name: str
    attacker: str
    attack: Estimate
    control: Estimate | None
    baseline: Estimate
    risk: Estimate
    limit: float
    outcome: CriterionOutcome
    column: str | None = None
    notes: tuple[str, ...] = ()


def judge_attack(
    name: str,
    attacker: str,
    attack: Estimate,
    control: Estimate | None,
    baseline: Estimate,
    *,
    limit: float = LIMIT,
    column: str | None = None,
    notes: tuple[str, ...] = (),
) -> AttackOutcome:
    """Compare an attack with its control, or with guessing where there is none.

    Definition: the risk is (a - c) / (1 - c), where a is how often the attack succeeds on people of
    the release and c on people who are not in it (control), or, where there are none, by guessing
    (baseline). It is met if the whole interval lies below the limit.
    Source: Article 29 Working Party, "Opinion 05/2014 on anonymisation techniques"; Giomi et al.,
    "A unified framework for quantifying privacy risk in synthetic data", 2023.
    """
    risk = excess(attack, baseline if control is None else control)
    if control is None:
        notes = (*notes, NO_CONTROL)
    if attack.high is not None and attack.high < (baseline.low or 0):
        notes = (*notes, "The attack does worse than guessing: read the risk with care.")
    return AttackOutcome(
        name, attacker, attack, control, baseline, risk, limit, decide(risk, limit), column, notes
    )


def decide(risk: Estimate, limit: float) -> CriterionOutcome:
    """Whether a risk is surely below the limit, surely above, or neither."""
    if risk.low is None or risk.high is None or not risk.trusted:
        return "undecided"
    if risk.high <= limit:  # the whole interval: a few lucky attempts prove nothing
        return "met"
    return "not met" if risk.low > limit else "undecided"


_UNREAD = 0.5  # the share of unknown labels above which attacks by a column prove nothing
_MORE = 0.01  # how much more of a column may be missing before it looks suppressed
_VALUES = 1_000_000  # distinct values of a column that must not leave which are looked at


@dataclass(frozen=True, slots=True)
class Doubts:
    """What was seen of a release before any attack.

    Definition: an attack that could not use a column proves nothing about it. A criterion is not
    called met where the release holds columns that no attack looked at (pseudonyms too), or labels
    of which more than half cannot be read: of a quasi-identifier, or of the column that is guessed.
    Singling out is not met where an identifier of the original left with the rows, however it is
    written. Columns that an engine did not count are in the tables all the same.

    Attributes:
        identified: identifiers that left with the rows, as sentences.
        unseen: what no attack could use; ``uncounted`` what only an attack by any column would.
        unread: per column that may be guessed, why no guess can be held against its labels.
        notes: what a reader should know besides.
    """

    identified: tuple[str, ...]
    unseen: tuple[str, ...]
    uncounted: tuple[str, ...]
    unread: dict[str, str]
    notes: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """All of them, the gravest first."""
        # uncounted ones are told elsewhere
        return (*self.identified, *self.unseen, *self.unread.values(), *self.notes)

    def judge(self, criteria: Sequence[AttackOutcome]) -> tuple[AttackOutcome, ...]:
        """The criteria, none of them met that cannot be known to be."""
        return tuple(self._judge(one) for one in criteria)

    def _judge(self, one: AttackOutcome) -> AttackOutcome:
        if self.identified and one.name.startswith(("singling out", "linkability")):
            return replace(one, outcome="not met", notes=(*self.identified, *one.notes))
        reasons = (*self.identified, *self.unseen)
        if one.name.endswith("by any column"):
            reasons = (*reasons, *self.uncounted, *self.unread.values())
        elif one.column in self.unread:
            reasons = (*reasons, self.unread[one.column])
        if one.outcome != "met" or not reasons:
            return one
        return replace(one, outcome="undecided", notes=(*reasons, *one.notes))


def doubts(paired: Sides, original: Tuples, release: ReleasedRows | Tuples) -> Doubts:
    """Look for what the attacks on a release cannot see.

    Args:
        paired: the columns that were read or counted, on common ground.
        original: the whole of the original, with the columns that were not counted.
        release: the whole of the release.
    """
    whole = release if isinstance(release, Tuples) else paired.released_tuples
    identified, unseen = _identifiers(original, whole)
    others = [name for name in whole.columns if name not in original.private]
    extra = [name for name in others if name not in original.columns]
    if extra:
        unseen.append(
            f"Columns of the release that the original does not have: {', '.join(extra)}. No "
            "attack looked at them: leave them out, or add them to the original."
        )
    unread = [
        column
        for column in paired.columns.values()
        if column.numbers is None and column.foreign > _UNREAD * paired.after
    ]
    unseen += [
        f"{_cannot_be_read(column)} Give the hierarchy that they are from."
        for column in unread
        if column.role == "quasi"
    ]
    left = [name for name in others if name not in extra and name not in paired.columns]
    return Doubts(
        tuple(identified),
        tuple(unseen),
        (f"Not counted, so that no attack used them: {', '.join(left)}.",) if left else (),
        {
            column.name: f"{_cannot_be_read(column)} Write them as in the original."
            for column in unread
            if column.role != "quasi"
        },
        (*_absent(paired), *_blank_notes(paired)),
    )


def _cannot_be_read(column: SharedColumn) -> str:
    return (
        f"Column {column.name!r}: most released labels cannot be read as values of the original, "
        "so that no attack can use them."
    )


def _identifiers(original: Tuples, release: Tuples) -> tuple[list[str], list[str]]:
    """Columns that must not leave and have left with their values, or that may have."""
    gone, doubtful = [], []
    for name in (one for one in release.columns if one in original.private):
        published, whole = _written(release, name)
        if whole and not len(published):
            continue  # nothing is left of it
        shared = _values_left(original, name, published, whole=whole)
        if shared:
            gone.append(
                f"Column {name!r} must not leave, as the schema says, and is in the release with "
                "values of the original. Take it out."
            )
        elif shared is None:
            doubtful.append(
                f"Column {name!r} must not leave, as the schema says, and is in the release. It "
                f"holds more than {_VALUES:,} values: no shared one was found among those that "
                "were looked at. Take it out."
            )
        else:
            doubtful.append(
                f"Column {name!r} must not leave, as the schema says, and is in the release with "
                "other values. No attack looked at them: if they were made from the identifiers, "
                "or stand in another release too, they tell who is who. Take it out."
            )
    return gone, doubtful


def _values_left(original: Tuples, name: str, published: pa.Array, *, whole: bool) -> bool | None:
    """Whether values of a column that never leaves have left; None where that is not known."""
    if name not in original.columns:
        return True
    own, all_own = _written(original, name)
    if pc.any(pc.is_in(published, value_set=own)).as_py():
        return True
    return False if all_own and whole else None


def _written(side: Tuples, name: str) -> tuple[pa.Array, bool]:
    """Values as texts without what is easily changed (case, spaces, signs); whether all."""
    values, whole = side.texts(name, _VALUES)
    # "AB-12 3" stays the same identifier as "ab123".
    plain = pc.replace_substring_regex(pc.utf8_lower(values), r"[^\p{L}\p{N}]+", "")
    return plain.filter(pc.not_equal(plain, "")), whole


def _absent(paired: Sides) -> list[str]:
    gone = [n for n in paired.original.schema.sensitive if n not in paired.rows.column_names]
    if not gone:
        return []
    return [f"The release does not hold {', '.join(gone)}: nothing is said about what it tells."]


def _blank_notes(paired: Sides) -> list[str]:
    """Columns whose missing cells may be suppressed ones; rows made anew hold new values."""
    out: list[str] = []
    if any(column.foreign for column in paired.quasi):
        return out
    for column in paired.quasi:
        if column.blank:
            continue
        before = _missing(paired.original.arrow, column.name, paired.original_counts)
        after = _missing(paired.rows, column.name, paired.released_counts)
        if 0 < before < after - _MORE:
            out.append(
                f"Column {column.name!r}: more cells are missing than in the original. They are "
                'read as missing there too: if they are suppressed, say suppressed="missing".'
            )
    return out


def _missing(rows: pa.Table, name: str, counts: Counts) -> float:
    """The share of rows without a value."""
    return weighted_mean(np.asarray(rows[name].is_null()), counts)
