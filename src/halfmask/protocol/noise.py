"""Personal epsilon at collection: each cell reports its group truthfully only by chance.

Definition: among D possible groups, a person with epsilon reports the own one with probability
p = e^epsilon / (e^epsilon + D - 1) and any other with q = (1 - p) / (D - 1), so that p / q =
e^epsilon. With the weight w_i = 1 / (p_i - q_i) carried along, the count of a group is estimated
without bias by the sum of the weights of its reports, less (sum of all weights - n) / D.
Source: Kairouz, Oh, Viswanath, "Extremal mechanisms for local differential privacy", 2014.
"""

from __future__ import annotations

import math
import secrets
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.protocol.layout import Layout, Records

WHOLE = 1 << 64
LARGEST = 1 << 20
# With more, a report is the truth but for once in a hundred million times.
MOST = 20


def categories(layout: Layout) -> int:
    """In how many groups a person can stand; a missing value is a value of its own."""
    return math.prod(1 + len(key.domain) for key in layout.keys if key.domain is not None)


def truth(epsilon: float, count: int) -> int:
    """The probability to tell the truth, in parts of 2^64, rounded down: never less private."""
    if not (math.isfinite(epsilon) and 0 < epsilon <= MOST):
        raise ParameterError("epsilon", epsilon, f"above 0, at most {MOST}")
    return int(WHOLE / (1 + (count - 1) * math.exp(-epsilon)) * (1 - 1e-12))


def weight(epsilon: float, count: int) -> float:
    """What one report counts for, so that the estimate has no bias."""
    p = truth(epsilon, count) / WHOLE
    return 1 / (p - (1 - p) / (count - 1))


def randomized(own: Sequence[object], layout: Layout, epsilon: float) -> list[object]:
    """The group that is reported for somebody who stands in ``own``."""
    domains: list[list[object]] = [
        [None, *key.domain.to_pylist()] for key in layout.keys if key.domain is not None
    ]
    count = categories(layout)
    index = 0
    for value, domain in zip(own, domains, strict=True):
        index = index * len(domain) + domain.index(value)
    if secrets.randbelow(WHOLE) >= truth(epsilon, count):
        other = secrets.randbelow(count - 1)
        index = other if other < index else other + 1
    found: list[object] = []
    for domain in reversed(domains):
        index, code = divmod(index, len(domain))
        found.insert(0, domain[code])
    return found


def debiased(layout: Layout, records: Records) -> Records:
    """Groups with their estimated numbers of people in place of the reported ones."""
    count = categories(layout)
    weights = records["w"]
    shift = (weights.sum() - records["rows"].sum()) / count
    estimate = np.rint(weights - shift).astype(np.int64)
    found: Records = records[estimate > 0].copy()
    found["rows"] = layout.people(found)[:] = estimate[estimate > 0]
    return found
