"""What each person asks for, on a grid fine enough for everybody and exact for the coins."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

STEP = Fraction(1, 1000)  # demands are rounded down to thousandths: never less private


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """Every person's epsilon in whole thousandths.

    Example:
        >>> Demands.of([0.1, 0.5, 0.1]).smallest
        Fraction(1, 10)
    """

    steps: NDArray[np.int64]

    @classmethod
    def of(cls, epsilons: Iterable[float | Fraction]) -> Demands:
        """Demands as people state them."""
        distinct, own = np.unique(np.array(list(epsilons), dtype=object), return_inverse=True)
        whole = np.array([int(Fraction(str(value)) / STEP) for value in distinct], dtype=np.int64)
        if len(whole) == 0 or whole.min() < 1:
            raise ParameterError("epsilon", "a person's demand", f"at least {float(STEP)}")
        return cls(whole[own])

    @property
    def smallest(self) -> Fraction:
        """What one epsilon for everybody would have to be."""
        return int(self.steps.min()) * STEP

    def histogram(self) -> tuple[list[Fraction], NDArray[np.int64]]:
        """The distinct demands, ascending, and how many people have each; public."""
        levels, people = np.unique(self.steps, return_counts=True)
        return [int(level) * STEP for level in levels], people
