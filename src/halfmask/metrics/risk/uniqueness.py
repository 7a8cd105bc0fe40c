"""How many people of the population are unique, estimated from a sample of it.

Definition: with f_r sample classes of r people, n people in the sample and N in the population:
Pitman's model of class sizes (Hoshino), Zayatz's reweighting of the sample's sizes, the shifted
negative binomial (SNB), and, per class, the Poisson model with the prior 1 / rate, under which
P(F | f) = C(F - 1, f - 1) p^f (1 - p)^(F - f) with p = n / N; it also gives the people in classes
of fewer than k (k-map).
Source: Hoshino, "Applying Pitman's sampling formula to microdata disclosure risk assessment", 2001;
Zayatz, "Estimation of the percent of unique population elements", 1991; Chen and Keller-McNulty,
"Estimation of identification disclosure risk in microdata", 1998; Benedetti and Franconi,
"Statistical and technological solutions for controlled data dissemination", 1998; Dankar et al.,
"Estimating the re-identification risk of clinical data sets", 2012.

An estimator that fails says why and gives no figure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import ParameterError
from halfmask.metrics.estimate import Estimate, exact, failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Frequencies = NDArray[np.int64]  # [r] is how many classes hold r people; [0] is 0
    Estimator = Callable[[Frequencies, float], float]

_REPEATS = 40


class _NotFoundError(Exception):
    """The equations of an estimator have no solution that makes sense."""


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """Shares of people who are unique, and who are rare, in the population.

    Attributes:
        fraction: the share of the population that is in the table.
        sample: the share of the table's people who are alone in their class.
        pitman: the estimated share of the population who are unique; so ``zayatz``, ``snb``.
        poisson: the same by the Poisson model.
        unique_if_alone: the chance that somebody alone in the table is alone in the population.
        below_k: the estimated share of the table's people whose population class is below ``k``.
    """

    fraction: float
    k: int
    sample: Estimate
    pitman: Estimate
    zayatz: Estimate
    snb: Estimate
    poisson: Estimate
    unique_if_alone: Estimate
    below_k: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        names = ("sample", "pitman", "zayatz", "snb", "poisson", "unique_if_alone", "below_k")
        figures = {name: getattr(self, name).to_dict() for name in names}
        return {"fraction": self.fraction, "k": self.k, **figures}


def uniqueness(people: NDArray[np.int64], fraction: float, *, k: int = 5) -> Uniqueness:
    """Estimate from the class sizes of a sample that holds ``fraction`` of the population.

    With a fraction of 1 the table is the population and every figure is counted.
    """
    if not 0 < fraction <= 1:
        raise ParameterError("fraction", fraction, "more than 0 and at most 1")
    sizes = people[people > 0]
    frequencies = np.bincount(sizes)
    n = int(sizes.sum())
    sample = exact(float(frequencies[1]) / n, n)
    below = float(sizes[sizes < k].sum()) / n
    if fraction == 1:
        alone = exact(1.0, int(frequencies[1])) if frequencies[1] else failed("Nobody is alone.")
        return Uniqueness(1.0, k, sample, sample, sample, sample, sample, alone, exact(below, n))
    estimates = {
        name: _estimated(frequencies, fraction, estimator)
        for name, estimator in (("pitman", pitman), ("zayatz", zayatz), ("snb", snb))
    }
    return Uniqueness(
        fraction,
        k,
        sample,
        estimates["pitman"],
        estimates["zayatz"],
        estimates["snb"],
        _poisson_unique(frequencies, fraction),
        _unique_if_alone(frequencies, fraction),
        poisson_below(frequencies, fraction, k),
    )


def _estimated(frequencies: Frequencies, fraction: float, estimator: Estimator) -> Estimate:
    """The estimate with the interval of resampled class sizes."""
    n = int(np.arange(len(frequencies)) @ frequencies)
    if frequencies[1] == 0:
        return failed("Nobody is alone in the table: there is nothing to estimate from.", n)
    try:
        value = estimator(frequencies, fraction)
    except _NotFoundError as why:
        return failed(str(why), n)
    random = np.random.default_rng(0)
    classes = int(frequencies.sum())
    shares = frequencies / classes
    repeated = []
    for _ in range(_REPEATS):
        try:
            repeated.append(estimator(random.multinomial(classes, shares), fraction))
        except _NotFoundError:
            continue
    if len(repeated) < _REPEATS // 2:
        return Estimate(
            value, None, None, n, trusted=False, reason="Most resampled tables give no solution."
        )
    low, high = (float(end) for end in np.quantile(repeated, [0.025, 0.975]))
    usual = fraction >= 0.01
    reason = "" if usual else "The sample holds less than 1 % of the population."
    return Estimate(value, min(low, value), max(high, value), n, trusted=usual, reason=reason)


def zayatz(frequencies: Frequencies, fraction: float) -> float:
    """The share of the population who are unique, from the sample's own size distribution."""
    sizes = np.flatnonzero(frequencies)
    n = float(sizes @ frequencies[sizes])
    size = n / fraction
    # P(one of r is drawn) = r C(N - r, n - 1) / C(N, n), in logarithms, up to a common factor.
    fits = sizes <= size - n + 1
    logs = np.full(len(sizes), -np.inf)
    r = sizes[fits].astype(np.float64)
    rest = _log_gamma(size - r + 1) - _log_gamma(size - r - n + 2)
    logs[fits] = np.log(r) + rest
    weights = frequencies[sizes] * np.exp(logs - logs.max())
    if not weights.sum() > 0 or sizes[0] != 1:
        raise _NotFoundError("No class of the table can come from a unique person.")
    chance = float(weights[0] / weights.sum())
    return float(frequencies[1]) * chance / fraction / size


