"""Discernibility: how many rows each row can no longer be told from.

Definition: sum of |E|^2 over published classes plus |D| per suppressed row, divided by |D|^2.
Source: Bayardo and Agrawal, "Data privacy through optimal k-anonymization", 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from halfmask.metrics.cost.metric import Grouping


@dataclass(frozen=True, slots=True)
class Discernibility:
    """The chance that two rows drawn at random cannot be told apart, from 0 to 1."""

    name: ClassVar[str] = "discernibility"

    def value(self, grouping: Grouping) -> float:
        """Return the metric of a grouping."""
        alike = int(grouping.rows @ grouping.rows) + grouping.suppressed * grouping.total
        return alike / grouping.total**2
