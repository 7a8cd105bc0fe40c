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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.problem import Problem
    from halfmask.table.classes import Classes
    from halfmask.table.hierarchy import Hierarchy

_BIT = 0.1  # keeps splits that give nothing away comparable with each other


@dataclass(slots=True, eq=False)
class Partition:
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
    def empty(cls, problem: Problem, hierarchies: Sequence[Hierarchy]) -> Partition:
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
            self.group = _number(self.group, hierarchy.maps[level, code])
            self.saved[c] = np.sum(self.rows * self.extra[c][level, code], where=live)

    def holds(self, problem: Problem) -> bool:
        """Whether the classes satisfy all models."""
        live = self.block >= 0
        if not live.any():
            return False
        classes = _regrouped(problem.groupings.tuples.select(live), _dense(self.group[live]))
        return all(bool(model.passes(classes).all()) for model in problem.models)

    def value(self, problem: Problem) -> float:
        """The metric of the whole partition."""
        return problem.combined(
            [problem.worst(c) - self.saved[c] for c in range(len(self.hierarchies))]
        )

    def steps(self) -> tuple[list[tuple[int, ...]], NDArray[np.int32]]:
        """The decision list: the levels of each step, and the step of each tuple."""
        live = np.flatnonzero(self.block >= 0)
        step = self.rank[live]
        for column in (self.block[live], *self.level[live].T):
            step = _number(step, column)
        first = np.zeros(int(step.max()) + 1, dtype=np.int64)
        first[step] = live
        order = np.lexsort((self.rank[first], self.block[first]))
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        tuple_step = np.full(len(self.block), -1, dtype=np.int32)
        tuple_step[live] = place[step]
        return [tuple(row) for row in self.level[first[order]].tolist()], tuple_step


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


def specialize(problem: Problem, partition: Partition, deadline: float | None = None) -> Partition:
    """Split classes, all of them in one round, until no split saves anything."""
    relative = any(model.relative or model.whole for model in problem.models)
    whole = any(model.whole for model in problem.models)
    tuples = problem.groupings.tuples
    live = partition.block >= 0
    active = live.copy()
    while active.any() and (deadline is None or time.monotonic() < deadline):
        # Promises that compare with the whole table need all rows in view.
        view = np.flatnonzero(live if relative else active)
        stats = tuples.select(live if relative else active)
        groups = _dense(partition.group[view])
        splits = [
            _split(problem, partition, c, view, groups, stats) for c in range(problem.columns)
        ]
        score = np.max([s.score for s in splits], axis=0)
        best = np.argmax([s.score for s in splits], axis=0)
        chosen = np.flatnonzero(score > 0)
        wanted = len(chosen)
        after = _applied(partition, splits, best, chosen, view, groups)
        while whole and wanted and not after.holds(problem):
            # An average bears only some of the splits: try the better half.
            chosen = chosen[np.argsort(-score[chosen], kind="stable")][: len(chosen) // 2]
            after = _applied(partition, splits, best, chosen, view, groups)
            if not len(chosen):
                return partition
        partition = after
        active[:] = False
        if 8 * len(chosen) >= wanted:  # else the average is all but used up
            gained = np.zeros(len(score), dtype=bool)
            gained[score > 0] = True
            active[view[gained[groups]]] = True
    return partition


def _split(
    problem: Problem,
    partition: Partition,
    column: int,
    view: NDArray[np.int64],
    groups: NDArray[np.int64],
    stats: Classes,
) -> _Split:
    count = int(groups.max()) + 1
    level, code = partition.level[view, column], partition.codes[view, column]
    finer = np.maximum(level - 1, 0)
    label = partition.hierarchies[column].maps[finer, code]
    child = _number(groups, label)
    owner = np.zeros(int(child.max()) + 1, dtype=np.int64)
    owner[child] = groups
    size = _sums(child, stats.rows, len(owner))
    passing = problem.passing(_regrouped(stats, child))
    passing, sound = _settle(problem, stats, child, owner, size, passing, count)
    extra = partition.extra[column]
    saving = stats.rows * (extra[finer, code] - extra[level, code])
    moves = passing[child] & sound[groups] & (level > 0)
    saved = _sums(groups, np.where(moves, saving, 0.0), count)
    saved = saved * problem.leverage(column, problem.worst(column) - partition.saved[column])
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
    together = _dense(target)
    place = np.zeros(int(together.max()) + 1, dtype=np.int64)
    place[together] = target
    result = problem.passing(_regrouped(stats, together))
    is_rest = place < count
    sound[place[is_rest]] = result[is_rest]
    return sound


def _applied(
    partition: Partition,
    splits: Sequence[_Split],
    best: NDArray[np.intp],
    chosen: NDArray[np.int64],
    view: NDArray[np.int64],
    groups: NDArray[np.int64],
) -> Partition:
    """The partition after the best split of each chosen class."""
    after = replace(partition, level=partition.level.copy(), saved=partition.saved.copy())
    part = np.zeros(len(partition.group), dtype=np.int64)
    behind = np.zeros(len(partition.group), dtype=np.int64)
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
    after.group = _number(partition.group, part)
    after.rank = np.unique(2 * partition.rank + behind, return_inverse=True)[1].reshape(-1)
    return after


def _sums(
    groups: NDArray[np.int64], weights: NDArray[np.int64] | NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    return np.bincount(groups, weights=weights, minlength=count).astype(np.float64, copy=False)


def _regrouped(stats: Classes, groups: NDArray[np.int64]) -> Classes:
    """The statistics of ``groups``, which are numbered from 0 without gaps."""
    count = int(groups.max()) + 1
    rows = np.bincount(groups, weights=stats.rows, minlength=count).astype(np.int64)
    return stats.merged(groups.astype(np.int32), np.empty((count, 0), dtype=np.uint64), rows)


def _number(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the distinct pairs from 0."""
    low = int(first.min())
    return _dense((first - low) * (int(second.max()) + 1) + second)


def _dense(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the distinct values, which are not negative, from 0 by first occurrence."""
    from halfmask.kernels import group

    none = np.empty(0, dtype=np.int64)
    keys = np.ascontiguousarray(numbers).astype(np.uint64).reshape(-1, 1)
    unsigned = none.astype(np.uint64)
    ids, _, _ = group.regroup(
        keys, np.ones(len(keys), dtype=np.int64), none, unsigned, unsigned, none, unsigned
    )
    return np.asarray(ids, dtype=np.int64)


def _savings(hierarchy: Hierarchy, per_label: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Per level and value, what its label saves; a suppressed cell saves nothing."""
    out = np.zeros(hierarchy.maps.shape)
    for level, labels in enumerate(per_label):
        out[level] = labels[hierarchy.maps[level]]
    return out
