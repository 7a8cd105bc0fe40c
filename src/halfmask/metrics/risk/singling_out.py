"""Singling out: can somebody write down a condition that fits exactly one person?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.estimate import Estimate, mean_estimate, proportion
from halfmask.metrics.risk.attack import LIMIT, OUTCOMES, AttackOutcome, judge_attack
from halfmask.metrics.weighted import joint, weighted_mean
from halfmask.table.tuples import tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.common_ground import SharedColumn
    from halfmask.metrics.risk.attack import Targets


def as_many(own: Sequence[int], outside: Sequence[int], people: int, others: int) -> Estimate:
    """The share of conditions that would fit exactly one of ``people`` strangers.

    Definition: of a larger control, the mean chance that one of n of its people drawn at random
    fits, where the original holds n. Of a smaller control of m people: a + (n / m) (c - b), where a
    is how often one of the original fits, b how often one of m of its people drawn at random would,
    and c how often one of the control does; whoever is told by the release is among the m drawn
    with chance m / n. No condition fits exactly one of n strangers more often than (1 - 1 / n)^(n -
    1).
    Source: none; as in Giomi et al., 2023, sizes must agree before attack and control are compared.

    Args:
        own: per condition, how many people of the original fit.
        outside: the same of the control.
        people: how many people the original holds.
        others: how many the control holds.
    """
    mine, theirs = np.asarray(own, dtype=np.float64), np.asarray(outside, dtype=np.float64)
    if others >= people:
        return proportion(float(_one_of(theirs, others, people).sum()), len(theirs))
    # Both at the size of the control, so that sizes alone make no difference; then scaled up.
    gain = (theirs == 1) - _one_of(mine, people, others)
    found = mean_estimate((mine == 1) + gain * (people / others))
    most = (1 - 1 / people) ** (people - 1)
    if found.low is None or found.high is None or found.value is None:
        return found
    value, low, high = (min(max(v, 0.0), most) for v in (found.value, found.low, found.high))
    return replace(found, value=value, low=low, high=high)


def _one_of(fitting: NDArray[np.float64], people: int, drawn: int) -> NDArray[np.float64]:
    """The chance that exactly one of so many people drawn at random is one of those who fit."""
    from scipy.special import gammaln

    # k C(N - k, m - 1) / C(N, m), in logarithms: the binomials leave every float.
    rest = people - fitting - (drawn - 1)  # strangers who are not drawn
    able = (fitting > 0) & (rest >= 0)
    k, left = fitting[able], rest[able]
    logs = np.log(k) + gammaln(people - k + 1) - gammaln(drawn) - gammaln(left + 1)
    every = gammaln(people + 1) - gammaln(drawn + 1) - gammaln(people - drawn + 1)
    out = np.zeros(len(fitting))
    out[able] = np.exp(logs - every)
    return out


_MORE = 0.1  # by how much the share of equal rows may exceed that of doubles
_SAME = (
    "More rows of the control equal rows of the original than those of other people would: a "
    "control of the same people hides every leak. Give rows of people who are not in the original."
)


def same_people(targets: Targets) -> tuple[str, ...]:
    """What is to be said where the control seems to hold people of the original.

    Definition: rows of other people equal a row of the original in all compared columns about as
    often as rows of the original have a double. Where they do so much more often, the control is
    taken to hold the same people; attacks then succeed on it as they do on the original, and no
    leak shows.
    Source: none; it guards the use of controls.
    """
    if not len(targets.control):
        return ()
    columns = list(targets.sides.columns.values())
    ids, count = joint([(c.before, c.leaves) for c in columns])
    rows, size = columns[0].before_counts, targets.size
    own, theirs = rows[:size], rows[size:]
    held = tally(ids[:size], count, own)
    doubles, equal = (
        weighted_mean(held[ids[:size]] > 1, own),
        weighted_mean(held[ids[size:]] > 0, theirs),
    )
    return (_SAME,) if equal > doubles + _MORE else ()


NAME = "singling out"
ATTACKER = (
    "The attacker has the release only, and looks for a combination of published values that fits "
    "exactly one real person."
)
_WIDE = "The combination may name all quasi-identifiers."
_SMALLER = (
    "The control holds fewer people than the original: its share is that of as many, by "
    "extrapolation. A larger control would narrow the interval."
)
_CELLS = 60_000_000


def singling_out(
    targets: Targets, *, known: bool = True, columns: int = 3, limit: float = LIMIT
) -> AttackOutcome:
    """Try conditions on ``columns`` random columns at a time, and on all quasi-identifiers.

    Definition: the attacker takes a released row that is alone in the release on a few columns, or
    on all quasi-identifiers, and guesses that exactly one person of the original fits its labels
    there; a number that the original does not hold stands for the nearest that it holds. Where
    people have several rows, the attacker takes one that is as rare as any. The more telling
    condition counts.
    Source: Cohen and Nissim, "Towards formalizing the GDPR's notion of singling out", 2020; Giomi
    et al., 2023.

    Args:
        targets: whom to attack.
        known: only on quasi-identifiers, which others may know; else on any column.
        columns: how many columns a condition names.
        limit: the highest acceptable risk.
    """
    shared = targets.sides.quasi if known else list(targets.sides.columns.values())
    few = _try_conditions(targets, shared, min(columns, len(shared)), known=known, limit=limit)
    if not known or len(shared) <= columns:
        return few
    every = _try_conditions(targets, shared, len(shared), known=known, limit=limit)
    every = replace(every, attacker=f"{every.attacker} {_WIDE}")
    return max(few, every, key=lambda one: (OUTCOMES.index(one.outcome), one.risk.value or 0.0))


def _try_conditions(
    targets: Targets, shared: list[SharedColumn], wide: int, *, known: bool, limit: float
) -> AttackOutcome:
    """Try conditions on ``wide`` of the columns."""
    sides = targets.sides
    rows = len(shared[0].before)
    attempts = int(min(len(targets.members), max(50, _CELLS // max(rows * wide, 1))))
    own: list[int] = []
    outside: list[int] = []
    guessed = 0
    for places, times in _sets(len(shared), wide, attempts, targets.random):
        chosen = [shared[i] for i in places]
        rare = _rare(chosen, 1 if targets.people is None else None)
        for _ in range(times):
            # The baseline: values drawn column by column, without what a row says together.
            drawn = sides.released_at(targets.random.integers(0, sides.after, wide))
            blind = [int(c.after[row]) for c, row in zip(chosen, drawn, strict=True)]
            guessed += _people(targets, _inside(chosen, blind)) == 1
            if not len(rare):  # nothing in the release is alone: the attacker has no guess
                own.append(0)
                outside.append(0)
                continue
            row = int(targets.random.choice(rare))
            inside = _inside(chosen, [int(c.after[row]) for c in chosen])
            own.append(_people(targets, inside))
            outside.append(_rows(chosen, inside[np.searchsorted(inside, targets.size) :]))
    control: Estimate | None = None
    notes: tuple[str, ...] = ()
    if len(targets.control):
        every = np.arange(rows)
        sizes = _people(targets, every), _rows(shared, every[targets.size :])
        control = as_many(own, outside, *sizes)
        notes = (_SMALLER,) if sizes[1] < sizes[0] else ()
    return judge_attack(
        NAME if known else f"{NAME}, by any column",
        ATTACKER if known else f"{ATTACKER} Sensitive columns may be part of it.",
        proportion(own.count(1), attempts),
        control,
        proportion(guessed, attempts),
        limit=limit,
        notes=notes,
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


def _people(targets: Targets, inside: NDArray[np.int64]) -> int:
    """How many people of the original are among these entries."""
    own = inside[: np.searchsorted(inside, targets.size)]
    if targets.people is None:
        return _rows(targets.sides.quasi, own)
    return len(np.unique(targets.people[own]))


def _rows(columns: list[SharedColumn], entries: NDArray[np.int64]) -> int:
    """How many rows these entries stand for."""
    return int(columns[0].before_counts[entries].sum())
