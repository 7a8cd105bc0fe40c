"""The exact optimum of full-domain generalization with row suppression.

A greedy descent from the top gives a first solution. Then the lattice is scanned from the dearest
node that could still beat it downwards: a node that needs too many suppressed rows rules out
everything below it, and the rows that it suppresses raise the lower bound of everything below it.
What remains is evaluated, so the best one is the optimum.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.branch import branch
from halfmask.anonymize.incumbent import Found, Incumbent, above, descend
from halfmask.anonymize.solution import Solution

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.anonymize.problem import Outcome, Problem

ENUMERABLE = 5_000_000  # lattices up to this many nodes are listed in memory
PATIENCE = 60.0  # seconds given to a larger lattice where no time limit is stated


def solve(problem: Problem, *, seed: int | None, time_limit: float | None) -> Solution:  # noqa: ARG001
    """Return one step for all tuples; suppressed are the classes that fail."""
    found = search(problem, time_limit=time_limit)
    size = len(problem.groupings.tuples)
    if found.best is None:
        return Solution(None, np.full(size, -1, np.int32), np.inf, None, found.closest)
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


def search(problem: Problem, *, time_limit: float | None = None) -> Found:
    """Return the best combination of levels, with the proven gap to the optimum."""
    if not listable(problem):
        return branch(problem, time.monotonic() + (time_limit or PATIENCE))
    return scan(problem, None if time_limit is None else time.monotonic() + time_limit)


def listable(problem: Problem) -> bool:
    """Whether all combinations of levels fit into memory."""
    return bool(math.prod(height + 1 for height in problem.heights.tolist()) <= ENUMERABLE)


def scan(problem: Problem, deadline: float | None = None) -> Found:
    """Search a lattice that fits into memory."""
    from halfmask.kernels import lattice

    top = problem.evaluate(problem.heights.tolist())
    incumbent = Incumbent(top)
    descend(problem, top, incumbent)
    heights, scores, weights = problem.heights, problem.scores, problem.weights
    floor = np.asarray(lattice.bounds(heights, scores, weights, problem.geometric))
    floor = np.maximum(floor, problem.least)
    order = _dearest_first(floor, heights, incumbent.limit)
    state = np.zeros(len(floor), dtype=np.int8)
    source = np.full(len(floor), -1, dtype=np.int32)
    penalties = np.zeros((64, len(heights)))
    known = position = 0
    while True:
        known_facts = (
            floor, heights, scores, weights, problem.geometric, state, source, penalties
        )  # fmt: skip
        position = lattice.advance(order, position, *known_facts, incumbent.limit)
        if position == len(order):
            return incumbent.found(problem)
        if deadline is not None and time.monotonic() > deadline:
            return incumbent.found(problem, lattice.lowest(order, position, *known_facts))
        node = int(order[position])
        outcome = problem.evaluate(_levels(node, heights))
        incumbent.see(outcome)
        if outcome.hopeless:
            lattice.rule_out(state, heights, np.array(_climb(problem, outcome, incumbent).levels))
        elif outcome.penalty is not None:
            if known == len(penalties):
                penalties = np.concatenate([penalties, np.zeros_like(penalties)])
            penalties[known] = outcome.penalty
            source[node] = known
            known += 1
        position += 1


def _climb(problem: Problem, hopeless: Outcome, incumbent: Incumbent) -> Outcome:
    """Find a coarser hopeless node, which rules out more.

    Only without suppression: what is feasible then lies near the top, where looking costs little.
    """
    while problem.limit == 0:
        for levels in above(hopeless.levels, problem.heights):
            if levels not in incumbent.feasible:
                coarser = problem.evaluate(levels)
                incumbent.see(coarser)
                if coarser.hopeless:
                    hopeless = coarser
                    break
        else:
            break
    return hopeless


def _dearest_first(
    floor: NDArray[np.float64], heights: NDArray[np.int64], limit: float
) -> NDArray[np.int64]:
    """Nodes that may be worth a look; whatever lies above a node comes before it."""
    nodes = np.flatnonzero(floor <= limit)
    total = np.zeros(len(nodes), dtype=np.int64)
    rest = nodes.copy()
    for height in heights.tolist():
        total += rest % (height + 1)
        rest //= height + 1
    return np.asarray(nodes[np.lexsort((-total, -floor[nodes]))])


def _levels(node: int, heights: NDArray[np.int64]) -> tuple[int, ...]:
    levels = []
    for height in heights.tolist():
        node, level = divmod(node, height + 1)
        levels.append(level)
    return tuple(levels)
