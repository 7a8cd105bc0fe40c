"""The points of a frontier: settings with their risk and utility."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from halfmask.assessment.write import write
from halfmask.release.document import plain, versions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

FORMAT = "halfmask.frontier/1"


@dataclass(frozen=True, slots=True)
class Point:
    """One setting and what it gives.

    Attributes:
        name: the setting in words.
        method: how it is found; ``suppression`` the share of rows that may be left out.
        models: the promises, as plain values.
        risk: the mean chance that a person of the table is found (people left out: 0).
        highest_risk: the highest chance.
        inference: the largest excess of a guess about a sensitive column over guessing; None
            without such columns.
        loss: the share of detail that is lost, 0 to 1; None where no hierarchy tells.
        distance: the mean Hellinger distance of the quasi-identifiers' distributions.
        suppressed: the share of rows left out.
        classes: how many classes there are.
        epsilon: the privacy budget of a private table; None for others.
        best: whether no other point has both less risk and less loss.
    """

    name: str
    method: str
    suppression: float
    models: tuple[Mapping[str, Any], ...]
    risk: float
    highest_risk: float
    inference: float | None
    loss: float | None
    distance: float
    suppressed: float
    classes: int
    epsilon: float | None = None
    best: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        out = {name: getattr(self, name) for name in self.__slots__}
        return out | {"models": [dict(model) for model in self.models]}


@dataclass(frozen=True, slots=True, repr=False)
class Frontier:
    """All points, those with the least risk first.

    Attributes:
        rows: how many rows the table has.
        points: the settings that keep their promises.
        impossible: the names of settings that nothing satisfies.
    """

    rows: int
    points: tuple[Point, ...]
    impossible: tuple[str, ...]

    def __repr__(self) -> str:
        best = sum(point.best for point in self.points)
        return f"Frontier({len(self.points)} settings, {best} not dominated)"

    @property
    def best(self) -> tuple[Point, ...]:
        """The points that no other beats in both risk and utility."""
        return tuple(point for point in self.points if point.best)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        document: dict[str, Any] = plain(
            {
                "format": FORMAT,
                "rows": self.rows,
                "points": [point.to_dict() for point in self.points],
                "impossible": list(self.impossible),
                "versions": versions(),
            }
        )
        return document

    def report(self, path: str | PathLike[str]) -> None:
        """Write the points as ``.json`` or as a page with an interactive plot."""
        write(self.to_dict(), path)


def marked(points: list[Point]) -> list[Point]:
    """Mark the points that no other beats; loss decides, or distance where a loss is not known."""
    whole = all(point.loss is not None for point in points)
    costs = [point.loss if whole else point.distance for point in points]
    out = []
    for i, point in enumerate(points):
        beaten = any(
            other.risk <= point.risk
            and costs[j] <= costs[i]  # type: ignore[operator]
            and (other.risk < point.risk or costs[j] < costs[i])  # type: ignore[operator]
            for j, other in enumerate(points)
        )
        out.append(replace(point, best=not beaten))
    return sorted(out, key=lambda point: (point.risk, point.loss or point.distance, point.name))
