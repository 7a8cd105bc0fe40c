"""What a sample says of the population's unique people under any model.

Definition: if f_1 of n people are alone in a sample that holds the fraction p of the population,
drawn at random, the share U of the population who are unique is at least 1 - (1 - f_1 / n) / p and
at most f_1 / n in expectation; the ends are moved apart by what chance does, with 95 % confidence.
Source: everybody unique is alone in the sample; anybody else meets another of the own class in it
with a chance of p at least, so that E[n - f_1] >= p^2 N (1 - U), and E[f_1] >= p N U.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Z = 1.96
_NONE_SEEN = math.log(40)  # a mean for which seeing none has a chance of 2.5 %


def uniqueness_bounds(frequencies: NDArray[np.int64], fraction: float) -> tuple[float, float]:
    """The least and the most of the population who can be unique.

    Args:
        frequencies: [r] classes of the sample hold r people.
        fraction: the share of the population that is in the sample.

    Example:
        >>> import numpy as np
        >>> uniqueness_bounds(np.array([0, 900, 50]), 1.0)[1] >= 0.9
        True
    """
    r = np.arange(len(frequencies), dtype=np.float64)
    n, alone = float(r @ frequencies), float(frequencies[1])
    shared = n - alone
    spread = math.sqrt(float(r[2:] ** 2 @ frequencies[2:]))
    most_shared = shared + _Z * spread + 2 * _NONE_SEEN  # who shares a class comes by twos
    most_alone = alone + _Z * math.sqrt(alone) + _NONE_SEEN
    least = 1 - most_shared / n / fraction
    return max(0.0, least), min(1.0, most_alone / n)
