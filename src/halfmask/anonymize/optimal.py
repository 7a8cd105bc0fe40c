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

from halfmask.anonymize.bounds import Bounds
from halfmask.anonymize.branch import branch
from halfmask.anonymize.incumbent import Found, Incumbent, above, begin
from halfmask.anonymize.solution import Solution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.anonymize.outcome import Outcome
    from halfmask.anonymize.problem import Problem

ENUMERABLE = 5_000_000  # lattices up to this many nodes are listed in memory
PATIENCE = 60.0  # seconds given to a larger lattice where no time limit is stated


def solve(problem: Problem, *, seed: int | None, time_limit: float | None) -> Solution:  # noqa: ARG001
    """Return one step for all tuples; suppressed are the classes that fail."""
    found = search(problem, time_limit=time_limit)
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


def search(
    problem: Problem,
    *,
    time_limit: float | None = None,
    bounds: Bounds | None = None,
    starts: Sequence[tuple[int, ...]] = (),
) -> Found:
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


def listable(problem: Problem) -> bool:
    """Whether all combinations of levels fit into memory."""
    return bool(math.prod(height + 1 for height in problem.heights.tolist()) <= ENUMERABLE)


def scan(
    problem: Problem,
    deadline: float | None = None,
    *,
    bounds: Bounds | None = None,
    starts: Sequence[tuple[int, ...]] = (),
) -> Found:
    """Search a lattice that fits into memory."""
    known = Bounds(problem) if bounds is None else bounds
    incumbent = begin(problem, starts)
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
            known.rule_out(_climb(problem, outcome, incumbent).levels)
        elif outcome.penalty is not None:
            known.raise_by(node, outcome.penalty)
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
