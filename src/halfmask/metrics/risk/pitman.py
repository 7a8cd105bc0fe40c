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
    from numpy.typing import NDArray

_EDGE = 1e-3  # an alpha below this lies at the border of what the formula allows
_FAR = 12.0  # so has a theta this many powers of e above the people
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
    from scipy.optimize import minimize

    sizes = np.flatnonzero(frequencies)
    many = frequencies[sizes].astype(np.float64)
    u, n = float(many.sum()), float(sizes @ many)
    for alpha, shift in _STARTS:
        start = [math.log(alpha / (1 - alpha)), math.log(u + 1) + shift]
        found = minimize(
            _cost,
            start,
            args=(sizes.astype(np.float64), many, u, n),
            jac=True,
            method="L-BFGS-B",
            bounds=[(math.log(_EDGE / 10), 14.0), (-10.0, math.log(n) + _FAR + 0.1)],
        )
        alpha, theta = _parameters(found.x)
        if alpha >= _EDGE and found.x[1] <= math.log(n) + _FAR:
            return alpha, theta
    return None


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
