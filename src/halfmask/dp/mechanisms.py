"""Mechanisms: exact noise on numbers, choices and answers, each with what it costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import ceil, exp, expm1, log, log1p, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.budget import Approximate, Concentrated, Pure, require_positive, score_rate
from halfmask.dp.sampling import MOST_SCALE, gaussian_grid, laplace_grid
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.dp.sampling import Sampler


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Noise for integers of which one person changes the sum of absolutes by ``sensitivity``.

    Definition: P(x) = (1 - a) / (1 + a) * a**|x| with a = exp(-epsilon / sensitivity).
    Source: Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy mechanisms",
    2009.

    Example:
        >>> round(DiscreteLaplace(Fraction(1)).variance, 3)
        1.841
    """

    epsilon: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon, self.sensitivity)
        if self.scale.numerator >= MOST_SCALE:
            raise ParameterError(
                "epsilon", float(self.epsilon), "more: the noise would exceed any count"
            )

    @property
    def scale(self) -> Fraction:
        """The scale in use: the asked one, rounded up where it does not fit a word."""
        return laplace_grid(self.sensitivity / self.epsilon)

    @property
    def cost(self) -> Pure:
        """What one use costs."""
        return Pure(self.epsilon)

    @property
    def bias(self) -> float:
        """The expected noise."""
        return 0.0

    @property
    def variance(self) -> float:
        """The variance of each number's noise."""
        rate = float(1 / self.scale)
        return 2 * exp(-rate) / expm1(-rate) ** 2 if rate < 700 else 0.0

    def half_width(self, confidence: float) -> int:
        """The smallest m with P(abs(noise) > m) <= 1 - confidence."""
        rate = float(1 / self.scale)
        # P(abs > m) = 2 a**(m + 1) / (1 + a)
        bound = (log(2 / (1 - confidence)) - log1p(exp(-rate))) / rate - 1
        return max(0, ceil(bound - 1e-9))

    def spread(self, confidence: float) -> tuple[int, int]:
        """The narrowest (low, high) with P(-low <= noise <= high) >= confidence, high first cut."""
        most, a = self.half_width(confidence), exp(-float(1 / self.scale))
        beyond = 2 * a ** (most + 1) / (1 + a)
        end = (1 - a) / (1 + a) * a**most
        cut = most > 0 and beyond + end <= 1 - confidence
        return most, most - cut

    def quantiles(self, chances: NDArray[np.float64]) -> NDArray[np.float64]:
        """The noise that is not exceeded with each chance."""
        rate = float(1 / self.scale)
        upper = np.minimum(chances, 1 - chances)  # the tail on the nearer side
        reach = np.ceil(-(np.log(upper) + log1p(exp(-rate))) / rate - 1 - 1e-9)
        found: NDArray[np.float64] = np.where(chances < 0.5, -1.0, 1.0) * np.maximum(reach, 0)
        return found

    def apply(self, counts: NDArray[np.int64], sampler: Sampler) -> NDArray[np.int64]:
        """``counts`` with fresh noise, the empty ones too."""
        noise = sampler.discrete_laplace(self.scale, counts.size)
        return counts + noise.reshape(counts.shape)


