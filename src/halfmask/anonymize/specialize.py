"""Top-down specialization of classes: each split buys detail for anonymity that was to spare.

A class is split by lowering one column by one level. Children that satisfy the models become
classes of their own; the others stay together at the old level, if that still satisfies them. Among
the columns, the one that saves most per bit of class size given away is taken.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.cell_levels import CellLevels, dense, numbered, regrouped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.problem import Problem
    from halfmask.table.classes import Classes

_BIT = 0.1  # keeps splits that give nothing away comparable with each other


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """What lowering one column would do to every class.

    Attributes:
        score: per class, what it saves per bit of class size; 0 where it cannot be done.
        moves: per tuple, whether it goes to a child of its own.
        label: per tuple, its label one level below.
    """

    score: NDArray[np.float64]
    moves: NDArray[np.bool_]
    label: NDArray[np.int32]


def specialize(problem: Problem, cells: CellLevels, deadline: float | None = None) -> CellLevels:
    """Split classes, all of them in one round, until no split saves anything."""
    relative = any(model.relative or model.whole for model in problem.models)
    whole = any(model.whole for model in problem.models)
    tuples = problem.groupings.tuples
    live = cells.block >= 0
    active = live.copy()
    while active.any() and (deadline is None or time.monotonic() < deadline):
        # Promises that compare with the whole table need all rows in view.
        view = np.flatnonzero(live if relative else active)
        stats = tuples.select(live if relative else active)
        groups = dense(cells.group[view])
        splits = [_split(problem, cells, c, view, groups, stats) for c in range(problem.columns)]
        score = np.max([s.score for s in splits], axis=0)
        best = np.argmax([s.score for s in splits], axis=0)
        chosen = np.flatnonzero(score > 0)
        wanted = len(chosen)
        after = _applied(cells, splits, best, chosen, view, groups)
        while whole and wanted and not after.holds(problem):
            # An average bears only some of the splits: try the better half.
            chosen = chosen[np.argsort(-score[chosen], kind="stable")][: len(chosen) // 2]
            after = _applied(cells, splits, best, chosen, view, groups)
            if not len(chosen):
                return cells
        cells = after
        active[:] = False
        if 8 * len(chosen) >= wanted:  # else the average is all but used up
            gained = np.zeros(len(score), dtype=bool)
            gained[score > 0] = True
            active[view[gained[groups]]] = True
    return cells


def _split(
    problem: Problem,
    cells: CellLevels,
    column: int,
    view: NDArray[np.int64],
    groups: NDArray[np.int64],
    stats: Classes,
) -> _Split:
    count = int(groups.max()) + 1
    level, code = cells.level[view, column], cells.codes[view, column]
    finer = np.maximum(level - 1, 0)
    label = cells.hierarchies[column].maps[finer, code]
    child = numbered(groups, label)
    owner = np.zeros(int(child.max()) + 1, dtype=np.int64)
    owner[child] = groups
    size = _sums(child, stats.rows, len(owner))
    passing = problem.passing(regrouped(stats, child))
    passing, sound = _settle(problem, stats, child, owner, size, passing, count)
    extra = cells.extra[column]
    saving = stats.rows * (extra[finer, code] - extra[level, code])
    moves = passing[child] & sound[groups] & (level > 0)
    saved = _sums(groups, np.where(moves, saving, 0.0), count)
    saved = saved * problem.leverage(column, problem.worst(column) - cells.saved[column])
    total = _sums(groups, stats.rows, count)
    rest = _sums(owner, np.where(passing, 0.0, size), count) / total
    shares = np.where(passing, size / total[owner], 1.0)
    bits = _sums(owner, -shares * np.log2(shares), count)
    bits -= np.where(rest > 0, rest * np.log2(np.maximum(rest, 1e-300)), 0.0)
    score = saved * (1 - rest / 2) / (bits + _BIT)
    return _Split(np.where(score > 1e-15, score, 0.0), moves, label)


def _settle(
    problem: Problem,
    stats: Classes,
    child: NDArray[np.int64],
    owner: NDArray[np.int64],
    size: NDArray[np.float64],
    passing: NDArray[np.bool_],
    count: int,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which children leave, and for which classes that works.

    What stays behind must satisfy the models as well; where it does not, the smallest child that
    could leave stays too.
    """
    sound = _rest_passes(problem, stats, child, owner, passing, count)
    if not sound.all():
        candidates = np.flatnonzero(passing & ~sound[owner])
        candidates = candidates[np.lexsort((size[candidates], owner[candidates]))]
        first = np.ones(len(candidates), dtype=bool)
        first[1:] = owner[candidates][1:] != owner[candidates][:-1]
        passing = passing.copy()
        passing[candidates[first]] = False
        sound = _rest_passes(problem, stats, child, owner, passing, count)
    return passing, sound


def _rest_passes(
    problem: Problem,
    stats: Classes,
    child: NDArray[np.int64],
    owner: NDArray[np.int64],
    passing: NDArray[np.bool_],
    count: int,
) -> NDArray[np.bool_]:
    """Per class, whether what stays behind satisfies the models; nothing always does."""
    sound = np.ones(count, dtype=bool)
    if passing.all():
        return sound
    target = np.where(passing, count + np.arange(len(owner)), owner)[child]
    together = dense(target)
    place = np.zeros(int(together.max()) + 1, dtype=np.int64)
    place[together] = target
    result = problem.passing(regrouped(stats, together))
    is_rest = place < count
    sound[place[is_rest]] = result[is_rest]
    return sound


def _applied(
    cells: CellLevels,
    splits: Sequence[_Split],
    best: NDArray[np.intp],
    chosen: NDArray[np.int64],
    view: NDArray[np.int64],
    groups: NDArray[np.int64],
) -> CellLevels:
    """The levels after the best split of each chosen class."""
    after = replace(cells, level=cells.level.copy(), saved=cells.saved.copy())
    part = np.zeros(len(cells.group), dtype=np.int64)
    behind = np.zeros(len(cells.group), dtype=np.int64)
    column = np.full(len(best), -1)
    column[chosen] = best[chosen]
    for c, split in enumerate(splits):
        here = column[groups] == c
        going = here & split.moves
        moved = view[going]
        after.level[moved, c] -= 1
        extra, code, level = after.extra[c], after.codes[moved, c], after.level[moved, c]
        after.saved[c] += np.sum(after.rows[moved] * (extra[level, code] - extra[level + 1, code]))
        part[moved] = 1 + split.label[going]
        behind[view[here & ~split.moves]] = 1
    after.group = numbered(cells.group, part)
    after.rank = np.unique(2 * cells.rank + behind, return_inverse=True)[1].reshape(-1)
    return after


def _sums(
    groups: NDArray[np.int64], weights: NDArray[np.int64] | NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    return np.bincount(groups, weights=weights, minlength=count).astype(np.float64, copy=False)
