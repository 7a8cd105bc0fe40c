"""The proven best grid of tiny variables, by trying every partition of each."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import Criterion, Partition
    from halfmask.coclustering.observations import Variable

MOST = 3000  # grids that are tried one by one


def tiny(criterion: Criterion) -> bool:
    """Whether there are few enough grids to try all of them."""
    total = 1
    for variable in criterion.observations.variables:
        total *= _count(variable)
        if total > MOST:
            return False
    return True


def best(criterion: Criterion) -> Partition:
    """The partition of each variable whose grid costs least; among equals the first."""
    sides = [list(_partitions(v)) for v in criterion.observations.variables]
    return min(
        itertools.product(*sides),
        key=lambda grid: criterion.cost(grid, garbage=criterion.best_garbage(grid)),
    )


def _count(variable: Variable) -> int:
    """How many partitions there are: intervals, or the Bell number of sets."""
    if variable.size > 12:
        return MOST + 1
    if variable.kind == "numeric":
        return int(2 ** (variable.size - 1))
    bell = [1]
    for n in range(variable.size):
        bell.append(sum(math.comb(n, k) * bell[k] for k in range(n + 1)))
    return bell[variable.size]


def _partitions(variable: Variable) -> Iterator[NDArray[np.int32]]:
    """Every partition, its parts numbered by first occurrence."""
    if variable.kind == "numeric":
        for cuts in itertools.product((0, 1), repeat=variable.size - 1):
            yield np.concatenate([[0], np.cumsum(cuts)]).astype(np.int32)
        return
    names = [0]

    def extend(place: int) -> Iterator[NDArray[np.int32]]:
        if place == variable.size:
            yield np.array(names, dtype=np.int32)
            return
        for name in range(max(names) + 2):
            names.append(name)
            yield from extend(place + 1)
            names.pop()

    yield from extend(1)
