"""What is known of every node of a lattice that fits into memory.

Nodes are ruled out, or bounded from below by the rows that a coarser node had to suppress. Both
stay true where promises only become stronger and no more rows may be suppressed, so that a later
search under such a setting goes on from here.

The best solution of a search so far, and the greedy descent that finds a first one.

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
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.anonymize.problem import TOLERANCE, NodeOutcome, Solution
from halfmask.metrics.cost import CellMetric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.problem import NodeOutcome, RecodingProblem
    from halfmask.kernels.lattice import LatticeFacts


class LatticeBounds:
    """Lower bounds of what each combination of levels costs; a node is its mixed-radix number."""

    def __init__(self, problem: RecodingProblem) -> None:
        from halfmask.kernels import lattice

        self._kernels: Any = lattice
        self.heights = problem.heights
        self._costs = (problem.scores, problem.weights, problem.geometric)
        floor = np.asarray(lattice.bounds(self.heights, *self._costs))
        self._floor = np.maximum(floor, problem.least)
        self._state = np.zeros(len(floor), dtype=np.int8)
        self._source = np.full(len(floor), -1, dtype=np.int32)
        self._penalties = np.zeros((64, len(self.heights)))
        self._known = 0

    def dearest_first(self, limit: float) -> NDArray[np.int64]:
        """Nodes that may be worth a look; whatever lies above a node comes before it."""
        nodes = np.flatnonzero(self._floor <= limit)
        return np.asarray(nodes[np.lexsort((-self._sums(nodes), -self._floor[nodes]))])

    def outward(
        self, levels: Sequence[int], spreads: NDArray[np.float64], columns: Sequence[int]
    ) -> NDArray[np.int64]:
        """All nodes, those first whose columns divide the rows about as far as ``levels``.

        Of nodes that do so alike, those stand together that are alike in the first of ``columns``:
        what is known of these is used again before it is forgotten.
        """
        total, rest = np.zeros(len(self._state)), np.arange(len(self._state))
        picked = {}
        for c, height in enumerate(self.heights.tolist()):
            picked[c] = rest % (height + 1)
            total += spreads[c, picked[c]] - spreads[c, levels[c]]
            rest //= height + 1
        path = np.zeros_like(rest)
        for c in columns:
            path = path * (self.heights[c] + 1) + picked[c]
        return np.asarray(np.lexsort((path, np.abs(total) // _ALIKE)))

    def _sums(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum of the levels of each node."""
        total = np.zeros(len(nodes), dtype=np.int64)
        rest = nodes.copy()
        for height in self.heights.tolist():
            total += rest % (height + 1)
            rest //= height + 1
        return total

    def advance(self, order: NDArray[np.int64], position: int, limit: float) -> int:
        """The next position in ``order`` that must be evaluated, or ``len(order)``."""
        return int(self._kernels.advance(order, position, self._facts, limit))

    def lowest(self, order: NDArray[np.int64], position: int) -> float:
        """The smallest bound among the nodes from ``position`` on."""
        return float(self._kernels.lowest(order, position, self._facts))

    def rule_out(self, levels: Sequence[int]) -> None:
        """Nothing at or below ``levels`` is feasible."""
        self._kernels.rule_out(self._state, self.heights, None, levels)

    @property
    def ruled_out(self) -> NDArray[np.uint8]:
        """One bit per node: whether it is ruled out."""
        return np.packbits(self._state)

    def rule_out_too(self, ruled_out: NDArray[np.uint8]) -> None:
        """Take over what another search under weaker promises has ruled out."""
        self._state |= np.unpackbits(ruled_out, count=len(self._state)).view(np.int8)

    def raise_by(self, node: int, penalty: NDArray[np.float64]) -> None:
        """What ``node`` and everything below it pays at least, per column."""
        if self._known == len(self._penalties):
            self._penalties = np.concatenate([self._penalties, np.zeros_like(self._penalties)])
        self._penalties[self._known] = penalty
        self._source[node] = self._known
        self._known += 1

    def marks(self) -> DearMarks:
        """Marks for one search, which begin with what is ruled out."""
        return DearMarks(self._kernels, self.heights, self._state.copy())

    def levels(self, node: int) -> tuple[int, ...]:
        """The level of each column."""
        out = []
        for height in self.heights.tolist():
            node, level = divmod(node, height + 1)
            out.append(level)
        return tuple(out)

    @property
    def _facts(self) -> LatticeFacts:
        known = (self._state, self._source, self._penalties)
        from halfmask.kernels.lattice import LatticeFacts

        return LatticeFacts(self._floor, self.heights, *self._costs, *known)


