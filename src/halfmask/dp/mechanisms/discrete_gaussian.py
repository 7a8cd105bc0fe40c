"""Integer noise with a Gaussian shape: zCDP for many numbers at once.

Definition: P(x) proportional to exp(-x**2 / (2 v)); rho = sensitivity**2 / (2 v).
Source: Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.budget import Concentrated
from halfmask.dp.parameters import require_positive
from halfmask.dp.sampling import gaussian_grid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.dp.sampling import Sampler

_TABLE = 1e6  # variances up to this are tabulated; above, the steps of the noise make no difference


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Noise for integers of which one person moves the vector by ``sensitivity`` (Euclidean).

    Example:
        >>> DiscreteGaussian(Fraction(1, 200)).variance
        100.0
    """

    rho: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        require_positive("rho", self.rho, self.sensitivity)

    @property
    def parameter(self) -> Fraction:
        """The parameter v in use: the asked one, rounded up to what fits a word."""
        return gaussian_grid(Fraction(self.sensitivity**2) / (2 * self.rho))

    @property
    def cost(self) -> Concentrated:
        """What one use costs."""
        return Concentrated(self.rho)

    @property
    def bias(self) -> float:
        """The expected noise."""
        return 0.0

    @property
    def variance(self) -> float:
        """The variance of each number's noise, at most the parameter (equal but for small ones)."""
        return float(self.parameter)

    def half_width(self, confidence: float) -> int:
        """How far the noise reaches with the given confidence."""
        quantile = NormalDist().inv_cdf((1 + confidence) / 2)
        return ceil(quantile * sqrt(self.variance))

    def spread(self, confidence: float) -> tuple[int, int]:
        """The narrowest (low, high) with P(-low <= noise <= high) >= confidence, high first cut."""
        if self.variance > _TABLE:
            return self.half_width(confidence), self.half_width(confidence)
        _, chances = self._chances()
        middle, inside, low, high = len(chances) // 2, 0.0, 0, 0
        inside = float(chances[middle])
        while inside < confidence * (1 - 1e-12):
            if low == high:
                low += 1
                inside += float(chances[middle - low])
            else:
                high += 1
                inside += float(chances[middle + high])
        return low, high

    def quantiles(self, chances: NDArray[np.float64]) -> NDArray[np.float64]:
        """The noise that is not exceeded with each chance."""
        if self.variance > _TABLE:
            normal = NormalDist(0, sqrt(self.variance))
            return np.array([normal.inv_cdf(float(chance)) for chance in chances])
        values, each = self._chances()
        place = np.minimum(np.searchsorted(each.cumsum(), chances), len(values) - 1)
        return np.asarray(values[place])

    def _chances(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The noise that is not beyond nine deviations, and the chance of each value."""
        reach = ceil(9 * sqrt(self.variance)) + 1
        values = np.arange(-reach, reach + 1).astype(np.float64)
        weights = np.exp(-(values**2) / (2 * float(self.parameter)))
        return values, weights / weights.sum()

    def apply(self, counts: NDArray[np.int64], sampler: Sampler) -> NDArray[np.int64]:
        """``counts`` with fresh noise, the empty ones too."""
        noise = sampler.discrete_gaussian(self.parameter, counts.size)
        return counts + noise.reshape(counts.shape)
