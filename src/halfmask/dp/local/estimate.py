"""Shares of true answers behind noisy ones, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Estimated shares; unbiased, so a rare value may come out slightly below 0.

    Attributes:
        values: one share per value.
        low: lower ends of the intervals.
        high: upper ends.
        people: how many answered.
    """

    values: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    people: int


def shares_of(
    counts: NDArray[np.int64], people: int, hit: float, miss: float, confidence: float
) -> Shares:
    """Shares from how often each value was told.

    Args:
        counts: how often each value was told.
        people: how many answered.
        hit: the chance that a holder of a value tells it.
        miss: the chance that another person tells it.
        confidence: of each interval.
    """
    if people < 1:
        raise InputError("Nobody answered: there is nothing to estimate.")
    seen = counts / people
    values = (seen - miss) / (hit - miss)
    # Binomial variance at the seen share, kept away from 0 so that no interval is empty.
    spread = np.sqrt(np.maximum(seen * (1 - seen), 1 / people) / people) / (hit - miss)
    half = NormalDist().inv_cdf((1 + confidence) / 2) * spread
    return Shares(values, values - half, values + half, people)
