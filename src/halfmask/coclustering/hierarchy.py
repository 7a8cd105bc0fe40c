"""The hierarchy of merges above a grid, down to one cell, with the information kept at each level.

Definition: information rate = (cost(level) - cost(null)) / (cost(grid) - cost(null)); 1 at the
    grid, 0 at the null grid, at times a little below 0 on the way.
Source: Boullé, "Data grid models", 2011; Benkhelif, 2018, section 3.2.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.criterion import Criterion
from halfmask.coclustering.held import Held
from halfmask.coclustering.merges import Path, compact, merge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.grid import Grid


@dataclass(frozen=True, slots=True, eq=False)
class MergeHierarchy:
    """All grids from the given one down to one cell.

    Attributes:
        grid: the finest grid.
        path: the merges; level 0 is the grid itself, level i the grid after i merges.
    """

    grid: Grid
    path: Path

    def __len__(self) -> int:
        return len(self.path.steps) + 1

    def __repr__(self) -> str:
        return f"MergeHierarchy({self.grid!r}, {len(self)} levels)"

    @property
    def costs(self) -> NDArray[np.float64]:
        """The cost at each level."""
        return self.path.costs

    @property
    def information(self) -> NDArray[np.float64]:
        """The information rate at each level."""
        costs, null = self.costs, self.grid.null_cost
        span = costs[0] - null
        return (costs - null) / span if span < 0 else np.ones(len(costs))

    def parts(self) -> NDArray[np.int64]:
        """(levels, variables) the number of parts."""
        out = np.tile(np.array(self.grid.parts, dtype=np.int64), (len(self), 1))
        for side in range(out.shape[1]):
            out[1:, side] -= np.cumsum(self.path.steps[:, 0] == side)
        return out

    def names(self, level: int) -> list[NDArray[np.int32]]:
        """Per variable, the part at ``level`` of each part of the grid, without gaps."""
        return [compact(name) for name in self.path.names(level)]

    def at(self, level: int) -> Grid:
        """The grid at one level."""
        if level == 0:
            return self.grid
        return self.grid.coarser(self.names(level), float(self.costs[level]))

    def smallest(self, side: int, owner: NDArray[np.int32] | None = None) -> NDArray[np.int64]:
        """Per level, the fewest values in a part of one variable, or with ``owner`` whose they are.

        An owner counts once in a part, however many of its values are the owner's.
        """
        held = Held(self.grid.partition[side], owner)
        out = [held.fewest()]
        for merged, kept, gone in self.path.steps.tolist():
            if merged == side:
                held.join(kept, gone)
            out.append(held.fewest())
        return np.array(out, dtype=np.int64)


def hierarchy(grid: Grid) -> MergeHierarchy:
    """Merge the best pair over all variables until one cell is left."""
    judge = Criterion(grid.stand_in(), grid.criterion)
    path = merge(judge, grid.partition, cost=0.0)
    # counted from the null grid, so that a garbage group does not disturb the levels
    start = grid.null_cost - float(path.change.sum())
    return MergeHierarchy(grid, Path(path.start, start, path.steps, path.change))
