"""Ambiguity: how many original tuples a published row could stand for.

Definition: the mean over rows of the product over columns of the number of leaves under the label
(a suppressed row: all leaves of all columns), as a share of all leaf tuples.
Source: Goldberger and Tassa, "Efficient anonymizations with enhanced utility", 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from halfmask.metrics.cost.metric import Grouping


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """The mean share of all leaf tuples that a published row covers."""

    name: ClassVar[str] = "ambiguity"

    def value(self, grouping: Grouping) -> float:
        """Return the metric of a grouping."""
        covered = np.exp(grouping.log_leaves - grouping.log_all_leaves)
        return float(grouping.rows @ covered + grouping.suppressed) / grouping.total
