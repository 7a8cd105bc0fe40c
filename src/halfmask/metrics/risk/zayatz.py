"""Population uniqueness by the sample's own class sizes (Zayatz).

Definition: P(alone in the population | alone here) = f_1 h_1 / sum f_r h_r, where f_r classes of
the sample hold r people and h_r = r C(N - r, n - 1) / C(N, n) is the chance to draw one of r.
Source: Zayatz, "Estimation of the percent of unique population elements on a microdata file", 1991.

It takes the population's class sizes to be spread as the sample's, which are smaller: the figure is
too high in small samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.estimate import Estimate, failed

if TYPE_CHECKING:
    from numpy.typing import NDArray


def zayatz(frequencies: NDArray[np.int64], fraction: float) -> Estimate:
    """The share of the population who are unique; ``frequencies[r]`` classes hold r people."""
    from scipy.special import gammaln

    sizes = np.flatnonzero(frequencies)
    n = float(sizes @ frequencies[sizes])
    size = n / fraction
    fits = sizes <= size - n + 1
    if not fits.any() or sizes[0] != 1:
        return failed("No class of the table can come from a unique person.", int(n))
    logs = np.full(len(sizes), -np.inf)
    r = sizes[fits].astype(np.float64)
    logs[fits] = np.log(r) + gammaln(size - r + 1) - gammaln(size - r - n + 2)
    weights = frequencies[sizes] * np.exp(logs - logs.max())
    chance = float(weights[0] / weights.sum())
    return Estimate(float(frequencies[1]) * chance / n, None, None, int(n))
