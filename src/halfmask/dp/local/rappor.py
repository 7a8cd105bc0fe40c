"""RAPPOR-like collection: a value goes into a Bloom filter whose bits are noisy for good.

Definition: h hashes set bits of the filter; each bit is kept forever as a noisy copy (permanent
response), of which every report sends a noisy reading (instantaneous response). All reports
together cost epsilon: 2 h times the permanent coin's exponent.
Source: Erlingsson, Pihur, Korolova, "RAPPOR", 2014.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.budget import Pure
from halfmask.dp.local.estimate import Shares
from halfmask.dp.local.unary_encoding import logistic
from halfmask.dp.sampling import Sampler, laplace_grid
from halfmask.errors import InputError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Rappor:
    """Collection of values that need not be listed when people answer.

    Attributes:
        epsilon: what all reports of one person cost together.
        bits: the size of the filter.
        hashes: how many bits one value sets.
        flip: the chance that a reading of a bit is turned, for each report anew.
    """

    epsilon: Fraction
    bits: int = 128
    hashes: int = 2
    flip: Fraction = Fraction(1, 4)

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ParameterError("epsilon", str(self.epsilon), "above 0")
        if not 1 <= self.hashes < self.bits:
            raise ParameterError("hashes", self.hashes, "at least 1 and below bits")
        if not 0 <= self.flip < Fraction(1, 2):
            raise ParameterError("flip", str(self.flip), "0 or more, below 1/2")

    @property
    def rate(self) -> Fraction:
        """The exponent of one permanent bit: two values differ in at most 2 h bits."""
        return 1 / laplace_grid(2 * self.hashes / self.epsilon)

    @property
    def cost(self) -> Pure:
        """What all reports of one person cost."""
        return Pure(self.epsilon)

    def positions(self, value: str) -> NDArray[np.int64]:
        """The bits that ``value`` sets; public."""
        digest = hashlib.blake2b(value.encode(), digest_size=8 * self.hashes).digest()
        words = np.frombuffer(digest, dtype="<u8").astype(np.uint64)
        return (words % np.uint64(self.bits)).astype(np.int64)

    def remember(self, values: Sequence[str], sampler: Sampler | None = None) -> NDArray[np.bool_]:
        """The permanent bits of each person: drawn once, kept, and read for every report."""
        drawn = sampler or Sampler()
        distinct, own = np.unique(np.asarray(values, dtype=str), return_inverse=True)
        true = np.array([self._filter(str(value)) for value in distinct], dtype=np.bool_)[own]
        turned = logistic(drawn, self.rate, true.size).reshape(true.shape)
        return true ^ turned

    def report(
        self, permanent: NDArray[np.bool_], sampler: Sampler | None = None
    ) -> NDArray[np.bool_]:
        """One report of each person."""
        drawn = sampler or Sampler()
        return permanent ^ drawn.bernoulli(self.flip, permanent.size).reshape(permanent.shape)

    def estimate(
        self, told: NDArray[np.bool_], candidates: Sequence[str], confidence: float = 0.95
    ) -> Shares:
        """The shares of candidate values by least squares over the bits, with intervals."""
        from math import exp
        from statistics import NormalDist

        if not len(told):
            raise InputError("Nobody answered: there is nothing to estimate.")
        turned = 1 / (exp(float(self.rate)) + 1)
        flip = float(self.flip)
        miss = turned * (1 - flip) + (1 - turned) * flip
        hit = 1 - miss
        seen = told.mean(axis=0)
        bits = (seen - miss) / (hit - miss)
        design = np.array([self._filter(value) for value in candidates], dtype=np.float64).T
        spread = np.sqrt(np.maximum(seen * (1 - seen), 1 / len(told)) / len(told)) / (hit - miss)
        inverse = np.linalg.pinv(design)
        values = inverse @ bits
        errors = np.sqrt((inverse**2) @ spread**2)
        half = NormalDist().inv_cdf((1 + confidence) / 2) * errors
        return Shares(values, values - half, values + half, len(told))

    def _filter(self, value: str) -> NDArray[np.bool_]:
        bits = np.zeros(self.bits, np.bool_)
        bits[self.positions(value)] = True
        return bits
