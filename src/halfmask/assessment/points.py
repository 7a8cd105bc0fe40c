"""The points of a frontier: settings with their risk and utility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halfmask.assessment.write import write
from halfmask.release.document import plain, versions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    import pandas as pd
    import pyarrow as pa

    from halfmask.assessment.figures import Figures
    from halfmask.assessment.settings import Setting

FORMAT = "halfmask.frontier/1"
_NESTED = ("models", "intervals")


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
        best: whether it is not dominated: no other point has less of one of risk and utility lost
            and as little of the other.
        same_as: the name of the point that stands for all with the same figures; None for that one.
        draws: how many private tables were drawn, of whose figures these are the means; None for
            others.
        intervals: by figure, where its mean lies with 95 % confidence; None without draws.
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
    same_as: str | None = None
    draws: int | None = None
    intervals: Mapping[str, tuple[float, float]] | None = None

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
        return (
            f"Frontier({len(self.points)} settings, {len(self.different)} different results, "
            f"{len(self.best)} not dominated)"
        )

    @property
    def different(self) -> tuple[Point, ...]:
        """One point for each result: settings with the same figures are one."""
        return tuple(point for point in self.points if point.same_as is None)

    @property
    def best(self) -> tuple[Point, ...]:
        """The different points that are not dominated in risk and utility."""
        return tuple(point for point in self.different if point.best)

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
        kinds = dict.fromkeys(("name", "method", "same_as"), pa.string())
        kinds |= {"classes": pa.int64(), "draws": pa.int64(), "best": pa.bool_()}
        names = [name for name in Point.__slots__ if name not in _NESTED]
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