_TABLE = 1e6  # variances up to this are tabulated; above, the steps of the noise make no difference


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Noise for integers of which one person moves the vector by ``sensitivity`` (Euclidean).

    Definition: P(x) proportional to exp(-x**2 / (2 v)); rho = sensitivity**2 / (2 v).
    Source: Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020.

    Example:
        >>> DiscreteGaussian(Fraction(1, 200)).variance
        100.0
    """

    rho: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        require_positive("rho", self.rho, self.sensitivity)

    @property
    def parameter(self) -> Fraction:
        """The parameter v in use: the asked one, rounded up to what fits a word."""
        return gaussian_grid(Fraction(self.sensitivity**2) / (2 * self.rho))

    @property
    def cost(self) -> Concentrated:
        """What one use costs."""
        return Concentrated(self.rho)

    @property
    def bias(self) -> float:
        """The expected noise."""
        return 0.0

    @property
    def variance(self) -> float:
        """The variance of each number's noise, at most the parameter (equal but for small ones)."""
        return float(self.parameter)

    def half_width(self, confidence: float) -> int:
        """How far the noise reaches with the given confidence."""
        quantile = NormalDist().inv_cdf((1 + confidence) / 2)
        return ceil(quantile * sqrt(self.variance))

    def spread(self, confidence: float) -> tuple[int, int]:
        """The narrowest (low, high) with P(-low <= noise <= high) >= confidence, high first cut."""
        if self.variance > _TABLE:
            return self.half_width(confidence), self.half_width(confidence)
        _, chances = self._chances()
        middle, inside, low, high = len(chances) // 2, 0.0, 0, 0
        inside = float(chances[middle])
        while inside < confidence * (1 - 1e-12):
            if low == high:
                low += 1
                inside += float(chances[middle - low])
            else:
                high += 1
                inside += float(chances[middle + high])
        return low, high

    def quantiles(self, chances: NDArray[np.float64]) -> NDArray[np.float64]:
        """The noise that is not exceeded with each chance."""
        if self.variance > _TABLE:
            normal = NormalDist(0, sqrt(self.variance))
            return np.array([normal.inv_cdf(float(chance)) for chance in chances])
        values, each = self._chances()
        place = np.minimum(np.searchsorted(each.cumsum(), chances), len(values) - 1)
        return np.asarray(values[place])

    def _chances(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The noise that is not beyond nine deviations, and the chance of each value."""
        reach = ceil(9 * sqrt(self.variance)) + 1
        values = np.arange(-reach, reach + 1).astype(np.float64)
        weights = np.exp(-(values**2) / (2 * float(self.parameter)))
        return values, weights / weights.sum()

    def apply(self, counts: NDArray[np.int64], sampler: Sampler) -> NDArray[np.int64]:
        """``counts`` with fresh noise, the empty ones too."""
        noise = sampler.discrete_gaussian(self.parameter, counts.size)
        return counts + noise.reshape(counts.shape)


@dataclass(frozen=True, slots=True)
class Exponential:
    """A choice by scores of which one person changes each by at most ``sensitivity``.

    Definition: P(i) proportional to exp(epsilon * score_i / (2 * sensitivity)).
    Source: McSherry, Talwar, "Mechanism design via differential privacy", 2007; as zCDP it costs
    epsilon**2 / 8: Rogers, Steinke, "A better privacy analysis of the exponential mechanism", 2021.

    Example:
        >>> Exponential(Fraction(1)).concentrated
        rho = 0.125
    """

    epsilon: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon, self.sensitivity)

    @property
    def cost(self) -> Pure:
        """What one use costs."""
        return Pure(self.epsilon)

    @property
    def concentrated(self) -> Concentrated:
        """What one use costs as zCDP."""
        return Concentrated(self.epsilon**2 / 8)

    def shortfall(self, candidates: int, confidence: float) -> float:
        """How far below the best score the choice lies at most, with the given confidence."""
        return 2 * self.sensitivity / float(self.epsilon) * log(candidates / (1 - confidence))

    def choose(self, scores: NDArray[np.int64], sampler: Sampler) -> int:
        """The index of the chosen candidate."""
        rate = score_rate(self.epsilon, self.sensitivity)
        if rate == 0:
            return int(sampler.below(len(scores), 1)[0])
        return sampler.choose(scores, rate)


_STEPS = 1 << 62  # chances in parts that one word draws


@dataclass(frozen=True, slots=True)
class RandomizedResponse:
    """One of ``values`` public answers, told by a person whom nobody else need trust.

    Definition: P(true) = e^epsilon / (e^epsilon + values - 1), any other answer equally likely.
    Source: Warner, "Randomized response", 1965; Kairouz, Oh, Viswanath, "Extremal mechanisms for
    local differential privacy", 2014 (more than two answers).

    Attributes:
        epsilon: what one answer costs.
        values: how many answers there are.
        truth: the chance of the true answer, rounded down to what a word draws: never less private.

    Example:
        >>> round(float(RandomizedResponse(Fraction(1)).truth), 3)
        0.731
    """

    epsilon: Fraction
    values: int = 2
    truth: Fraction = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.values < 2:
            raise ParameterError("values", self.values, "at least 2")
        context = Context(prec=40, rounding=ROUND_CEILING)
        ends = Decimal(-self.epsilon.numerator), Decimal(self.epsilon.denominator)
        # Decimal rounds exp to the nearest; the next number is not below it.
        lie = Fraction(context.next_plus(context.exp(context.divide(*ends))))
        chance = Fraction(int(_STEPS / (1 + (self.values - 1) * lie)), _STEPS)
        object.__setattr__(self, "truth", chance)
        if self.epsilon <= 0 or self.truth <= self.other:
            raise ParameterError("epsilon", float(self.epsilon), "above 1e-12")

    @property
    def cost(self) -> Pure:
        """What one answer costs its person."""
        return Pure(self.epsilon)

    @property
    def other(self) -> Fraction:
        """The chance of each particular other answer."""
        return (1 - self.truth) / (self.values - 1)

    @property
    def weight(self) -> float:
        """What one answer counts for in an estimate without bias.

        The people of a value are estimated by the sum of the weights of those who told it, less
        (sum of all weights - people) / values; everybody may have another epsilon.
        """
        return float(1 / (self.truth - self.other))

    def tell(self, answers: NDArray[np.int64], sampler: Sampler) -> NDArray[np.int64]:
        """What each person tells who has one of the answers 0 to ``values`` - 1."""
        honest = sampler.bernoulli(self.truth, len(answers))
        other = sampler.below(self.values - 1, len(answers))
        return np.where(honest, answers, other + (other >= answers))


@dataclass(frozen=True, slots=True)
class CountTree:
    """A tree over ``branching**levels`` public intervals; one person has ``sensitivity`` rows.

    Definition: every level of the tree is a histogram with noise; where levels say different
    things, the least squares count; the rows below an edge are the sum of the intervals before it.
    Source: Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private histograms
    through consistency", 2010; Qardaji, Yang, Li, "Understanding hierarchical methods for
    differentially private histograms", 2013 (sixteen branches: fewer levels, less noise in each).

    Example:
        >>> CountTree(Fraction(1), levels=2).cost
        epsilon = 1
    """

    epsilon: Fraction
    levels: int
    sensitivity: int = 1
    branching: int = 16

    def __post_init__(self) -> None:
        if self.branching < 2 or self.levels < 1 or self.size > 1 << 20:
            raise ParameterError("levels", self.levels, "1 or more, at most 2**20 intervals")

    @property
    def size(self) -> int:
        """How many intervals there are."""
        return int(self.branching**self.levels)

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise of each node: a person is counted once per level."""
        return DiscreteLaplace(self.epsilon, self.sensitivity * self.levels)

    @property
    def cost(self) -> Pure:
        """What one use costs."""
        return self.noise.cost

    @property
    def variance(self) -> float:
        """The variance of the number of rows below an edge, at most."""
        return float(self.variances(0.0).max())

    def variances(self, share: float) -> NDArray[np.float64]:
        """Per edge, the variance of (rows below it) - share * (all rows)."""
        sizes = [self.size // self.branching**level for level in range(self.levels)]
        each = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1], axis=1)
        below = self._below(each)
        apart = below - share * below[:, -1:]
        found: NDArray[np.float64] = self.noise.variance * (apart**2).sum(axis=0)
        return found

    def half_width(self, confidence: float) -> float:
        """How far a number of rows below an edge may be off."""
        return NormalDist().inv_cdf((1 + confidence) / 2) * sqrt(self.variance)

    def nodes(self, counts: NDArray[np.int64], sampler: Sampler) -> list[NDArray[np.int64]]:
        """The noisy count of every node, level by level from the intervals up."""
        if counts.shape[-1] != self.size:
            raise ParameterError("counts", counts.shape[-1], f"{self.size} intervals")
        groups = counts.shape[:-1]
        return [
            self.noise.apply(
                counts.reshape(*groups, self.size // width, width).sum(axis=-1), sampler
            )
            for width in (self.branching**level for level in range(self.levels))
        ]

    def apply(self, counts: NDArray[np.int64], sampler: Sampler) -> NDArray[np.float64]:
        """Noisy numbers of rows below each edge, for each group.

        The last axis holds the intervals; axes before it are groups of different rows.
        """
        return self._below([level.astype(np.float64) for level in self.nodes(counts, sampler)])

    def _below(self, nodes: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Rows below each edge, where all levels agree as the least squares have it (Hay)."""
        branching, found = self.branching, [nodes[0]]
        for level in range(1, self.levels):
            wide, narrow = branching ** (level + 1), branching**level
            inside = _by_parent(found[-1], branching).sum(axis=-1)
            mixed = (wide - narrow) * nodes[level] + (narrow - 1) * inside
            found.append(mixed / (wide - 1))
        agreed = found[-1]
        for level in reversed(range(self.levels - 1)):
            children = _by_parent(found[level], branching)
            missing = (agreed - children.sum(axis=-1)) / branching
            agreed = (children + missing[..., None]).reshape(found[level].shape)
        start = np.zeros((*agreed.shape[:-1], 1))
        return np.concatenate([start, agreed.cumsum(axis=-1)], axis=-1)


def _by_parent(nodes: NDArray[np.float64], branching: int) -> NDArray[np.float64]:
    return nodes.reshape(*nodes.shape[:-1], nodes.shape[-1] // branching, branching)


def quantile(
    below: NDArray[np.float64],
    edges: NDArray[np.float64],
    share: float,
    reach: float | NDArray[np.float64],
) -> NDArray[np.float64]:
    """The quantile and its interval, read off the noisy numbers of rows below each edge.

    Args:
        below: noisy numbers of rows below each edge; axes before the last are groups.
        edges: the public edges.
        share: which quantile.
        reach: per edge how far ``below`` less the wanted number of rows may be off.

    Returns:
        Value, low and high along the first axis.
    """
    apart, last = below - share * below[..., -1:], len(edges) - 1
    point, low, high = (np.minimum(_first(apart + by), last) for by in (0.0, reach, -reach))
    found: NDArray[np.float64] = edges[np.stack([point, np.maximum(low - 1, 0), high])]
    return found


def _first(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The first edge from which they are not below 0.

    Rows below an edge do not fall from edge to edge: of the noisy ones, a rising curve is taken,
    halfway between the least curve above that never falls, and the largest below.
    """
    above = np.maximum.accumulate(values, axis=-1)
    beneath = np.minimum.accumulate(values[..., ::-1], axis=-1)[..., ::-1]
    found: NDArray[np.int64] = np.count_nonzero(above + beneath < 0, axis=-1)
    return found


@dataclass(frozen=True, slots=True)
class StableGroups:
    """Noise and a threshold for counts of which one person adds ``sensitivity`` rows in all.

    Definition: publish a non-empty group when count + noise >= threshold, where a group that exists
    through one person alone passes with chance at most delta.
    Source: Korolova et al., "Releasing search queries and clicks privately", 2009.

    Example:
        >>> StableGroups(Fraction(1), Fraction(1, 10**6)).threshold
        15
    """

    epsilon: Fraction
    delta: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise ParameterError("delta", float(self.delta), "above 0 and below 1")

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise that each count gets."""
        return DiscreteLaplace(self.epsilon, self.sensitivity)

    @property
    def cost(self) -> Approximate:
        """What one use costs."""
        return Approximate(self.epsilon, self.delta)

    @property
    def variance(self) -> float:
        """The variance of the noise in each published count."""
        return self.noise.variance

    @property
    def threshold(self) -> int:
        """The smallest noisy count that is published.

        One person alone makes at most ``sensitivity`` groups of at most that count; each passes
        with chance a**m / (1 + a) at m = threshold - sensitivity.
        """
        rate = float(1 / self.noise.scale)
        chance = float(self.delta) / self.sensitivity
        reach = (log(1 / chance) - log1p(exp(-rate))) / rate
        return self.sensitivity + ceil(reach * (1 + 1e-9))

    def apply(
        self, counts: NDArray[np.int64], sampler: Sampler
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Noisy counts of the non-empty groups, and which of them are published."""
        noisy = self.noise.apply(counts, sampler)
        return noisy, (noisy >= self.threshold) & (counts > 0)


# A table too large to list: every empty cell gets noise of its own, and those that stay below a
# threshold are dropped. The same comes out by drawing *how many* empty cells reach the threshold (a
# binomial), then *which* (uniform), then their counts (the tail of the noise has no memory).
MOST_EMPTY = 1 << 32
PHANTOMS = 1000  # how many empty cells may appear, as expected


def threshold(scale: Fraction, empty: int) -> int:
    """The smallest count to list, by a public rule: some 1000 of the empty cells reach it."""
    return max(1, ceil(float(scale) * log(max(2.0, empty / PHANTOMS))))


def binomial(sampler: Sampler, trials: int, scale: Fraction, least: int) -> int:
    """How many of ``trials`` cells have discrete Laplace noise of at least ``least``, exactly.

    Compares one uniform number per cell with the chance, bit by bit, for all cells at once: at each
    bit about half of the undecided cells are decided.
    """
    if not 0 <= trials <= MOST_EMPTY:
        raise ParameterError("cells", trials, f"at most {MOST_EMPTY:,}; use method='marginals'")
    undecided, hits, done = trials, 0, 0
    while undecided:
        for bit in chance_bits(scale, least, done + 128)[done:]:
            ones = _ones(sampler, undecided)
            # Below the chance: a 0 where the chance has a 1; above it: a 1 where it has a 0.
            hits += undecided - ones if bit else 0
            undecided = ones if bit else undecided - ones
            done += 1
            if not undecided:
                break
    return hits


def chance_bits(scale: Fraction, least: int, count: int) -> list[int]:
    """The first binary digits of P(noise >= least) = a**least / (1 + a), a = exp(-1 / scale)."""
    digits = count
    while True:
        low, high = (
            _chance(scale, least, digits, ROUND_FLOOR),
            _chance(scale, least, digits, ROUND_CEILING),
        )
        below, above = int(low * (1 << count)), int(high * (1 << count))
        if below == above:
            return [int(bit) for bit in f"{below:0{count}b}"]
        digits *= 2


def _chance(scale: Fraction, least: int, digits: int, rounding: str) -> Fraction:
    """The chance, rounded down or up: ``Decimal.exp`` is right in its last digit."""
    context = Context(prec=digits, rounding=rounding)
    slack = Fraction(1, 10 ** (digits - 2))
    rate = 1 / scale

    def power(times: int) -> Fraction:
        exponent = context.divide(Decimal(-rate.numerator * times), Decimal(rate.denominator))
        return Fraction(context.exp(exponent))

    sign = 1 if rounding == ROUND_CEILING else -1
    found = power(least) / (1 + power(1)) * (1 + sign * 8 * slack * (1 + least * rate))
    return max(Fraction(0), found)


def _ones(sampler: Sampler, coins: int) -> int:
    """How many of ``coins`` fair coins show heads."""
    heads, chunk = 0, 1 << 26
    for start in range(0, coins, chunk):
        size = min(chunk, coins - start)
        raw = np.frombuffer(sampler.source(-(-size // 8)), dtype=np.uint8).copy()
        if size % 8:
            raw[-1] &= (1 << size % 8) - 1
        heads += int(_POPULATION[raw].sum(dtype=np.int64))
    return heads


_POPULATION = np.array([bin(byte).count("1") for byte in range(256)], dtype=np.uint8)


def fresh_cells(
    sampler: Sampler, taken: NDArray[np.int64], total: int, count: int
) -> NDArray[np.int64]:
    """``count`` different cells out of ``total``, none of the sorted ``taken`` ones."""
    found = np.empty(0, np.int64)
    while len(found) < count:
        drawn = sampler.below(total, 2 * (count - len(found)) + 16)
        drawn = drawn[~np.isin(drawn, taken)]
        both = np.concatenate([found, drawn])
        _, first = np.unique(both, return_index=True)
        found = both[np.sort(first)]  # in the order drawn, so that cutting is fair
    return found[:count]
