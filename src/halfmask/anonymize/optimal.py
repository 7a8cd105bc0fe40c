"""The best solution of a search so far, and the greedy descent that finds a first one.

Best-first search of lattices that are too large to list.

Each node stands for all nodes that are finer in the columns from some position on; the rows that
it has to suppress and the levels that are already fixed bound them all from below. The search
stops when no bound is better than the best solution, or when time is up: the smallest bound that
is left then gives the proven gap.

The exact optimum of full-domain generalization with row suppression.

A greedy descent from the top gives a first solution. Then the lattice is scanned from the dearest
node that could still beat it downwards: a node that needs too many suppressed rows rules out
everything below it, and the rows that it suppresses raise the lower bound of everything below it.
What remains is evaluated, so the best one is the optimum.
"""

from __future__ import annotations

import heapq
import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.anonymize.node_bounds import LatticeBounds
from halfmask.anonymize.problem import TOLERANCE, NodeBounds, NodeOutcome, Solution

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.problem import NodeOutcome, RecodingProblem


@dataclass(frozen=True, slots=True, eq=False)
class SearchOutcome:
    """What a search ends with.

    Attributes:
        best: the best feasible outcome, or None.
        closest: the outcome that had to suppress the fewest rows.
        gap: how far ``best`` can be from the optimum at most; 0: it is the optimum, or nothing is
            feasible; infinite: time was up before anything feasible was found.
        evaluations: how many combinations of levels were evaluated.
    """

    best: NodeOutcome | None
    closest: NodeOutcome
    gap: float
    evaluations: int


class Incumbent:
    """The best feasible outcome so far, and the one that came closest."""

    def __init__(self, first: NodeOutcome) -> None:
        self.best: NodeOutcome | None = None
        self.closest = first
        self.feasible: set[tuple[int, ...]] = set()
        # What bounds others, without classes; None: the search keeps it itself.
        self.seen: list[NodeBounds] | None = []
        self.see(first)

    @property
    def limit(self) -> float:
        """What a node may cost at most to be worth a look (ties are looked at)."""
        return np.inf if self.best is None else self.best.value + TOLERANCE

    def see(self, outcome: NodeOutcome) -> None:
        """Take note of an outcome."""
        if self.seen is not None:
            self.seen.append(outcome.bounds)
        if outcome.feasible:
            self.feasible.add(outcome.levels)
            if self.best is None or outcome.rank < self.best.rank:
                self.best = outcome
        if outcome.suppressed < self.closest.suppressed:
            self.closest = outcome

    def found(self, problem: RecodingProblem, lower: float = np.inf) -> SearchOutcome:
        """Close the search; everything that was not looked at costs at least ``lower``."""
        value = np.inf if self.best is None else self.best.value
        gap = 0.0 if lower >= value else float(value - lower)
        return SearchOutcome(self.best, self.closest, gap, problem.evaluations)


def begin(
    problem: RecodingProblem,
    starts: Sequence[tuple[int, ...]] = (),
    deadline: float | None = None,
) -> Incumbent:
    """Descend from the best of ``starts``, or from the top where none of them is feasible."""
    top = problem.evaluate(problem.heights.tolist())
    incumbent = Incumbent(top)
    for levels in starts:
        incumbent.see(problem.evaluate(levels))
    descend(problem, top if incumbent.best is None else incumbent.best, incumbent, deadline)
    return incumbent


def descend(
    problem: RecodingProblem,
    here: NodeOutcome,
    incumbent: Incumbent,
    deadline: float | None = None,
) -> None:
    """Go to the best finer neighbor while that improves and time is left."""
    while True:
        finer = []
        for levels in finer_neighbors(here.levels):
            if deadline is not None and time.monotonic() > deadline:
                return
            finer.append(problem.evaluate(levels))
            incumbent.see(finer[-1])
        finer = [o for o in finer if o.feasible and (not here.feasible or o.rank < here.rank)]
        if not finer:
            return
        here = min(finer, key=lambda outcome: outcome.rank)


def greedy(problem: RecodingProblem, deadline: float | None = None) -> NodeOutcome | None:
    """A good feasible outcome, found by descending from the top only."""
    return begin(problem, deadline=deadline).best


