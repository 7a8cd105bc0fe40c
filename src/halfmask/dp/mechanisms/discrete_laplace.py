"""Integer noise with two geometric tails: pure differential privacy for counts.

Definition: P(x) = (1 - a) / (1 + a) * a**|x| with a = exp(-epsilon / sensitivity).
Source: Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy mechanisms", 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, expm1, log, log1p
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.budget import Pure
from halfmask.dp.parameters import require_positive
from halfmask.dp.sampling import MOST_SCALE, laplace_grid
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from halfmask.dp.sampling import Sampler


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Noise for integers of which one person changes the sum of absolutes by ``sensitivity``.

    Example:
        >>> round(DiscreteLaplace(Fraction(1)).variance, 3)
        1.841
    """

    epsilon: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon, self.sensitivity)
        if self.scale.numerator >= MOST_SCALE:
            raise ParameterError("epsilon", float(self.epsilon), "larger: the noise fits no word")

    @property
    def scale(self) -> Fraction:
        """The scale in use: the asked one, rounded up where it does not fit a word."""
        return laplace_grid(self.sensitivity / self.epsilon)

    @property
    def cost(self) -> Pure:
        """What one use costs."""
        return Pure(self.epsilon)

    @property
    def bias(self) -> float:
        """The expected noise."""
        return 0.0

    @property
    def variance(self) -> float:
        """The variance of each number's noise."""
        rate = float(1 / self.scale)
        return 2 * exp(-rate) / expm1(-rate) ** 2 if rate < 700 else 0.0

    def half_width(self, confidence: float) -> int:
        """The smallest m with P(abs(noise) > m) <= 1 - confidence."""
        rate = float(1 / self.scale)
        # P(abs > m) = 2 a**(m + 1) / (1 + a)
        bound = (log(2 / (1 - confidence)) - log1p(exp(-rate))) / rate - 1
        return max(0, ceil(bound - 1e-9))

    def spread(self, confidence: float) -> tuple[int, int]:
        """The narrowest (low, high) with P(-low <= noise <= high) >= confidence, high first cut."""
        most, a = self.half_width(confidence), exp(-float(1 / self.scale))
        beyond = 2 * a ** (most + 1) / (1 + a)
        end = (1 - a) / (1 + a) * a**most
        cut = most > 0 and beyond + end <= 1 - confidence
        return most, most - cut

    def quantiles(self, chances: NDArray[np.float64]) -> NDArray[np.float64]:
        """The noise that is not exceeded with each chance."""
        rate = float(1 / self.scale)
        upper = np.minimum(chances, 1 - chances)  # the tail on the nearer side
        reach = np.ceil(-(np.log(upper) + log1p(exp(-rate))) / rate - 1 - 1e-9)
        found: NDArray[np.float64] = np.where(chances < 0.5, -1.0, 1.0) * np.maximum(reach, 0)
        return found

    def apply(self, counts: NDArray[np.int64], sampler: Sampler) -> NDArray[np.int64]:
        """``counts`` with fresh noise, the empty ones too."""
        noise = sampler.discrete_laplace(self.scale, counts.size)
        return counts + noise.reshape(counts.shape)
