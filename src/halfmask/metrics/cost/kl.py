"""Kullback-Leibler divergence from the original tuples to what the release lets one guess.

Definition: KL(p || q) in bits, where p is the distribution of original tuples and q spreads each
class evenly over the leaf tuples that its labels cover (suppressed rows: over all leaf tuples).
Source: Kifer and Gehrke, "Injecting utility into anonymized datasets", 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from halfmask.metrics.cost.metric import Grouping


@dataclass(frozen=True, slots=True)
class KullbackLeibler:
    """Bits lost when original tuples are guessed from the release."""

    name: ClassVar[str] = "kl"

    def value(self, grouping: Grouping) -> float:
        """Return the metric of a grouping."""
        total = grouping.total
        original = grouping.tuples / total
        rows, spread = grouping.rows, grouping.log_leaves
        if grouping.suppressed:
            rows = np.append(rows, grouping.suppressed)
            spread = np.append(spread, grouping.log_all_leaves)
        guess = np.log(rows / total) - spread
        nats = float(original @ np.log(original)) - float((rows / total) @ guess)
        return max(nats, 0.0) / float(np.log(2.0))
