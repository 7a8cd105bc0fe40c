"""Co-cluster the columns of a table, with numbers cut evenly or where it helps most.

With ``"modl"`` the rows are co-clustered with numbers cut at quantiles; then every numeric column
is cut anew at the least MODL cost against the groups of rows, and the rows are co-clustered again,
as long as the grid's level rises.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from halfmask.coclustering.optimize import cocluster
from halfmask.coclustering.prepare import melt, recut

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from halfmask.coclustering.grid import Grid
    from halfmask.coclustering.prepare import Intervals, Melted
    from halfmask.table.table import Table

_PASSES = 3


def cocluster_columns(
    table: Table,
    names: Sequence[str],
    *,
    bins: int = 10,
    intervals: Intervals = "equal-frequency",
    seed: int = 0,
    rounds: int = 2,
    time_limit: float | None = None,
) -> tuple[Melted, Grid]:
    """Melt columns into (row, part), and the grid that was found.

    Args:
        table: the rows.
        names: the columns.
        bins: how many intervals numbers are (first) cut into.
        intervals: ``"equal-frequency"``, ``"equal-width"`` or ``"modl"``.
        seed: of the co-clustering.
        rounds: of each co-clustering.
        time_limit: seconds for all of it.
    """
    melted = melt(table, names, bins=bins, intervals=intervals)
    again = names if intervals == "modl" else ()
    return cocluster_melted(
        table, melted, again=again, seed=seed, rounds=rounds, time_limit=time_limit
    )


def cocluster_melted(
    table: Table,
    melted: Melted,
    *,
    again: Collection[str] = (),
    seed: int = 0,
    rounds: int = 2,
    time_limit: float | None = None,
) -> tuple[Melted, Grid]:
    """Co-cluster what is melted; numbers of the columns ``again`` are cut anew where it helps."""
    deadline = time.monotonic() + (math.inf if time_limit is None else time_limit)
    grid = cocluster(melted.observations, seed=seed, rounds=rounds, time_limit=time_limit)
    cut = {column.name for column in melted.columns if column.cuts is not None}
    for _ in range(_PASSES if cut.intersection(again) else 0):
        left = deadline - time.monotonic()
        if not grid.informative or left <= 0:
            break
        finer = recut(table, melted, grid.partition[0], again)
        limit = None if time_limit is None else left
        found = cocluster(finer.observations, seed=seed, rounds=rounds, time_limit=limit)
        if found.level <= grid.level:
            break
        melted, grid = finer, found
    return melted, grid
