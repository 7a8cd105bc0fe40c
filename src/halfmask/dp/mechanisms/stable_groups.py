"""Counts of groups that nobody declared: a group appears only far above what one person could do.

Definition: publish a non-empty group when count + noise >= threshold, where a group that exists
through one person alone passes with chance at most delta.
Source: Korolova et al., "Releasing search queries and clicks privately", 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, log, log1p
from typing import TYPE_CHECKING

from halfmask.dp.budget import Approximate
from halfmask.dp.mechanisms.discrete_laplace import DiscreteLaplace
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from halfmask.dp.sampling import Sampler


@dataclass(frozen=True, slots=True)
class StableGroups:
    """Noise and a threshold for counts of which one person adds ``sensitivity`` rows in all.

    Example:
        >>> StableGroups(Fraction(1), Fraction(1, 10**6)).threshold
        15
    """

    epsilon: Fraction
    delta: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise ParameterError("delta", float(self.delta), "above 0 and below 1")

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise that each count gets."""
        return DiscreteLaplace(self.epsilon, self.sensitivity)

    @property
    def cost(self) -> Approximate:
        """What one use costs."""
        return Approximate(self.epsilon, self.delta)

    @property
    def variance(self) -> float:
        """The variance of the noise in each published count."""
        return self.noise.variance

    @property
    def threshold(self) -> int:
        """The smallest noisy count that is published.

        One person alone makes at most ``sensitivity`` groups of at most that count; each passes
        with chance a**m / (1 + a) at m = threshold - sensitivity.
        """
        rate = float(1 / self.noise.scale)
        chance = float(self.delta) / self.sensitivity
        reach = (log(1 / chance) - log1p(exp(-rate))) / rate
        return self.sensitivity + ceil(reach * (1 + 1e-9))

    def apply(
        self, counts: NDArray[np.int64], sampler: Sampler
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Noisy counts of the non-empty groups, and which of them are published."""
        noisy = self.noise.apply(counts, sampler)
        return noisy, (noisy >= self.threshold) & (counts > 0)