def pitman(frequencies: Frequencies, fraction: float) -> float:
    """The share of the population who are unique under Pitman's sampling formula."""
    alpha, theta = _pitman_fit(frequencies)
    n = float(np.arange(len(frequencies)) @ frequencies)
    size = n / fraction
    logs = (
        math.lgamma(theta + 1)
        - math.lgamma(theta + alpha)
        + math.lgamma(size + theta + alpha - 1)
        - math.lgamma(size + theta)
    )
    return min(1.0, math.exp(logs))


def _pitman_fit(frequencies: Frequencies) -> tuple[float, float]:
    """The most likely parameters, from Hoshino's start by Newton's method."""
    r = np.arange(len(frequencies))
    n, u = float(r @ frequencies), float(frequencies.sum())
    ones, twos = float(frequencies[1]), float(frequencies[2]) if len(frequencies) > 2 else 0.0
    if twos == 0:
        raise _NotFoundError("No class holds two people: the parameters cannot be started.")
    c = ones * (ones - 1) / twos
    bottom = 2 * ones * u + ones * c - n * c
    if bottom == 0:
        raise _NotFoundError("The starting equations have no solution.")
    theta = (n * u * c - ones * (n - 1) * (2 * u + c)) / bottom
    alpha = (theta * (ones - n) + (n - 1) * ones) / (n * u)
    if not 0 < alpha < 1 or not math.isfinite(theta) or theta <= -alpha:
        alpha, theta = 0.5, max(u, 1.0)
    inner, outer = np.arange(1.0, u), np.arange(1.0, n)
    big = r[2:][frequencies[2:] > 0]
    heavy = frequencies[2:][frequencies[2:] > 0]
    steps = np.arange(1.0, float(r[-1]))
    for _ in range(60):
        first = 1 / (theta + inner * alpha)
        second = 1 / (theta + outer)
        third = 1 / (steps - alpha)
        sums = np.concatenate(([0.0], np.cumsum(third)))
        squares = np.concatenate(([0.0], np.cumsum(third**2)))
        gradient = np.array(
            [first.sum() - second.sum(), (inner * first).sum() - heavy @ sums[big - 1]]
        )
        cross = -(inner * first**2).sum()
        hessian = np.array(
            [
                [-(first**2).sum() + (second**2).sum(), cross],
                [cross, -((inner * first) ** 2).sum() - heavy @ squares[big - 1]],
            ]
        )
        try:
            move = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            break
        scale = 1.0
        while scale > 1e-6 and not (
            0 < alpha - scale * move[1] < 1 and theta - scale * move[0] > -(alpha - scale * move[1])
        ):
            scale /= 2
        theta, alpha = theta - scale * float(move[0]), alpha - scale * float(move[1])
        if abs(move[0]) < 1e-8 * (1 + abs(theta)) and abs(move[1]) < 1e-10:
            return alpha, theta
    raise _NotFoundError("The likelihood has no maximum that Newton's method reaches.")