def finer_neighbors(levels: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The neighbors that are one level finer in one column."""
    return [
        (*levels[:c], level - 1, *levels[c + 1 :]) for c, level in enumerate(levels) if level > 0
    ]


def coarser_neighbors(levels: tuple[int, ...], heights: NDArray[np.int64]) -> list[tuple[int, ...]]:
    """The neighbors that are one level coarser in one column."""
    return [
        (*levels[:c], level + 1, *levels[c + 1 :])
        for c, level in enumerate(levels)
        if level < heights[c]
    ]


def branch(
    problem: RecodingProblem,
    deadline: float | None = None,
    *,
    starts: Sequence[tuple[int, ...]] = (),
) -> SearchOutcome:
    """Search a lattice of any size; ``starts`` are levels that may be good."""
    incumbent = begin(problem, starts, deadline)
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
            descend(problem, outcome, incumbent, deadline)
        if not outcome.hopeless:
            waiting.push(outcome, place)
    return incumbent.found(problem)


class _Waiting:
    """Sub-lattices that are not searched yet, the one with the smallest bound first."""

    def __init__(self, problem: RecodingProblem) -> None:
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

    def push(self, outcome: NodeOutcome, place: int) -> None:
        """Add what lies below ``outcome`` when columns before ``place`` stay as they are."""
        penalty = outcome.penalty
        self._queue(outcome.levels, np.zeros(0) if penalty is None else penalty, place)

    def _queue(self, levels: tuple[int, ...], penalty: NDArray[np.float64], place: int) -> None:
        while place < len(levels) and levels[self._order[place]] == 0:
            place += 1
        if place < len(levels):
            bound = self._bound(levels, penalty, place)
            heapq.heappush(self._heap, (bound, next(self._ticket), levels, penalty, place))

    def pop(self) -> tuple[NodeOutcome, int]:
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


ENUMERABLE = 5_000_000  # lattices up to this many nodes are listed in memory
PATIENCE = 60.0  # seconds given to a larger lattice where no time limit is stated


def find_levels(
    problem: RecodingProblem,
    *,
    seed: int | None,  # noqa: ARG001 - all searches are called alike
    time_limit: float | None,
) -> Solution:
    """Return one step for all tuples; suppressed are the classes that fail."""
    found = search_lattice(problem, time_limit=time_limit)
    size = len(problem.groupings.tuples)
    if found.best is None:
        return Solution(None, np.full(size, -1, np.int32), np.inf, found.gap, found.closest)
    kept = problem.members(found.best)
    notes: tuple[str, ...] = ()
    if found.gap:
        notes = (
            f"The search stopped at its time limit: the optimum may be lower by {found.gap:.6g}.",
        )
    return Solution(
        [found.best.levels],
        np.where(kept, 0, -1).astype(np.int32),
        found.best.value,
        found.gap,
        notes=notes,
    )


def search_lattice(
    problem: RecodingProblem,
    *,
    time_limit: float | None = None,
    bounds: LatticeBounds | None = None,
    starts: Sequence[tuple[int, ...]] = (),
) -> SearchOutcome:
    """Return the best combination of levels, with the proven gap to the optimum.

    Args:
        problem: the task.
        time_limit: seconds.
        bounds: what a search under weaker promises has learned; it learns on.
        starts: levels that may be good, such as the optimum of a similar setting.
    """
    if not listable(problem):
        return branch(problem, time.monotonic() + (time_limit or PATIENCE), starts=starts)
    deadline = None if time_limit is None else time.monotonic() + time_limit
    return scan(problem, deadline, bounds=bounds, starts=starts)


def listable(problem: RecodingProblem) -> bool:
    """Whether all combinations of levels fit into memory."""
    return bool(math.prod(height + 1 for height in problem.heights.tolist()) <= ENUMERABLE)


def scan(
    problem: RecodingProblem,
    deadline: float | None = None,
    *,
    bounds: LatticeBounds | None = None,
    starts: Sequence[tuple[int, ...]] = (),
) -> SearchOutcome:
    """Search a lattice that fits into memory."""
    known = LatticeBounds(problem) if bounds is None else bounds
    incumbent = begin(problem, starts, deadline)
    kind = _CellWalk if problem.cellwise else _ClassWalk
    walk: _Walk = kind(problem, known, incumbent, deadline)
    first = problem.heights.tolist() if incumbent.best is None else incumbent.best.levels
    walk.sidestep()
    order = walk.order(first)
    position = 0
    while True:
        position = walk.advance(order, position)
        if position == len(order):
            return incumbent.found(problem)
        if walk.late:
            return incumbent.found(problem, walk.lowest(order, position))
        best = incumbent.best
        walk.look(known.levels(int(order[position])))
        if incumbent.best is not best:
            walk.sidestep()
        position += 1


class _Walk(ABC):
    """One search of a lattice that fits into memory: what was looked at and what still must be."""

    def __init__(
        self,
        problem: RecodingProblem,
        known: LatticeBounds,
        incumbent: Incumbent,
        deadline: float | None,
    ) -> None:
        self.problem, self.known, self.incumbent = problem, known, incumbent
        self._deadline = deadline
        self._looked: set[tuple[int, ...]] = set()

    @property
    def late(self) -> bool:
        """Whether time is up."""
        return self._deadline is not None and time.monotonic() > self._deadline

    def look(self, levels: tuple[int, ...]) -> None:
        """Evaluate a node and take note of what it tells of others."""
        self._looked.add(levels)
        outcome = self.problem.evaluate(levels)
        self.incumbent.see(outcome)
        if outcome.hopeless:
            outcome = _climb(self.problem, outcome, self.incumbent, self._deadline)
        self._learn(outcome)

    def sidestep(self) -> None:
        """Go on from the best solution: finer in one column, perhaps coarser in another.

        A descent ends where each column is as fine as it can be alone. What lies beside often is
        better, and the better the best solution is, the less must be looked at. Without
        suppression hardly anything there is feasible.
        """
        if not self.problem.limit:
            return
        best = None
        while self.incumbent.best is not best and self.incumbent.best is not None:
            best = self.incumbent.best
            for levels in _beside(best.levels, self.problem.heights):
                if self.late or self.incumbent.best is not best:
                    break
                if levels not in self._looked and self._worth(levels):
                    self.look(levels)

    @abstractmethod
    def _learn(self, outcome: NodeOutcome) -> None:
        """Take note of what ``outcome`` tells of other nodes."""

    @abstractmethod
    def _worth(self, levels: tuple[int, ...]) -> bool:
        """Whether a node may be as good as the best, as far as is known."""

    @abstractmethod
    def order(self, first: Sequence[int]) -> NDArray[np.int64]:
        """The nodes as they are looked at, where ``first`` were the levels of a good one."""

    @abstractmethod
    def advance(self, order: NDArray[np.int64], position: int) -> int:
        """The next position in ``order`` that must be looked at, or ``len(order)``."""

    @abstractmethod
    def lowest(self, order: NDArray[np.int64], position: int) -> float:
        """What the nodes from ``position`` on cost at least."""


class _CellWalk(_Walk):
    """The walk with a metric of cells: from the dearest node that may be best downwards."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        for bounds in self.incumbent.seen or ():
            self.known.learn(bounds)
        self.incumbent.seen = None

    def _learn(self, outcome: NodeOutcome) -> None:
        self.known.learn(outcome)

    def _worth(self, levels: tuple[int, ...]) -> bool:
        one = np.array([self.known.node(levels)])
        return self.known.advance(one, 0, self.incumbent.limit) == 0

    def order(self, first: Sequence[int]) -> NDArray[np.int64]:  # noqa: ARG002 - the other asks
        """Whatever lies above a node comes before it."""
        return self.known.dearest_first(self.incumbent.limit)

    def advance(self, order: NDArray[np.int64], position: int) -> int:
        """The next position that must be looked at: nothing is looked at twice."""
        position = self.known.advance(order, position, self.incumbent.limit)
        while position < len(order) and self.known.levels(int(order[position])) in self._looked:
            position = self.known.advance(order, position + 1, self.incumbent.limit)
        return position

    def lowest(self, order: NDArray[np.int64], position: int) -> float:
        """What the nodes from ``position`` on cost at least."""
        return self.known.lowest(order, position)


class _ClassWalk(_Walk):
    """The walk with a metric of whole classes, about the height of the first solution first.

    What a node costs with nothing suppressed is the least that anything coarser costs; the rows
    that it must lose are lost to anything finer.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._marks, self._limit = self.known.marks(), self.incumbent.limit
        for bounds in self.incumbent.seen or ():
            self._marks.close(bounds, self._limit)

    def _learn(self, outcome: NodeOutcome) -> None:
        marks, limit = self._marks, self.incumbent.limit
        if outcome.hopeless:
            self.known.rule_out(outcome.levels)
        marks.close(outcome, limit)
        if limit < self._limit:
            for earlier in self.incumbent.seen or ():
                marks.close(earlier, limit, self._limit)
            self._limit = limit

    def look(self, levels: tuple[int, ...]) -> None:
        """Evaluate a node, once."""
        self._marks.mark(self.known.node(levels))
        super().look(levels)

    def _worth(self, levels: tuple[int, ...]) -> bool:
        return self._marks.worth(self.known.node(levels))

    def order(self, first: Sequence[int]) -> NDArray[np.int64]:
        """Outwards from ``first``."""
        return self.known.outward(first, self.problem.spreads(), self.problem.groupings.order)

    def advance(self, order: NDArray[np.int64], position: int) -> int:
        """The next position that is not marked, or ``len(order)``."""
        return self._marks.advance(order, position)

    def lowest(self, order: NDArray[np.int64], position: int) -> float:  # noqa: ARG002 - as above
        """What every node costs at least."""
        return self.problem.least


def _beside(levels: tuple[int, ...], heights: NDArray[np.int64]) -> Iterator[tuple[int, ...]]:
    """What is finer in one column, then what is coarser in another one too."""
    finer = finer_neighbors(levels)
    yield from finer
    for one in finer:
        yield from coarser_neighbors(one, heights)


def _climb(
    problem: RecodingProblem,
    hopeless: NodeOutcome,
    incumbent: Incumbent,
    deadline: float | None = None,
) -> NodeOutcome:
    """Find a coarser hopeless node, which rules out more.

    Only without suppression: what is feasible then lies near the top, where looking costs little.
    """
    while problem.limit == 0:
        for levels in coarser_neighbors(hopeless.levels, problem.heights):
            if deadline is not None and time.monotonic() > deadline:
                return hopeless
            if levels not in incumbent.feasible:
                coarser = problem.evaluate(levels, hopeless)
                incumbent.see(coarser)
                if coarser.hopeless:
                    hopeless = coarser
                    break
        else:
            break
    return hopeless
