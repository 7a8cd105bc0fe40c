"""Best-first search of lattices that are too large to list.

Each node stands for all nodes that are finer in the columns from some position on; the rows that
it has to suppress and the levels that are already fixed bound them all from below. The search
stops when no bound is better than the best solution, or when time is up: the smallest bound that
is left then gives the proven gap.
"""

from __future__ import annotations

import heapq
import time
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.incumbent import Found, begin, descend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.outcome import Outcome
    from halfmask.anonymize.problem import Problem


def branch(
    problem: Problem, deadline: float | None = None, *, starts: Sequence[tuple[int, ...]] = ()
) -> Found:
    """Search a lattice of any size; ``starts`` are levels that may be good."""
    incumbent = begin(problem, starts)
    waiting = _Waiting(problem)
    top = problem.evaluate(problem.heights.tolist())
    waiting.push(top, 0)
    while len(waiting) and waiting.lowest <= incumbent.limit:
        if deadline is not None and time.monotonic() > deadline:
            return incumbent.found(problem, waiting.lowest)
        outcome, place = waiting.pop()
        before = incumbent.best
        incumbent.see(outcome)
        if incumbent.best is not before:
            descend(problem, outcome, incumbent)
        if not outcome.hopeless:
            waiting.push(outcome, place)
    return incumbent.found(problem)


class _Waiting:
    """Sub-lattices that are not searched yet, the one with the smallest bound first."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        # Columns whose first step is dear are fixed first: that raises bounds soonest.
        first = [problem.scores[c, min(1, h)] for c, h in enumerate(problem.heights.tolist())]
        self._order = np.argsort(-np.asarray(first), kind="stable").tolist()
        self._heap: list[tuple[float, int, tuple[int, ...], NDArray[np.float64], int]] = []
        self._ticket = count()

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def lowest(self) -> float:
        """The smallest bound that is left."""
        return self._heap[0][0] if self._heap else np.inf

    def push(self, outcome: Outcome, place: int) -> None:
        """Add what lies below ``outcome`` when columns before ``place`` stay as they are."""
        penalty = outcome.penalty
        self._queue(outcome.levels, np.zeros(0) if penalty is None else penalty, place)

    def _queue(self, levels: tuple[int, ...], penalty: NDArray[np.float64], place: int) -> None:
        while place < len(levels) and levels[self._order[place]] == 0:
            place += 1
        if place < len(levels):
            bound = self._bound(levels, penalty, place)
            heapq.heappush(self._heap, (bound, next(self._ticket), levels, penalty, place))

    def pop(self) -> tuple[Outcome, int]:
        """Evaluate the most promising node; its later siblings, which bound higher, wait on."""
        _, _, levels, penalty, place = heapq.heappop(self._heap)
        self._queue(levels, penalty, place + 1)
        c = self._order[place]
        finer = (*levels[:c], levels[c] - 1, *levels[c + 1 :])
        return self._problem.evaluate(finer), place

    def _bound(self, levels: tuple[int, ...], penalty: NDArray[np.float64], place: int) -> float:
        from halfmask.kernels import lattice

        problem = self._problem
        scores = problem.scores[:, 0].copy()
        for c in self._order[:place]:
            scores[c] = problem.scores[c, levels[c]]
        if len(penalty):
            scores += penalty
        bound = float(lattice.combine(scores, problem.weights, problem.geometric))
        return max(bound, problem.least)
