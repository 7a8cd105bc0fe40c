"""Personal epsilon by sampling: keep cautious people less often, then ask once for everybody.

Definition: with threshold t, keep person i with chance (e^eps_i - 1) / (e^t - 1) if eps_i < t, else
always; answer the kept rows with a t-private mechanism. Person i then has eps_i.
Source: Jorgensen, Yu, Cormode, "Conservative or liberal? Personalized differential privacy", 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.mechanisms.discrete_laplace import DiscreteLaplace
from halfmask.dp.personal.demands import STEP, Demands
from halfmask.dp.sampling import Sampler

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PersonalCount:
    """A count that honors every person's epsilon.

    Attributes:
        value: the estimate.
        variance: stated before use; sampling at its largest plus noise.
        threshold: the epsilon that the mechanism ran at; 0 where there were several.
    """

    value: float
    variance: float
    threshold: float


def kept(demands: Demands, threshold: Fraction, sampler: Sampler) -> NDArray[np.bool_]:
    """Who stays in the sample, exactly.

    (e^a - 1) / (e^t - 1) = e^-(t - a) * (1 - e^-a) / (1 - e^-t): a coin for the first factor, and a
    geometric number below a given that it is below t for the second.
    """
    own = np.minimum(demands.steps, int(threshold / STEP))
    top = int(threshold / STEP)
    stays = own >= top
    small = np.flatnonzero(~stays)
    rate = STEP
    first = sampler.bernoulli_exp((top - own[small]) * rate.numerator, rate.denominator)
    second = _below(own[small], top, sampler)
    stays[small] = first & second
    return stays


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


def count(
    flags: NDArray[np.bool_],
    demands: Demands,
    *,
    threshold: Fraction | None = None,
    sampler: Sampler | None = None,
) -> PersonalCount:
    """How many people have a property, each with an own epsilon.

    Args:
        flags: who has it.
        demands: what each person asked for.
        threshold: the epsilon of the mechanism; by default the best one for these demands.
        sampler: only for tests.
    """
    drawn = sampler or Sampler()
    level = threshold or best_threshold(demands)
    stays = kept(demands, level, drawn)
    mechanism = DiscreteLaplace(level)
    noisy = mechanism.apply(np.array([np.count_nonzero(flags & stays)]), drawn)[0]
    share = expected_share(demands, level)
    return PersonalCount(float(noisy) / share, variance(demands, level), float(level))


def expected_share(demands: Demands, threshold: Fraction) -> float:
    """The share of people that the sample keeps, as expected; public."""
    levels, people = demands.histogram()
    chances = np.array([_chance(level, threshold) for level in levels])
    return float((chances * people).sum() / people.sum())


def variance(demands: Demands, threshold: Fraction, *, numbers: int = 1) -> float:
    """The mean squared error of ``numbers`` counts at its worst, before anything is drawn.

    Sampling at its largest (everybody has the property), noise, and the worst mixture: people with
    the property may be the ones who are kept more or less often than the average.
    """
    levels, people = demands.histogram()
    chances = np.array([_chance(level, threshold) for level in levels])
    share = float((chances * people).sum() / people.sum())
    sampled = float((chances * (1 - chances) * people).sum())
    skew = np.maximum(chances - share, 0)
    bias = float((skew * people).sum()) * _TYPICAL_SKEW
    noise = numbers * DiscreteLaplace(threshold).variance
    return (sampled + noise + bias**2) / share**2


_TYPICAL_SKEW = 0.05  # how far demands and properties may go together, for choosing the threshold


def best_threshold(demands: Demands, *, numbers: int = 1) -> Fraction:
    """The threshold among the levels that people asked for with the smallest stated error.

    More noisy numbers make noise count more against sampling, and the threshold rise.
    """
    levels, _ = demands.histogram()
    return min(levels, key=lambda level: variance(demands, level, numbers=numbers))


def _chance(level: Fraction, threshold: Fraction) -> float:
    if level >= threshold:
        return 1.0
    return expm1(float(level)) / (exp(float(threshold)) - 1)
