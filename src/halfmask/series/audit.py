"""``audit_releases``: what several releases of a changing table reveal together.

Definition: people are taken to keep their sensitive value and their quasi-identifiers, and whoever
left not to come back. A *cut* of two releases is a smallest set of classes of both that nobody can
stand half inside, so whoever stays stands inside in both.
*Arrivals and departures*: the values that a cut of the later release has more often are those of
people who came, the others of people who left. Whoever knows who they are reads their values; this
counts where they are fewer than any class holds, or hold fewer values.
*Intersection*: who stands in a class of each release holds a value that all of them hold; this
counts where fewer are left than in any class alone.
A cut is *proven* where no knowledge of who was there when tells anybody's value further than one
release does: values that all its classes hold equally often can be exchanged; or one class keeps
its values and gains (or loses) groups that are as large and diverse as a class. All else is not
known: deciding it is as hard as filling in a table of three dimensions. Releases that hold the very
same rows in classes that do not overlap count as one: each class keeps its values, whoever stands
in it. Where labels of a column cannot be read, cuts are made
without it, and classes meet where their labels there are equal.
Source: Byun et al., "Secure anonymization for incremental datasets", 2006; Xiao and Tao,
"m-invariance: towards privacy preserving re-publication of dynamic datasets", 2007; Ganta et al.,
"Composition attacks and auxiliary information in data privacy", 2008.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from halfmask.engines.read import read
from halfmask.errors import InputError
from halfmask.metrics.risk.differencing import differencing, with_audit
from halfmask.metrics.sides import ReleasedRows, require_word, star_suppressed
from halfmask.metrics.weighted import joint
from halfmask.release.document import AS_IT_WAS
from halfmask.release.doors.series import SeriesLedger
from halfmask.series.regions import CutFindings, Regions, find_cuts, hold_same_rows, regions_of
from halfmask.table.document import Result
from halfmask.table.files.rows import normalize
from halfmask.table.hierarchy import canonical
from halfmask.table.read import as_schema
from halfmask.table.schema import Schema
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples, tally

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.metrics.risk.differencing import Differencing
    from halfmask.metrics.sides import Sides
    from halfmask.series.regions import ValueRows

Outcome = Literal["revealed", "nothing", "not known"]
_PAIRS = 20_000_000  # pairs of classes that are held at once
_STEPS = 4_000_000_000  # steps of a walk; beyond, the outcome is not known
ATTACKER = (
    "has all releases, knows people's quasi-identifiers and who was in the table when, and that "
    "neither these nor values change"
)


@dataclass(frozen=True, slots=True)
class Witness(Result):
    """One way in which releases reveal something together; it names no value.

    Attributes:
        kind: ``"arrival"``, ``"departure"`` or ``"intersection"``.
        column: the sensitive column.
        releases: which releases, from 1.
        places: in how many cuts, or intersections of classes.
        people: how many people in all; of intersections, at most so many.
        fewest: the fewest people in one place.
        values: the fewest values that are left in one place; 1: the value is certain.
        certain: of how many people the value is certain; of intersections, at most so many.
    """

    kind: Literal["arrival", "departure", "intersection"]
    column: str
    releases: tuple[int, ...]
    places: int
    people: int
    fewest: int
    values: int
    certain: int

    @property
    def sentence(self) -> str:
        """What is revealed, for people."""
        which = _join_numbers(self.releases)
        left = "the value is certain" if self.values == 1 else f"{self.values} values are left"
        if self.kind == "intersection":
            where = _many(self.places, "place", "places")
            most = f", at most {_many(self.people, 'person', 'people')}" if self.people else ""
            return (
                f"{self.column}: classes of releases {which} that meet in {where} leave fewer "
                f"values together than each alone{most}; in one of them {left}."
            )
        verb = "came" if self.kind == "arrival" else "left"
        who, where = _many(self.people, "person", "people"), _many(self.places, "group", "groups")
        fewest = f", in one of them {self.fewest:,}" if self.places > 1 else ""
        return (
            f"{self.column}: between releases {which} {who} {verb} in {where}{fewest}: whoever "
            f"knows who {verb} reads what they hold, and {left}."
        )


@dataclass(frozen=True, slots=True)
class SeriesAudit(Result):
    """What several releases reveal together.

    Attributes:
        outcome: ``"revealed"``; ``"nothing"``, which is proven; or ``"not known"``.
        rows: the rows of each release.
        witnesses: what is revealed, the worst first.
        cuts: how many cuts all releases have together.
        proven: how many of them are proven to reveal nothing further.
        undecided: how many people stand in those that are neither proven nor revealed.
        narrowed: per sensitive column, how many people of the given table have fewer values left
            than one release leaves; None where no table of people was given, or it took too long.
        certain: the same, where one value is left.
        reasons: why something is not known, one sentence each.
        attacker: who could do this.
    """

    derived = ("holds",)

    outcome: Outcome
    rows: tuple[int, ...]
    witnesses: tuple[Witness, ...]
    cuts: int
    proven: int
    undecided: int
    narrowed: Mapping[str, int | None] = field(default_factory=dict)
    certain: Mapping[str, int | None] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    attacker: str = ATTACKER

    @property
    def holds(self) -> bool:
        """Whether it is proven that nothing is revealed."""
        return self.outcome == "nothing"

    @property
    def sentence(self) -> str:
        """The outcome for people."""
        if self.outcome == "revealed":
            return f"Together the {len(self.rows)} releases reveal what none of them does alone."
        if self.outcome == "nothing":
            return (
                f"Together the {len(self.rows)} releases reveal no more than one of them, as far "
                "as nobody moves to other quasi-identifiers, changes values or comes back."
            )
        return (
            f"It is not known whether the {len(self.rows)} releases reveal more together: no way "
            f"was found, and {self.undecided:,} people stand where it cannot be ruled out."
        )


def audit_releases(
    *releases: ReleasedRows | Table | str | PathLike[str],
    schema: Schema | Mapping[str, object] | str | PathLike[str] | None = None,
    people: Table | str | PathLike[str] | None = None,
    suppressed: str | None = None,
    previous: str | PathLike[str] | SeriesLedger | None = None,
) -> SeriesAudit:
    """Measure what releases of one changing table reveal together, in the order they were made.

    Args:
        releases: two or more: releases, tables, frames, or names of files.
        schema: quasi-identifiers with their hierarchies and sensitive columns; None: that of
            ``people``, or of the first release, which knows no hierarchies: then words that may
            stand for each other make the outcome "not known".
        people: a table of people with their true values, whom an attacker may look for; then it is
            counted how many of them are narrowed down further.
        suppressed: what stands for a suppressed quasi-identifier, if it is not ``*``.
        previous: the ledger of the series that they are releases of, which may prove what cannot
            be told from outside.

    Raises:
        InputError: there are fewer than two releases, or one lacks a column.

    Example:
        >>> import halfmask as hm
        >>> schema = {"age": "quasi", "ill": "sensitive"}
        >>> may = hm.read({"age": ["20-29"] * 2, "ill": ["flu", "gout"]}, schema)
        >>> june = hm.read({"age": ["20-29"] * 3, "ill": ["flu", "gout", "asthma"]}, schema)
        >>> hm.audit_releases(may, june).outcome
        'revealed'
    """
    require_word(suppressed)
    table = None if people is None else _people(people, schema)
    tables = [_release(one) for one in releases]
    held = _schema(schema, table, releases, tables)
    if suppressed is not None:
        tables = [
            Table(star_suppressed(one.arrow, held.quasi, suppressed), one.schema) for one in tables
        ]
    looked = None if table is None else Tuples.of(table)
    sure = None if schema is not None or table is not None else _unchanged_columns(held, tables)
    found = audit_tuples([Tuples.of(one) for one in tables], held, looked, declared=sure)
    if previous is None or found.outcome == "nothing":
        return found
    return _with_ledger(found, SeriesLedger.open(previous), tables, held)


def _with_ledger(
    found: SeriesAudit, ledger: SeriesLedger, tables: Sequence[Table], schema: Schema
) -> SeriesAudit:
    """The same where a ledger may prove what cannot be told from outside."""
    ledger.require_releases()
    if not ledger.proves([one.arrow for one in tables]):
        note = "The ledger proves nothing here: it does not know these rows, or signatures changed."
        return replace(found, reasons=(*found.reasons, note))
    note = (
        "The ledger proves it, also for people who moved or came back: these are its releases, and "
        "everybody hides among the same values in each of them."
    )
    if list(schema.sensitive) != [ledger.terms["sensitive column"]]:
        return replace(found, reasons=(*found.reasons, "The ledger is about another column."))
    return replace(found, outcome="nothing", witnesses=(), undecided=0, reasons=(note,))


def audit_tuples(
    releases: Sequence[Tuples],
    schema: Schema,
    people: Tuples | None = None,
    *,
    declared: Sequence[str] | None = None,
) -> SeriesAudit:
    """The same of releases that were read, or counted; see ``regions_of`` for ``declared``."""
    found = regions_of(releases, schema, people, declared=declared)
    surely = _pairs(found)
    if found.values and hold_same_rows(releases):
        apart = not found.unread and surely is not None and not surely[1].any()
        return _same(found, None if people is None else 0, apart=apart)
    # Labels that cannot be read may stand for each other: who is on which side is not known.
    wide = found
    if found.unread:
        wide = regions_of(releases, schema, None, declared=declared, blind=found.unread)
    reasons = _doubts(found)
    met = surely if wide is found else _pairs(wide)
    if met is None or surely is None:
        reasons.append(
            "Too many classes of different releases overlap: what they reveal was not looked at."
        )
        return _audit(found, (), None, reasons, ({}, {}))
    cuts = find_cuts(wide, met[0], found)
    witnesses = [witness for one in cuts.columns for witness in _differences(one.name, cuts)]
    pairs, alike = surely
    if wide is not found:
        pairs = pairs[found.same_unread(pairs)]
        alike = _alike(found, wide, met[1])
    for values in found.values:
        told_here, marks = _intersections(found, values, pairs, alike)
        witnesses += told_here
        if wide is found:
            cuts.revealed[cuts.of_box[marks]] = True
    narrowed: dict[str, int | None] = {}
    certain: dict[str, int | None] = {}
    for place, values in enumerate(found.values):
        if people is None or found.unread:
            narrowed[values.name] = certain[values.name] = None
            continue
        told = _count_narrowed(found, place, people)
        narrowed[values.name], certain[values.name] = told[:2]
        if told[0] is None:
            reasons.append(f"People were too many to be looked up for {values.name}.")
        elif told[0]:
            which = tuple(range(1, len(found.rows) + 1))
            if not any(w.kind == "intersection" and w.column == values.name for w in witnesses):
                worst = 1 if told[1] else 2
                facts = (told[2], told[0], 1, worst, told[1] or 0)
                witnesses.append(Witness("intersection", values.name, which, *facts))
    return _audit(wide, witnesses, cuts, reasons, (narrowed, certain))


def _pairs(found: Regions) -> tuple[NDArray[np.int32], NDArray[np.uint64]] | None:
    """The classes that meet, and those that releases share; None where they are too many."""
    from halfmask.kernels.coverage import meeting_pairs

    pairs = np.empty((_room(found), 2), dtype=np.int32)
    count, alike = meeting_pairs(found.meeting, found.held, pairs, _STEPS)
    return None if count < 0 else (pairs[:count], alike)


def _alike(found: Regions, wide: Regions, alike: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Per box, the releases in which it may meet another, given the same of wider boxes."""
    of = np.empty(found.boxes, dtype=np.int64)
    for fine, coarse in zip(found.ids, wide.ids, strict=True):
        of[fine] = coarse
    out = alike[of]
    for t in range(len(found.rows)):
        held = (found.held >> np.uint64(t)) & np.uint64(1) == 1
        several = np.bincount(of[held], minlength=wide.boxes) > 1
        out |= several[of].astype(np.uint64) << np.uint64(t)
    return np.asarray(out)


