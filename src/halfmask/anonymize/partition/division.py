"""What a partition method ends with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """The class of each row of a task.

    Attributes:
        ids: the classes, numbered from 0 without gaps.
        gap: the proven distance to the optimum; 0.0 is optimal, None is a heuristic.
        notes: what a reader should know, one sentence each.
        value: what the method minimized, where it knows.
    """

    ids: NDArray[np.int64]
    gap: float | None = None
    notes: tuple[str, ...] = ()
    value: float | None = None
