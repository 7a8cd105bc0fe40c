"""Average class size: how many rows share one combination of labels.

Definition: |D| / number of classes, where the suppressed rows together count as one class.
Source: LeFevre, DeWitt and Ramakrishnan, "Mondrian multidimensional k-anonymity", 2006, without the
division by k, so that releases under different models compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from halfmask.metrics.cost.metric import Grouping


@dataclass(frozen=True, slots=True)
class AverageClassSize:
    """Rows per class."""

    name: ClassVar[str] = "average-class-size"

    def value(self, grouping: Grouping) -> float:
        """Return the metric of a grouping."""
        return grouping.total / (len(grouping.rows) + (grouping.suppressed > 0))
