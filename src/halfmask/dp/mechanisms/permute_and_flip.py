"""Noisy maximum: look at the candidates in random order and take one with a biased coin.

Definition: in a uniform order, stop at i with chance exp(-epsilon (best - score_i) / (2 s)).
Source: McKenna, Sheldon, "Permute-and-flip: a new mechanism for differentially private selection",
2020. Its expected score is never below that of the exponential mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.budget import Pure
from halfmask.dp.parameters import require_positive, score_rate

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from halfmask.dp.sampling import Sampler


@dataclass(frozen=True, slots=True)
class PermuteAndFlip:
    """A choice by scores of which one person changes each by at most ``sensitivity``.

    Example:
        >>> PermuteAndFlip(Fraction(1)).cost
        epsilon = 1
    """

    epsilon: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon, self.sensitivity)

    @property
    def cost(self) -> Pure:
        """What one use costs."""
        return Pure(self.epsilon)

    def choose(self, scores: NDArray[np.int64], sampler: Sampler) -> int:
        """The index of the chosen candidate."""
        rate = score_rate(self.epsilon, self.sensitivity)
        order = sampler.permutation(len(scores))
        gaps = (scores.max() - scores[order]) * rate.numerator
        heads = sampler.bernoulli_exp(gaps, rate.denominator)
        return int(order[np.argmax(heads)])  # the best itself always comes up heads
