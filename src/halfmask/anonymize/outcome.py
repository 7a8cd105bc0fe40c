"""What one combination of levels gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes

TOLERANCE = 1e-12  # values closer than this are ties


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What one combination of levels gives.

    Attributes:
        levels: the level of each column.
        value: the metric, suppressed rows included.
        suppressed: how many rows would not leave.
        feasible: whether the models hold within the suppression limit.
        hopeless: whether no finer combination can be feasible either.
        penalty: per column, what every finer combination pays for rows it must suppress too.
        kept: per class, whether it leaves.
        classes: the classes, in the order of ``kept``.
    """

    levels: tuple[int, ...]
    value: float
    suppressed: int
    feasible: bool
    hopeless: bool
    penalty: NDArray[np.float64] | None
    kept: NDArray[np.bool_]
    classes: Classes

    @property
    def rank(self) -> tuple[float, int, int, tuple[int, ...]]:
        """The order of preference: value, fewer suppressed rows, lower levels, column order."""
        return (round(self.value / TOLERANCE), self.suppressed, sum(self.levels), self.levels)
