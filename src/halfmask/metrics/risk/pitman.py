"""Population uniqueness under Pitman's sampling formula.

Definition: the class sizes of the population follow Pitman's formula with 0 < alpha < 1 and theta >
-alpha, fitted by the largest likelihood of the sample's sizes; the share of unique people is
G(theta + 1) G(N + theta + alpha - 1) / (G(theta + alpha) G(N + theta)) with the gamma function G
and N people.
Source: Hoshino, "Applying Pitman's sampling formula to microdata disclosure risk assessment", 2001.

Sizes that are more even than the formula allows (alpha = 0) give no figure.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.estimate import Estimate, failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Cost = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]

_EDGE = 1e-3  # an alpha below this lies at the border of what the formula allows
_FAR = 12.0  # so has a theta this many powers of e above the people
_STEPS = 200
_NUDGES = 1e-5 * np.eye(2)
_STARTS = ((0.5, 0.0), (0.1, 0.0), (0.9, -2.0))  # alpha, and log theta beside that of the classes


def pitman(frequencies: NDArray[np.int64], fraction: float) -> Estimate:
    """The share of the population who are unique; ``frequencies[r]`` classes hold r people."""
    n = int(np.arange(len(frequencies)) @ frequencies)
    if len(frequencies) < 3 or frequencies[2] == 0:
        return failed("No class holds two people: the model cannot be fitted.", n)
    found = fit(frequencies)
    if found is None:
        return failed("The class sizes are more even than this model allows.", n)
    alpha, theta = found
    size = n / fraction
    logs = (
        math.lgamma(theta + 1)
        - math.lgamma(theta + alpha)
        + math.lgamma(size + theta + alpha - 1)
        - math.lgamma(size + theta)
    )
    return Estimate(min(1.0, math.exp(logs)), None, None, n)


def fit(frequencies: NDArray[np.int64]) -> tuple[float, float] | None:
    """The most likely alpha and theta; None where they lie at the border."""
    sizes = np.flatnonzero(frequencies).astype(np.float64)
    many = frequencies[frequencies > 0].astype(np.float64)
    u, n = float(many.sum()), float(sizes @ many)

    def cost(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        return _cost(point, sizes, many, u, n)

    for alpha, shift in _STARTS:
        start = np.array([math.log(alpha / (1 - alpha)), math.log(u + 1) + shift])
        found = _lowest(cost, start, (math.log(_EDGE), math.log(n) + _FAR))
        if found is not None:
            return _parameters(found)
    return None


def _lowest(
    cost: Cost, point: NDArray[np.float64], border: tuple[float, float]
) -> NDArray[np.float64] | None:
    """Newton's method, damped so that every step goes down; None where it leaves the border."""
    value, slope = cost(point)
    damping = 1e-3
    for _ in range(_STEPS):
        bend = np.column_stack([(cost(point + move)[1] - slope) / 1e-5 for move in _NUDGES])
        low = (bend[0, 0] + bend[1, 1]) / 2 - math.hypot(
            (bend[0, 0] - bend[1, 1]) / 2, (bend[0, 1] + bend[1, 0]) / 2
        )
        bend = (bend + bend.T) / 2 + (damping + max(0.0, -low)) * np.eye(2)
        if not np.isfinite(bend).all() or not np.linalg.det(bend) > 0:
            return None
        step = np.linalg.solve(bend, slope)
        step *= min(1.0, 2.0 / float(np.abs(step).max() + 1e-300))
        tried = point - step
        if tried[0] < border[0] or tried[1] > border[1]:
            return None
        better, new_slope = cost(tried)
        if better <= value:
            point, value, slope, damping = tried, better, new_slope, max(1e-9, damping / 10)
        else:
            damping *= 10
        if float(np.abs(step).max()) < 1e-7:
            return point
    return point if float(np.abs(slope).max()) < 1e-6 else None


def _parameters(point: NDArray[np.float64]) -> tuple[float, float]:
    alpha = 1 / (1 + math.exp(-point[0]))
    return alpha, math.exp(point[1]) - alpha


def _cost(
    point: NDArray[np.float64],
    sizes: NDArray[np.float64],
    many: NDArray[np.float64],
    u: float,
    n: float,
) -> tuple[float, NDArray[np.float64]]:
    """Minus the log-likelihood per class, and its slope, in logit alpha and log (theta + alpha)."""
    from scipy.special import digamma, gammaln

    alpha, theta = _parameters(point)
    x = theta / alpha
    # sum of log(theta + i alpha) for 0 < i < u, of log(theta + i) for 0 < i < n.
    value = (u - 1) * math.log(alpha) + gammaln(x + u) - gammaln(x + 1)
    value -= gammaln(theta + n) - gammaln(theta + 1)
    value += many @ (gammaln(sizes - alpha) - gammaln(1 - alpha))
    inner = digamma(x + u) - digamma(x + 1)
    by_theta = inner / alpha - digamma(theta + n) + digamma(theta + 1)
    by_alpha = (u - 1 - x * inner) / alpha
    by_alpha -= many @ (digamma(sizes - alpha) - digamma(1 - alpha))
    slope = np.array([(by_alpha - by_theta) * alpha * (1 - alpha), by_theta * (theta + alpha)])
    return -float(value) / u, -slope / u
