"""Linkability: can two files about the same person be joined through the release?

Definition: the attacker knows one half of the columns of a person from one source and the other
half from another; both halves are matched to their nearest released rows, and the attack succeeds
if they meet in one row. By names: one file holds names and all quasi-identifiers, and the attack
succeeds if the released row most alike is the person's own; rows that stand for nobody cannot be
linked so. Rows that were made up equal those of some people by chance; how often, people outside
(control) tell, who count as one more person of an equal row.
Source: Giomi et al., "A unified framework for quantifying privacy risk in synthetic data", 2023.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.covering import Released, tightest_class
from halfmask.metrics.estimate import Estimate, exact, failed, proportion
from halfmask.metrics.risk.criterion import LIMIT, Criterion, judge
from halfmask.metrics.risk.linkage import ATTACKER as MATCHES
from halfmask.metrics.risk.space import space
from halfmask.metrics.weighted import rows_of, tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.risk.linkage import Linkage
    from halfmask.metrics.risk.space import Space
    from halfmask.metrics.risk.targets import Targets

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
) -> Criterion:
    """Try to link the two ``parts`` of the columns; None: every other quasi-identifier."""
    sides = targets.sides
    shared = [c.name for c in sides.quasi]
    if len(shared) < 2:
        shared = list(sides.columns)
    first, second = parts or (shared[::2], shared[1::2])
    left, right = sides.named(list(first)), sides.named(list(second))
    if not left or not right:
        nothing = failed("There are not two parts of columns to link.")
        return judge(NAME, ATTACKER, nothing, None, nothing, limit=limit)
    spaces = (space(left), space(right))
    attack = proportion(_met(spaces, targets.members, neighbors), len(targets.members))
    control = None
    if len(targets.control):
        control = proportion(_met(spaces, targets.control, neighbors), len(targets.control))
    drawn = targets.random.integers(0, sides.after, (2, len(targets.members), neighbors))
    met = int((drawn[0][:, :, None] == drawn[1][:, None, :]).any(axis=(1, 2)).sum())
    baseline = proportion(met, len(targets.members))
    return judge(NAME, ATTACKER, attack, control, baseline, limit=limit)


def linkability_by_names(
    found: Linkage, targets: Targets, *, limit: float = LIMIT
) -> tuple[Criterion, ...]:
    """Judge record linkage by the nearest row; nothing where there is no true row to find.

    Args:
        found: the linkage that was tried.
        targets: who else is looked for, as a control.
        limit: the highest acceptable risk.
    """
    attack, control = found.distance, None
    if attack.value is None or attack.low is None or attack.high is None:
        return ()
    if len(targets.control) and found.standing < 1:
        control = _others(targets)
    if control is not None:
        share = found.standing  # made-up rows that equal nobody's count too
        value, low, high = attack.value * share, attack.low * share, attack.high * share
        attack = replace(attack, value=value, low=low, high=high)
    guessing = exact(found.baseline, attack.n)
    one = judge(f"{NAME}, by names", MATCHES, attack, control, guessing, limit=limit)
    # Nobody else has a row of the release, unless rows were made up.
    return (replace(one, notes=()) if len(targets.control) and control is None else one,)


def _others(targets: Targets) -> Estimate | None:
    """How often people outside would be linked, if a row that equals theirs were their own.

    None where rows are true: everybody who was not left out fits one.
    """
    sides, count = targets.sides, len(targets.control)
    released, owner = Released(sides.quasi), tightest_class(sides.quasi)
    counts = None if sides.original_counts is None else sides.original_counts[: targets.size]
    own, people = owner[: targets.size], rows_of(targets.size, counts)
    there = tally(own + 1, len(released) + 1, counts)
    if there[0] <= max(0, people - sides.after):
        return None
    nearest, _ = space(sides.quasi).nearest(targets.control, k=1, seed=2)
    mine = owner[targets.control]
    linked = mine[released.ids[sides.released_at(nearest[:, 0])] == mine]
    hits = float((1 / np.maximum(released.rows[linked], there[linked + 1] + 1)).sum())
    return proportion(min(hits * people / min(people, sides.after), count), count)


def _met(spaces: tuple[Space, Space], rows: NDArray[np.int64], neighbors: int) -> int:
    one, _ = spaces[0].nearest(rows, k=neighbors, seed=1)
    two, _ = spaces[1].nearest(rows, k=neighbors, seed=1_000_003)
    return int((one[:, :, None] == two[:, None, :]).any(axis=(1, 2)).sum())
