"""Private tables as points of a frontier: drawn several times, measured and forgotten.

One draw may be lucky. The figures of such a point are the means over its draws, with their
intervals. All of them are read from the original.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halfmask.assessment.finished import finished_figures
from halfmask.assessment.points import Point
from halfmask.metrics.estimate import mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.assessment.figures import Figures
    from halfmask.metrics.estimate import Estimate
    from halfmask.table.table import Table

_DRAWN = ("risk", "highest_risk", "inference", "distance")


def private_point(table: Table, epsilon: float, method: str, domains: Any, draws: int) -> Point:
    """The means over ``draws`` private tables, each with the whole of ``epsilon``."""
    from halfmask.synthesize.run import synthesize

    used, seen = method, []
    for _ in range(draws):
        made: Any = synthesize(table, method, epsilon=epsilon, domains=domains)
        used = made.method
        seen.append(finished_figures(table, made, made_up=True))
    means = {name: _mean(seen, name) for name in _DRAWN}
    return Point(
        name=f"epsilon = {epsilon:g}; {used}",
        method=used,
        suppression=0.0,
        models=(),
        risk=_value(means["risk"]),
        highest_risk=_value(means["highest_risk"]),
        inference=means["inference"].value,
        loss=None,
        distance=_value(means["distance"]),
        suppressed=0.0,
        classes=round(sum(one.classes for one in seen) / draws),
        epsilon=float(epsilon),
        draws=draws,
        intervals={name: _interval(name, one) for name, one in means.items() if one.n > 1},
    )


def _mean(seen: Sequence[Figures], name: str) -> Estimate:
    values = [getattr(one, name) for one in seen]
    return mean([value for value in values if value is not None])


def _value(one: Estimate) -> float:
    assert one.value is not None  # noqa: S101 - every draw has this figure
    return one.value


def _interval(name: str, one: Estimate) -> tuple[float, float]:
    """The interval of a figure up to 1; a guess may be worse than none, others are not below 0."""
    assert one.low is not None  # noqa: S101 - only such are asked for
    assert one.high is not None  # noqa: S101
    return one.low if name == "inference" else max(0.0, one.low), min(1.0, one.high)
