"""Coarser grids: the path of best merges from a grid down to one cell, and the grids along it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.criterion import GridCriterion, cell_counts
from halfmask.coclustering.observations import PartSizes, log_factorials
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import GridPartition
    from halfmask.coclustering.grid import Grid


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

    start: GridPartition
    cost: float
    steps: NDArray[np.int64]
    change: NDArray[np.float64]

    @property
    def costs(self) -> NDArray[np.float64]:
        """The cost of the start and after each step."""
        return self.cost + np.concatenate([[0.0], np.cumsum(self.change)])

    def partition(self, steps: int) -> GridPartition:
        """The partition after so many merges, parts renumbered without gaps."""
        names = self.names(steps)
        return tuple(
            renumber(name[assigned]) for name, assigned in zip(names, self.start, strict=True)
        )

    def names(self, steps: int) -> list[NDArray[np.int32]]:
        """Per variable, the part that each part of the start belongs to after so many merges."""
        names = [np.arange(int(side.max()) + 1, dtype=np.int32) for side in self.start]
        for side, kept, gone in self.steps[:steps].tolist():
            names[side][names[side] == gone] = kept
        return names

    def best(self) -> tuple[float, GridPartition]:
        """The least cost along the path and its partition."""
        costs = self.costs
        step = int(costs.argmin())
        return float(costs[step]), self.partition(step)


def merge_parts(
    criterion: GridCriterion,
    partition: GridPartition,
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
    from halfmask.kernels.coclustering.merge_path import merge_path
    from halfmask.kernels.coclustering.merges import GridCells, GridVariables

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
    cells = GridCells(
        codes,
        counts,
        np.random.default_rng(_MIX).integers(2**63, size=dims, dtype=np.uint64) | np.uint64(1),
        log_factorials(observed.total + max(observed.sizes)),
    )
    sides = GridVariables(
        parts,
        np.array([variable.kind == "numeric" for variable in observed.variables]),
        totals,
        helds,
        priors,
        np.array(frozen if frozen is not None else [False] * dims),
        np.array(stop_at if stop_at is not None else [1] * dims, dtype=np.int64),
    )
    informative = np.array([criterion.informative(wide) for wide in range(dims + 1)])
    steps, change = merge_path(cells, sides, informative)
    return Path(partition, criterion.cost(partition) if cost is None else cost, steps, change)


def renumber(side: NDArray[np.int32]) -> NDArray[np.int32]:
    """The same parts numbered 0, 1, ... in order of their first name."""
    return np.asarray(np.unique(side, return_inverse=True)[1], np.int32).reshape(side.shape)


def by_appearance(side: NDArray[np.int32]) -> NDArray[np.int32]:
    """The same parts numbered 0, 1, ... in order of their first value."""
    _, first, place = np.unique(side, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return np.asarray(rank[place.reshape(side.shape)])


@dataclass(frozen=True, slots=True, eq=False)
class MergeHierarchy:
    """All grids from the given one down to one cell, with the information kept at each level.

    Definition: information rate = (cost(level) - cost(null)) / (cost(grid) - cost(null)); 1 at the
        grid, 0 at the null grid, at times a little below 0 on the way.
    Source: Boullé, "Data grid models", 2011; Benkhelif, 2018, section 3.2.4.

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
        return [renumber(name) for name in self.path.names(level)]

    def at(self, level: int) -> Grid:
        """The grid at one level."""
        if level == 0:
            return self.grid
        return self.grid.coarser(self.names(level), float(self.costs[level]))

    def smallest(self, side: int, owner: NDArray[np.int32] | None = None) -> NDArray[np.int64]:
        """Per level, the fewest values in a part of one variable, or with ``owner`` whose they are.

        An owner counts once in a part, however many of its values are the owner's.
        """
        held = PartSizes(self.grid.partition[side], owner)
        out = [held.fewest()]
        for merged, kept, gone in self.path.steps.tolist():
            if merged == side:
                held.join(kept, gone)
            out.append(held.fewest())
        return np.array(out, dtype=np.int64)


def hierarchy(grid: Grid) -> MergeHierarchy:
    """Merge the best pair over all variables until one cell is left."""
    judge = GridCriterion(grid.stand_in(), grid.criterion)
    path = merge_parts(judge, grid.partition, cost=0.0)
    # counted from the null grid, so that a garbage group does not disturb the levels
    start = grid.null_cost - float(path.change.sum())
    return MergeHierarchy(grid, Path(path.start, start, path.steps, path.change))


