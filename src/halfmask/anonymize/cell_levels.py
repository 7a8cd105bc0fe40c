"""The level of every cell while classes are split, and the classes and the loss that follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.problem import Problem
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
    def empty(cls, problem: Problem, hierarchies: Sequence[Hierarchy]) -> CellLevels:
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
            self.group = numbered(self.group, hierarchy.maps[level, code])
            self.saved[c] = np.sum(self.rows * self.extra[c][level, code], where=live)

    def holds(self, problem: Problem) -> bool:
        """Whether the classes satisfy all models."""
        live = self.block >= 0
        if not live.any():
            return False
        classes = regrouped(problem.groupings.tuples.select(live), dense(self.group[live]))
        return all(bool(model.passes(classes).all()) for model in problem.models)

    def value(self, problem: Problem) -> float:
        """The metric of the whole table."""
        return problem.combined(
            [problem.worst(c) - self.saved[c] for c in range(len(self.hierarchies))]
        )

    def steps(self) -> tuple[list[tuple[int, ...]], NDArray[np.int32]]:
        """The decision list: the levels of each step, and the step of each tuple."""
        live = np.flatnonzero(self.block >= 0)
        step = self.rank[live]
        for column in (self.block[live], *self.level[live].T):
            step = numbered(step, column)
        first = np.zeros(int(step.max()) + 1, dtype=np.int64)
        first[step] = live
        order = np.lexsort((self.rank[first], self.block[first]))
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        tuple_step = np.full(len(self.block), -1, dtype=np.int32)
        tuple_step[live] = place[step]
        return [tuple(row) for row in self.level[first[order]].tolist()], tuple_step


def regrouped(stats: Classes, groups: NDArray[np.int64]) -> Classes:
    """The statistics of ``groups``, which are numbered from 0 without gaps."""
    count = int(groups.max()) + 1
    rows = np.bincount(groups, weights=stats.rows, minlength=count).astype(np.int64)
    return stats.merged(groups.astype(np.int32), np.empty((count, 0), dtype=np.uint64), rows)


def numbered(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the distinct pairs from 0."""
    low = int(first.min())
    return dense((first - low) * (int(second.max()) + 1) + second)


def dense(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
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
