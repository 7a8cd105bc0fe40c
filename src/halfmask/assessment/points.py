"""The points of a frontier: settings with their risk and utility."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from halfmask.assessment.write import write
from halfmask.errors import ParameterError
from halfmask.release.document import plain, versions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    import pandas as pd
    import pyarrow as pa

    from halfmask.assessment.figures import Figures
    from halfmask.assessment.settings import Setting

FORMAT = "halfmask.frontier/1"
RISKS = {"mean": "risk", "highest": "highest_risk", "inference": "inference"}
UTILITIES = ("loss", "distance")
_DIGITS = 12  # figures that agree so far are equal


@dataclass(frozen=True, slots=True)
class Point:
    """One setting and what it gives. All figures but ``classes`` and ``epsilon`` are 0 to 1.

    Attributes:
        name: the setting in words.
        method: how it is found; ``suppression`` the share of rows that may be left out.
        models: the promises, as plain values.
        risk: the mean chance that the person of a row is found (rows left out: 0).
        highest_risk: the highest chance.
        inference: the largest excess of a guess about a sensitive column over guessing; None
            without such columns.
        loss: the share of detail that is lost, 0 to 1; None where rows stand for nobody.
        distance: the mean Hellinger distance of the quasi-identifiers' distributions.
        suppressed: the share of rows left out.
        classes: how many classes there are.
        epsilon: the privacy budget of a private table; None for others.
        gap: how far the optimum can be below what the search minimized; 0: proven; None where the
            method proves nothing.
        best: whether no other point has less of one of risk and utility lost and as little of the
            other.
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
    gap: float | None = None
    best: bool = False

    @classmethod
    def of(cls, setting: Setting, figures: Figures, gap: float | None = None) -> Point:
        """The point of a setting."""
        return cls(
            name=setting.name,
            method=setting.method,
            suppression=setting.suppression,
            models=tuple(model.to_dict() for model in setting.models),
            gap=gap,
            **{name: getattr(figures, name) for name in figures.__slots__},
        )

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
        undecided: the names of settings for which time was up before anything was found.
        risk: the risk by which points are compared: mean, highest or inference.
        utility: the figure by which utility is compared: loss or distance.
        notes: what a reader should know.
    """

    rows: int
    points: tuple[Point, ...]
    impossible: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    risk: str = "mean"
    utility: str = "loss"
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Frontier({len(self.points)} settings, {len(self.best)} not dominated)"

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
                "risk": self.risk,
                "utility": self.utility,
                "points": [point.to_dict() for point in self.points],
                "impossible": list(self.impossible),
                "undecided": list(self.undecided),
                "notes": list(self.notes),
                "versions": versions(),
            }
        )
        return document

    def to_arrow(self) -> pa.Table:
        """The points as a table, one row each; shares are 0 to 1."""
        import pyarrow as pa

        rows = [point.to_dict() for point in self.points]
        kinds = {"classes": pa.int64(), "best": pa.bool_(), "name": pa.string()}
        kinds |= {"method": pa.string()}
        names = [name for name in Point.__slots__ if name != "models"]
        return pa.table(
            {
                name: pa.array([row[name] for row in rows], kinds.get(name, pa.float64()))
                for name in names
            }
        )

    def to_pandas(self) -> pd.DataFrame:
        """The points as a pandas frame."""
        return self.to_arrow().to_pandas()

    def report(self, path: str | PathLike[str]) -> None:
        """Write the points as ``.json`` or as a page with an interactive plot."""
        write(self.to_dict(), path)


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
    """Mark the points that no other beats, safest first.

    A point beats another if it is no worse in both figures and better in one. Points that lack one
    of them are not compared.
    """
    placed = [(point, _place(point, risk, utility)) for point in points]
    known = [place for _, place in placed if place is not None]
    out = []
    for point, place in placed:
        beaten = place is None or any(
            other != place and other[0] <= place[0] and other[1] <= place[1] for other in known
        )
        out.append((place or (2.0, 2.0), replace(point, best=not beaten)))
    return [point for _, point in sorted(out, key=lambda pair: (*pair[0], pair[1].name))]


def _place(point: Point, risk: str, utility: str) -> tuple[float, float] | None:
    chance, cost = getattr(point, RISKS[risk]), getattr(point, utility)
    return (
        None if chance is None or cost is None else (round(chance, _DIGITS), round(cost, _DIGITS))
    )