def simplify(
    grid: Grid | MergeHierarchy,
    *,
    parts: Mapping[str, int] | None = None,
    cells: int | None = None,
    information: float | None = None,
    smallest: Mapping[str, int] | None = None,
    owner: NDArray[np.int32] | None = None,
) -> Grid:
    """The finest grid of the hierarchy that meets all limits.

    Args:
        grid: the grid, or its hierarchy where it is known.
        parts: the most parts per variable.
        cells: the most cells, empty ones counted.
        information: the least information that may be kept; the coarsest grid above it is taken.
        smallest: the least number of values in each part of a variable.
        owner: whose each value of these variables is; ``smallest`` then counts owners.

    Raises:
        ParameterError: no level meets the limits.
    """
    if cells is not None and cells < 1:
        raise ParameterError("cells", cells, "1 or more")
    if information is not None and not 0 <= information <= 1:
        raise ParameterError("information", information, "a share from 0 to 1")
    levels = grid if isinstance(grid, MergeHierarchy) else hierarchy(grid)
    counts = levels.parts()
    fits = np.ones(len(levels), dtype=bool)
    for name, most in (parts or {}).items():
        fits &= counts[:, levels.grid.side(name)] <= most
    if cells is not None:
        fits &= counts.prod(axis=1) <= cells
    for name, least in (smallest or {}).items():
        least_sizes = levels.smallest(levels.grid.side(name), owner)
        if least > least_sizes[-1]:
            raise ParameterError("smallest", least, f"at most the {least_sizes[-1]:,} there are")
        fits &= least_sizes >= least
    if information is not None:
        fits &= levels.information >= information
    found = np.flatnonzero(fits)
    if not len(found):
        raise ParameterError("limits", "those given", "limits that one level of the grid meets")
    return levels.at(int(found[-1] if information is not None else found[0]))


def merge_small(grid: Grid, name: str, least: int, owner: NDArray[np.int32] | None = None) -> Grid:
    """Merge only parts of one variable that hold fewer than ``least`` values, cheapest first.

    Keeps more parts than climbing the hierarchy, whose every step touches all variables. With
    ``owner``, whose each value is, owners are counted.
    """
    side = grid.side(name)
    total = int(grid.sizes(side).sum())
    if least > total:
        raise ParameterError("smallest", least, f"at most the {total:,} values there are")
    held = PartSizes(grid.partition[side], owner)
    rows = _rows(grid, side)
    sizes, totals = grid.sizes(side), grid.totals(side)
    factorial = log_factorials(grid.total + max(len(p) for p in grid.partition))
    names = np.arange(len(sizes), dtype=np.int32)
    alive = held.alive
    while alive.sum() > 1 and held.fewest() < least:
        small = int(np.flatnonzero(alive)[held.sizes[alive].argmin()])
        others = np.flatnonzero(alive & (np.arange(len(sizes)) != small))
        # The cost of joining each of the others, as far as it differs between them.
        both = rows[others] + rows[small]
        change = -(factorial[both] - factorial[rows[others]]).sum(axis=1)
        change += _part(totals[others] + totals[small], sizes[others] + sizes[small], factorial)
        change -= _part(totals[others], sizes[others], factorial)
        target = int(others[change.argmin()])
        rows[target] += rows[small]
        sizes[target] += sizes[small]
        totals[target] += totals[small]
        held.join(target, small)
        names[names == small] = target
    new = [np.arange(p, dtype=np.int32) for p in grid.parts]
    new[side] = np.unique(names, return_inverse=True)[1].astype(np.int32)
    return grid.coarser(new, float("nan"))


def _rows(grid: Grid, side: int) -> NDArray[np.int64]:
    """(parts of one variable, cells of the others) counts."""
    others = np.delete(grid.cells, side, axis=1)
    cell = np.unique(others, axis=0, return_inverse=True)[1].reshape(-1)
    out = np.zeros((grid.parts[side], int(cell.max()) + 1), dtype=np.int64)
    np.add.at(out, (grid.cells[:, side], cell), grid.counts)
    return out


def _part(
    totals: NDArray[np.int64], held: NDArray[np.int64], factorial: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.asarray(factorial[totals + held - 1] - factorial[held - 1])
