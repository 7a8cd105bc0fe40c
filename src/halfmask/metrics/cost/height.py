"""Height: how many generalization steps were taken in all columns together.

Definition: the mean of the columns' levels; suppressed rows cost nothing, so combine it with a
suppression limit.
Source: Samarati, "Protecting respondents' identities in microdata release", 2001.
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
class Height:
    """The mean level of the columns."""

    name: ClassVar[str] = "height"
    geometric: ClassVar[bool] = False

    def costs(self, hierarchy: Hierarchy, counts: NDArray[np.int64]) -> CellCosts:  # noqa: ARG002
        """Return the level itself as the score of each level."""
        scores = np.arange(hierarchy.height + 1, dtype=np.float64)
        return CellCosts(scores, tuple(np.zeros(len(labels)) for labels in hierarchy.labels))