def _same(found: Regions, told: int | None, *, apart: bool) -> SeriesAudit:
    """The very same rows again; where classes are ``apart``, whoever stands in them.

    Whoever stays in a class keeps the value, and who takes a free place may hold any that is left.
    Where classes overlap somebody may have gone from one to the other, and hold what both hold.
    """
    narrowed = {values.name: told for values in found.values}
    note = "All releases hold the very same rows and count as one."
    if not apart:
        note = (
            "All releases hold the very same rows, in classes that overlap: they count as one "
            "where the same people stand in each of them, which the rows do not tell."
        )
    outcome: Outcome = "nothing" if apart else "not known"
    open_ = 0 if apart else max(found.rows)
    return SeriesAudit(outcome, found.rows, (), 0, 0, open_, narrowed, narrowed, (note,))


def _audit(
    found: Regions,
    witnesses: Sequence[Witness],
    cuts: CutFindings | None,
    reasons: list[str],
    told: tuple[Mapping[str, int | None], Mapping[str, int | None]],
) -> SeriesAudit:
    undecided = max(found.rows) if cuts is None else cuts.undecided_people(found)
    if not found.values:
        reasons.append("No sensitive column is declared: what is narrowed down is not known.")
    outcome: Outcome = "revealed" if witnesses else "not known" if undecided else "nothing"
    if outcome == "nothing" and reasons:
        outcome, undecided = "not known", max(found.rows)
    ordered = sorted(witnesses, key=lambda one: (one.values, one.fewest, one.kind, one.releases))
    return SeriesAudit(
        outcome,
        found.rows,
        tuple(ordered),
        0 if cuts is None else cuts.count,
        0 if cuts is None else int(cuts.proven.sum()),
        undecided,
        *told,
        tuple(reasons),
    )


