"""How often a condition would fit exactly one of other people, if the control held as many.

Definition: of a larger control, the mean chance that one of n of its people drawn at random fits,
where the original holds n. Of a smaller control of m people: a + (n / m) (c - b), where a is how
often one of the original fits, b how often one of m of its people drawn at random would, and c how
often one of the control does; whoever is told by the release is among the m drawn with chance m /
n. No condition fits exactly one of n strangers more often than (1 - 1 / n)^(n - 1).
Source: none; as in Giomi et al., 2023, sizes must agree before attack and control are compared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.estimate import Estimate, mean, proportion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def as_many(own: Sequence[int], outside: Sequence[int], people: int, others: int) -> Estimate:
    """The share of conditions that would fit exactly one of ``people`` strangers.

    Args:
        own: per condition, how many people of the original fit.
        outside: the same of the control.
        people: how many people the original holds.
        others: how many the control holds.
    """
    mine, theirs = np.asarray(own, dtype=np.float64), np.asarray(outside, dtype=np.float64)
    if others >= people:
        return proportion(float(_one_of(theirs, others, people).sum()), len(theirs))
    gain = (theirs == 1) - _one_of(mine, people, others)
    found = mean((mine == 1) + gain * (people / others))
    most = (1 - 1 / people) ** (people - 1)
    if found.low is None or found.high is None or found.value is None:
        return found
    value, low, high = (min(max(v, 0.0), most) for v in (found.value, found.low, found.high))
    return replace(found, value=value, low=low, high=high)


def _one_of(fitting: NDArray[np.float64], people: int, drawn: int) -> NDArray[np.float64]:
    """The chance that exactly one of so many people drawn at random is one of those who fit."""
    from scipy.special import gammaln

    rest = people - fitting - (drawn - 1)  # strangers who are not drawn
    able = (fitting > 0) & (rest >= 0)
    k, left = fitting[able], rest[able]
    logs = np.log(k) + gammaln(people - k + 1) - gammaln(drawn) - gammaln(left + 1)
    every = gammaln(people + 1) - gammaln(drawn + 1) - gammaln(people - drawn + 1)
    out = np.zeros(len(fitting))
    out[able] = np.exp(logs - every)
    return out
