"""The risk of single people in a population: counted, modelled, or by sampling weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InternalError, ParameterError
from halfmask.metrics.estimate import Estimate, exact_estimate, failed_estimate
from halfmask.metrics.risk.reidentification import (
    THRESHOLDS,
    RiskBin,
    Threshold,
    bins,
    count_at_risk,
)
from halfmask.table.document import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.weights import Weights


@dataclass(frozen=True, slots=True)
class Rarity(Result):
    """Counted uniqueness in a table and its population.

    Attributes:
        sample: Pr(SU); ``population``: Pr(PU).
        both: Pr(PU | SU); None where nobody is alone in the table.
        mean_share: the mean over the table's people of f / F; ``mean_chance`` of 1 / F.
    """

    sample: float
    population: float
    both: float | None
    mean_share: float
    mean_chance: float


def rarity(classes: Classes) -> Rarity:
    """Measure classes that know how many people of a population each of them holds.

    Definition: Pr(SU) = n_1 / n and Pr(PU) = N_1 / N, the shares of people who are alone in their
    class in the sample and in the population; Pr(PU | SU), the share of those alone in the sample
    who are alone in the population too; the chance f / F and the usual 1 / F of a sample class of f
    people.
    Source: Benkhelif, "Publication de donnees personnelles respectueuse de la vie privee", 2018,
    equations 2.14 and 2.15; Sondeck, 2017, section 3.4.1 (f / F).
    """
    if classes.population is None:
        raise InternalError("The class statistics lack the population.")
    # The table's people are of the population, whatever a file of the population says.
    people, everybody = classes.people, np.maximum(classes.population, classes.people)
    held = people > 0
    alone = held & (people == 1)
    n = int(people.sum())
    share = people[held] / everybody[held]
    return Rarity(
        int(alone.sum()) / n,
        int((everybody == 1).sum()) / int(everybody.sum()),
        int((alone & (everybody == 1)).sum()) / int(alone.sum()) if alone.any() else None,
        float(people[held] @ share) / n,
        float(people[held] @ (1.0 / everybody[held])) / n,
    )


_PRIOR = (
    "The model says at most the share of the population that is in the table, whoever they are."
)


def poisson(frequencies: NDArray[np.int64], fraction: float) -> Estimate:
    """The share of the population who are unique, which is p for everybody alone in the sample.

    Definition: with the prior 1 / rate a class of f people in the sample holds F in the population
    with P(F | f) = C(F - 1, f - 1) p^f (1 - p)^(F - f), where p is the fraction of the population
    that is in the sample.
    Source: Benedetti and Franconi, "Statistical and technological solutions for controlled data
    dissemination", 1998.

    Who is alone in the sample is so alone in the population with the chance p, whatever the table
    looks like: for tables in which most people are alone the figures are far too low.
    """
    n = int(np.arange(len(frequencies)) @ frequencies)
    alone = float(frequencies[1])
    if alone == 0:
        return failed_estimate(
            "Nobody is alone in the table: there is nothing to estimate from.", n
        )
    spread = math.sqrt(alone * fraction * (1 - fraction)) / n
    found = _interval(alone * fraction / n, spread, n)
    return Estimate(found.value, found.low, found.high, n, trusted=False, reason=_PRIOR)


def poisson_below(
    frequencies: NDArray[np.int64], fraction: float, k: int, *, unique: float = 0.0
) -> Estimate:
    """The share of the table's people whose class holds fewer than ``k`` in the population.

    Args:
        frequencies: [r] classes of the table hold r people.
        fraction: the share of the population that is in the table.
        k: fewer are too few.
        unique: the share of people who are certainly unique; a smaller figure is not trusted.
    """
    n = int(np.arange(len(frequencies)) @ frequencies)
    sizes = np.flatnonzero(frequencies)
    sizes = sizes[sizes < k]
    if not len(sizes):
        return exact_estimate(0.0, n, f"Every class of the table holds {k} people already.")
    chances = np.array([_fewer(int(f), k, fraction) for f in sizes])
    value = float((sizes * frequencies[sizes]) @ chances) / n
    squares = frequencies[sizes] * sizes.astype(np.float64) ** 2
    variance = float(squares @ (chances * (1 - chances)))
    found = _interval(value, math.sqrt(variance) / n, n)
    if value >= unique:
        return found
    reason = f"At least {unique:.1%} are unique in the population."
    return Estimate(value, found.low, found.high, n, trusted=False, reason=reason)


def _fewer(f: int, k: int, fraction: float) -> float:
    """P(F < k | f) in the population, given the class's size in the table."""
    return math.fsum(
        math.comb(size - 1, f - 1) * fraction**f * (1 - fraction) ** (size - f)
        for size in range(f, k)
    )


def _interval(value: float, spread: float, n: int) -> Estimate:
    reason = "Where a few classes are very large, more people are rare than this says."
    low, high = max(0.0, value - 1.96 * spread), min(1.0, value + 1.96 * spread)
    return Estimate(value, low, high, n, reason=reason)


# SciPy's function is exact to the last digits up to 99 people, infinite for some beyond.
_SMALL = 60
_TERMS = 40  # of the series for larger classes, whose terms fall faster than 1 / C(60 + n, n)


