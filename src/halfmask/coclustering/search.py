"""The steps that lower the cost of a grid: moves, cuts, merges and their alternation."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event
from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.hierarchy import merge_parts, renumber
from halfmask.coclustering.observations import log_compositions, log_factorials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import GridCriterion, GridPartition
    from halfmask.coclustering.hierarchy import Path
    from halfmask.kernels.coclustering.one_variable import ValueCounts

ROOM = 20_000_000  # entries of the dense working matrix (cells of the other variables x parts)
TOLERANCE = 1e-7
MERGE_LIMIT = 1_500  # parts of a variable from which pairs are compared
BLOCKS = 400  # elementary intervals that the exact cut looks at
GAIN = 1e-6
COLD = 0.25  # the last temperature, in nats
INTERVALS = 64  # intervals that one exact cut may find
_SWEEPS = 30
_BLOCK = 512  # values that are looked at together
_LAST = 64  # grids of a path of merges that are tried with garbage groups
_DENSE = 1_000_000  # values times cells that are held at once to sort them


@dataclass(frozen=True, eq=False)
class GridSearch:
    """One search over some observations.

    Attributes:
        criterion: what is minimized.
        index: per variable, where the tuples of each value stand (starts, order).
        factorials: log n!.
        random: the source of all random choices.
        deadline: when to stop, in seconds of the monotonic clock.
        given_up: set where nobody waits for the result any more.
    """

    criterion: GridCriterion
    index: tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]
    factorials: NDArray[np.float64]
    random: np.random.Generator
    deadline: float = math.inf
    given_up: Event = field(default_factory=Event)

    @classmethod
    def of(cls, criterion: GridCriterion, seed: int, deadline: float = math.inf) -> GridSearch:
        """Prepare a search with the observations indexed per variable."""
        observed = criterion.observations
        index = []
        for k, size in enumerate(observed.sizes):
            column = observed.codes[:, k]
            order = np.argsort(column, kind="stable").astype(np.int64)
            starts = np.searchsorted(column[order], np.arange(size + 1)).astype(np.int64)
            index.append((starts, order))
        factorials = log_factorials(observed.total + max(observed.sizes))
        return cls(criterion, tuple(index), factorials, np.random.default_rng(seed), deadline)

    def fork(self, count: int) -> list[GridSearch]:
        """Searches over the same observations, each with a source of chance of its own."""
        return [replace(self, random=random) for random in self.random.spawn(count)]

    @property
    def late(self) -> bool:
        """Whether the time is over, or nobody waits."""
        return self.given_up.is_set() or time.monotonic() >= self.deadline

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Let all forks end soon where the block is left by an interrupt, which waits for them."""
        try:
            yield
        except BaseException:
            self.given_up.set()
            raise

    def numeric(self, side: int) -> bool:
        """Whether a variable is cut into intervals."""
        return self.criterion.observations.variables[side].kind == "numeric"

    def levels(self, side: int, partition: GridPartition, room: int) -> NDArray[np.float64]:
        """The cost of 0..room parts of one variable, the others' numbers of parts held fixed."""
        others = [int(p.max()) + 1 for k, p in enumerate(partition) if k != side]
        cells, wide = math.prod(float(p) for p in others), sum(p > 1 for p in others)
        total = self.criterion.observations.total
        prior = self.criterion.prior(side, room)
        out = np.array([log_compositions(total, cells * j) for j in range(room + 1)])
        out += prior[: room + 1]
        out[:2] += self.criterion.informative(wide)
        out[2:] += self.criterion.informative(wide + 1)
        return out

    def cells_of_others(self, side: int, partition: GridPartition) -> tuple[NDArray[np.int32], int]:
        """Per tuple, the cell that its other variables fall into, and how many cells there are."""
        codes = self.criterion.observations.codes
        sides = [k for k in range(len(partition)) if k != side]
        cell = partition[sides[0]][codes[:, sides[0]]].astype(np.int64)
        for k in sides[1:]:
            width = int(partition[k].max()) + 1
            mixed = cell * width + partition[k][codes[:, k]]  # made dense again: products overflow
            cell = np.unique(mixed, return_inverse=True)[1].reshape(-1).astype(np.int64)
        return cell.astype(np.int32), int(cell.max()) + 1

    def profile(self, side: int, partition: GridPartition) -> ValueCounts:
        """The counts of each value of one variable over the cells of the others."""
        from halfmask.kernels.coclustering.one_variable import ValueCounts, profile

        cell, cells = self.cells_of_others(side, partition)
        starts, order = self.index[side]
        weights = self.criterion.observations.weights
        ends, inside, counts = profile(starts, order, cell, weights, cells)
        return ValueCounts(ends, inside, counts, cells)

    def improve(
        self, side: int, partition: GridPartition, *, sweeps: int = _SWEEPS
    ) -> GridPartition:
        """Lower the cost by changing one variable's parts only."""
        if self.numeric(side):
            return self._cut(side, partition)
        return self._move(side, partition, sweeps)

    def _move(self, side: int, partition: GridPartition, sweeps: int) -> GridPartition:
        from halfmask.kernels.coclustering.one_variable import move_values

        parts = int(partition[side].max()) + 1
        values = self.profile(side, partition)
        size = len(partition[side])
        # Some more parts than there are, so that values may open new ones, as memory allows.
        room = min(size, max(parts, min(parts + 16, ROOM // values.size)))
        part = partition[side].copy()
        move_values(
            values,
            part,
            parts,
            visiting_orders(size, 1, self.random)[0],
            self.levels(side, partition, room),
            self.factorials,
            sweeps,
            TOLERANCE,
        )
        return (*partition[:side], renumber(part), *partition[side + 1 :])

    def anneal(
        self, side: int, partition: GridPartition, heat: float, sweeps: int, cold: float = COLD
    ) -> GridPartition:
        """Let the values of a categorical variable wander, first freely, then less and less."""
        from halfmask.kernels.coclustering.one_variable import anneal_values

        parts = int(partition[side].max()) + 1
        values = self.profile(side, partition)
        part = partition[side].copy()
        anneal_values(
            values,
            part,
            parts,
            self.levels(side, partition, parts),
            self.factorials,
            np.geomspace(heat, cold, sweeps),
            visiting_orders(len(part), sweeps, self.random),
            self.random.random((sweeps, len(part))),
        )
        return (*partition[:side], renumber(part), *partition[side + 1 :])

    def _cut(self, side: int, partition: GridPartition) -> GridPartition:
        from halfmask.kernels.coclustering.one_variable import best_intervals

        starts, cells, counts, n_cells = self.profile(side, partition)
        blocks = self._blocks(side, partition[side])
        edges = np.searchsorted(blocks, np.arange(int(blocks.max()) + 2))
        merged = starts[edges]
        room = min(len(edges) - 1, max(INTERVALS, 2 * (int(partition[side].max()) + 1)))
        found, _ = best_intervals(
            merged, cells, counts, self.levels(side, partition, room), self.factorials, n_cells
        )
        return (*partition[:side], found[blocks], *partition[side + 1 :])

    def _blocks(self, side: int, current: NDArray[np.int32]) -> NDArray[np.int32]:
        """Elementary intervals: single values near the present cuts, runs of values elsewhere."""
        size = len(current)
        if size <= BLOCKS:
            return np.arange(size, dtype=np.int32)
        counts = self.criterion.observations.marginal(side)
        middle = np.cumsum(counts) - counts / 2
        runs = (middle * (BLOCKS // 2) / counts.sum()).astype(np.int64)
        new = np.ones(size, dtype=bool)
        new[1:] = runs[1:] != runs[:-1]
        cuts = np.flatnonzero(np.diff(current)) + 1
        reach = max(1, BLOCKS // (4 * max(len(cuts), 1)))
        for cut in cuts.tolist():
            new[max(cut - reach, 0) : cut + reach] = True
        return np.asarray(np.cumsum(new) - 1, dtype=np.int32)

    def descend(self, partition: GridPartition, cost: float) -> tuple[float, GridPartition]:
        """Merge parts while the cost gets lower along the path of best merges."""
        if self.criterion.form == "published":
            return merge_parts(self.criterion, partition, cost=cost).best()
        path = merge_parts(self.criterion, partition)
        last = range(max(0, len(path.steps) - _LAST), len(path.steps) + 1)
        found = [self._with_garbage(path, step) for step in last]
        return min([(cost, partition), *found], key=lambda one: one[0])

    def _with_garbage(self, path: Path, step: int) -> tuple[float, GridPartition]:
        """A grid of a path, and its cost with the garbage groups that it is cheapest with."""
        partition = path.partition(step)
        widest = [int(np.bincount(assigned).max()) for assigned in partition]
        saved = sum(
            self.criterion.garbage_change(side, int(assigned.max()) + 1, held)
            for side, (assigned, held) in enumerate(zip(partition, widest, strict=True))
        )
        return float(path.costs[step]) + saved, partition

    def converge(self, partition: GridPartition) -> tuple[float, GridPartition]:
        """Alternate merges and changes of single variables until nothing is gained."""
        cost = self.criterion.least(partition)
        while True:
            before = cost
            cost, partition = self.descend(partition, cost)
            if self.late:
                return cost, partition
            moved = partition
            for side in self.random.permutation(len(partition)).tolist():
                moved = self.improve(side, moved)
            moved = self.sort_garbage(moved)
            found = self.criterion.least(moved)
            if found < cost or self.criterion.form == "published":
                cost, partition = found, moved
            if before - cost <= GAIN or self.late:
                break
        return self.descend(partition, cost)

    def sort_garbage(self, partition: GridPartition) -> GridPartition:
        """Move values into garbage groups and out of them, where there are any."""
        for side, group in enumerate(self.criterion.best_garbage(partition)):
            values = self.profile(side, partition) if group is not None else None
            if values is not None and len(partition[side]) * values.size <= _DENSE:
                moved = move_with_garbage(self.criterion, side, partition[side], values)
                partition = (*partition[:side], moved, *partition[side + 1 :])
        return partition


def visiting_orders(size: int, sweeps: int, random: np.random.Generator) -> NDArray[np.int64]:
    """(sweeps, size) the order in which values are looked at, neighbors among each other.

    Blocks of values stand in random order, and the values inside a block: what is near in memory
    is looked at soon after, which takes half of the time.
    """
    count = -(-size // _BLOCK)
    blocks = np.arange(count * _BLOCK).reshape(count, _BLOCK)
    out = np.empty((sweeps, size), np.int64)
    for sweep in range(sweeps):
        order = random.permuted(blocks[random.permutation(count)], axis=1).ravel()
        out[sweep] = order[order < size]
    return out


def move_with_garbage(
    criterion: GridCriterion, side: int, assigned: NDArray[np.int32], values: ValueCounts
) -> NDArray[np.int32]:
    """Move each value to where the cost is least, the widest part counting as garbage group.

    The parts stay as many as they are. By NumPy: this form of the cost is for comparing.
    """
    part, size, parts = assigned.copy(), len(assigned), int(assigned.max()) + 1
    rows = np.zeros((size, values.size), np.int64)
    rows[np.repeat(np.arange(size), np.diff(values.starts)), values.cells] = values.counts
    inside = np.zeros((parts, values.size), np.int64)
    np.add.at(inside, part, rows)
    weight, total, held = rows.sum(axis=1), inside.sum(axis=1), np.bincount(part)
    factorial = log_factorials(int(weight.sum()) + size)
    saved = np.array([criterion.garbage_change(side, parts, count) for count in range(size + 1)])
    for _ in range(_SWEEPS):
        before = part.copy()
        for value in range(size):
            a, w = int(part[value]), weight[value]
            if held[a] == 1:
                continue
            held[a] -= 1
            total[a] -= w
            inside[a] -= rows[value]
            cells = np.flatnonzero(rows[value])
            n = inside[:, cells]
            change = factorial[total + held + w] - factorial[held] + factorial[held - 1]
            change -= factorial[total + held - 1]
            change -= (factorial[n + rows[value, cells]] - factorial[n]).sum(axis=1)
            change += saved[np.maximum(held + 1, held.max())]
            b = int(change.argmin())
            b = b if change[b] < change[a] - TOLERANCE else a
            held[b] += 1
            total[b] += w
            inside[b] += rows[value]
            part[value] = b
        if (part == before).all():
            break
    return part
