"""Tools of the statistical tests: a repeatable source, a goodness of fit and an audit."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.sampling import Sampler

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


def repeatable(seed: int) -> Sampler:
    """A sampler for tests only: the same draws in every run."""
    return Sampler(np.random.Generator(np.random.PCG64(seed)).bytes)


def laplace_pmf(scale: float, reach: int) -> dict[int, float]:
    """P(x) = (1 - a) / (1 + a) a**|x|."""
    a = exp(-1 / scale)
    return {x: (1 - a) / (1 + a) * a ** abs(x) for x in range(-reach, reach + 1)}


def gaussian_pmf(variance: float, reach: int) -> dict[int, float]:
    """P(x) proportional to exp(-x**2 / (2 v))."""
    weights = {x: exp(-x * x / (2 * variance)) for x in range(-reach, reach + 1)}
    total = sum(weights.values())
    return {x: w / total for x, w in weights.items()}


def misfit(draws: NDArray[np.int64], pmf: dict[int, float]) -> float:
    """The chi-square statistic in standard deviations above its mean; 6 is beyond chance."""
    cells = [x for x, p in pmf.items() if p * len(draws) >= 10]
    expected = np.array([pmf[x] for x in cells]) * len(draws)
    seen = np.array([(draws == x).sum() for x in cells], dtype=float)
    rest = len(draws) - expected.sum()
    statistic = ((seen - expected) ** 2 / expected).sum()
    if rest > 10:
        statistic += (len(draws) - seen.sum() - rest) ** 2 / rest
    free = len(cells) - (rest <= 10)
    return float((statistic - free) / sqrt(2 * max(free, 1)))


def least_epsilon(
    run: Callable[[bool, int], NDArray[np.float64]], times: int, delta: float = 0.0
) -> float:
    """A lower bound of epsilon that two neighboring tables prove, wrong once in some 10**5 times.

    ``run(with_person, times)`` gives one number per run. The event (at or above a threshold, or
    below it) is chosen on one half of the runs and judged on the other half.
    """
    with_person, without = run(True, times), run(False, times)
    half = times // 2
    cuts = np.unique(np.quantile(np.r_[with_person[:half], without[:half]], np.linspace(0, 1, 80)))
    events = [(up, cut, first) for cut in cuts for up in (True, False) for first in (True, False)]

    def bound(event: tuple[bool, float, bool], a: NDArray, b: NDArray) -> float:
        up, cut, first = event
        inside = (a >= cut, b >= cut) if up else (a < cut, b < cut)
        p, q = (x.mean() for x in (inside if first else inside[::-1]))
        n, z = len(a), 4.4
        low = (p + z * z / 2 / n - z * sqrt(p * (1 - p) / n + z * z / 4 / n / n)) / (1 + z * z / n)
        high = (q + z * z / 2 / n + z * sqrt(q * (1 - q) / n + z * z / 4 / n / n)) / (1 + z * z / n)
        return log(max(low - delta, 1e-12) / high)

    best = max(events, key=lambda event: bound(event, with_person[:half], without[:half]))
    return bound(best, with_person[half:], without[half:])


def fraction(value: float) -> Fraction:
    return Fraction(str(value))
