"""Where a search starts, and how it leaves a local optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.merges import compact, merge
from halfmask.coclustering.search import MERGE_LIMIT, ROOM

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import Partition
    from halfmask.coclustering.search import Search

SMALL = MERGE_LIMIT // 4  # variables up to this many values start with every value apart
_SWEEPS = 40
TARGETS = (0.85, 1.0, 1.0, 1.15)  # parts after a split and merge, against those before


def null(search: Search) -> Partition:
    """The grid with one cell."""
    return tuple(np.zeros(size, dtype=np.int32) for size in search.criterion.observations.sizes)


def fine(search: Search, side: int, limit: int) -> NDArray[np.int32]:
    """The finest partition of one variable with at most ``limit`` parts.

    Few values stay single; many are cut into intervals of equal frequency, or, where they have no
    order, thrown together at random.
    """
    observed = search.criterion.observations
    size = observed.sizes[side]
    if size <= limit:
        return np.arange(size, dtype=np.int32)
    if search.numeric(side):
        counts = observed.marginal(side)
        middle = np.cumsum(counts) - counts / 2
        return compact((middle * limit / counts.sum()).astype(np.int32))
    return (search.random.permutation(size) % limit).astype(np.int32)


def first(search: Search, parts: int) -> Partition:
    """A start: small variables at their finest, large ones annealed against these."""
    observed = search.criterion.observations
    limits = []
    for side, size in enumerate(observed.sizes):
        if search.numeric(side):
            limits.append(min(size, int(observed.total**0.5) + 1, parts))
        else:
            limits.append(size if size <= SMALL else parts)
    partition = tuple(fine(search, side, limits[side]) for side in range(len(limits)))
    large = [s for s in range(len(limits)) if not search.numeric(s) and observed.sizes[s] > SMALL]
    for _ in range(2 if len(large) > 1 else 1):
        for side in large:
            apart = _others_finest(search, side, partition)
            weight = observed.total / observed.sizes[side]
            found = search.anneal(side, apart, max(1.0, weight / 3), _SWEEPS)[side]
            partition = _with(partition, side, found)
    return partition


def against_finest(search: Search, partition: Partition) -> Partition:
    """Move values of each variable while the others stand at their finest."""
    for side, size in enumerate(search.criterion.observations.sizes):
        if not search.numeric(side) and size > 64:
            moved = search.improve(side, _others_finest(search, side, partition), sweeps=8)
            partition = _with(partition, side, moved[side])
    return partition


def reheated(search: Search, partition: Partition) -> Partition:
    """Let all values wander a little around the best grid found."""
    heat = float(search.random.choice([0.7, 1.0, 1.5]))
    for side in _movable(search, partition):
        partition = search.anneal(side, partition, heat, _SWEEPS)
    return partition


def resplit(search: Search, partition: Partition) -> Partition:
    """Cut every part in two at random, let values wander, merge back, let them wander again."""
    for side in _movable(search, partition):
        assigned = partition[side]
        parts = int(assigned.max()) + 1
        if 2 * parts > len(assigned):
            continue
        half = search.random.random(len(assigned)) < 0.5
        split = compact(np.where(half, assigned + parts, assigned).astype(np.int32))
        partition = search.anneal(side, _with(partition, side, split), 1.0, _SWEEPS)
        target = max(2, round(parts * float(search.random.choice(TARGETS))))
        frozen = [k != side for k in range(len(partition))]
        stop = [target if k == side else 1 for k in range(len(partition))]
        path = merge(search.criterion, partition, cost=0.0, frozen=frozen, stop_at=stop)
        partition = search.anneal(side, path.partition(len(path.steps)), 1.0, _SWEEPS)
    return partition


def reset(search: Search, partition: Partition) -> Partition:
    """Take some variables to their finest partition and merge each back, the others held fixed."""
    sides = search.random.permutation(len(partition)).tolist()
    for side in sides[: int(search.random.integers(1, len(partition) + 1))]:
        size = len(partition[side])
        limit = size if size <= SMALL else int(search.random.choice([8, 32, 128]))
        if size > SMALL and not search.numeric(side):
            continue
        partition = _with(partition, side, fine(search, side, limit))
        frozen = [k != side for k in range(len(partition))]
        partition = merge(search.criterion, partition, cost=0.0, frozen=frozen).best()[1]
        partition = search.improve(side, partition)
    return partition


def merged_anew(search: Search, side: int, partition: Partition) -> Partition:
    """Take all variables but ``side`` to fine partitions and merge them back."""
    apart = tuple(
        found if k == side else fine(search, k, MERGE_LIMIT) for k, found in enumerate(partition)
    )
    frozen = [k == side for k in range(len(partition))]
    return merge(search.criterion, apart, cost=0.0, frozen=frozen).best()[1]


def shaken(search: Search, partition: Partition) -> Partition:
    """Split parts at random, send some values elsewhere, cut intervals finer."""
    random = search.random
    strength = float(random.choice([1.0, 0.5, 0.25, 0.1]))
    out = list(partition)
    for side, assigned in enumerate(partition):
        size, parts = len(assigned), int(assigned.max()) + 1
        if search.numeric(side):
            out[side] = _finer_intervals(search, assigned)
        elif size <= SMALL and random.random() < 0.5:
            out[side] = np.arange(size, dtype=np.int32)
        else:
            half = (random.random(parts) < strength)[assigned] & (random.random(size) < 0.5)
            moved = np.where(half, assigned + parts, assigned)
            stray = random.random(size) < strength * 0.1
            moved[stray] = random.integers(0, parts, int(stray.sum()))
            out[side] = compact(moved.astype(np.int32))
    return against_finest(search, tuple(out))


def _movable(search: Search, partition: Partition) -> list[int]:
    """The categorical variables with more than one part, in random order."""
    sides = search.random.permutation(len(partition)).tolist()
    return [s for s in sides if not search.numeric(s) and int(partition[s].max()) > 0]


def _with(partition: Partition, side: int, assigned: NDArray[np.int32]) -> Partition:
    return (*partition[:side], assigned, *partition[side + 1 :])


def _others_finest(search: Search, side: int, partition: Partition) -> Partition:
    """The grid with the one other variable at its finest, as memory allows."""
    if len(partition) != 2:
        return partition
    limit = max(2, ROOM // (int(partition[side].max()) + 17))
    return _with(partition, 1 - side, fine(search, 1 - side, limit))


def _finer_intervals(search: Search, assigned: NDArray[np.int32]) -> NDArray[np.int32]:
    """The given cuts and some more."""
    size = len(assigned)
    new = np.zeros(size, dtype=bool)
    new[1:] = np.diff(assigned) != 0
    new[search.random.integers(0, size, min(size, 16))] = True
    new[0] = False
    return np.asarray(np.cumsum(new), dtype=np.int32)
