"""DPCocGen, made to work and as printed: co-cluster a private first look, then count its blocks.

Definition: phase 1 learns a private model of the rows; MODL co-clusters rows drawn from that model
into a grid (post-processing); phase 2 adds noise to the number of rows in each block of the grid;
rows are drawn block by block, inside a block by the model of phase 1.
Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018,
chapter 5, algorithms 2 and 3. As printed (``learn_as_printed``, by which the thesis's claims are
judged), phase 1 adds noise to every cell, and both phases set negatives to 0: at small epsilon MODL
takes the noise for structure, and clamping adds rows. ``learn`` reads low-dimensional tables first,
takes the level of the grid from the noise of phase 2 by a public rule, and keeps noisy totals.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod, sqrt
from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering import observations
from halfmask.coclustering.hierarchy import simplify
from halfmask.coclustering.optimize import optimize_grid
from halfmask.dp.views import noise
from halfmask.errors import HalfmaskError, ParameterError
from halfmask.synthesize import marginals
from halfmask.synthesize.inference import draw_values
from halfmask.synthesize.marginals import shrink, simplex

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from halfmask.dp.budget import Budget
    from halfmask.dp.views import NoisyViews

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

TOTAL = Fraction(1, 100)  # the share of the budget that counts the rows
FIRST = Fraction(2, 3)  # the share that phase 1 gets where many blocks can be counted
POOR_FIRST = Fraction(9, 10)  # the same where only few can
FEW_BLOCKS = 250
ROWS_PER_BLOCK = 5.0  # how many times the noise scale a block holds on average, at least
DRAWN = 1 << 19  # rows drawn from the first model
LOOKED_AT = 18  # of these, on how many for each row of the table the grid is found
FEWEST = 1 << 14  # and on how many at least
MOST_CELLS = 1 << 20  # of the full table, which is listed as printed
HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyGrid:
    """Cells with weights: blocks by phase 2, inside a block by phase 1.

    Attributes:
        sizes: how many public values each column has.
        cells: the cells that have any weight.
        weights: their weights.
        rows: the noisy number of rows.
        parts: per column, the part of each value in the grid.
    """

    sizes: Mapping[str, int]
    cells: Ints
    weights: Floats
    rows: int
    parts: Mapping[str, Ints]

    def draw(self, rows: int, random: np.random.Generator) -> dict[str, Ints]:
        """``rows`` rows as public codes per column."""
        picked = self.cells[draw_values(np.zeros(rows, np.int64), self.weights[None, :], random)]
        return _columns(picked, self.sizes)


def learn(
    views: NoisyViews,
    *,
    ordered: Collection[str] = (),
    first: Fraction | None = None,
    rows_per_block: float = ROWS_PER_BLOCK,
    seconds: float = 10.0,
) -> NoisyGrid:
    """A grid with noisy blocks over all columns, for the whole budget.

    Args:
        views: the rows behind noisy answers.
        ordered: the columns whose neighboring codes are alike; they are cut into intervals.
        first: the share of the budget that phase 1 gets; by default a rule on the noisy number of
            rows.
        rows_per_block: how many times the noise a block holds on average, at least.
        seconds: how long to look for the grid.
    """
    if first is not None and not 0 < first < 1:
        raise ParameterError("first", str(first), "above 0 and below 1")
    if len(views.sizes) < 2 or prod(views.sizes.values()) >= 1 << 62:
        raise ParameterError("columns", len(views.sizes), "2 or more, below 2**62 cells in all")
    rows = max(1.0, float(views.count((), views.limit * TOTAL).counts))
    rest = views.limit * (1 - TOTAL)
    if first is None:
        few = _affordable(rows, rest * (1 - FIRST), rows_per_block) < FEW_BLOCKS
        # Few blocks correct little: then nearly all goes to the first model.
        first = POOR_FIRST if few else FIRST
    second = rest * (1 - first)
    model = marginals.learn(views.within(rest * first), ordered=ordered)
    drawn = _draw_cells(model, views.sizes)
    cells, counts = np.unique(drawn, return_counts=True)
    weights = counts / DRAWN
    most = _affordable(float(model.rows), second, rows_per_block)
    # More rows than these would show no more than the first model holds, and take long.
    some = drawn[: max(FEWEST, LOOKED_AT * int(model.rows))]
    looked_at, times = np.unique(some, return_counts=True)
    scaled = np.maximum(np.rint(times * (float(model.rows) / len(some))), 1).astype(np.int64)
    parts = _grid(looked_at, scaled, views.sizes, ordered, most, seconds)
    seen = views.recode(parts).count(tuple(views.sizes), second)
    shape = seen.counts.shape
    block = _blocks(cells, views.sizes, parts, shape)
    held = np.bincount(block, weights, minlength=prod(shape)).astype(np.float64)
    believed = held * model.rows
    noisy = seen.counts.ravel().astype(np.float64)
    # Empirical Bayes: a noisy block counts the more, the less its noise is.
    settled = simplex(shrink(noisy, believed, seen.variance), float(model.rows))
    factor = settled / np.maximum(believed, 1e-300)
    return NoisyGrid(views.sizes, cells, weights * factor[block], model.rows, parts)


def learn_as_printed(
    views: NoisyViews,
    *,
    ordered: Collection[str] = (),
    blocks: int | None = None,
    seconds: float = 10.0,
) -> NoisyGrid:
    """The grid that MODL finds in a noisy histogram of all cells, its blocks counted with noise.

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
    positive = np.flatnonzero(first.ravel())
    parts = _grid(positive, first.ravel()[positive], sizes, ordered, blocks, seconds)
    seen = views.recode(parts).count(tuple(sizes), views.limit * HALF)
    held = np.maximum(seen.counts, 0)
    place = np.ix_(*(parts[name] for name in sizes))
    block = np.arange(held.size).reshape(held.shape)[place].ravel()
    weights = held.ravel()[block] / np.bincount(block, minlength=held.size)[block]
    kept = np.flatnonzero(weights > 0)
    if not len(kept):  # nothing is left of the noisy blocks: all cells alike
        kept, weights = np.arange(cells), np.ones(cells)
    return NoisyGrid(sizes, kept, weights[kept], max(1, int(held.sum())), parts)