def snb(frequencies: Frequencies, fraction: float) -> float:
    """The share of the population who are unique if class sizes are 1 + negative binomial."""
    n = float(np.arange(len(frequencies)) @ frequencies)
    u, ones, size = float(frequencies.sum()), float(frequencies[1]), n / fraction

    def equations(point: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        a, q = math.exp(point[0]), 1 / (1 + math.exp(-point[1]))
        p = 1 - q
        classes = size / (1 + a * q / p)
        left = 1 - q * (1 - fraction)
        g = math.exp(a * (math.log(p) - math.log(left)))
        none = (1 - fraction) * g
        one = fraction * g * (1 + (1 - fraction) * a * q / left)
        wrong = np.array([classes * (1 - none) / u - 1, classes * one / ones - 1])
        return wrong, classes * math.exp(a * math.log(p)) / size

    best = None
    for start_a in (-2.0, 0.0, 2.0):
        for start_q in (-2.0, 0.0, 2.0, 4.0):
            found = _solved(equations, np.array([start_a, start_q]))
            if found is not None and (best is None or found[0] < best[0]):
                best = found
    if best is None:
        raise _NotFoundError("The equations of the class sizes have no solution.")
    return float(best[1])


def _solved(equations: Any, point: NDArray[np.float64]) -> tuple[float, float] | None:
    """Newton's method with halved steps; the remaining error and the share, or None."""
    for _ in range(80):
        try:
            wrong, share = equations(point)
            slope = np.empty((2, 2))
            for j in range(2):
                moved = point.copy()
                moved[j] += 1e-6
                slope[:, j] = (equations(moved)[0] - wrong) / 1e-6
            step = np.linalg.solve(slope, wrong)
        except (OverflowError, ValueError, ZeroDivisionError, np.linalg.LinAlgError):
            return None
        error = float(np.abs(wrong).max())
        if error < 1e-9:
            return error, share
        scale = min(1.0, 2.0 / max(1e-300, float(np.abs(step).max())))
        while scale > 1e-4:
            try:
                if float(np.abs(equations(point - scale * step)[0]).max()) < error:
                    break
            except (OverflowError, ValueError, ZeroDivisionError):
                pass
            scale /= 2
        else:
            return None
        point = point - scale * step
    return None


def _unique_if_alone(frequencies: Frequencies, fraction: float) -> Estimate:
    """The chance that somebody alone in the table is alone in the population: the fraction."""
    alone = int(frequencies[1])
    if alone == 0:
        return failed("Nobody is alone in the table.")
    return _interval(fraction, math.sqrt(fraction * (1 - fraction) / alone), alone, fraction)


def _poisson_unique(frequencies: Frequencies, fraction: float) -> Estimate:
    """The share of the population who are unique: those alone here who are alone there."""
    n = int(np.arange(len(frequencies)) @ frequencies)
    alone = float(frequencies[1])
    if alone == 0:
        return failed("Nobody is alone in the table: there is nothing to estimate from.", n)
    spread = math.sqrt(alone * fraction * (1 - fraction)) / n
    return _interval(alone * fraction / n, spread, n, fraction)


def poisson_below(frequencies: Frequencies, fraction: float, k: int) -> Estimate:
    """The share of the table's people whose class holds fewer than ``k`` in the population."""
    n = int(np.arange(len(frequencies)) @ frequencies)
    sizes = np.flatnonzero(frequencies)
    sizes = sizes[sizes < k]
    if not len(sizes):
        return exact(0.0, n, f"Every class of the table holds {k} people already.")
    chances = np.array([_fewer(int(f), k, fraction) for f in sizes])
    value = float((sizes * frequencies[sizes]) @ chances) / n
    squares = frequencies[sizes] * sizes.astype(np.float64) ** 2
    variance = float(squares @ (chances * (1 - chances)))
    return _interval(value, math.sqrt(variance) / n, n, fraction)


def _fewer(f: int, k: int, fraction: float) -> float:
    """P(F < k | f) in the population, given the class's size in the table."""
    return math.fsum(
        math.comb(size - 1, f - 1) * fraction**f * (1 - fraction) ** (size - f)
        for size in range(f, k)
    )


def _interval(value: float, spread: float, n: int, fraction: float) -> Estimate:
    trusted = fraction >= 0.01
    reason = (
        "Where a few classes are very large, more people are unique than this says."
        if trusted
        else "The sample holds less than 1 % of the population."
    )
    low, high = max(0.0, value - 1.96 * spread), min(1.0, value + 1.96 * spread)
    return Estimate(value, low, high, n, trusted=trusted, reason=reason)


def _log_gamma(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([math.lgamma(v) for v in values])
