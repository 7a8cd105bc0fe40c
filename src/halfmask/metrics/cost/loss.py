"""Loss: how much of the domain a published label still leaves open.

Definition: a cell's share is the number of leaves its label covers divided by the number D of
leaves (a suppressed row: 1); a column's loss is L = (mean share - 1/D) / (1 - 1/D); the table's is
prod (1 + L)^(1/columns) - 1, or the mean of L.
Source: Iyengar, "Transforming data to satisfy privacy constraints", 2002; the geometric aggregate
follows ARX.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from halfmask.metrics.cost.metric import CellCosts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.hierarchy import Hierarchy


@dataclass(frozen=True, slots=True)
class Loss:
    """The share of each column's domain that published labels leave open, from 0 to 1."""

    name: ClassVar[str] = "loss"
    aggregate: Literal["geometric", "arithmetic"] = "geometric"

    @property
    def geometric(self) -> bool:
        """Whether column losses combine as a geometric mean."""
        return self.aggregate == "geometric"

    def costs(self, hierarchy: Hierarchy, counts: NDArray[np.int64]) -> CellCosts:
        """Return the costs of a column whose value i occurs ``counts[i]`` times."""
        total = int(counts.sum())
        scores, extra = [], []
        for level, row in enumerate(hierarchy.maps):
            lost = cell_loss(hierarchy, level)
            scores.append(float(counts @ lost[row]) / total)
            extra.append((1.0 - lost) / total)
        if hierarchy.size == 1:  # one possible value: suppressing it tells nothing away
            extra = [np.zeros_like(e) for e in extra]
        return CellCosts(np.asarray(scores), tuple(extra))


def cell_loss(hierarchy: Hierarchy, level: int) -> NDArray[np.float64]:
    """The loss of one cell by its label: 0 for a single leaf, 1 for all of them."""
    if hierarchy.size == 1:
        return np.zeros(len(hierarchy.labels[level]))
    return np.asarray((hierarchy.leaves[level] - 1) / (hierarchy.size - 1), dtype=np.float64)
