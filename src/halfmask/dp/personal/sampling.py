"""Personal epsilon by sampling: keep cautious people less often, then run any private method once.

Definition: with threshold t, keep person i, with all own rows, with chance
(e^eps_i - 1) / (e^t - 1) if eps_i < t, else always; run a t-private method on the kept rows.
Person i then has eps_i. With a delta of the method, person i has at most it.
Source: Jorgensen, Yu, Cormode, "Conservative or liberal? Personalized differential privacy", 2015,
Theorem 3, which holds for every t-private method and not for counts alone.

The threshold follows from public numbers only: from the declared shares of people at each level,
or from a noisy count of each level, for which a tenth of its epsilon is paid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import exp, expm1, log1p
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.dp.accountant import Allowance, Entry
from halfmask.dp.budget import Approximate, Pure
from halfmask.dp.mechanisms.discrete_laplace import DiscreteLaplace
from halfmask.dp.vault import as_pure
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.dp.accountant import Accountant
    from halfmask.dp.budget import Budget
    from halfmask.dp.compose import Part
    from halfmask.dp.personal.levels import Levels
    from halfmask.dp.sampling import Sampler

STEP = Fraction(1, 10**6)  # costs are rounded down to millionths: never less private
_PEOPLE = 1000  # where only shares are public, for weighing sampling against noise
_COUNTING = Fraction(1, 10)  # of each level's cost, where its people must be counted


@dataclass(frozen=True, slots=True)
class PersonalPlan:
    """What people at each level may be charged in one use of the table; all public.

    Attributes:
        levels: the public levels.
        costs: per level what this use may cost its people; 0: they are left out.
        counted: whether a part of it pays for counting the people of each level.
    """

    levels: Levels
    costs: tuple[Fraction, ...]
    counted: bool

    @classmethod
    def of(cls, levels: Levels, share: Fraction, accountant: Accountant | None) -> PersonalPlan:
        """Each level pays ``share`` of its demand, where as much is left of it."""
        return cls(levels, personal_costs(levels, share, accountant), not levels.shares)

    @property
    def counting(self) -> tuple[Fraction, ...]:
        """Per level what counting its people costs."""
        part = _COUNTING if self.counted else Fraction(0)
        return tuple(_floor(cost * part) for cost in self.costs)

    @property
    def sampling(self) -> tuple[Fraction, ...]:
        """Per level what is left for the method."""
        return tuple(a - b for a, b in zip(self.costs, self.counting, strict=True))

    def threshold(self, people: Sequence[float], numbers: int) -> Fraction:
        """The level at which ``numbers`` noisy numbers have the smallest stated error."""
        return min(
            sorted({cost for cost in self.sampling if cost}),
            key=lambda level: self.variance(level, people, numbers=numbers),
        )

    def variance(self, threshold: Fraction, people: Sequence[float], *, numbers: int = 1) -> float:
        """The mean squared error of ``numbers`` counts at its worst, before anything is drawn.

        Sampling at its largest (everybody has the property), noise, and a mixture in which people
        with the property are kept somewhat more often than the average.
        """
        chances, counts = self._chances(threshold), np.asarray(people, dtype=np.float64)
        share = max(float((chances * counts).sum() / max(counts.sum(), 1e-9)), 1e-9)
        sampled = float((chances * (1 - chances) * counts).sum())
        bias = float((np.maximum(chances - share, 0) * counts).sum()) * _TYPICAL_SKEW
        noise = numbers * DiscreteLaplace(threshold).variance
        return (sampled + noise + bias**2) / share**2

    def share(self, threshold: Fraction, people: Sequence[float]) -> float:
        """The share of these people that a sample keeps, as expected."""
        counts = np.asarray(people, dtype=np.float64)
        return float((self._chances(threshold) * counts).sum() / counts.sum())

    def _chances(self, threshold: Fraction) -> NDArray[np.float64]:
        return np.array([_chance(cost, threshold) for cost in self.sampling])


_TYPICAL_SKEW = 0.05  # how far demands and properties may go together, for choosing the threshold


@dataclass(frozen=True, slots=True, eq=False)
class PersonalSample:
    """The people of a table at their levels; a secret, but for the plan.

    Attributes:
        plan: what each level may be charged.
    """

    plan: PersonalPlan
    _table: Table = field(repr=False)
    _person: NDArray[np.int64] = field(repr=False)
    _codes: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, table: Table, plan: PersonalPlan) -> PersonalSample:
        """The people of ``table``."""
        person, codes = plan.levels.of_people(table)
        return cls(plan, table, person, codes)

    def people(self, allowance: Allowance, sampler: Sampler) -> list[float]:
        """How many people stand at each level: as declared, or counted with noise and paid for."""
        if not self.plan.counted:
            return [_PEOPLE * share for share in self.plan.levels.shares]
        allowance.secure = allowance.secure and sampler.secure
        found = []
        for code, level in enumerate(self.plan.levels.epsilons):
            cost = self.plan.counting[code]
            if not cost:
                found.append(0.0)
                continue
            mechanism = DiscreteLaplace(cost)
            variance = Fraction(mechanism.variance).limit_denominator(10**6)
            allowance.charge(
                Entry("people of a level", "DiscreteLaplace", Pure(cost), variance, level)
            )
            exact = np.array([np.count_nonzero(self._codes == code)])
            found.append(max(float(mechanism.apply(exact, sampler)[0]), 1.0))
        return found

    def draw(self, threshold: Fraction, sampler: Sampler) -> Table:
        """The rows of the people who are kept."""
        paid = [int(cost / STEP) for cost in self.plan.sampling]
        costs = np.array([*paid, 0, 0], np.int64)
        stays = kept(costs[self._codes], threshold, sampler)  # silent and out: the two zeros
        rows = np.flatnonzero(stays[self._person])
        return Table(self._table.arrow.take(pa.array(rows)), self._table.schema, self._table.origin)


def personal_costs(
    levels: Levels, share: Fraction, accountant: Accountant | None, part: Part = None
) -> tuple[Fraction, ...]:
    """What each level pays: a share of its demand, at most what the table has left; else nothing.

    People at a level that has less left than that are left out.
    """
    most = levels.epsilons[-1] if accountant is None else affordable(accountant.remaining)
    costs = [_floor(min(level * share, most)) for level in levels.epsilons]
    left = levels.left(accountant, part)
    return tuple(c if c <= rest else Fraction(0) for c, rest in zip(costs, left, strict=True))


def affordable(remaining: Budget) -> Fraction:
    """The epsilon that a budget can still pay."""
    if isinstance(remaining, Pure | Approximate):
        return remaining.epsilon
    return as_pure(remaining).epsilon


def kept(own: NDArray[np.int64], threshold: Fraction, sampler: Sampler) -> NDArray[np.bool_]:
    """Who stays in the sample, exactly; ``own`` is what each may pay in steps, 0 for nothing.

    (e^a - 1) / (e^t - 1) = e^-(t - a) * (1 - e^-a) / (1 - e^-t): a coin for the first factor, and a
    geometric number below a given that it is below t for the second.
    """
    top = int(threshold / STEP)
    stays = own >= top
    small = np.flatnonzero(~stays & (own > 0))
    first = sampler.bernoulli_exp((top - own[small]) * STEP.numerator, STEP.denominator)
    second = _below(own[small], top, sampler)
    stays[small] = first & second
    return stays


def loss(cost: Fraction, threshold: Fraction) -> float:
    """The epsilon that sampling for ``cost`` leaves of ``threshold``: ``cost`` itself, or less."""
    return log1p(_chance(cost, threshold) * expm1(float(threshold)))


def _below(own: NDArray[np.int64], top: int, sampler: Sampler) -> NDArray[np.bool_]:
    """True with chance (1 - e^-own) / (1 - e^-top), both in steps."""
    out = np.zeros(len(own), np.bool_)
    open_ = np.arange(len(own))
    while len(open_):
        drawn = sampler.geometric(STEP, len(open_))
        inside = drawn < top
        out[open_[inside]] = drawn[inside] < own[open_[inside]]
        open_ = open_[~inside]
    return out


def _chance(cost: Fraction, threshold: Fraction) -> float:
    if cost >= threshold:
        return 1.0
    return expm1(float(cost)) / (exp(float(threshold)) - 1)


def _floor(cost: Fraction) -> Fraction:
    return cost // STEP * STEP
