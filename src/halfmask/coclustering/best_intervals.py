"""Numbers cut where it helps the co-clustering most, instead of at quantiles.

The rows are co-clustered with numbers cut at quantiles; then every numeric column is cut anew at
the least MODL cost against the groups of rows, and the rows are co-clustered again, as long as the
grid's level rises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.coclustering.optimize import cocluster
from halfmask.coclustering.prepare import melt, recut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.coclustering.grid import Grid
    from halfmask.coclustering.prepare import Melted
    from halfmask.table.table import Table

_PASSES = 3


def melt_best(
    table: Table, names: Sequence[str], *, bins: int = 20, seed: int = 0, rounds: int = 2
) -> tuple[Melted, Grid]:
    """Melt with the best intervals found, and the grid that they give.

    Args:
        table: the rows.
        names: the columns to melt.
        bins: how many quantiles the first cut has.
        seed: of the co-clustering.
        rounds: of each co-clustering.
    """
    melted = melt(table, names, bins=bins)
    grid = cocluster(melted.observations, seed=seed, rounds=rounds)
    for _ in range(_PASSES):
        if not grid.informative:
            break
        finer = recut(table, melted, grid.partition[0])
        found = cocluster(finer.observations, seed=seed, rounds=rounds)
        if found.level <= grid.level:
            break
        melted, grid = finer, found
    return melted, grid