@dataclass(frozen=True, slots=True, eq=False)
class DearMarks:
    """Nodes that one search need not look at: not feasible, or dearer than its best solution."""

    _kernels: Any
    _heights: NDArray[np.int64]
    _state: NDArray[np.int8]

    def close(self, outcome: NodeOutcome, limit: float, before: float | None = None) -> None:
        """Mark what ``outcome`` shows to be worth no look where more than ``limit`` is too much.

        ``before``: the limit with which it was looked at already.
        """
        known = np.inf if before is None else before
        if (outcome.hopeless and before is None) or limit < outcome.finer <= known:
            self._kernels.rule_out(self._state, self._heights, None, outcome.levels)
        if limit < outcome.coarser <= known:
            self._kernels.rule_out(self._state, self._heights, outcome.levels, None)

    def advance(self, order: NDArray[np.int64], position: int) -> int:
        """The next position in ``order`` that must be evaluated, or ``len(order)``."""
        return int(self._kernels.next_open(order, position, self._state))


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
        self.seen: list[NodeOutcome] = []  # with what bounds others, without their classes
        self.see(first)

    @property
    def limit(self) -> float:
        """What a node may cost at most to be worth a look (ties are looked at)."""
        return np.inf if self.best is None else self.best.value + TOLERANCE

    def see(self, outcome: NodeOutcome) -> None:
        """Take note of an outcome."""
        if outcome.coarser:
            self.seen.append(replace(outcome, classes=self.closest.classes, kept=_NONE))
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


_NONE = np.zeros(0, dtype=bool)
_ALIKE = 0.4  # nats that nodes may divide rows farther than others and be looked at with them
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
    if not isinstance(problem.metric, CellMetric):
        return _scan_classes(problem, known, incumbent, deadline)
    order = known.dearest_first(incumbent.limit)
    position = 0
    while True:
        position = known.advance(order, position, incumbent.limit)
        if position == len(order):
            return incumbent.found(problem)
        if deadline is not None and time.monotonic() > deadline:
            return incumbent.found(problem, known.lowest(order, position))
        node = int(order[position])
        outcome = problem.evaluate(known.levels(node))
        incumbent.see(outcome)
        if outcome.hopeless:
            known.rule_out(_climb(problem, outcome, incumbent, deadline).levels)
        elif outcome.penalty is not None:
            known.raise_by(node, outcome.penalty)
        position += 1


def _scan_classes(
    problem: RecodingProblem, known: LatticeBounds, incumbent: Incumbent, deadline: float | None
) -> SearchOutcome:
    """Search with a metric of whole classes, about the height of the first solution first.

    What a node costs with nothing suppressed is the least that anything coarser costs; the rows
    that it must lose are lost to anything finer.
    """
    marks, limit = known.marks(), incumbent.limit
    for outcome in incumbent.seen:
        marks.close(outcome, limit)
    first = problem.heights.tolist() if incumbent.best is None else incumbent.best.levels
    order = known.outward(first, problem.spreads(), problem.groupings.order)
    position = 0
    while True:
        position = marks.advance(order, position)
        if position == len(order):
            return incumbent.found(problem)
        if deadline is not None and time.monotonic() > deadline:
            return incumbent.found(problem, problem.least)
        outcome = problem.evaluate(known.levels(int(order[position])))
        incumbent.see(outcome)
        if outcome.hopeless:
            outcome = _climb(problem, outcome, incumbent, deadline)
            known.rule_out(outcome.levels)
        marks.close(outcome, incumbent.limit)
        if incumbent.limit < limit:
            for earlier in incumbent.seen:
                marks.close(earlier, incumbent.limit, limit)
            limit = incumbent.limit
        position += 1


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
