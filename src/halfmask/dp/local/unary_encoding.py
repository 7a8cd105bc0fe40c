"""Unary encoding: one bit per value, each flipped by its own coin.

Definition: the true value's bit stays 1 with chance p, every other bit becomes 1 with chance q;
symmetric: p = 1 - q = e^(eps/2) / (e^(eps/2) + 1); optimized: p = 1/2, q = 1 / (e^eps + 1).
Source: Wang, Blocki, Li, Jha, "Locally differentially private protocols for frequency estimation",
2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, Literal

import numpy as np

from halfmask.dp.budget import Pure
from halfmask.dp.local.estimate import Shares, shares_of
from halfmask.dp.sampling import Sampler, laplace_grid
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class UnaryEncoding:
    """Unary encoding over ``values`` public values.

    Example:
        >>> UnaryEncoding(Fraction(1), 10).hit
        0.5
    """

    epsilon: Fraction
    values: int
    kind: Literal["optimized", "symmetric"] = "optimized"

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ParameterError("epsilon", str(self.epsilon), "above 0")
        if self.values < 2:
            raise ParameterError("values", self.values, "at least 2")

    @property
    def rate(self) -> Fraction:
        """The exponent of one bit's coin, rounded down to what fits a word."""
        own = self.epsilon if self.kind == "optimized" else self.epsilon / 2
        return 1 / laplace_grid(1 / own)

    @property
    def cost(self) -> Pure:
        """What one answer costs its person."""
        return Pure(self.epsilon)

    @property
    def miss(self) -> float:
        """The chance that the bit of another value is 1."""
        return 1 / (exp(float(self.rate)) + 1)

    @property
    def hit(self) -> float:
        """The chance that the bit of the true value is 1."""
        return 0.5 if self.kind == "optimized" else 1 - self.miss

    def variance(self, people: int, share: float = 0.0) -> float:
        """The variance of an estimated share among ``people`` people."""
        seen = self.miss + (self.hit - self.miss) * share
        return seen * (1 - seen) / (self.hit - self.miss) ** 2 / people

    def tell(self, answers: NDArray[np.int64], sampler: Sampler | None = None) -> NDArray[np.bool_]:
        """(people, values) bits that each person tells."""
        drawn = sampler or Sampler()
        bits = logistic(drawn, self.rate, len(answers) * self.values)
        told = bits.reshape(len(answers), self.values)
        own = np.arange(len(answers)), answers
        told[own] = drawn.coins(len(answers)) if self.kind == "optimized" else ~told[own]
        return told

    def estimate(self, told: NDArray[np.bool_], confidence: float = 0.95) -> Shares:
        """The share of each value with its interval; unbiased."""
        counts = told.sum(axis=0).astype(np.int64)
        return shares_of(counts, len(told), self.hit, self.miss, confidence)


def logistic(sampler: Sampler, rate: Fraction, size: int) -> NDArray[np.bool_]:
    """True with chance 1 / (e^rate + 1), exactly.

    A fair coin says no; else a coin of chance e^-rate says yes; else begin again.
    """
    out = np.zeros(size, np.bool_)
    open_ = np.arange(size)
    while len(open_):
        open_ = open_[sampler.coins(len(open_))]
        yes = sampler.bernoulli_exp(np.full(len(open_), rate.numerator), rate.denominator)
        out[open_[yes]] = True
        open_ = open_[~yes]
    return out
