"""What is known of every node of a lattice that fits into memory.

Nodes are ruled out, or bounded from below by the rows that a coarser node had to suppress. Both
stay true where promises only become stronger and no more rows may be suppressed, so that a later
search under such a setting goes on from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.problem import Problem


class Bounds:
    """Lower bounds of what each combination of levels costs; a node is its mixed-radix number."""

    def __init__(self, problem: Problem) -> None:
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
        total = np.zeros(len(nodes), dtype=np.int64)
        rest = nodes.copy()
        for height in self.heights.tolist():
            total += rest % (height + 1)
            rest //= height + 1
        return np.asarray(nodes[np.lexsort((-total, -self._floor[nodes]))])

    def advance(self, order: NDArray[np.int64], position: int, limit: float) -> int:
        """The next position in ``order`` that must be evaluated, or ``len(order)``."""
        return int(self._kernels.advance(order, position, *self._facts, limit))

    def lowest(self, order: NDArray[np.int64], position: int) -> float:
        """The smallest bound among the nodes from ``position`` on."""
        return float(self._kernels.lowest(order, position, *self._facts))

    def rule_out(self, levels: Sequence[int]) -> None:
        """Nothing at or below ``levels`` is feasible."""
        self._kernels.rule_out(self._state, self.heights, np.array(levels))

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

    def levels(self, node: int) -> tuple[int, ...]:
        """The level of each column."""
        out = []
        for height in self.heights.tolist():
            node, level = divmod(node, height + 1)
            out.append(level)
        return tuple(out)

    @property
    def _facts(self) -> tuple[Any, ...]:
        known = (self._state, self._source, self._penalties)
        return (self._floor, self.heights, *self._costs, *known)
