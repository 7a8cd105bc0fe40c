"""Personal epsilon by partitioning: answer groups of people apart, each at its smallest epsilon.

Definition: cut the people by their demands into groups, count each with noise for its own smallest
demand, and add the counts. Groups are disjoint, so each person pays the epsilon of the own group.
Source: Li, Xiong, Ji, Jiang, "Partitioning-based mechanisms under personalized differential
privacy", 2017.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.mechanisms.discrete_laplace import DiscreteLaplace
from halfmask.dp.personal.sampling import PersonalCount
from halfmask.dp.sampling import Sampler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.dp.personal.demands import Demands


def best_cuts(demands: Demands, *, groups: int | None = None) -> list[Fraction]:
    """The smallest demand of each group, chosen to waste least; a public dynamic program.

    A sum of groups has the sum of their noise, so for one count a single group at the smallest
    demand is never beaten by splitting alone. What groups save is the budget of liberal people,
    measured as Li does: people times (own demand minus the group's), under ``groups`` groups.
    """
    levels, people = demands.histogram()
    count = min(groups or _few(len(levels)), len(levels))
    waste = [
        [
            sum(int(people[k]) * (levels[k] - levels[i]) for k in range(i, j))
            for j in range(len(levels) + 1)
        ]
        for i in range(len(levels))
    ]
    infinite = Fraction(10**18)
    best = [[infinite] * (len(levels) + 1) for _ in range(count + 1)]
    cut = [[0] * (len(levels) + 1) for _ in range(count + 1)]
    best[0][0] = Fraction(0)
    for g in range(1, count + 1):
        for j in range(1, len(levels) + 1):
            found = min((best[g - 1][i] + waste[i][j], i) for i in range(j))
            best[g][j], cut[g][j] = found
    starts, j = [], len(levels)
    for g in range(count, 0, -1):
        j = cut[g][j]
        starts.append(levels[j])
    return sorted(set(starts))


def count(
    flags: NDArray[np.bool_],
    demands: Demands,
    *,
    cuts: Sequence[Fraction] | None = None,
    sampler: Sampler | None = None,
) -> PersonalCount:
    """How many people have a property; cautious groups count less where they add mostly noise.

    Each group's noisy count is used as it is where its noise is small against the group, and is
    replaced by the group's size times the share among the other groups where it is not: a public
    rule on group sizes and demands.
    """
    drawn = sampler or Sampler()
    starts = list(cuts) if cuts is not None else best_cuts(demands)
    of_group = np.searchsorted([float(s) for s in starts], demands.steps / 1000 + 1e-9) - 1
    sizes = np.bincount(of_group, minlength=len(starts)).astype(np.float64)
    exact = np.bincount(of_group[flags], minlength=len(starts))
    mechanisms = [DiscreteLaplace(start) for start in starts]
    noisy = np.array(
        [m.apply(np.array([exact[g]]), drawn)[0] for g, m in enumerate(mechanisms)], dtype=float
    )
    noise = np.array([mechanism.variance for mechanism in mechanisms])
    value, spread = _combined(noisy, noise, sizes)
    return PersonalCount(value, spread, 0.0)


def _combined(
    noisy: NDArray[np.float64], noise: NDArray[np.float64], sizes: NDArray[np.float64]
) -> tuple[float, float]:
    """Group shares by precision, moved towards each other as far as noise exceeds real spread."""
    shares = noisy / np.maximum(sizes, 1)
    errors = noise / np.maximum(sizes, 1) ** 2
    between = 0.05**2  # how far shares of groups may differ, a public guess
    weights = 1 / (errors + between)
    common = (weights * shares).sum() / weights.sum()
    trust = between / (between + errors)
    moved = common + trust * (shares - common)
    spread = (sizes**2 * errors * trust**2).sum() + (sizes**2 * between * (1 - trust) ** 2).sum()
    spread += ((sizes * (1 - trust)).sum()) ** 2 / weights.sum()
    return float((sizes * moved).sum()), float(spread)


def _few(levels: int) -> int:
    return max(1, min(levels, 4))
