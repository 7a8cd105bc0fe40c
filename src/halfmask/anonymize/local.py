"""The level of every cell while classes are split, and the classes and the loss that follow.

Top-down specialization of classes: each split buys detail for anonymity that was to spare.

A class is split by lowering one column by one level. Children that satisfy the models become
classes of their own; the others stay together at the old level, if that still satisfies them. Among
the columns, the one that saves most per bit of class size given away is taken.

Local recoding: levels that differ between classes, so that dense regions keep their detail.

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
from halfmask.anonymize.optimal import greedy
from halfmask.anonymize.problem import RecodingProblem, Solution
from halfmask.errors import ParameterError
from halfmask.metrics.cost import CellMetric
from halfmask.table.hierarchy import TOP, Hierarchy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.problem import NodeOutcome
    from halfmask.models.verdict import Model
    from halfmask.table.classes import Classes
    from halfmask.table.hierarchy import Hierarchy


@dataclass(slots=True, eq=False)
class CellLevels:
    """Where each distinct tuple stands while classes are being split.

    Attributes:
        hierarchies: per column, with a level for suppressed cells where needed.
        codes: (tuples, columns) the level-0 codes.
        level: (tuples, columns) the current level of each cell.
        block: which block of the first recoding a tuple belongs to; -1 is suppressed.
        rank: within a block, the order in which decisions are to be tried: what was split off
            comes before what stayed behind.
        group: the class of each tuple.
        extra: per column, level and value, what a row saves against being suppressed.
        rows: how many rows each tuple stands for.
        saved: per column, what all rows together save; kept up to date by every split.
    """

    hierarchies: Sequence[Hierarchy]
    codes: NDArray[np.int32]
    level: NDArray[np.int16]
    block: NDArray[np.int64]
    rank: NDArray[np.int64]
    group: NDArray[np.int64]
    extra: list[NDArray[np.float64]]
    rows: NDArray[np.int64]
    saved: NDArray[np.float64]

    @classmethod
    def empty(cls, problem: RecodingProblem, hierarchies: Sequence[Hierarchy]) -> CellLevels:
        """All tuples of ``problem``, none of them in a block yet."""
        tuples = problem.groupings.tuples
        size, columns = len(tuples), len(hierarchies)
        codes = [problem.layout.codes(tuples.keys, c) for c in range(columns)]
        saved = [_savings(hierarchy, problem.savings(c)) for c, hierarchy in enumerate(hierarchies)]
        return cls(
            hierarchies,
            np.column_stack(codes).astype(np.int32),
            np.zeros((size, columns), dtype=np.int16),
            np.full(size, -1, dtype=np.int64),
            np.zeros(size, dtype=np.int64),
            np.zeros(size, dtype=np.int64),
            saved,
            tuples.rows,
            np.zeros(columns),
        )

    def form_classes(self) -> None:
        """Group tuples of one block whose labels agree."""
        live = self.block >= 0
        self.group = self.block
        for c, hierarchy in enumerate(self.hierarchies):
            level, code = self.level[:, c], self.codes[:, c]
            self.group = number_pairs(self.group, hierarchy.maps[level, code])
            self.saved[c] = np.sum(self.rows * self.extra[c][level, code], where=live)

    def holds(self, problem: RecodingProblem) -> bool:
        """Whether the classes satisfy all models."""
        live = self.block >= 0
        if not live.any():
            return False
        classes = regroup_tuples(
            problem.groupings.tuples.select(live), number_values(self.group[live])
        )
        return all(bool(model.passes(classes).all()) for model in problem.models)

    def value(self, problem: RecodingProblem) -> float:
        """The metric of the whole table."""
        return problem.combined(
            [problem.worst(c) - self.saved[c] for c in range(len(self.hierarchies))]
        )

    def steps(self) -> tuple[list[tuple[int, ...]], NDArray[np.int32]]:
        """The decision list: the levels of each step, and the step of each tuple."""
        live = np.flatnonzero(self.block >= 0)
        step = self.rank[live]
        for column in (self.block[live], *self.level[live].T):
            step = number_pairs(step, column)
        first = np.zeros(int(step.max()) + 1, dtype=np.int64)
        first[step] = live
        order = np.lexsort((self.rank[first], self.block[first]))
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        tuple_step = np.full(len(self.block), -1, dtype=np.int32)
        tuple_step[live] = place[step]
        return [tuple(row) for row in self.level[first[order]].tolist()], tuple_step


def regroup_tuples(stats: Classes, groups: NDArray[np.int64]) -> Classes:
    """The statistics of ``groups``, which are numbered from 0 without gaps."""
    count = int(groups.max()) + 1
    rows = np.bincount(groups, weights=stats.rows, minlength=count).astype(np.int64)
    return stats.merged(groups.astype(np.int32), np.empty((count, 0), dtype=np.uint64), rows)


def number_pairs(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the distinct pairs from 0."""
    low = int(first.min())
    return number_values((first - low) * (int(second.max()) + 1) + second)