def _room(found: Regions) -> int:
    """Pairs that are worth holding: a few dozen per class, and not above a limit."""
    return int(min(_PAIRS, max(1_000_000, 64 * found.boxes)))


def _doubts(found: Regions) -> list[str]:
    """Why classes or values of the releases may not be what they seem."""
    reasons = []
    if found.unread:
        reasons.append(
            f"Labels of {', '.join(found.unread)} cannot be read: give the schema with their "
            "hierarchies."
        )
    for values in found.values:
        whole = np.zeros((len(found.rows), values.known), dtype=np.int64)
        entries = values.entries
        np.add.at(whole, (values.release[values.owner], entries.values), entries.counts)
        common = min(
            int(np.minimum(whole[s], whole[t]).sum()) / min(found.rows[s], found.rows[t])
            for s in range(len(whole))
            for t in range(s)
        )
        if common < 0.5:
            reasons.append(
                f"Fewer than half of the values of {values.name} stand in all releases: they are "
                "about other people, or the values were altered."
            )
    return reasons


def _differences(column: str, cuts: CutFindings) -> list[Witness]:
    one = next(found for found in cuts.columns if found.name == column)
    kinds: tuple[Literal["arrival", "departure"], ...] = ("arrival", "departure")
    return [
        Witness(kinds[side], column, (s + 1, t + 1), *facts)
        for (s, t, side), facts in one.differences.items()
    ]


