"""How much of a discrimination rate is due to small groups alone.

Definition: the rate of the same groups when the outcomes are shuffled among the rows; the adjusted
rate is (rate - mean shuffled rate) / (1 - mean shuffled rate). It is beyond chance if the rate lies
above the 95 % prediction interval of one more shuffle. Many rows are not shuffled one by one:
tables of counts with the same margins are drawn, which has the same distribution.
Source: Patefield, "Algorithm AS 159: an efficient method of generating random r x c tables with
given row and column totals", 1981, for the latter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import ParameterError
from halfmask.metrics.discrimination.columns import bind, coded, grouped, require_columns
from halfmask.metrics.discrimination.grouping import SAME, entropy_of, measure
from halfmask.metrics.estimate import Estimate, failed, mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.table.table import Table

_SHUFFLED = 500_000  # more rows are drawn as tables of counts
_CELLS = 1 << 22  # the largest table of counts that is drawn
_PATIENCE = 2_000_000  # rows that are shuffled where that table is too large


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
            "rate": None if np.isnan(self.rate) else self.rate,
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
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    require_columns(table, target, names, "keep")
    bound = bind(table, (target, *names), target, partition)
    x = coded(table, target, bound.get(target))
    y, groups = grouped([coded(table, name, bound.get(name)) for name in names])
    return beside_chance(x.codes, x.size, y, groups, permutations, seed=seed, weights=counts)


def beside_chance(
    x: NDArray[np.int32],
    size: int,
    y: NDArray[np.int64],
    groups: int,
    permutations: int,
    *,
    seed: int = 0,
    weights: NDArray[np.int64] | None = None,
) -> Inflation:
    """The rate of groups ``y`` for outcomes ``x``, beside that of shuffled outcomes."""
    if permutations < 2:
        raise ParameterError("permutations", permutations, "at least 2")
    rate = measure(x, size, y, groups, weights=weights).rate
    if np.isnan(rate):
        reason = "The target never varies: there is nothing to discriminate."
        return Inflation(rate, failed(reason), failed(reason))
    rows = len(x) if weights is None else int(weights.sum())
    random = np.random.default_rng(seed)
    if rows > _SHUFFLED and size * groups <= _CELLS:
        outcomes, sizes = (
            np.bincount(codes, weights, minlength=most).astype(np.int64)
            for codes, most in ((x, size), (y, groups))
        )
        drawn = _drawn(outcomes, sizes, permutations, random)
    elif rows > _PATIENCE:
        reason = f"There are more than {_PATIENCE:,} rows in too many groups to see what chance is."
        return Inflation(rate, failed(reason, rows), failed(reason, rows))
    else:
        if weights is not None:
            x, y = np.repeat(x, weights), np.repeat(y, weights)
        x, y = np.sort(x), np.sort(y)  # so that the order of rows does not matter
        drawn = [measure(random.permutation(x), size, y, groups).rate for _ in range(permutations)]
    chance = mean(drawn, f"{permutations} random shuffles of the target")
    return Inflation(rate, chance, _adjusted(rate, chance, _one_more(drawn)))


def _drawn(
    outcomes: NDArray[np.int64],
    sizes: NDArray[np.int64],
    times: int,
    random: np.random.Generator,
) -> list[float]:
    """Rates of random tables with these margins."""
    from scipy.stats import random_table

    filled, entropy = outcomes[outcomes > 0], entropy_of(outcomes)
    out = []
    for _ in range(times):
        counts = random_table.rvs(sizes, filled, method="patefield", random_state=random)
        parts = counts / sizes[:, None]
        inside = -(parts * np.log2(np.where(counts > 0, parts, 1.0))).sum(axis=1)
        out.append(1.0 - float(sizes @ inside) / int(sizes.sum()) / entropy)
    return out


def _one_more(drawn: list[float]) -> float:
    """The most that one more shuffle gives: the end of its 95 % prediction interval."""
    from scipy.special import stdtrit

    n, spread = len(drawn), float(np.std(drawn, ddof=1))
    return float(np.mean(drawn) + stdtrit(n - 1, 0.975) * spread * np.sqrt(1 + 1 / n))


def _adjusted(rate: float, chance: Estimate, most: float) -> Estimate:
    """What is left of a rate where chance gives at ``most`` so much."""
    assert chance.value is not None and chance.low is not None and chance.high is not None  # noqa: S101, PT018
    if chance.value >= 1.0:
        return failed("Every group is one row: any target would look discriminated.", chance.n)
    value, low, high = (
        (rate - c) / (1 - c) for c in (chance.value, min(chance.high, 1 - 1e-12), chance.low)
    )
    beyond = rate > most + SAME
    reason = "" if beyond else "The rate is what chance alone would give."
    return Estimate(value, low, high, chance.n, trusted=beyond, reason=reason)
