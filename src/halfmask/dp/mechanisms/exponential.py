"""Choose one of several public candidates by integer scores, good ones more often.

Definition: P(i) proportional to exp(epsilon * score_i / (2 * sensitivity)).
Source: McSherry, Talwar, "Mechanism design via differential privacy", 2007; as zCDP it costs
epsilon**2 / 8: Rogers, Steinke, "A better privacy analysis of the exponential mechanism", 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

from halfmask.dp.budget import Concentrated, Pure
from halfmask.dp.parameters import require_positive, score_rate

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from halfmask.dp.sampling import Sampler


@dataclass(frozen=True, slots=True)
class Exponential:
    """A choice by scores of which one person changes each by at most ``sensitivity``.

    Example:
        >>> Exponential(Fraction(1)).concentrated
        rho = 0.125
    """

    epsilon: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon, self.sensitivity)

    @property
    def cost(self) -> Pure:
        """What one use costs."""
        return Pure(self.epsilon)

    @property
    def concentrated(self) -> Concentrated:
        """What one use costs as zCDP."""
        return Concentrated(self.epsilon**2 / 8)

    def shortfall(self, candidates: int, confidence: float) -> float:
        """How far below the best score the choice lies at most, with the given confidence."""
        return 2 * self.sensitivity / float(self.epsilon) * log(candidates / (1 - confidence))

    def choose(self, scores: NDArray[np.int64], sampler: Sampler) -> int:
        """The index of the chosen candidate."""
        rate = score_rate(self.epsilon, self.sensitivity)
        if rate == 0:
            return int(sampler.below(len(scores), 1)[0])
        return sampler.choose(scores, rate)