def individual_risks(
    people: NDArray[np.int64], fraction: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """The expected chance to find a person of each sample class of ``people``.

    Definition: E[1 / F | f] for a class of f people in the sample and F in the population, where
    P(F | f) = C(F - 1, f - 1) p^f (1 - p)^(F - f) and p is the sampling fraction; in closed form (p
    / f) 2F1(1, 1; f + 1; 1 - p). Of a household: the chance that at least one of its members is
    found, 1 - prod (1 - risk).
    Source: Benedetti and Franconi, "Statistical and technological solutions for controlled data
    dissemination", 1998; Templ, "Statistical disclosure control for microdata", 2017 (households).

    Args:
        people: per class, how many people of the sample it holds.
        fraction: the share of the population that is in the sample, of all or of each class.

    Example:
        >>> individual_risks(np.array([1, 2]), 1.0)
        array([1. , 0.5])
    """
    p = np.asarray(fraction, dtype=np.float64)
    if not bool(((p > 0) & (p <= 1)).all()):
        raise ParameterError("fraction", fraction if p.ndim == 0 else "per class",
                             "more than 0 and at most 1")  # fmt: skip
    if p.ndim:
        return _expected_chance(people.astype(np.float64), p)
    sizes, place = np.unique(people, return_inverse=True)
    return _expected_chance(sizes.astype(np.float64), np.full(len(sizes), float(p)))[place]


def _expected_chance(f: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import hyp2f1

    out = p / f  # becomes the function's value times this
    one, large = f == 1, f >= _SMALL
    # 1 - p loses the last digits of a small p, which counts for people alone only: log(1 / p).
    rest = np.where(p[one] < 1, 1 - p[one], 1.0)
    out[one] *= np.where(p[one] < 1, -np.log(p[one]) / rest, 1.0)
    some = ~one & ~large
    out[some] *= hyp2f1(1.0, 1.0, f[some] + 1, 1 - p[some])
    out[large] *= _series(f[large], p[large])
    return np.asarray(np.clip(out, 0.0, 1.0 / f))


def _series(f: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The power series of 2F1(1, 1; f + 1; 1 - p)."""
    term, total = np.ones(len(f)), np.ones(len(f))
    for n in range(_TERMS):
        term = term * ((n + 1) * (1 - p) / (f + 1 + n))
        total += term
    return total


def household_risks(
    risks: NDArray[np.float64], households: NDArray[np.int32], rows: NDArray[np.int64] | int = 1
) -> NDArray[np.float64]:
    """Per row, the chance that somebody of its household is found; entries stand for ``rows``."""
    sure = risks >= 1.0  # log(1 - 1) is no number
    logs = np.log1p(-np.where(sure, 0.0, risks)) * rows
    total = np.bincount(households, weights=logs)
    found = np.bincount(households, weights=sure) > 0
    return np.where(found, 1.0, -np.expm1(total))[households]


@dataclass(frozen=True, slots=True)
class Chances:
    """The chances of the people of a table to be found in the population.

    Attributes:
        highest: the highest of them.
        mean: the global risk, the share of people who are expected to be found.
        expected: the same as a number of people.
        thresholds: rows above each limit.
        distribution: rows by their chance.
    """

    highest: float
    mean: float
    expected: float
    thresholds: tuple[Threshold, ...]
    distribution: tuple[RiskBin, ...]


@dataclass(frozen=True, slots=True)
class SurveyRisk(Result):
    """The risk in a population that is known through sampling weights.

    Attributes:
        column: where the weights stand.
        population: how many people they stand for in all.
        fraction: the share of these who are in the table.
        equal: whether all weights are the same.
        individual: the expected chances; ``plain`` those of 1 / F^.
        unique_if_alone: of those alone in the table, the expected share of people who are alone in
            the population; None where nobody is alone.
    """

    column: str
    population: float
    fraction: float
    equal: bool
    individual: Chances
    plain: Chances
    unique_if_alone: float | None


def survey_risk(
    weights: Weights,
    classes: Classes,
    of_row: NDArray[np.int32],
    limits: Sequence[float] = (),
) -> SurveyRisk:
    """Measure the classes of a table whose rows have ``weights``.

    Definition: a class of f people whose sampling weights add up to F^ stands for about F^ people
    of the population. The individual risk of its people is E[1 / F | f] with p = f / F^ (see
    Individual risk), the plain one 1 / F^. The global risk is their mean over the people of the
    table, n times that the expected number of people found. Of somebody alone in the table, p is
    the chance to be alone in the population.
    Source: Benedetti and Franconi, "Statistical and technological solutions for controlled data
    dissemination", 1998; Franconi and Polettini, "Individual risk estimation in mu-Argus: a
    review", 2004.

    Weights say how many people a class stands for on average, not how rare its combination is: in
    detailed tables, where most people are alone, the risk may come out too low.

    Args:
        weights: how many people of the population the rows stand for.
        classes: the classes of the quasi-identifiers.
        of_row: the class of each entry of the table.
        limits: further limits of an acceptable chance.
    """
    held = classes.rows > 0
    rows, people = classes.rows[held], classes.people[held]
    individual, plain = class_chances(people, weights.by_class(classes, of_row)[held])
    known = tuple(sorted({*THRESHOLDS, *limits}))
    alone = people == 1
    return SurveyRisk(
        weights.column,
        weights.total,
        weights.fraction,
        weights.equal,
        _chances(rows, people, individual, known),
        _chances(rows, people, plain, known),
        float(plain[alone].mean()) if alone.any() else None,
    )


def class_chances(
    people: NDArray[np.int64], represented: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Per class, the individual risk and 1 / F^."""
    # Sums of weights round: a class never stands for fewer people than it holds.
    everybody = np.maximum(represented, people)
    return individual_risks(people, people / everybody), 1.0 / everybody


def _chances(
    rows: NDArray[np.int64],
    people: NDArray[np.int64],
    chance: NDArray[np.float64],
    limits: Sequence[float],
) -> Chances:
    expected = float(people @ chance)
    return Chances(
        float(chance.max()),
        expected / int(people.sum()),
        expected,
        tuple(count_at_risk(rows, chance, limit) for limit in limits),
        tuple(bins(rows, chance)),
    )