def _intersections(
    found: Regions,
    values: ValueRows,
    pairs: NDArray[np.int32],
    alike: NDArray[np.uint64],
) -> tuple[list[Witness], NDArray[np.bool_]]:
    """What classes that meet leave together, and the boxes where that is."""
    from halfmask.kernels.coverage import narrowed_pairs

    count, limits = len(found.rows), limits_of(values, len(found.rows))
    told = np.zeros((count, count, 5), dtype=np.int64)
    told[:, :, 2:4] = np.iinfo(np.int64).max
    marks = np.zeros(found.boxes, dtype=bool)
    narrowed_pairs(values.entries, pairs, alike, limits, told, marks)
    witnesses = [
        Witness("intersection", values.name, (s + 1, t + 1), *map(int, told[s, t]))
        for s in range(count)
        for t in range(s + 1, count)
        if told[s, t, 0]
    ]
    return witnesses, marks


def limits_of(values: ValueRows, count: int) -> NDArray[np.int64]:
    """(releases, releases) how many values every class of both holds; at least 2."""
    least = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(least, values.release, values.distinct)
    return np.maximum(2, np.minimum(least[:, None], least[None, :]))


def _count_narrowed(
    found: Regions, place: int, people: Tuples
) -> tuple[int | None, int | None, int]:
    """How many people are narrowed down further, how many for certain, and in how many places."""
    from halfmask.kernels.coverage import narrowed_targets

    values = found.values[place]
    leaves = found.leaves_of(people)
    encoded = people.table.encode(values.name)
    numbers = found.texts[place]
    texts = [None if v is None else canonical(v) for v in encoded.values.to_pylist()]
    own = np.array([numbers.get(text, -2) for text in texts], dtype=np.int64)[encoded.codes]
    known = (leaves >= 0).all(axis=1) & (own >= 0)
    if not known.any():
        return 0, 0, 0
    leaves, own = leaves[known], own[known]
    sizes = [len(column.leaves) for column in found.columns]
    coded = [(leaves[:, place], size) for place, size in enumerate(sizes)]
    ids, count = joint([*coded, (own.astype(np.int32), values.known)])
    first = np.empty(count, dtype=np.int64)
    first[ids] = np.arange(len(ids))
    rows = np.column_stack([leaves[first], own[first]])
    counts = tally(ids, count, people.counts[known])
    left, lone = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    limit = int(limits_of(values, len(found.rows)).min())
    keys = np.ascontiguousarray(rows[:, :-1]).astype(np.int32)
    done = narrowed_targets(
        found.by_leaves(), values.entries, keys, rows[:, -1].astype(np.int64), limit, _STEPS,
        left, lone,
    )  # fmt: skip
    if not done:
        return None, None, 0
    return (
        int(counts[left > 0].sum()),
        int(counts[left == 1].sum()),
        int(np.count_nonzero(left)),
    )


