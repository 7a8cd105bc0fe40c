"""A coarser grid: to a number of parts or cells, to a share of information, or to a least size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.codes import log_factorials
from halfmask.coclustering.held import Held
from halfmask.coclustering.hierarchy import MergeHierarchy, hierarchy
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from halfmask.coclustering.grid import Grid


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
    held = Held(grid.partition[side], owner)
    rows = _rows(grid, side)
    sizes, totals = grid.sizes(side), grid.totals(side)
    factorial = log_factorials(grid.total + max(len(p) for p in grid.partition))
    names = np.arange(len(sizes), dtype=np.int32)
    alive = held.alive
    while alive.sum() > 1 and held.fewest() < least:
        small = int(np.flatnonzero(alive)[held.sizes[alive].argmin()])
        others = np.flatnonzero(alive & (np.arange(len(sizes)) != small))
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
