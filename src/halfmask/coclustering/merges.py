"""The path of best merges from a grid down to one cell, and the grids along it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.codes import log_factorials
from halfmask.coclustering.criterion import cell_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import Criterion, Partition

_MIX = 20110  # any fixed number: cells are told apart by sums of odd 64-bit constants


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """Merges in the order they were made.

    Attributes:
        start: the partition before the first merge.
        cost: its cost.
        steps: (steps, 3) variable, kept part, part merged into it; in the parts of ``start``.
        change: the change of the cost at each step.
    """

    start: Partition
    cost: float
    steps: NDArray[np.int64]
    change: NDArray[np.float64]

    @property
    def costs(self) -> NDArray[np.float64]:
        """The cost of the start and after each step."""
        return self.cost + np.concatenate([[0.0], np.cumsum(self.change)])

    def partition(self, steps: int) -> Partition:
        """The partition after so many merges, parts renumbered without gaps."""
        names = self.names(steps)
        return tuple(
            compact(name[assigned]) for name, assigned in zip(names, self.start, strict=True)
        )

    def names(self, steps: int) -> list[NDArray[np.int32]]:
        """Per variable, the part that each part of the start belongs to after so many merges."""
        names = [np.arange(int(side.max()) + 1, dtype=np.int32) for side in self.start]
        for side, kept, gone in self.steps[:steps].tolist():
            names[side][names[side] == gone] = kept
        return names

    def best(self) -> tuple[float, Partition]:
        """The least cost along the path and its partition."""
        costs = self.costs
        step = int(costs.argmin())
        return float(costs[step]), self.partition(step)


def merge(
    criterion: Criterion,
    partition: Partition,
    *,
    cost: float | None = None,
    frozen: Sequence[bool] | None = None,
    stop_at: Sequence[int] | None = None,
) -> Path:
    """Merge the best pair over all variables again and again.

    Args:
        criterion: what is minimized.
        partition: where to start.
        cost: its cost, if known.
        frozen: variables whose parts stay.
        stop_at: the least number of parts per variable.
    """
    from halfmask.kernels.modl_merges import merge_path

    observed = criterion.observations
    dims = len(partition)
    parts = np.array([int(side.max()) + 1 for side in partition], dtype=np.int64)
    codes, counts = cell_counts(observed, partition)
    width = int(parts.max())
    totals = np.zeros((dims, width), dtype=np.int64)
    helds = np.zeros((dims, width), dtype=np.int64)
    priors = np.zeros((dims, width + 1))
    for k, side in enumerate(partition):
        totals[k, : parts[k]] = np.bincount(side, observed.marginal(k), parts[k])
        helds[k, : parts[k]] = np.bincount(side, minlength=parts[k])
        priors[k, : parts[k] + 1] = criterion.prior(k, int(parts[k]))[: parts[k] + 1]
    steps, change = merge_path(
        codes,
        counts,
        parts,
        np.array([variable.kind == "numeric" for variable in observed.variables]),
        totals,
        helds,
        priors,
        np.array([criterion.informative(sides) for sides in range(dims + 1)]),
        log_factorials(observed.total + max(observed.sizes)),
        np.random.default_rng(_MIX).integers(2**63, size=dims, dtype=np.uint64) | np.uint64(1),
        np.array(frozen if frozen is not None else [False] * dims),
        np.array(stop_at if stop_at is not None else [1] * dims, dtype=np.int64),
    )
    return Path(partition, criterion.cost(partition) if cost is None else cost, steps, change)


def compact(side: NDArray[np.int32]) -> NDArray[np.int32]:
    """The same parts numbered 0, 1, ... in order of their first name."""
    return np.asarray(np.unique(side, return_inverse=True)[1], np.int32).reshape(side.shape)


def by_appearance(side: NDArray[np.int32]) -> NDArray[np.int32]:
    """The same parts numbered 0, 1, ... in order of their first value."""
    _, first, place = np.unique(side, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return np.asarray(rank[place.reshape(side.shape)])
