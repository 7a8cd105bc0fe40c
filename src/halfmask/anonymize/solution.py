"""What every method gives back: level combinations, and which one each distinct tuple takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from halfmask.anonymize.outcome import Outcome


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A recoding of distinct tuples.

    Attributes:
        steps: the levels of each step, in the order in which they are tried; None if nothing
            satisfies the models.
        tuple_step: per distinct tuple, the index of its step; -1 where its rows are suppressed.
        value: the metric that was reached.
        gap: the proven distance to the optimum; None for a heuristic.
        closest: where nothing satisfies the models, the outcome that came closest.
        notes: what a reader of the release should know.
    """

    steps: Sequence[Sequence[int]] | None
    tuple_step: NDArray[np.int32]
    value: float
    gap: float | None
    closest: Outcome | None = None
    notes: Sequence[str] = ()
