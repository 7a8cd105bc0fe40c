"""Population uniqueness if class sizes are one more than a negative binomial (SNB).

Definition: the sizes of the population's classes are 1 + negative binomial(a, q); a and q are such
that the expected number of sample classes, and of those of one person, are what they are. Sizes
more even than that are taken as 1 + Poisson, if that fits.
Source: Chen and Keller-McNulty, "Estimation of identification disclosure risk in microdata", 1998.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.estimate import Estimate, failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Equations = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], float]]

_BORDER = 8.0  # beyond this log a the sizes are as good as Poisson
_CHANCE = 3.0  # standard deviations that chance may explain


def snb(frequencies: NDArray[np.int64], fraction: float) -> Estimate:
    """The share of the population who are unique; ``frequencies[r]`` classes hold r people."""
    n = float(np.arange(len(frequencies)) @ frequencies)
    u, ones, size = float(frequencies.sum()), float(frequencies[1]), n / fraction
    if ones == n:
        return failed("No class holds two people: the model cannot be fitted.", int(n))

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

    for start_a in (0.0, 2.0, -2.0):
        for start_q in (0.0, 2.0, -2.0, 4.0):
            share = _solved(equations, np.array([start_a, start_q]))
            if share is not None:
                return Estimate(share, None, None, int(n))
    even = _even(u, ones, size, fraction)
    if even is None:
        return failed("The equations of the class sizes have no solution.", int(n))
    return Estimate(even, None, None, int(n))


def _even(u: float, ones: float, size: float, fraction: float) -> float | None:
    """The share at the border of the model, where sizes are 1 + Poisson; None if it does not fit.

    The mean is that which gives the number of classes; those of one person may be off by chance.
    """

    def classes(mean: float) -> float:
        return size / (1 + mean) * (1 - (1 - fraction) * math.exp(-mean * fraction))

    low, high = 0.0, size
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if classes(middle) > u else (low, middle)
    one = fraction * math.exp(-low * fraction) * (1 + (1 - fraction) * low)
    if abs(size / (1 + low) * one - ones) > _CHANCE * math.sqrt(ones):
        return None
    return math.exp(-low) / (1 + low)


def _solved(equations: Equations, point: NDArray[np.float64]) -> float | None:
    """Newton's method with halved steps; the share, or None."""
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
            return share
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
        if point[0] > _BORDER:
            return None
    return None
