"""Which points of a frontier no other dominates, and which give the same.

Definition: a point dominates another if it is no worse in both risk and utility and better in one.
Points that were drawn at random stand, on either side, at the upper ends of their intervals, so
that a lucky draw neither marks one nor rules another out. Points with the same figures are one
result, for which the one with the strongest promises stands.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from halfmask.assessment.figures import Figures
from halfmask.assessment.settings import strength
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.assessment.points import Point

RISKS = {"mean": "risk", "highest": "highest_risk", "inference": "inference"}
UTILITIES = ("loss", "distance")
_DIGITS = 12  # figures that agree so far are equal


def require_axes(risk: str, utility: str | None) -> None:
    """Refuse figures that points cannot be compared by."""
    if risk not in RISKS:
        raise ParameterError("risk", risk, "one of " + ", ".join(RISKS))
    if utility is not None and utility not in UTILITIES:
        raise ParameterError("utility", utility, "loss, distance or None")


def utility_of(points: Sequence[Point]) -> str:
    """Loss, or distance where the loss of a point is not known."""
    return "loss" if all(point.loss is not None for point in points) else "distance"


def marked(points: Sequence[Point], risk: str, utility: str) -> list[Point]:
    """Mark the points that are not dominated and those that give the same, safest first.

    Points that lack one of the figures are not compared and come last.
    """
    places = {id(point): _place(point, risk, utility) for point in points}
    known = [place for place in places.values() if place is not None]
    first = _first_of_each(points)
    out = []
    for point in points:
        place, leader = places[id(point)], first[_result(point)]
        beaten = place is None or any(
            other != place and other[0] <= place[0] and other[1] <= place[1] for other in known
        )
        same = None if leader is point else leader.name
        order = (*_shown(point, risk, utility), leader.name, same or "", point.name)
        out.append((order, replace(point, best=not beaten, same_as=same)))
    return [point for _, point in sorted(out, key=lambda pair: pair[0])]


def _place(point: Point, risk: str, utility: str) -> tuple[float, float] | None:
    chance, cost = _upper(point, RISKS[risk]), _upper(point, utility)
    if chance is None or cost is None:
        return None
    return round(chance, _DIGITS), round(cost, _DIGITS)


def _shown(point: Point, risk: str, utility: str) -> tuple[float, float]:
    """The figures by which points are listed; those that lack one come last."""
    chance, cost = getattr(point, RISKS[risk]), getattr(point, utility)
    if chance is None or cost is None:
        return 2.0, 2.0
    return round(chance, _DIGITS), round(cost, _DIGITS)


def _upper(point: Point, field: str) -> float | None:
    """A figure, or the upper end of its interval where it was drawn."""
    if point.intervals is not None and field in point.intervals:
        return point.intervals[field][1]
    value: float | None = getattr(point, field)
    return value


def _first_of_each(points: Sequence[Point]) -> dict[Any, Point]:
    """The point that stands for each result: the strongest promises, the least left out."""
    out: dict[Any, Point] = {}
    for point in sorted(points, key=lambda one: (one.suppression, one.name)):
        held = out.get(_result(point))
        if held is None or strength(point.models) > strength(held.models):
            out[_result(point)] = point
    return out


def _result(point: Point) -> Any:
    """What points must share to be one result; tables that were drawn are their own."""
    if point.draws is not None:
        return point.name
    figures = (getattr(point, name) for name in Figures.__slots__)
    return tuple(None if one is None else round(one, _DIGITS) for one in figures)
