"""A small table to be divided optimally: all distances, all demands, and a deadline."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """What is to be divided.

    Attributes:
        far: all distances.
        k: how many rows each row demands.
        deadline: when to stop, as ``time.monotonic`` counts.
    """

    far: NDArray[np.float64]
    k: NDArray[np.int64]
    deadline: float = np.inf

    def __len__(self) -> int:
        return len(self.k)

    @property
    def left(self) -> float:
        """Seconds that are left; at least a little."""
        return max(self.deadline - time.monotonic(), 0.05)

    @property
    def over(self) -> bool:
        """Whether time is up."""
        return time.monotonic() > self.deadline

    def nearest(self) -> NDArray[np.float64]:
        """Per row, how far the rows reach that could just fill its class: no class is tighter."""
        ranked = np.sort(self.far, axis=1)  # the row itself stands first
        return np.asarray(ranked[np.arange(len(self)), np.minimum(self.k, len(self)) - 1])


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The best division found and how far the optimum can be from it.

    Attributes:
        ids: the class of each row.
        value: its objective.
        bound: the proven bound of the objective on the other side.
    """

    ids: NDArray[np.int64]
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """The proven distance to the optimum."""
        gap = abs(self.value - self.bound)
        return 0.0 if gap <= 1e-7 * max(1.0, abs(self.value)) else gap
