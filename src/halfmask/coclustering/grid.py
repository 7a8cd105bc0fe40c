"""A grid: the parts of each variable and the counts of its non-empty cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.criterion import Criterion, cell_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import Form, Partition
    from halfmask.coclustering.observations import Observations, Variable


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A grid over some observations.

    Attributes:
        variables: the sides.
        partition: per variable, the part of each value.
        marginals: per variable, how often each value was observed.
        cells: (cells, variables) the parts of the non-empty cells.
        counts: how many observations each of them holds.
        cost: the cost of the grid.
        null_cost: the cost of the grid with one cell.
        criterion: the form of the cost.
    """

    variables: tuple[Variable, ...]
    partition: Partition
    marginals: tuple[NDArray[np.int64], ...]
    cells: NDArray[np.int32]
    counts: NDArray[np.int64]
    cost: float
    null_cost: float
    criterion: Form

    @classmethod
    def of(cls, criterion: Criterion, partition: Partition) -> Grid:
        """The grid that ``partition`` makes of the criterion's observations."""
        observed = criterion.observations
        cells, counts = cell_counts(observed, partition)
        return cls(
            observed.variables,
            partition,
            tuple(observed.marginal(k) for k in range(len(partition))),
            cells,
            counts,
            criterion.cost(partition, garbage=criterion.best_garbage(partition)),
            criterion.null(),
            criterion.form,
        )

    def __repr__(self) -> str:
        size = " x ".join(str(p) for p in self.parts)
        return f"Grid({size} parts, cost {self.cost:.6f}, null {self.null_cost:.6f})"

    @property
    def parts(self) -> tuple[int, ...]:
        """The number of parts per variable."""
        return tuple(int(side.max()) + 1 for side in self.partition)

    @property
    def total(self) -> int:
        """The number of observations."""
        return int(self.counts.sum())

    @property
    def informative(self) -> bool:
        """Whether the variables tell anything of each other."""
        return any(p > 1 for p in self.parts)

    @property
    def level(self) -> float:
        """1 - cost / null cost: 0 is no structure."""
        return 1.0 - self.cost / self.null_cost if self.null_cost > 0 else 0.0

    def matrix(self) -> NDArray[np.int64]:
        """The counts of all cells of a grid with two variables."""
        out = np.zeros(self.parts, dtype=np.int64)
        out[tuple(self.cells.T)] = self.counts
        return out

    def observations(self) -> Observations:
        """The grid's own cells as observations, one value per part."""
        raise NotImplementedError
