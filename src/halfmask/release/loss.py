"""The loss of a release, counted again from the labels that leave.

Definition: a value's share is (leaves its label covers; a range covers the table's
values in it) / D, 1 for a suppressed row; a column's
loss is L = (mean share - 1/D) / (1 - 1/D); the table's is prod(1 + L)^w - 1, where the weights w
sum to 1 (1/columns each, unless the schema says otherwise), or the weighted mean of L.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from halfmask.release.partition import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from halfmask.release.recoding import Recoding
    from halfmask.table.table import Table


def column_loss(
    recoding: Recoding | Partition, table: Table, step: NDArray[np.int32], name: str
) -> Fraction:
    """The loss of one column over all original rows, exactly."""
    hierarchy, codes = table.hierarchy(name), table.encode(name).codes
    size = hierarchy.size
    if size <= 1 or not len(table):
        return Fraction(0)
    covered = int(np.count_nonzero(step < 0)) * size
    if isinstance(recoding, Partition):
        covered += recoding.covered(table, step, name)
        return Fraction(covered - len(table), len(table) * (size - 1))
    levels = np.array([one.levels[name] for one in recoding.steps], dtype=np.int32)[step]
    levels[step < 0] = -1
    for level in range(hierarchy.height + 2):
        counts = np.bincount(codes[levels == level], minlength=hierarchy.maps.shape[1])
        if level > hierarchy.height:
            covered += int(counts.sum()) * size
        else:
            covered += int(counts @ hierarchy.leaves[level][hierarchy.maps[level]])
    return Fraction(covered - len(table), len(table) * (size - 1))


def table_loss(
    losses: Mapping[str, Fraction | float],
    weights: Mapping[str, float],
    *,
    aggregate: str = "geometric",
) -> float:
    """All columns together, each by its weight; ``aggregate`` is geometric or arithmetic."""
    total = sum(weights[name] for name in losses)
    if not total:
        return 0.0
    pairs = [(float(loss), weights[name] / total) for name, loss in losses.items()]
    if aggregate == "arithmetic":
        return math.fsum(loss * weight for loss, weight in pairs)
    return math.expm1(math.fsum(weight * math.log1p(loss) for loss, weight in pairs))
