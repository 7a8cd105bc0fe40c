"""Singling out: can somebody write down a condition that fits exactly one person?

Definition: the attacker takes a released row that is alone in the release on a few columns, or on
all quasi-identifiers, and guesses that exactly one person of the original fits its labels there; a
number that the original does not hold stands for the nearest that it holds. Where people have
several rows, the attacker takes one that is as rare as any. The more telling condition counts.
Source: Cohen and Nissim, "Towards formalizing the GDPR's notion of singling out", 2020; Giomi et
al., 2023.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
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
_WIDE = "The combination may name all quasi-identifiers."
_CELLS = 60_000_000
_ORDER = ("met", "undecided", "not met")


def singling_out(
    targets: Targets, *, known: bool = True, columns: int = 3, limit: float = LIMIT
) -> Criterion:
    """Try conditions on ``columns`` random columns at a time, and on all quasi-identifiers.

    Args:
        targets: whom to attack.
        known: only on quasi-identifiers, which others may know; else on any column.
        columns: how many columns a condition names.
        limit: the highest acceptable risk.
    """
    shared = targets.sides.quasi if known else list(targets.sides.columns.values())
    few = _tried(targets, shared, min(columns, len(shared)), known=known, limit=limit)
    if not known or len(shared) <= columns:
        return few
    every = _tried(targets, shared, len(shared), known=known, limit=limit)
    every = replace(every, attacker=f"{every.attacker} {_WIDE}")
    return max(few, every, key=lambda one: (_ORDER.index(one.outcome), one.risk.value or 0.0))


def _tried(
    targets: Targets, shared: list[SharedColumn], wide: int, *, known: bool, limit: float
) -> Criterion:
    """Try conditions on ``wide`` of the columns."""
    sides = targets.sides
    rows = len(shared[0].before)
    attempts = int(min(len(targets.members), max(50, _CELLS // max(rows * wide, 1))))
    hits = control = guessed = 0
    for places, times in _sets(len(shared), wide, attempts, targets.random):
        chosen = [shared[i] for i in places]
        rare = _rare(chosen, 1 if targets.people is None else None)
        for _ in range(times):
            drawn = sides.released_at(targets.random.integers(0, sides.after, wide))
            blind = [int(c.after[row]) for c, row in zip(chosen, drawn, strict=True)]
            guessed += _fits_one(targets, _inside(chosen, blind))
            if not len(rare):
                continue  # nothing in the release is alone: the attacker has no guess
            row = int(targets.random.choice(rare))
            inside = _inside(chosen, [int(c.after[row]) for c in chosen])
            hits += _fits_one(targets, inside)
            control += _rows(chosen, inside[np.searchsorted(inside, targets.size) :]) == 1
    outside = proportion(control, attempts) if len(targets.control) else None
    return judge(
        NAME if known else f"{NAME}, by any column",
        ATTACKER if known else f"{ATTACKER} Sensitive columns may be part of it.",
        proportion(hits, attempts),
        outside,
        proportion(guessed, attempts),
        limit=limit,
    )


def _sets(
    columns: int, wide: int, attempts: int, random: np.random.Generator
) -> list[tuple[tuple[int, ...], int]]:
    """Column sets, drawn anew for each attempt, and how often each was drawn.

    Attempts that shared one draw would fail together, and the interval would be too narrow.
    """
    drawn = Counter(
        tuple(sorted(random.choice(columns, wide, replace=False).tolist())) for _ in range(attempts)
    )
    return sorted(drawn.items())


def _rare(columns: list[SharedColumn], rows: int | None) -> NDArray[np.int64]:
    """Entries of the release whose labels so many rows share; None: as few as any."""
    ids, count = joint([(c.after, c.labels) for c in columns])
    alike = tally(ids, count, columns[0].after_counts)
    return np.flatnonzero((alike == (alike.min() if rows is None else rows))[ids])


def _inside(columns: list[SharedColumn], labels: list[int]) -> NDArray[np.int64]:
    """The entries of the original, and of the control after it, under all labels, ascending."""
    under = [_under(column, label) for column, label in zip(columns, labels, strict=True)]
    held: NDArray[np.int64] | None = None
    for place in np.argsort([len(one) / c.leaves for one, c in zip(under, columns, strict=True)]):
        column = columns[place]
        inside = np.zeros(column.leaves, dtype=bool)
        inside[under[place]] = True
        # The tightest label goes first: the others are asked of few entries.
        if held is None:
            held = np.flatnonzero(inside[column.before])
        else:
            held = held[inside[column.before[held]]]
    assert held is not None  # noqa: S101 - there is a column
    return held


def _under(column: SharedColumn, label: int) -> NDArray[np.int64]:
    """The leaves that a label stands for; of a new number, the nearest one of the original."""
    leaves = column.covered[column.starts[label] : column.starts[label + 1]]
    if column.numbers is None or leaves[0] < column.known:
        return leaves
    far = np.abs(column.numbers[: column.known] - column.numbers[leaves[0]])
    return leaves if np.isnan(far).all() else np.flatnonzero(far == np.nanmin(far))


def _fits_one(targets: Targets, inside: NDArray[np.int64]) -> bool:
    """Whether exactly one person of the original is among these entries."""
    own = inside[: np.searchsorted(inside, targets.size)]
    if targets.people is None:
        return _rows(targets.sides.quasi, own) == 1
    people = targets.people[own]
    return len(people) > 0 and bool((people == people[0]).all())


def _rows(columns: list[SharedColumn], entries: NDArray[np.int64]) -> int:
    """How many rows these entries stand for."""
    counts = columns[0].before_counts
    return len(entries) if counts is None else int(counts[entries].sum())
