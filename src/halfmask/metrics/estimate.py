"""A measured figure with its interval, and whether it may be relied on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from halfmask.table.document import Result

NORMAL_95 = 1.959963984540054  # the 97.5 % point of the normal distribution


@dataclass(frozen=True, slots=True)
class Estimate(Result):
    """A figure, where it lies with 95 % confidence, and what it rests on.

    Attributes:
        value: the figure; None where it could not be found.
        low: the lower end of the interval; the value itself where all rows were looked at.
        high: the upper end.
        n: how many rows, attacks or queries it rests on.
        trusted: whether it may be relied on.
        reason: why not, or what a reader should know, in one sentence.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    trusted: bool = True
    reason: str = ""


def exact_estimate(value: float, n: int, reason: str = "") -> Estimate:
    """A figure that was counted on all rows."""
    return Estimate(float(value), float(value), float(value), n, reason=reason)


def failed_estimate(reason: str, n: int = 0) -> Estimate:
    """A figure that could not be found; never a zero."""
    return Estimate(None, None, None, n, trusted=False, reason=reason)


def proportion(hits: float, n: int, reason: str = "") -> Estimate:
    """The share ``hits / n`` with Wilson's interval.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    if n == 0:
        return failed_estimate(reason or "There was nothing to try it on.")
    low, high = wilson(hits, n)
    return Estimate(hits / n, low, high, n, reason=reason)


def mean_estimate(values: Any, reason: str = "") -> Estimate:
    """The mean of independent figures with Student's interval, which fits few of them too."""
    from scipy.special import stdtrit

    n = len(values)
    if n == 0:
        return failed_estimate(reason or "There was nothing to average.")
    middle = math.fsum(values) / n
    if n == 1:
        return Estimate(middle, None, None, 1, trusted=False, reason="It rests on one figure.")
    spread = math.sqrt(math.fsum((v - middle) ** 2 for v in values) / (n - 1) / n)
    half = float(stdtrit(n - 1, 0.975)) * spread
    return Estimate(middle, middle - half, middle + half, n, reason=reason)


def wilson(hits: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    share, square = hits / n, NORMAL_95 * NORMAL_95
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = NORMAL_95 / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    high = 1.0 if hits == n else min(1.0, middle + half)
    return low, high


def excess(attack: Estimate, control: Estimate) -> Estimate:
    """How much of what the control leaves open the attack takes: (a - c) / (1 - c).

    The interval combines those of both by the method of square-and-add, clamped to [0, 1] below.
    Source: Giomi et al., "A unified framework for quantifying privacy risk in synthetic data",
    2023.
    """
    if attack.value is None or control.value is None or control.value >= 1.0:
        return failed_estimate(
            "Guessing is right every time even without it: nothing is left to take.", attack.n
        )
    assert attack.low is not None and attack.high is not None  # noqa: S101, PT018
    assert control.low is not None and control.high is not None  # noqa: S101, PT018
    gain = attack.value - control.value
    low = gain - math.hypot(attack.value - attack.low, control.high - control.value)
    high = gain + math.hypot(attack.high - attack.value, control.value - control.low)
    left = 1 - control.value
    value, low, high = (min(1.0, max(0.0, v / left)) for v in (gain, low, high))
    return Estimate(value, low, high, attack.n)