def number_values(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the distinct values, which are not negative, from 0 by first occurrence."""
    from halfmask.kernels import grouping

    none = np.empty(0, dtype=np.int64)
    keys = np.ascontiguousarray(numbers).astype(np.uint64).reshape(-1, 1)
    unsigned = none.astype(np.uint64)
    ids, _, _ = grouping.regroup(
        keys, np.ones(len(keys), dtype=np.int64), none, unsigned, unsigned, none, unsigned
    )
    return np.asarray(ids, dtype=np.int64)


def _savings(hierarchy: Hierarchy, per_label: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Per level and value, what its label saves; a suppressed cell saves nothing."""
    out = np.zeros(hierarchy.maps.shape)
    for level, labels in enumerate(per_label):
        out[level] = labels[hierarchy.maps[level]]
    return out


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


def specialize(
    problem: RecodingProblem, cells: CellLevels, deadline: float | None = None
) -> CellLevels:
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
        groups = number_values(cells.group[view])
        splits = []
        for c in range(problem.columns):
            if deadline is not None and time.monotonic() >= deadline:
                return cells
            splits.append(_split(problem, cells, c, view, groups, stats))
        score = np.max([s.score for s in splits], axis=0)
        best = np.argmax([s.score for s in splits], axis=0)
        chosen = np.flatnonzero(score > 0)
        wanted = len(chosen)
        after = _apply_splits(cells, splits, best, chosen, view, groups)
        while whole and wanted and not after.holds(problem):
            # An average bears only some of the splits: try the better half.
            chosen = chosen[np.argsort(-score[chosen], kind="stable")][: len(chosen) // 2]
            after = _apply_splits(cells, splits, best, chosen, view, groups)
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
    problem: RecodingProblem,
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
    child = number_pairs(groups, label)
    owner = np.zeros(int(child.max()) + 1, dtype=np.int64)
    owner[child] = groups
    size = _sums(child, stats.rows, len(owner))
    passing = problem.passing(regroup_tuples(stats, child))
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
    problem: RecodingProblem,
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
    problem: RecodingProblem,
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
    together = number_values(target)
    place = np.zeros(int(together.max()) + 1, dtype=np.int64)
    place[together] = target
    result = problem.passing(regroup_tuples(stats, together))
    is_rest = place < count
    sound[place[is_rest]] = result[is_rest]
    return sound


def _apply_splits(
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
    after.group = number_pairs(cells.group, part)
    # In the decision list who goes finer stands before who stays behind.
    after.rank = np.unique(2 * cells.rank + behind, return_inverse=True)[1].reshape(-1)
    return after


def _sums(
    groups: NDArray[np.int64], weights: NDArray[np.int64] | NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    return np.bincount(groups, weights=weights, minlength=count).astype(np.float64, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Tuples that were recoded together."""

    levels: tuple[int, ...]
    tuples: NDArray[np.int64]


def find_steps(problem: RecodingProblem, *, seed: int | None, time_limit: float | None) -> Solution:  # noqa: ARG001
    """Return a decision list that loses less than any single combination of levels."""
    _require(problem)
    deadline = None if time_limit is None else time.monotonic() + time_limit
    cells = _best(problem, deadline)
    if cells is None:
        closest = optimal.search_lattice(problem, time_limit=_seconds_left(deadline)).closest
        return Solution(None, np.full(len(_all(problem)), -1, np.int32), np.inf, None, closest)
    steps, tuple_step = cells.steps()
    notes = ("Levels differ between classes; the result is the best found, not a proven optimum.",)
    return Solution(steps, tuple_step, cells.value(problem), None, notes=notes)


def _seconds_left(deadline: float | None) -> float | None:
    """The seconds that are left; a little where none are."""
    return None if deadline is None else max(deadline - time.monotonic(), 0.01)


def _best(problem: RecodingProblem, deadline: float | None) -> CellLevels | None:
    """The levels that lose least; only the best so far is kept in memory."""
    best = None
    for blocks in _starts(problem, deadline):
        if best is not None and deadline is not None and time.monotonic() >= deadline:
            break
        cells = _cells(problem, blocks)
        if cells.holds(problem):
            cells = specialize(problem, cells, deadline)
            if best is None or cells.value(problem) < best.value(problem):
                best = cells
    return best


def _starts(problem: RecodingProblem, deadline: float | None) -> Iterator[list[_Block]]:
    """Recodings to start from; they satisfy all promises that look at single classes."""
    alone = tuple(m for m in problem.models if not (m.relative or m.whole))
    blocks = _blocks(problem, alone, deadline) if alone else None
    if blocks is not None:
        yield blocks
    if len(alone) < len(problem.models) or optimal.listable(problem):
        best = optimal.search_lattice(problem, time_limit=_seconds_left(deadline)).best
        if best is not None:
            first = _block(problem, best, _all(problem))
            yield [first]
            left = np.setdiff1d(_all(problem), first.tuples, assume_unique=True)
            if len(left):  # what it would suppress, as one class
                top = [_with_cell_suppression(h).height for h in problem.hierarchies]
                yield [first, _Block(tuple(top), left)]


def _cells(problem: RecodingProblem, blocks: list[_Block]) -> CellLevels:
    cells = CellLevels.empty(problem, [_with_cell_suppression(h) for h in problem.hierarchies])
    for number, block in enumerate(blocks):
        cells.block[block.tuples] = number
        cells.level[block.tuples] = block.levels
    cells.form_classes()
    return cells


def _require(problem: RecodingProblem) -> None:
    # Cells are lowered one by one, so that what each of them loses has to be known by itself.
    if not isinstance(problem.metric, CellMetric):
        raise ParameterError(
            "metric", problem.metric.name, "loss, mean-loss, precision or entropy with local"
        )
    if any(model.population is not None for model in problem.models):
        raise ParameterError("method", "local", "optimal, which can compare with a population")


def _blocks(
    problem: RecodingProblem, models: Sequence[Model], deadline: float | None
) -> list[_Block] | None:
    """Recode what is left again and again; what stands in no block at the end is suppressed.

    Half of the time that is left is kept for what comes after.
    """
    blocks: list[_Block] = []
    left = _all(problem)
    if deadline is not None:
        deadline -= (deadline - time.monotonic()) / 2
    while len(left) and (deadline is None or time.monotonic() < deadline):
        part = _part(problem, models, left, suppression=1.0)
        best = greedy(part, deadline)
        if best is None:
            break
        blocks.append(_block(part, best, left))
        left = np.setdiff1d(left, blocks[-1].tuples, assume_unique=True)
    rows = problem.groupings.tuples.rows
    while rows[left].sum() > problem.limit:
        part = _part(problem, models, left, suppression=0.0)
        best = greedy(part, deadline)
        if best is not None:
            return [*blocks, _block(part, best, left)]
        if not blocks:
            return None
        left = np.sort(np.concatenate((left, blocks.pop().tuples)))
    return blocks


def _all(problem: RecodingProblem) -> NDArray[np.int64]:
    return np.arange(len(problem.groupings.tuples))


def _block(problem: RecodingProblem, outcome: NodeOutcome, tuples: NDArray[np.int64]) -> _Block:
    return _Block(outcome.levels, tuples[problem.members(outcome)])


def _part(
    problem: RecodingProblem,
    models: Sequence[Model],
    tuples: NDArray[np.int64],
    *,
    suppression: float,
) -> RecodingProblem:
    """The same task on some of the tuples; where nothing may be lost, cells can be suppressed."""
    mask = np.zeros(len(problem.groupings.tuples), dtype=bool)
    mask[tuples] = True
    hierarchies = problem.hierarchies
    if suppression == 0.0:
        hierarchies = tuple(_with_cell_suppression(h) for h in hierarchies)
    return RecodingProblem(
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
