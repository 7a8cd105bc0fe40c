"""Linkability: whether files about a person meet in the release, and how near it comes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.estimate import (
    Estimate,
    exact_estimate,
    failed_estimate,
    mean_estimate,
    proportion,
)
from halfmask.metrics.risk.attack import LIMIT, AttackOutcome, judge_attack
from halfmask.metrics.risk.distances import row_distances
from halfmask.metrics.risk.linkage import ATTACKER as MATCHES
from halfmask.metrics.sides import ReleasedTuples, sides, tightest_class
from halfmask.table.document import Result
from halfmask.table.tuples import tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.risk.attack import Targets
    from halfmask.metrics.risk.distances import RowDistances
    from halfmask.metrics.risk.linkage import Linkage


NAME = "linkability"
ATTACKER = (
    "The attacker has two files about the same people, each with a part of the columns, and joins "
    "them through the released rows that are most alike."
)


def linkability(
    targets: Targets,
    parts: tuple[Sequence[str], Sequence[str]] | None = None,
    *,
    neighbors: int = 1,
    limit: float = LIMIT,
) -> AttackOutcome:
    """Try to link the two ``parts`` of the columns; None: every other quasi-identifier.

    Definition: the attacker knows one half of the columns of a person from one source and the other
    half from another; both halves are matched to their nearest released rows, and the attack
    succeeds if they meet in one row. By names: one file holds names and all quasi-identifiers, and
    the attack succeeds if the released row most alike is the person's own; rows that stand for
    nobody cannot be linked so. Rows that were made up equal those of some people by chance; how
    often, people outside (control) tell, who count as one more person of an equal row.
    Source: Giomi et al., "A unified framework for quantifying privacy risk in synthetic data",
    2023.
    """
    sides = targets.sides
    shared = [c.name for c in sides.quasi]
    if len(shared) < 2:
        shared = list(sides.columns)
    first, second = parts or (shared[::2], shared[1::2])
    left, right = sides.columns_named(list(first)), sides.columns_named(list(second))
    if not left or not right:
        nothing = failed_estimate("There are not two parts of columns to link.")
        return judge_attack(NAME, ATTACKER, nothing, None, nothing, limit=limit)
    spaces = (row_distances(left), row_distances(right))
    attack = proportion(_count_joined(spaces, targets.members, neighbors), len(targets.members))
    control = None
    if len(targets.control):
        control = proportion(
            _count_joined(spaces, targets.control, neighbors), len(targets.control)
        )
    drawn = targets.random.integers(0, sides.after, (2, len(targets.members), neighbors))
    met = int((drawn[0][:, :, None] == drawn[1][:, None, :]).any(axis=(1, 2)).sum())
    baseline = proportion(met, len(targets.members))
    return judge_attack(NAME, ATTACKER, attack, control, baseline, limit=limit)


def linkability_by_names(
    found: Linkage, targets: Targets, *, limit: float = LIMIT
) -> tuple[AttackOutcome, ...]:
    """Judge record linkage by the nearest row; nothing where there is no true row to find.

    Args:
        found: the linkage that was tried.
        targets: who else is looked for, as a control.
        limit: the highest acceptable risk.
    """
    attack, control = found.distance, None
    if attack.value is None or attack.low is None or attack.high is None:
        return ()
    if len(targets.control) and found.paired_share < 1:
        control = _outside_linked(targets)
    if control is not None:
        share = found.paired_share  # made-up rows that equal nobody's count too
        value, low, high = attack.value * share, attack.low * share, attack.high * share
        attack = replace(attack, value=value, low=low, high=high)
    guessing = exact_estimate(found.baseline, attack.n)
    one = judge_attack(f"{NAME}, by names", MATCHES, attack, control, guessing, limit=limit)
    # Nobody else has a row of the release, unless rows were made up.
    return (replace(one, notes=()) if len(targets.control) and control is None else one,)


def _outside_linked(targets: Targets) -> Estimate | None:
    """How often people outside would be linked, if a row that equals theirs were their own.

    None where rows are true: everybody who was not left out fits one.
    """
    sides, count = targets.sides, len(targets.control)
    released, owner = ReleasedTuples(sides.quasi), tightest_class(sides.quasi)
    counts = sides.original_counts[: targets.size]
    own, people = owner[: targets.size], int(counts.sum())
    there = tally(own + 1, len(released) + 1, counts)
    if there[0] <= max(0, people - sides.after):  # nobody lacks a row but those left out
        return None
    nearest, _ = row_distances(sides.quasi).nearest(targets.control, k=1, seed=2)
    mine = owner[targets.control]
    linked = mine[released.ids[sides.released_at(nearest[:, 0])] == mine]
    # Whoever fits an equal row is one of its rows' people, and counts as one more of them.
    hits = float((1 / np.maximum(released.rows[linked], there[linked + 1] + 1)).sum())
    return proportion(min(hits * people / min(people, sides.after), count), count)


def _count_joined(
    spaces: tuple[RowDistances, RowDistances], rows: NDArray[np.int64], neighbors: int
) -> int:
    one, _ = spaces[0].nearest(rows, k=neighbors, seed=1)
    two, _ = spaces[1].nearest(rows, k=neighbors, seed=1_000_003)
    return int((one[:, :, None] == two[:, None, :]).any(axis=(1, 2)).sum())


@dataclass(frozen=True, slots=True)
class Nearness(Result):
    """Distances from people to the nearest row.

    Attributes:
        released: from people of the original to the nearest released row.
        people: from the same people to the nearest other person.
        outside: from people of the control to the nearest released row; None without a control.
        met: the share of people whom a released row meets at distance 0; ``met_by_people`` whom
            another person meets.
    """

    released: Estimate
    people: Estimate
    outside: Estimate | None
    met: Estimate
    met_by_people: Estimate


def nearness(targets: Targets) -> Nearness:
    """Measure the attacked people against the release and against each other.

    Definition: the distance of a person to the nearest released row, beside the distance to the
    nearest other person of the original (and of people outside to the nearest released row, where a
    control is given), each as a mean over columns, 0 to 1. A release that is much nearer than other
    people, or than it is to people outside, repeats its original.
    Source: the distance to the closest record, as in Zhao et al., "CTAB-GAN: effective table data
    synthesizing", 2021.
    """
    columns = list(targets.sides.columns.values())
    compared = row_distances(columns)
    width = len(columns)
    near = compared.nearest(targets.members)[1][:, 0] / width
    itself = sides(targets.sides.original, targets.sides.original)
    own = row_distances(itself.columns_named([c.name for c in columns]))
    # The nearest row of a person in the same table is the person: the second one counts.
    other = own.nearest(targets.members, np.arange(targets.size), k=2)[1][:, 1] / width
    other = np.where(np.isfinite(other), other, 1.0)
    outside = None
    if len(targets.control):
        outside = mean_estimate((compared.nearest(targets.control)[1][:, 0] / width).tolist())
    return Nearness(
        mean_estimate(near.tolist()),
        mean_estimate(other.tolist()),
        outside,
        _share_at_zero(near),
        _share_at_zero(other),
    )


def _share_at_zero(distances: NDArray[np.float64]) -> Estimate:
    return proportion(int((distances == 0).sum()), len(distances))
