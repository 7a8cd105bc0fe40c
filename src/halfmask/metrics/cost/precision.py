"""Precision loss: how far cells were raised in their hierarchies.

Definition: the mean over columns and rows of level / height (a suppressed row: 1); this is one
minus Sweeney's precision.
Source: Sweeney, "Achieving k-anonymity privacy protection using generalization and suppression",
2002.
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
class Precision:
    """The mean relative height of published labels, from 0 to 1."""

    name: ClassVar[str] = "precision"
    geometric: ClassVar[bool] = False

    def costs(self, hierarchy: Hierarchy, counts: NDArray[np.int64]) -> CellCosts:
        """Return the costs of a column whose value i occurs ``counts[i]`` times."""
        scores = np.arange(hierarchy.height + 1) / max(hierarchy.height, 1)
        total = int(counts.sum())
        extra = tuple(
            np.full(len(labels), (1.0 - score) / total)
            for labels, score in zip(hierarchy.labels, scores, strict=True)
        )
        return CellCosts(scores, extra)
