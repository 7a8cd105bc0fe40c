"""Linkability: can two files about the same person be joined through the release?

Definition: the attacker knows one half of the columns of a person from one source and the other
half from another; both halves are matched to their nearest released rows, and the attack succeeds
if they meet in one row. By names: one file holds names and all quasi-identifiers, and the attack
succeeds if the released row most alike is the person's own; rows that stand for nobody cannot be
linked so.
Source: Giomi et al., "A unified framework for quantifying privacy risk in synthetic data", 2023.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from halfmask.metrics.estimate import exact, failed, proportion
from halfmask.metrics.risk.criterion import LIMIT, Criterion, judge
from halfmask.metrics.risk.linkage import ATTACKER as MATCHES
from halfmask.metrics.risk.space import space

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
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
    found: Linkage, *, controlled: bool, limit: float = LIMIT
) -> tuple[Criterion, ...]:
    """Judge record linkage by the nearest row; nothing where there is no true row to find.

    Args:
        found: the linkage that was tried.
        controlled: whether other attacks have a control; nobody else has a row to be found.
        limit: the highest acceptable risk.
    """
    if found.distance.value is None:
        return ()
    guessing = exact(found.baseline, found.distance.n)
    one = judge(f"{NAME}, by names", MATCHES, found.distance, None, guessing, limit=limit)
    return (replace(one, notes=()) if controlled else one,)


def _met(spaces: tuple[Space, Space], rows: NDArray[np.int64], neighbors: int) -> int:
    one, _ = spaces[0].nearest(rows, k=neighbors, seed=1)
    two, _ = spaces[1].nearest(rows, k=neighbors, seed=1_000_003)
    return int((one[:, :, None] == two[:, None, :]).any(axis=(1, 2)).sum())
