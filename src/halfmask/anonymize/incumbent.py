"""The best solution of a search so far, and the greedy descent that finds a first one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.outcome import TOLERANCE, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.problem import Problem


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a search ends with.

    Attributes:
        best: the best feasible outcome, or None.
        closest: the outcome that had to suppress the fewest rows.
        gap: how far ``best`` can be from the optimum at most; 0: it is the optimum, or nothing is
            feasible; infinite: time was up before anything feasible was found.
        evaluations: how many combinations of levels were evaluated.
    """

    best: Outcome | None
    closest: Outcome
    gap: float
    evaluations: int


class Incumbent:
    """The best feasible outcome so far, and the one that came closest."""

    def __init__(self, first: Outcome) -> None:
        self.best: Outcome | None = None
        self.closest = first
        self.feasible: set[tuple[int, ...]] = set()
        self.see(first)

    @property
    def limit(self) -> float:
        """What a node may cost at most to be worth a look (ties are looked at)."""
        return np.inf if self.best is None else self.best.value + TOLERANCE

    def see(self, outcome: Outcome) -> None:
        """Take note of an outcome."""
        if outcome.feasible:
            self.feasible.add(outcome.levels)
            if self.best is None or outcome.rank < self.best.rank:
                self.best = outcome
        if outcome.suppressed < self.closest.suppressed:
            self.closest = outcome

    def found(self, problem: Problem, lower: float = np.inf) -> Found:
        """Close the search; everything that was not looked at costs at least ``lower``."""
        value = np.inf if self.best is None else self.best.value
        gap = 0.0 if lower >= value else float(value - lower)
        return Found(self.best, self.closest, gap, problem.evaluations)


def begin(problem: Problem, starts: Sequence[tuple[int, ...]] = ()) -> Incumbent:
    """Descend from the best of ``starts``, or from the top where none of them is feasible."""
    top = problem.evaluate(problem.heights.tolist())
    incumbent = Incumbent(top)
    for levels in starts:
        incumbent.see(problem.evaluate(levels))
    descend(problem, top if incumbent.best is None else incumbent.best, incumbent)
    return incumbent


def descend(problem: Problem, here: Outcome, incumbent: Incumbent) -> None:
    """Go to the best finer neighbor while that improves."""
    while True:
        finer = [problem.evaluate(levels) for levels in below(here.levels)]
        for outcome in finer:
            incumbent.see(outcome)
        finer = [o for o in finer if o.feasible and (not here.feasible or o.rank < here.rank)]
        if not finer:
            return
        here = min(finer, key=lambda outcome: outcome.rank)


def greedy(problem: Problem) -> Outcome | None:
    """A good feasible outcome, found by descending from the top only."""
    return begin(problem).best


def below(levels: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The neighbors that are one level finer in one column."""
    return [
        (*levels[:c], level - 1, *levels[c + 1 :]) for c, level in enumerate(levels) if level > 0
    ]


def above(levels: tuple[int, ...], heights: NDArray[np.int64]) -> list[tuple[int, ...]]:
    """The neighbors that are one level coarser in one column."""
    return [
        (*levels[:c], level + 1, *levels[c + 1 :])
        for c, level in enumerate(levels)
        if level < heights[c]
    ]
