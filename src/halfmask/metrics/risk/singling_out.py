"""Singling out: can somebody write down a condition that fits exactly one person?

Definition: the attacker takes a released row that is alone in the release on a few columns and
guesses that exactly one person of the original fits its labels there.
Source: Cohen and Nissim, "Towards formalizing the GDPR's notion of singling out", 2020; Giomi et
al., 2023.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.codes import joint
from halfmask.metrics.estimate import proportion
from halfmask.metrics.risk.criterion import LIMIT, Criterion, judge
from halfmask.metrics.weighted import tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.risk.targets import Targets
    from halfmask.metrics.shared_column import SharedColumn

NAME = "singling out"
ATTACKER = (
    "The attacker has the release only, and looks for a combination of published values that fits "
    "exactly one real person."
)
_ROUNDS = 25
_CELLS = 60_000_000


def singling_out(
    targets: Targets, *, known: bool = True, columns: int = 3, limit: float = LIMIT
) -> Criterion:
    """Try conditions on ``columns`` random columns at a time.

    Args:
        targets: whom to attack.
        known: only on quasi-identifiers, which others may know; else on any column.
        columns: how many columns a condition names.
        limit: the highest acceptable risk.
    """
    shared = targets.sides.quasi if known else list(targets.sides.columns.values())
    wide = min(columns, len(shared))
    sides = targets.sides
    rows = len(shared[0].before)
    attempts = int(min(len(targets.members), max(50, _CELLS // max(rows * wide, 1))))
    per_round = max(1, attempts // _ROUNDS)
    hits = control = guessed = tried = 0
    for _ in range(max(1, attempts // per_round)):
        chosen = [shared[i] for i in targets.random.choice(len(shared), wide, replace=False)]
        alone = _alone(chosen)
        for _ in range(per_round):
            tried += 1
            drawn = sides.released_at(targets.random.integers(0, sides.after, wide))
            blind = [int(c.after[row]) for c, row in zip(chosen, drawn, strict=True)]
            guessed += _fits(chosen, blind, 0, targets.size) == 1
            if not len(alone):
                continue  # nothing in the release is alone: the attacker has no guess
            row = int(targets.random.choice(alone))
            labels = [int(c.after[row]) for c in chosen]
            hits += _fits(chosen, labels, 0, targets.size) == 1
            if len(targets.control):
                control += _fits(chosen, labels, targets.size, rows) == 1
    outside = proportion(control, tried) if len(targets.control) else None
    return judge(
        NAME if known else f"{NAME}, by any column",
        ATTACKER if known else f"{ATTACKER} Sensitive columns may be part of it.",
        proportion(hits, tried),
        outside,
        proportion(guessed, tried),
        limit=limit,
    )


def _alone(columns: list[SharedColumn]) -> NDArray[np.int64]:
    """Released rows that share their labels in ``columns`` with no other, as entries."""
    ids, count = joint([(c.after, c.labels) for c in columns])
    return np.flatnonzero(tally(ids, count, columns[0].after_counts)[ids] == 1)


def _fits(columns: list[SharedColumn], labels: list[int], start: int, stop: int) -> int:
    """How many rows of the entries from ``start`` to ``stop`` lie under all labels."""
    inside = np.ones(stop - start, dtype=bool)
    for column, label in zip(columns, labels, strict=True):
        under = np.zeros(column.leaves, dtype=bool)
        under[column.covered[column.starts[label] : column.starts[label + 1]]] = True
        inside &= under[column.before[start:stop]]
    counts = columns[0].before_counts
    return int(inside.sum() if counts is None else counts[start:stop][inside].sum())
