"""How much of a discrimination rate is due to small groups alone.

Definition: the rate of the same groups when the outcomes are shuffled among the rows; the adjusted
rate is (rate - mean shuffled rate) / (1 - mean shuffled rate).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import ParameterError
from halfmask.metrics.codes import joint
from halfmask.metrics.discrimination.rate import _column, _require, bind, measure
from halfmask.metrics.estimate import Estimate, failed, mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True)
class Inflation:
    """A rate beside what chance gives it.

    Attributes:
        rate: the measured rate.
        chance: the mean rate of shuffled outcomes.
        adjusted: what is left of the rate beyond chance; not trusted where chance explains it.
    """

    rate: float
    chance: Estimate
    adjusted: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "rate": self.rate,
            "chance": self.chance.to_dict(),
            "adjusted": self.adjusted.to_dict(),
        }


def inflation(
    table: Table,
    target: str,
    keys: str | Sequence[str],
    partition: object = None,
    *,
    permutations: int = 20,
    seed: int = 0,
    counts: NDArray[np.int64] | None = None,
) -> Inflation:
    """Shuffle the target ``permutations`` times and compare.

    With ``counts``, each row of ``table`` stands for so many.
    """
    if permutations < 2:
        raise ParameterError("permutations", permutations, "at least 2")
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    _require(table, target, names, "keep")
    bound = bind(table, (target, *names), target, partition)
    x, size, _ = _column(table, target, bound.get(target))
    y, groups = joint([_column(table, name, bound.get(name))[:2] for name in names])
    if counts is not None:
        x, y = np.repeat(x, counts), np.repeat(y, counts)
    rate = measure(x, size, y, groups).rate
    if np.isnan(rate):
        reason = "The target never varies: there is nothing to discriminate."
        return Inflation(rate, failed(reason), failed(reason))
    x, y = np.sort(x), np.sort(y)  # so that the order of rows does not matter
    random = np.random.default_rng(seed)
    shuffled = [measure(random.permutation(x), size, y, groups).rate for _ in range(permutations)]
    chance = mean(shuffled, f"{permutations} random shuffles of the target")
    return Inflation(rate, chance, _adjusted(rate, chance))


def _adjusted(rate: float, chance: Estimate) -> Estimate:
    assert chance.value is not None and chance.low is not None and chance.high is not None  # noqa: S101, PT018
    if chance.value >= 1.0:
        return failed("Every group is one row: any target would look discriminated.", chance.n)
    value, low, high = (
        (rate - c) / (1 - c) for c in (chance.value, min(chance.high, 1 - 1e-12), chance.low)
    )
    return Estimate(
        value,
        low,
        high,
        chance.n,
        trusted=rate > chance.high,
        reason="" if rate > chance.high else "The rate is what chance alone would give.",
    )
