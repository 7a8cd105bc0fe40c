"""Non-uniform entropy: how many bits about the original values the labels hide.

Definition: per column, the mean over rows of -log2(n(value) / n(label)), n counting rows of the
original table (a suppressed row's label covers all rows), divided by what suppressing every row
would hide; the table's is the mean over columns.
Source: Gionis and Tassa, "k-anonymization with minimal loss of information", 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from halfmask.metrics.cost.metric import CellCosts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.hierarchy import Hierarchy


@dataclass(frozen=True, slots=True)
class NonUniformEntropy:
    """The share of each column's information that published labels hide, from 0 to 1."""

    name: ClassVar[str] = "entropy"
    geometric: ClassVar[bool] = False

    def costs(self, hierarchy: Hierarchy, counts: NDArray[np.int64]) -> CellCosts:
        """Return the costs of a column whose value i occurs ``counts[i]`` times."""
        total = int(counts.sum())
        present = counts > 0
        everything = float(counts[present] @ np.log2(total / counts[present])) / total
        scores, extra = [], []
        for row, labels in zip(hierarchy.maps, hierarchy.labels, strict=True):
            size = np.bincount(row, weights=counts, minlength=len(labels))
            hidden = np.log2(size[row[present]] / counts[present])
            scores.append(float(counts[present] @ hidden) / total)
            extra.append(np.log2(total / np.maximum(size, 1.0)) / total)
        if everything == 0.0:  # a constant column has nothing to hide
            return CellCosts(np.zeros(len(scores)), tuple(np.zeros_like(e) for e in extra))
        return CellCosts(np.asarray(scores) / everything, tuple(e / everything for e in extra))
