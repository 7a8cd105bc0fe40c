"""What is known of every node of a lattice that fits into memory.

Nodes are ruled out, or bounded from below by the rows that a coarser node had to suppress. Both
stay true where promises only become stronger and no more rows may be suppressed, so that a later
search under such a setting goes on from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.problem import NodeBounds, NodeOutcome, RecodingProblem
    from halfmask.kernels.lattice import LatticeFacts


class LatticeBounds:
    """Lower bounds of what each combination of levels costs; a node is its mixed-radix number."""

    def __init__(self, problem: RecodingProblem) -> None:
        from halfmask.kernels import lattice

        self._kernels: Any = lattice
        self.heights = problem.heights
        self._sizes = (problem.heights + 1).tolist()
        self._costs = (problem.scores, problem.weights, problem.geometric)
        floor = np.asarray(lattice.bounds(self.heights, *self._costs))
        self._floor = np.maximum(floor, problem.least)
        self._state = np.zeros(len(floor), dtype=np.int8)
        self._nodes = lattice.by_level(self._state, self.heights)
        self._bottom = [0] * len(self._sizes)
        self._source = np.full(len(floor), -1, dtype=np.int32)
        self._penalties = np.zeros((64, len(self.heights)))
        self._known = 0

    def dearest_first(self, limit: float) -> NDArray[np.int64]:
        """Nodes that may be worth a look; whatever lies above a node comes before it."""
        # What lies above a node costs as much or more, and has a higher number.
        nodes = np.flatnonzero(self._floor <= limit)[::-1]
        return np.asarray(nodes[np.argsort(-self._floor[nodes], kind="stable")])

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

    def advance(self, order: NDArray[np.int64], position: int, limit: float) -> int:
        """The next position in ``order`` that must be evaluated, or ``len(order)``."""
        return int(self._kernels.advance(order, position, self._facts, limit))

    def lowest(self, order: NDArray[np.int64], position: int) -> float:
        """The smallest bound among the nodes from ``position`` on."""
        return float(self._kernels.lowest(order, position, self._facts))

    def rule_out(self, levels: Sequence[int]) -> None:
        """Nothing at or below ``levels`` is feasible."""
        self._kernels.rule_out(self._nodes, self._bottom, levels)

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

    def learn(self, outcome: NodeOutcome | NodeBounds) -> None:
        """Take note of what ``outcome`` tells of everything below it."""
        if outcome.hopeless:
            self.rule_out(outcome.levels)
        elif outcome.penalty is not None:
            self.raise_by(self.node(outcome.levels), outcome.penalty)

    def marks(self) -> DearMarks:
        """Marks for one search, which begin with what is ruled out."""
        state = self._state.copy()
        bottom, top = self._bottom, self.heights.tolist()
        return DearMarks(
            self._kernels, state, self._kernels.by_level(state, self.heights), bottom, top
        )

    def levels(self, node: int) -> tuple[int, ...]:
        """The level of each column."""
        out = []
        for size in self._sizes:
            out.append(node % size)
            node //= size
        return tuple(out)

    def node(self, levels: Sequence[int]) -> int:
        """The number of a node, as ``levels`` reads it."""
        found = 0
        for size, level in zip(self._sizes[::-1], levels[::-1], strict=True):
            found = found * size + level
        return found

    @property
    def _facts(self) -> LatticeFacts:
        known = (self._state, self._source, self._penalties)
        from halfmask.kernels.lattice import LatticeFacts

        return LatticeFacts(self._floor, self.heights, *self._costs, *known)


@dataclass(frozen=True, slots=True, eq=False)
class DearMarks:
    """Nodes that one search need not look at: not feasible, or dearer than its best solution."""

    _kernels: Any
    _state: NDArray[np.int8]
    _nodes: NDArray[np.int8]
    _bottom: Sequence[int]
    _top: Sequence[int]

    def close(
        self, outcome: NodeOutcome | NodeBounds, limit: float, before: float | None = None
    ) -> None:
        """Mark what ``outcome`` shows to be worth no look where more than ``limit`` is too much.

        ``before``: the limit with which it was looked at already.
        """
        known = np.inf if before is None else before
        if (outcome.hopeless and before is None) or limit < outcome.finer <= known:
            self._kernels.rule_out(self._nodes, self._bottom, outcome.levels)
        if limit < outcome.coarser <= known:
            self._kernels.rule_out(self._nodes, outcome.levels, self._top)

    def worth(self, node: int) -> bool:
        """Whether a node is not marked."""
        return bool(self._state[node] == 0)

    def mark(self, node: int) -> None:
        """Mark one that is looked at."""
        self._state[node] = 1

    def advance(self, order: NDArray[np.int64], position: int) -> int:
        """The next position in ``order`` that must be evaluated, or ``len(order)``."""
        return int(self._kernels.next_open(order, position, self._state))


_ALIKE = 0.4  # nats that nodes may divide rows farther than others and be looked at with them
