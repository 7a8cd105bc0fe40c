"""Very many values: search on a sample of them, place the others, then move all of them.

The scheme: ``LIMIT`` values of the largest categorical variable are drawn, the search runs on their
observations, every other value joins the part it fits best, and the whole is improved by moves and
merges. The cost that is reported is that of all observations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.observations import Observations, Variable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import Partition
    from halfmask.coclustering.search import Search

LIMIT = 60_000


def side_to_sample(observations: Observations) -> int | None:
    """The largest categorical variable, where it has more values than ``LIMIT``."""
    sizes = [v.size if v.kind == "categorical" else 0 for v in observations.variables]
    largest = int(np.argmax(sizes))
    return largest if sizes[largest] > LIMIT else None


def drawn(
    observations: Observations, side: int, random: np.random.Generator
) -> tuple[Observations, NDArray[np.int64]]:
    """The observations of ``LIMIT`` values of one variable, and these values."""
    variable = observations.variables[side]
    chosen = np.sort(random.choice(variable.size, LIMIT, replace=False))
    place = np.full(variable.size, -1, dtype=np.int32)
    place[chosen] = np.arange(LIMIT, dtype=np.int32)
    keep = place[observations.codes[:, side]] >= 0
    codes = observations.codes[keep].copy()
    codes[:, side] = place[codes[:, side]]
    variables = list(observations.variables)
    variables[side] = Variable(variable.name, variable.kind, LIMIT)
    return Observations(tuple(variables), codes, observations.weights[keep]), chosen


def extended(search: Search, side: int, chosen: NDArray[np.int64], found: Partition) -> Partition:
    """The partition of all values: those not drawn join the part that costs least."""
    from halfmask.kernels.modl_moves import place_values

    part = np.full(search.criterion.observations.sizes[side], -1, dtype=np.int32)
    part[chosen] = found[side]
    partition = (*found[:side], part, *found[side + 1 :])
    starts, cells, counts, n_cells = search.profile(side, partition)
    parts = int(found[side].max()) + 1
    place_values(starts, cells, counts, part, parts, search.factorials, n_cells)
    return partition
