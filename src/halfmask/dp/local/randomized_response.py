"""Randomized response: tell the true answer or another one, by a coin that only you see.

Definition: with k answers, P(true) = e^eps / (e^eps + k - 1), each other 1 / (e^eps + k - 1).
Source: Warner, "Randomized response", 1965; Kairouz, Oh, Viswanath, 2014 (k answers).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.budget import Pure
from halfmask.dp.local.estimate import Shares, shares_of
from halfmask.dp.sampling import Sampler, laplace_grid
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RandomizedResponse:
    """Randomized response over ``values`` public answers.

    Example:
        >>> round(RandomizedResponse(Fraction(1), 2).truth, 3)
        0.731
    """

    epsilon: Fraction
    values: int = 2

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ParameterError("epsilon", str(self.epsilon), "above 0")
        if self.values < 2:
            raise ParameterError("values", self.values, "at least 2")

    @property
    def rate(self) -> Fraction:
        """Epsilon in use, rounded down to what fits a word."""
        return 1 / laplace_grid(1 / self.epsilon)

    @property
    def cost(self) -> Pure:
        """What one answer costs its person."""
        return Pure(self.epsilon)

    @property
    def truth(self) -> float:
        """The chance that the answer given is the true one."""
        return 1 / (1 + (self.values - 1) * exp(-float(self.rate)))

    @property
    def other(self) -> float:
        """The chance of each particular other answer."""
        return (1 - self.truth) / (self.values - 1)

    def variance(self, people: int, share: float = 0.0) -> float:
        """The variance of an estimated share among ``people`` people."""
        p, q = self.truth, self.other
        seen = q + (p - q) * share
        return seen * (1 - seen) / (p - q) ** 2 / people

    def tell(self, answers: NDArray[np.int64], sampler: Sampler | None = None) -> NDArray[np.int64]:
        """What each person tells; exact, by proposing any answer and keeping false ones less."""
        drawn = sampler or Sampler()
        told = np.empty(len(answers), np.int64)
        open_ = np.arange(len(answers))
        rate = self.rate
        while len(open_):
            proposed = drawn.below(self.values, len(open_))
            false = proposed != answers[open_]
            gaps = np.where(false, rate.numerator, 0)
            kept = drawn.bernoulli_exp(gaps, rate.denominator)
            told[open_[kept]] = proposed[kept]
            open_ = open_[~kept]
        return told

    def estimate(self, told: NDArray[np.int64], confidence: float = 0.95) -> Shares:
        """The share of each answer with its interval; unbiased."""
        counts = np.bincount(told, minlength=self.values)
        return shares_of(counts, len(told), self.truth, self.other, confidence)


@dataclass(frozen=True, slots=True)
class CoinResponse:
    """The interview with two coins: heads, tell the truth; tails, tell the second coin.

    Example:
        >>> round(CoinResponse(Fraction(1, 2)).epsilon, 4)
        1.0986
    """

    honest: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.honest < 1:
            raise ParameterError("honest", str(self.honest), "above 0 and below 1")

    @property
    def truth(self) -> Fraction:
        """The chance that the answer given is the true one."""
        return self.honest + (1 - self.honest) / 2

    @property
    def epsilon(self) -> float:
        """log(truth / lie)."""
        return log(self.truth / (1 - self.truth))

    def tell(self, answers: NDArray[np.bool_], sampler: Sampler | None = None) -> NDArray[np.bool_]:
        """What each person tells."""
        drawn = sampler or Sampler()
        honest = drawn.bernoulli(self.honest, len(answers))
        return np.where(honest, answers, drawn.coins(len(answers)))

    def estimate(self, told: NDArray[np.bool_], confidence: float = 0.95) -> Shares:
        """The shares of no and yes; with fair coins yes = 2 seen - n / 2."""
        counts = np.array([len(told) - told.sum(), told.sum()])
        truth = float(self.truth)
        return shares_of(counts, len(told), truth, 1 - truth, confidence)
