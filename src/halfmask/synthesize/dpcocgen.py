"""DPCocGen as printed: co-cluster a noisy histogram of all cells, count the blocks, draw evenly.

Definition: half of epsilon adds Laplace noise to every cell of the full table, negatives set to 0;
MODL co-clusters these counts into a grid; the other half adds noise to the number of rows in each
block, negatives set to 0; a block's rows are drawn evenly over its cells.
Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018,
chapter 5, algorithms 2 and 3. Kept so that the thesis's claims are judged on it: at small epsilon
MODL takes the noise for structure, and setting negatives to 0 adds rows; ``dp-cocluster`` mends it.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.hierarchy import simplify
from halfmask.coclustering.observations import Variable, observe
from halfmask.coclustering.optimize import optimize_grid
from halfmask.errors import HalfmaskError, ParameterError
from halfmask.synthesize.dp_cocluster import NoisyGrid

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from halfmask.dp.views import NoisyViews

    Ints = NDArray[np.int64]

MOST_CELLS = 1 << 20  # of the full table, which is listed as printed
HALF = Fraction(1, 2)


def learn(
    views: NoisyViews,
    *,
    ordered: Collection[str] = (),
    blocks: int | None = None,
    seconds: float = 10.0,
) -> NoisyGrid:
    """A grid with noisy blocks over all columns, for the whole budget.

    Args:
        views: the rows behind noisy answers.
        ordered: the columns whose neighboring codes are alike; they are cut into intervals.
        blocks: simplify the grid to at most so many, a public number; None takes it as found.
        seconds: how long to look for the grid.
    """
    sizes, cells = views.sizes, prod(views.sizes.values())
    if len(sizes) < 2 or cells > MOST_CELLS:
        raise ParameterError("columns", len(sizes), f"2 or more of {MOST_CELLS:,} cells at most")
    if blocks is not None and blocks < 1:
        raise ParameterError("blocks", blocks, "1 or more")
    first = np.maximum(views.count(tuple(sizes), views.limit * HALF).counts, 0)
    parts = _grid(first, sizes, ordered, blocks, seconds)
    seen = views.grouped(parts).count(tuple(sizes), views.limit * HALF)
    held = np.maximum(seen.counts, 0)
    place = np.ix_(*(parts[name] for name in sizes))
    block = np.arange(held.size).reshape(held.shape)[place].ravel()
    weights = held.ravel()[block] / np.bincount(block, minlength=held.size)[block]
    kept = np.flatnonzero(weights > 0)
    if not len(kept):  # nothing is left of the noisy blocks: all cells alike
        kept, weights = np.arange(cells), np.ones(cells)
    return NoisyGrid(sizes, kept, weights[kept], max(1, int(held.sum())), parts)


def _grid(
    counts: Ints,
    sizes: Mapping[str, int],
    ordered: Collection[str],
    blocks: int | None,
    seconds: float,
) -> dict[str, Ints]:
    """Per column, the part of each value in the grid of noisy counts."""
    whole = {name: np.zeros(size, dtype=np.int64) for name, size in sizes.items()}
    cells = np.flatnonzero(counts.ravel() > 0)
    if not len(cells):
        return whole
    codes = np.unravel_index(cells, counts.shape)
    variables = [
        Variable(name, "numeric" if name in ordered else "categorical", size)
        for name, size in sizes.items()
    ]
    try:
        observed = observe(variables, [c.astype(np.int32) for c in codes], counts.ravel()[cells])
        grid = optimize_grid(observed, seed=0, rounds=0, time_limit=seconds)
        if blocks is not None and grid.informative:
            grid = simplify(grid, cells=blocks)
    except (ArithmeticError, MemoryError, HalfmaskError):  # the budget is spent: one block, then
        return whole
    return {n: np.asarray(p, dtype=np.int64) for n, p in zip(sizes, grid.partition, strict=True)}
