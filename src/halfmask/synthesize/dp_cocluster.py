"""DPCocGen made to work: co-cluster a private first look, then count its blocks.

Definition: phase 1 learns a private model of the rows; MODL co-clusters rows drawn from that model
into a grid (post-processing); phase 2 adds noise to the number of rows in each block of the grid;
rows are drawn block by block, inside a block by the model of phase 1.
Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018,
chapter 5. As printed, phase 1 adds noise to every cell; MODL then takes the noise for structure and
merges nothing. Here phase 1 reads low-dimensional tables, the level of the grid follows from the
noise of phase 2 by a public rule, and noisy blocks keep their total instead of being clamped.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod, sqrt
from typing import TYPE_CHECKING

import numpy as np

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
        first = POOR_FIRST if few else FIRST
    second = rest * (1 - first)
    model = marginals.learn(views.within(rest * first), ordered=ordered)
    drawn = _draw_cells(model, views.sizes)
    cells, counts = np.unique(drawn, return_counts=True)
    weights = counts / DRAWN
    most = _affordable(float(model.rows), second, rows_per_block)
    # More rows than these would show no more than the first model holds, and take long.
    some = drawn[: max(FEWEST, LOOKED_AT * int(model.rows))]
    parts = _grid(some, float(model.rows), views.sizes, ordered, most, seconds)
    seen = views.grouped(parts).count(tuple(views.sizes), second)
    shape = seen.counts.shape
    block = _blocks(cells, views.sizes, parts, shape)
    held = np.bincount(block, weights, minlength=prod(shape)).astype(np.float64)
    believed = held * model.rows
    noisy = seen.counts.ravel().astype(np.float64)
    settled = simplex(shrink(noisy, believed, seen.variance), float(model.rows))
    factor = settled / np.maximum(believed, 1e-300)
    return NoisyGrid(views.sizes, cells, weights * factor[block], model.rows, parts)


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
    drawn: Ints,
    rows: float,
    sizes: Mapping[str, int],
    ordered: Collection[str],
    most: int,
    seconds: float,
) -> dict[str, Ints]:
    """Per column, the part of each value: the finest grid of the hierarchy with ``most`` blocks."""
    from halfmask.coclustering.hierarchy import simplify
    from halfmask.coclustering.observations import Variable, observe
    from halfmask.coclustering.optimize import optimize_grid

    cells, counts = np.unique(drawn, return_counts=True)
    codes = _columns(cells, sizes)
    variables = [
        Variable(name, "numeric" if name in ordered else "categorical", size)
        for name, size in sizes.items()
    ]
    whole = np.maximum(np.rint(counts * (rows / len(drawn))), 1).astype(np.int64)
    observed = observe(variables, [codes[name].astype(np.int32) for name in sizes], whole)
    try:
        grid = optimize_grid(observed, seed=0, rounds=0, time_limit=seconds)
        chosen = simplify(grid, cells=most) if grid.informative else grid
    except (ArithmeticError, MemoryError, HalfmaskError):  # the budget is spent: one block, then
        return {name: np.zeros(size, dtype=np.int64) for name, size in sizes.items()}
    return {
        name: np.asarray(part, dtype=np.int64)
        for name, part in zip(sizes, chosen.partition, strict=True)
    }


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
