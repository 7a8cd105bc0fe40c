"""Local recoding: levels that differ between classes, so that dense regions keep their detail.

First the rows that the optimal full-domain recoding would suppress are recoded on their own, again
and again, and what is left at the end joins the last of these steps, its cells suppressed where
hierarchies have no common label. Then every class is specialized as long as that saves loss.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize import optimal
from halfmask.anonymize.cell_levels import CellLevels
from halfmask.anonymize.incumbent import greedy
from halfmask.anonymize.problem import Problem
from halfmask.anonymize.solution import Solution
from halfmask.anonymize.specialize import specialize
from halfmask.errors import ParameterError
from halfmask.metrics.cost.metric import CellMetric
from halfmask.table.hierarchy import TOP, Hierarchy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.outcome import Outcome
    from halfmask.models.verdict import Model


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Tuples that were recoded together."""

    levels: tuple[int, ...]
    tuples: NDArray[np.int64]


def solve(problem: Problem, *, seed: int | None, time_limit: float | None) -> Solution:  # noqa: ARG001
    """Return a decision list that loses less than any single combination of levels."""
    _require(problem)
    deadline = None if time_limit is None else time.monotonic() + time_limit
    cells = _best(problem, time_limit, deadline)
    if cells is None:
        closest = optimal.search(problem, time_limit=time_limit).closest
        return Solution(None, np.full(len(_all(problem)), -1, np.int32), np.inf, None, closest)
    steps, tuple_step = cells.steps()
    notes = ("Levels differ between classes; the result is the best found, not a proven optimum.",)
    return Solution(steps, tuple_step, cells.value(problem), None, notes=notes)


def _best(problem: Problem, time_limit: float | None, deadline: float | None) -> CellLevels | None:
    """The levels that lose least; only the best so far is kept in memory."""
    best = None
    for blocks in _starts(problem, time_limit):
        cells = _cells(problem, blocks)
        if cells.holds(problem):
            cells = specialize(problem, cells, deadline)
            if best is None or cells.value(problem) < best.value(problem):
                best = cells
    return best


def _starts(problem: Problem, time_limit: float | None) -> Iterator[list[_Block]]:
    """Recodings to start from; they satisfy all promises that look at single classes."""
    alone = tuple(m for m in problem.models if not (m.relative or m.whole))
    blocks = _blocks(problem, alone) if alone else None
    if blocks is not None:
        yield blocks
    if len(alone) < len(problem.models) or optimal.listable(problem):
        best = optimal.search(problem, time_limit=time_limit).best
        if best is not None:
            first = _block(problem, best, _all(problem))
            yield [first]
            left = np.setdiff1d(_all(problem), first.tuples, assume_unique=True)
            if len(left):  # what it would suppress, as one class
                top = [_with_cell_suppression(h).height for h in problem.hierarchies]
                yield [first, _Block(tuple(top), left)]


def _cells(problem: Problem, blocks: list[_Block]) -> CellLevels:
    cells = CellLevels.empty(problem, [_with_cell_suppression(h) for h in problem.hierarchies])
    for number, block in enumerate(blocks):
        cells.block[block.tuples] = number
        cells.level[block.tuples] = block.levels
    cells.form_classes()
    return cells


def _require(problem: Problem) -> None:
    if not isinstance(problem.metric, CellMetric):
        raise ParameterError(
            "metric", problem.metric.name, "loss, mean-loss, precision or entropy with local"
        )
    if any(model.population is not None for model in problem.models):
        raise ParameterError("method", "local", "optimal, which can compare with a population")


def _blocks(problem: Problem, models: Sequence[Model]) -> list[_Block] | None:
    """Recode what is left again and again; what stands in no block at the end is suppressed."""
    blocks: list[_Block] = []
    left = _all(problem)
    while len(left):
        part = _part(problem, models, left, suppression=1.0)
        best = greedy(part)
        if best is None:
            break
        blocks.append(_block(part, best, left))
        left = np.setdiff1d(left, blocks[-1].tuples, assume_unique=True)
    rows = problem.groupings.tuples.rows
    while rows[left].sum() > problem.limit:
        part = _part(problem, models, left, suppression=0.0)
        best = greedy(part)
        if best is not None:
            return [*blocks, _block(part, best, left)]
        if not blocks:
            return None
        left = np.sort(np.concatenate((left, blocks.pop().tuples)))
    return blocks


def _all(problem: Problem) -> NDArray[np.int64]:
    return np.arange(len(problem.groupings.tuples))


def _block(problem: Problem, outcome: Outcome, tuples: NDArray[np.int64]) -> _Block:
    return _Block(outcome.levels, tuples[problem.members(outcome)])


def _part(
    problem: Problem, models: Sequence[Model], tuples: NDArray[np.int64], *, suppression: float
) -> Problem:
    """The same task on some of the tuples; where nothing may be lost, cells can be suppressed."""
    mask = np.zeros(len(problem.groupings.tuples), dtype=bool)
    mask[tuples] = True
    hierarchies = problem.hierarchies
    if suppression == 0.0:
        hierarchies = tuple(_with_cell_suppression(h) for h in hierarchies)
    return Problem(
        problem.groupings.tuples.select(mask),
        hierarchies,
        models,
        problem.metric,
        suppression=suppression,
        weights=problem.weights.tolist(),
    )


def _with_cell_suppression(hierarchy: Hierarchy) -> Hierarchy:
    """One level more, on which the cell is suppressed, where the top still tells labels apart."""
    if len(hierarchy.labels[-1]) == 1:
        return hierarchy
    nothing = np.zeros((1, hierarchy.maps.shape[1]), dtype=np.int32)
    return replace(
        hierarchy,
        maps=np.concatenate((hierarchy.maps, nothing)),
        labels=(*hierarchy.labels, [TOP]),
        leaves=(*hierarchy.leaves, np.array([hierarchy.size], dtype=np.int64)),
    )