def _affordable(rows: float, cost: Budget, rows_per_block: float) -> int:
    """How many blocks can be counted for ``cost`` with enough rows in each."""
    scale = sqrt(noise(cost, 1).variance / 2)
    return max(1, int(rows / (rows_per_block * max(scale, 1e-9))))


def _draw_cells(model: marginals.MarginalsModel, sizes: Mapping[str, int]) -> Ints:
    """The cells of many rows drawn from the first model, in the order they were drawn."""
    # Chance only spreads the model over cells; it holds no secret, and a fixed start repeats it.
    rows = model.draw(DRAWN, np.random.default_rng(0))
    cell = np.zeros(DRAWN, np.int64)
    for name, size in sizes.items():
        cell = cell * size + rows[name]
    return cell


def _grid(
    cells: Ints,
    counts: Ints,
    sizes: Mapping[str, int],
    ordered: Collection[str],
    most: int | None,
    seconds: float,
) -> dict[str, Ints]:
    """Per column, the part of each value: the finest grid of the hierarchy with ``most`` blocks."""
    whole = {name: np.zeros(size, dtype=np.int64) for name, size in sizes.items()}
    if not len(cells):
        return whole
    codes = _columns(cells, sizes)
    variables = [
        observations.Variable(name, "numeric" if name in ordered else "categorical", size)
        for name, size in sizes.items()
    ]
    try:
        observed = observations.observe(
            variables, [codes[name].astype(np.int32) for name in sizes], counts
        )
        grid = optimize_grid(observed, seed=0, rounds=0, time_limit=seconds)
        if most is not None and grid.informative:
            grid = simplify(grid, cells=most)
    except (ArithmeticError, MemoryError, HalfmaskError):  # the budget is spent: one block, then
        return whole
    return {n: np.asarray(p, dtype=np.int64) for n, p in zip(sizes, grid.partition, strict=True)}


def _blocks(
    cells: Ints, sizes: Mapping[str, int], parts: Mapping[str, Ints], shape: tuple[int, ...]
) -> Ints:
    """The block of each cell."""
    block = np.zeros(len(cells), np.int64)
    for (name, codes), width in zip(_columns(cells, sizes).items(), shape, strict=True):
        block = block * width + parts[name][codes]
    return block


def _columns(cells: Ints, sizes: Mapping[str, int]) -> dict[str, Ints]:
    """The codes of each cell."""
    left, found = cells, {}
    for name in reversed(list(sizes)):
        left, found[name] = np.divmod(left, sizes[name])
    return {name: found[name] for name in sizes}
