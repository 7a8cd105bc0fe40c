"""A generator of rows: a mixture of groups of people, each column drawn for itself.

Definition: P(v | u, X) is proportional to (n_v / N_p(v)) (N_u,p(v) / N_u) over the parts v of a
    column X; p(v) is the group of parts that holds v and u a group of rows. Only these counts
    are kept: the rows are not needed to draw.
Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018, 3.4.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.grid import Grid

Mode = Literal["draw", "quota"]


@dataclass(frozen=True, slots=True, eq=False)
class Generator:
    """What is needed to draw rows, and nothing else.

    Attributes:
        sizes: how many rows each group holds.
        chances: per column, (groups, parts) the chance of each part.
    """

    sizes: NDArray[np.int64]
    chances: tuple[NDArray[np.float64], ...]

    def __repr__(self) -> str:
        return f"Generator({len(self.sizes)} groups, {len(self.chances)} columns)"

    def draw(
        self, rows: int, random: np.random.Generator, *, mode: Mode = "draw"
    ) -> NDArray[np.int32]:
        """Draw rows as (rows, columns) parts of each column, in random order.

        Args:
            rows: how many.
            random: the source of chance.
            mode: ``"draw"`` at random, or ``"quota"``: every part as often as its chance says,
                rounded, the columns of a group shuffled against each other.
        """
        sizes = _shares(self.sizes / self.sizes.sum(), rows)
        out = np.empty((rows, len(self.chances)), dtype=np.int32)
        end = np.cumsum(sizes)
        for group, size in enumerate(sizes.tolist()):
            place = slice(int(end[group]) - size, int(end[group]))
            for k, chances in enumerate(self.chances):
                if mode == "quota":
                    drawn = np.repeat(np.arange(chances.shape[1]), _shares(chances[group], size))
                    random.shuffle(drawn)
                else:
                    drawn = random.choice(chances.shape[1], size, p=chances[group])
                out[place, k] = drawn
        return out[random.permutation(rows)]


def generator(grid: Grid, offsets: tuple[int, ...]) -> Generator:
    """The generator of a grid over (row, part); ``offsets``: where each column's parts begin."""
    met = grid.matrix()
    part_group, counts = grid.partition[1], grid.marginals[1]
    totals = np.maximum(met.sum(axis=0), 1)
    weight = met[:, part_group] * (counts / totals[part_group])
    chances = []
    for low, high in itertools.pairwise(offsets):
        raw = weight[:, low:high].astype(np.float64)
        empty = raw.sum(axis=1) == 0
        raw[empty] = counts[low:high]  # a group that meets no part of the column: the margin
        chances.append(raw / raw.sum(axis=1, keepdims=True))
    return Generator(grid.sizes(0), tuple(chances))


def _shares(chances: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Whole numbers of sum ``total`` in proportion to ``chances``, largest remainders first."""
    exact = chances * total
    out = np.floor(exact).astype(np.int64)
    rest = np.argsort(out - exact, kind="stable")[: total - int(out.sum())]
    out[rest] += 1
    return np.asarray(out)