def _release(given: Any) -> Table:
    if isinstance(given, ReleasedRows) and not hasattr(given, "__arrow_c_stream__"):
        return Table(normalize(given.to_arrow(), ()), Schema())
    return read(given).collect()


def _people(given: Table | str | PathLike[str], schema: object) -> Table:
    if isinstance(given, Table):
        return given.collect()
    return read(given, schema).collect()  # type: ignore[arg-type]  # as it was given


def _schema(
    given: Any, people: Table | None, releases: Sequence[object], tables: Sequence[Table]
) -> Schema:
    """The schema that was given, or that of the people or of a release."""
    if given is not None:
        return as_schema(given)
    known = ([] if people is None else [people]) + [t for t in tables if t.schema.quasi]
    if not known:
        raise InputError(
            "Nothing says which columns are quasi-identifiers: give the schema of the table that "
            f"the {len(releases)} releases were made of."
        )
    return known[0].schema


def _unchanged_columns(schema: Schema, tables: Sequence[Table]) -> list[str]:
    """The columns that all release files say they hold as they were."""
    said = [one.schema.release.get("recoding", {}) for one in tables]
    return [name for name in schema.quasi if all(one.get(name) == AS_IT_WAS for one in said)]


def _many(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _join_numbers(numbers: Sequence[int]) -> str:
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}"


def audit_differencing(release: Sides, earlier: Sides) -> Differencing:
    """What a release and an earlier one tell together; nothing is trusted that is not known."""
    found = differencing(release, earlier)
    original = release.original_tuples
    schema = original.table.schema
    secret = [n for n in schema.sensitive if n in release.columns and n in earlier.columns]
    if found.alone.value is None or not secret:
        return found
    kept = {n: c for n, c in schema.columns.items() if c.role != "sensitive" or n in secret}
    both = (earlier.released_tuples, release.released_tuples)
    audit = audit_tuples(both, replace(schema, columns=kept), original)
    certain = {name: number or 0 for name, number in audit.certain.items()}
    for one in audit.witnesses:
        if one.kind != "intersection":
            certain[one.column] = certain.get(one.column, 0) + one.certain
    words = tuple(one.sentence for one in audit.witnesses) or (audit.sentence, *audit.reasons)
    return with_audit(found, audit.outcome, words, certain)
