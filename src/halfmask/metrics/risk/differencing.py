"""Differencing: what two releases of the same people tell together.

Definition: a person stands in a class of each release; together they form smaller classes, of the
people who share both. A sensitive value is certain if one value only is possible in both classes of
a person; it is new if neither release gives it away alone. Rows whose labels cannot be read count
as left out; then more may be told, and no figure is trusted.
Source: Ganta et al., "Composition attacks and auxiliary information in data privacy", 2008; Xiao
and Tao, "m-invariance: towards privacy preserving re-publication of dynamic datasets", 2007.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from halfmask.metrics.estimate import Estimate, exact_estimate, failed_estimate
from halfmask.metrics.risk.attack import LIMIT, judge_attack
from halfmask.metrics.sides import ReleasedTuples, tightest_class
from halfmask.metrics.weighted import joint, runs, weighted_mean
from halfmask.table.document import Result, document_field
from halfmask.table.tuples import pick_counts, rows_in, tally

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from halfmask.metrics.risk.attack import AttackOutcome
    from halfmask.metrics.sides import Sides

ATTACKER = (
    "The attacker has both releases, knows the quasi-identifiers of a person, and keeps what fits "
    "in both."
)


@dataclass(frozen=True, slots=True)
class Differencing(Result):
    """Two releases of the same people, held against each other.

    Attributes:
        smallest: the rows of the smallest class of either release; ``together`` of both.
        smaller: the share of people whose combined class is smaller than that.
        alone: the share of people whom the combination leaves alone.
        disclosed: per sensitive column, the share of people whose value becomes certain through
            both releases and not through one.
        outcome: what an audit of both found, who came and left among it; None where none was made.
        witnesses: in which way something is revealed, or why that is not known; a sentence each.
    """

    attacker: str = field(default=ATTACKER, kw_only=True)
    smallest: int
    together: int
    smaller: Estimate
    alone: Estimate
    disclosed: tuple[tuple[str, Estimate], ...] = field(
        metadata=document_field(parts=("column", "share"))
    )
    outcome: Literal["revealed", "nothing", "not known"] | None = None
    witnesses: tuple[str, ...] = ()


def singling_out_together(
    found: Differencing | None, *, controlled: bool, limit: float = LIMIT
) -> tuple[AttackOutcome, ...]:
    """Judge whom both releases leave alone; nothing where there is no earlier one.

    Args:
        found: what both tell together.
        controlled: whether other attacks have a control; nobody else stands in both releases.
        limit: the highest acceptable risk.
    """
    if found is None:
        return ()
    attack, nothing = found.alone, exact_estimate(0.0, found.alone.n)
    one = judge_attack(
        "singling out, with the earlier release", ATTACKER, attack, None, nothing, limit=limit
    )
    own = (attack.reason,) if attack.reason else ()
    decided = one.outcome
    if found.outcome == "revealed":
        decided = "not met"
    elif found.outcome == "not known" and decided == "met":
        decided = "undecided"
    notes = (*found.witnesses, *(note for note in own if note not in found.witnesses))
    return (replace(one, outcome=decided, notes=notes if controlled else (*notes, *one.notes)),)


def with_audit(
    found: Differencing,
    outcome: Literal["revealed", "nothing", "not known"],
    witnesses: tuple[str, ...],
    certain: Mapping[str, int],
) -> Differencing:
    """The same with what an audit of both releases found; ``certain``: people told, per column.

    No figure is trusted where it is not known whether more is revealed.
    """
    disclosed = []
    for column, share in found.disclosed:
        if share.value is not None and share.n:
            told = max(share.value, min(1.0, certain.get(column, 0) / share.n))
            share = replace(share, value=told, low=told, high=told)
        disclosed.append((column, share))
    found = replace(found, disclosed=tuple(disclosed), outcome=outcome, witnesses=witnesses)
    if outcome != "not known":
        return found
    why = witnesses[0]
    return replace(
        found,
        alone=_doubt(found.alone, why),
        smaller=_doubt(found.smaller, why),
        disclosed=tuple((column, _doubt(share, why)) for column, share in disclosed),
    )


def differencing(one: Sides, two: Sides) -> Differencing:
    """Combine two releases of the same original; people left out of one count as apart there."""
    owners = [tightest_class(side.quasi) for side in (one, two)]
    counts, rows = one.original_counts, one.before
    absent = [rows_in(pick_counts(counts, owner < 0)) for owner in owners]
    if any(2 * gone > rows for gone in absent):
        nothing = failed_estimate(
            "One of the releases stands for few of the people: nothing combines."
        )
        return Differencing(0, 0, nothing, nothing, ())
    # 0 are those left out: to be missing from a release is told by it too.
    shifted = [(owner + 1).astype(np.int32) for owner in owners]
    smallest = min(int(ReleasedTuples(side.quasi).rows.min()) for side in (one, two))
    ids, count = joint([(codes, int(codes.max()) + 1) for codes in shifted])
    together = tally(ids, count, counts)
    both, held = (owners[0] >= 0) & (owners[1] >= 0), together[ids]
    known = _known_small(held, shifted, (one, two))
    unread = _unread((one, two))
    return Differencing(
        smallest,
        int(together.min()),
        _doubt(exact_estimate(weighted_mean((held < smallest) & known, counts), rows), unread),
        _doubt(exact_estimate(weighted_mean((held == 1) & known, counts), rows), unread),
        tuple(
            (column.name, _doubt(_disclosure(column.name, one, two, owners, both), unread))
            for column in one.sensitive
            if column.name in two.columns
        ),
    )


def _unread(both: tuple[Sides, Sides]) -> str:
    """What is to be said of labels that cannot be read; nothing where all can."""
    names = dict.fromkeys(c.name for side in both for c in side.quasi if c.foreign)
    if not names:
        return ""
    return f"Labels of {', '.join(names)} cannot be read: more may be told."


def _doubt(one: Estimate, unread: str) -> Estimate:
    if one.value is None or not unread:
        return one
    return replace(one, trusted=False, reason=unread)


def _known_small(
    held: NDArray[np.int64], shifted: list[NDArray[np.int32]], both: tuple[Sides, Sides]
) -> NDArray[np.bool_]:
    """Whose combined class is known to be as small as ``held`` says.

    Where labels overlap, fewer people may be counted to a class than it has rows. That is not the
    work of the combination.
    """
    counted, published = [], []
    for codes, side in zip(shifted, both, strict=True):
        own = tally(codes, int(codes.max()) + 1, side.original_counts)
        counted.append(own[codes])
        published.append(np.concatenate((own[:1], ReleasedTuples(side.quasi).rows))[codes])
    return np.asarray((held < np.minimum(*counted)) | (held >= np.minimum(*published)))


def _disclosure(
    name: str, one: Sides, two: Sides, owners: list[NDArray[np.int64]], both: NDArray[np.bool_]
) -> Estimate:
    """The share of people with one possible value in both classes, and several in each."""
    sets = [_possible(side, name) for side in (one, two)]
    if sets[0][2] != sets[1][2]:
        return failed_estimate(
            "The releases hold values of this column that the original does not know."
        )
    # Pairs of classes that somebody stands in; of each, the values of the first that the second
    # holds too, found as numbers of class and value.
    leaves, rows = sets[0][2], one.original_counts
    pairs, turn = np.unique(
        owners[0][both] * (int(owners[1].max()) + 1) + owners[1][both], return_inverse=True
    )
    first, second = np.divmod(pairs, int(owners[1].max()) + 1)
    starts, values, _ = sets[0]
    counts = np.diff(starts)[first]
    group = np.repeat(np.arange(len(pairs)), counts)
    value = values[runs(starts[first], counts)]
    keys = np.repeat(np.arange(len(sets[1][0]) - 1), np.diff(sets[1][0])) * leaves + sets[1][1]
    shared = np.isin(second[group] * leaves + value, keys)
    left = np.bincount(group[shared], minlength=len(pairs))
    new = (left == 1) & (counts > 1) & (np.diff(sets[1][0])[second] > 1)
    people = tally(turn.reshape(-1), len(pairs), rows[both])
    return exact_estimate(int(people[new].sum()) / one.before, one.before)


def _possible(side: Sides, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """The values that each released class leaves possible, class after class."""
    column = side.columns[name]
    ids = ReleasedTuples(side.quasi).ids
    sizes = column.sizes[column.after]
    owner = np.repeat(ids, sizes)
    covered = column.covered[runs(column.starts[column.after], sizes)]
    pairs = np.unique(owner * column.leaves + covered)
    classes = int(ids.max()) + 1
    starts = np.searchsorted(pairs // column.leaves, np.arange(classes + 1))
    return starts, pairs % column.leaves, column.leaves
