"""Very many values: search on a sample of them, place the others, then move all of them.

The scheme: so many values of the largest categorical variable are drawn that about ``ROOM``
observations are about them, ``FEWEST`` to ``MOST`` of them; the search runs on these observations,
every other value joins the part it fits best, and the whole is improved by moves and merges. The
cost that is reported is that of all observations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.observations import Observations, Variable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import Partition
    from halfmask.coclustering.search import Search

ROOM = 300_000
FEWEST, MOST = 3_000, 60_000


def side_to_sample(observations: Observations) -> tuple[int, int] | None:
    """The largest categorical variable and how many values to draw, where it has more."""
    sizes = [v.size if v.kind == "categorical" else 0 for v in observations.variables]
    largest = int(np.argmax(sizes))
    fitting = ROOM * sizes[largest] // len(observations.codes)
    wanted = min(max(fitting, FEWEST), MOST)
    return (largest, wanted) if sizes[largest] > wanted else None


def drawn(
    observations: Observations, side: int, wanted: int, random: np.random.Generator
) -> tuple[Observations, NDArray[np.int64]]:
    """The observations of ``wanted`` values of one variable, and these values."""
    variable = observations.variables[side]
    chosen = np.sort(random.choice(variable.size, wanted, replace=False))
    place = np.full(variable.size, -1, dtype=np.int32)
    place[chosen] = np.arange(wanted, dtype=np.int32)
    keep = place[observations.codes[:, side]] >= 0
    codes = observations.codes[keep].copy()
    codes[:, side] = place[codes[:, side]]
    variables = list(observations.variables)
    variables[side] = Variable(variable.name, variable.kind, wanted)
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
