"""The points of a frontier: settings with their risk and utility, and which no other dominates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from halfmask.assessment.frontier_settings import strength
from halfmask.assessment.measure import Document
from halfmask.errors import ParameterError
from halfmask.metrics.common_ground import leaf_bins
from halfmask.metrics.utility.distributions import hellinger
from halfmask.release.labels import Ranges, Sets
from halfmask.release.partition import RowPartition, column_loss, table_loss
from halfmask.report.frontier import RISKS
from halfmask.table.classes import classes_by_id
from halfmask.table.document import Result, document_field
from halfmask.table.tuples import Tuples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.assessment.frontier_settings import Setting
    from halfmask.release.demands import DemandsStatement
    from halfmask.release.release import Release
    from halfmask.table.classes import Classes, Histogram
    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table

    LevelClasses = tuple[Sequence[int], Classes]


@dataclass(frozen=True, slots=True)
class PointFigures:
    """What a point shows; see ``Point``."""

    risk: float
    highest_risk: float
    inference: float | None
    loss: float | None
    distance: float
    suppressed: float
    classes: int


class FigureReader:
    """Measures what is published of one table, by levels or by classes of rows.

    Definition: the mean risk is the mean, over all rows of the table, of 1 / people in the class
    (rows left out: 0); the highest is 1 / people in the smallest class. Inference is (guess -
    prior) / (1 - prior), where guess is how often the likeliest value of a class is right and prior
    how often that of all published rows is; the largest over sensitive columns. Loss is that of a
    release. Distance is the mean Hellinger distance of the quasi-identifiers' distributions, as in
    comparisons.
    """

    def __init__(self, table: Table, tuples: Classes) -> None:
        self.table = table
        self.quasi = table.schema.quasi
        self.weights = {name: table.schema.columns[name].weight for name in self.quasi}
        self.sensitive = [name for name in table.schema.sensitive if name in tuples.histograms]
        self.rows = int(tuples.rows.sum())
        layout = tuples.layout
        assert layout is not None  # noqa: S101 - tuples are made with one
        self.layout = layout
        self._held = [
            np.bincount(
                layout.codes(tuples.keys, c),
                weights=tuples.rows,
                minlength=len(table.encode(name).values),
            ).astype(np.int64)
            for c, name in enumerate(self.quasi)
        ]
        self._bins = [
            leaf_bins(table, name, held) for name, held in zip(self.quasi, self._held, strict=True)
        ]

    def of_levels(self, parts: Sequence[LevelClasses]) -> PointFigures:
        """The figures of classes at the levels of a recoding; one part per step."""
        losses = {name: self._column_loss(parts, c) for c, name in enumerate(self.quasi)}
        spread = [self._spread(parts, c) for c in range(len(self.quasi))]
        return self._figures([classes for _, classes in parts], losses, spread)

    def of_classes(self, partition: RowPartition, step: NDArray[np.int32]) -> PointFigures:
        """The figures of a division of rows; classes with the same labels are one."""
        kept = np.flatnonzero(step >= 0)
        ids = np.unique(partition.same(self.table)[step[kept]], return_inverse=True)[1]
        columns = {name: name for name in self.sensitive}
        classes = classes_by_id(Tuples.of(self.table), kept, ids.reshape(-1), columns=columns)
        losses = {name: column_loss(partition, self.table, step, name) for name in self.quasi}
        mass = np.bincount(step[kept], minlength=len(partition)).astype(np.float64)
        spread = [_spread_labels(partition, self.table, name, mass) for name in self.quasi]
        return self._figures([classes], losses, spread)

    def _figures(
        self,
        parts: Sequence[Classes],
        losses: dict[str, Fraction],
        spread: Sequence[NDArray[np.float64]],
    ) -> PointFigures:
        found = sum(float((part.rows / part.people).sum()) for part in parts)
        smallest = min(int(part.people.min()) for part in parts)
        kept = sum(int(part.rows.sum()) for part in parts)
        gains = [self._gain([part.histograms[n] for part in parts], kept) for n in self.sensitive]
        known = [gain for gain in gains if gain is not None]
        return PointFigures(
            risk=found / self.rows,
            highest_risk=1 / smallest,
            inference=max(known) if known else None,
            loss=table_loss(losses, self.weights),
            distance=self._distance(spread),
            suppressed=(self.rows - kept) / self.rows,
            classes=sum(len(part) for part in parts),
        )

    def _gain(self, held: Sequence[Histogram], rows: int) -> float | None:
        """How much better than guessing a value of one column can be told; None: all are equal."""
        prior = int(np.sum([h.totals() for h in held], axis=0).max())
        right = sum(int(np.maximum.reduceat(h.counts, h.starts[:-1]).sum()) for h in held)
        return None if prior == rows else (right - prior) / (rows - prior)

    def _column_loss(self, parts: Sequence[LevelClasses], c: int) -> Fraction:
        hierarchy = self.table.hierarchy(self.quasi[c])
        if hierarchy.size <= 1:
            return Fraction(0)
        kept = covered = 0
        for levels, classes in parts:
            rows = int(classes.rows.sum())
            kept += rows
            if levels[c] > hierarchy.height:
                covered += rows * hierarchy.size
            else:
                leaves = hierarchy.leaves[levels[c]][self.layout.codes(classes.keys, c)]
                covered += int(leaves @ classes.rows)
        covered += (self.rows - kept) * hierarchy.size
        return Fraction(covered - self.rows, self.rows * (hierarchy.size - 1))

    def _spread(self, parts: Sequence[LevelClasses], c: int) -> NDArray[np.float64]:
        """The published rows over the values of a column, each label's evenly."""
        hierarchy = self.table.hierarchy(self.quasi[c])
        out = np.zeros(hierarchy.maps.shape[1])
        for levels, classes in parts:
            codes = self.layout.codes(classes.keys, c)
            out += _spread_evenly(labels_of_level(hierarchy, levels[c]), codes, classes.rows)
        return out

    def _distance(self, spread: Sequence[NDArray[np.float64]]) -> float:
        out = []
        for held, mass, (bin_of, bins) in zip(self._held, spread, self._bins, strict=True):
            p = np.bincount(bin_of, weights=held, minlength=bins)
            q = np.bincount(bin_of, weights=mass, minlength=bins)
            out.append(hellinger(p / p.sum(), q / max(q.sum(), 1e-300)))
        return float(np.mean(out))


def labels_of_level(hierarchy: Hierarchy, level: int) -> NDArray[np.int32]:
    """The map of one level; one above the top is a suppressed cell."""
    maps = hierarchy.maps
    return maps[level] if level < len(maps) else np.zeros(maps.shape[1], dtype=np.int32)


def _spread_evenly(
    label_of: NDArray[np.int32], labels: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Rows with labels as rows with values: each value gets its part of its label's rows."""
    count = int(label_of.max()) + 1
    mass = np.bincount(labels, weights=rows, minlength=count)
    return np.asarray((mass / np.bincount(label_of, minlength=count))[label_of])


def _spread_labels(
    partition: RowPartition, table: Table, name: str, mass: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The rows of each class over the values that its label covers."""
    labels, hierarchy = partition.labels[name], table.hierarchy(name)
    size = hierarchy.maps.shape[1]
    if isinstance(labels, Ranges):
        low, high = labels.covered(table, name)
        each = mass / (high - low + 1)
        change = np.bincount(low, weights=each, minlength=size + 1)
        change -= np.bincount(high + 1, weights=each, minlength=size + 1)
        return np.maximum(np.cumsum(change)[:-1], 0.0)
    if isinstance(labels, Sets):
        out = np.zeros(size)
        for rows, held in zip(
            np.bincount(labels.number, mass, len(labels.members)), labels.members, strict=True
        ):
            out[held] += rows / len(held)
        return out
    out = np.zeros(size)
    for level in np.unique(labels.level).tolist():
        at = labels.level == level
        label_of = labels_of_level(hierarchy, level)
        out += _spread_evenly(label_of, label_of[labels.value[at]].astype(np.int64), mass[at])
    return out


_NESTED = ("models", "intervals", "_setting", "_seed")


@dataclass(frozen=True, slots=True)
class Point(Result):
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
    _setting: Setting | None = field(default=None, repr=False, compare=False)
    _seed: int = field(default=0, repr=False, compare=False)

    def release(self, table: Table, **settings: Any) -> Release:
        """Release ``table`` as this point was found.

        Args:
            table: the rows.
            settings: more of ``anonymize``, such as ``time_limit`` or ``demands``.
        """
        from halfmask.anonymize.run import anonymize

        if self._setting is None:
            raise ParameterError("point", self.name, "one with promises: this is a finished table")
        found = self._setting
        shares: dict[str, Any] = {"suppression": found.suppression} if found.suppresses else {}
        return anonymize(
            table, *found.models, method=found.method, seed=self._seed, **shares, **settings
        )

    @property
    def whole(self) -> bool:
        """Whether its method leaves nobody out."""
        return self._setting is not None and not self._setting.suppresses

    @classmethod
    def of(
        cls, setting: Setting, figures: PointFigures, gap: float | None = None, seed: int = 0
    ) -> Point:
        """The point of a setting."""
        return cls(
            _setting=setting,
            _seed=seed,
            name=setting.name,
            method=setting.method,
            suppression=setting.suppression,
            models=tuple(model.to_dict() for model in setting.models),
            gap=gap,
            **{name: getattr(figures, name) for name in figures.__slots__},
        )


@dataclass(frozen=True, slots=True, repr=False)
class Frontier(Document):
    """All points, those with the least risk first.

    Attributes:
        rows: how many rows the table has.
        points: the settings that keep their promises.
        impossible: the names of settings that nothing satisfies.
        undecided: the names of settings for which time was up before anything was found.
        risk: the risk by which points are compared: mean, highest or inference.
        utility: the figure by which utility is compared: loss or distance.
        notes: what a reader should know.
        demands: whether people's own demands were kept or set aside; None where nobody states any.
    """

    format: ClassVar[str] = "halfmask.frontier/1"

    rows: int
    points: tuple[Point, ...]
    impossible: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    risk: str = "mean"
    utility: str = "loss"
    notes: tuple[str, ...] = ()
    demands: DemandsStatement | None = field(default=None, metadata=document_field(hidden=True))

    def __repr__(self) -> str:
        aside = "" if self.demands is None or self.demands.kept else "DEMANDS SET ASIDE; "
        return (
            f"Frontier({aside}{len(self.points)} settings, {len(self.different)} different "
            f"results, {len(self.best)} not dominated)"
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
        """Return plain values; that demands were set aside comes first."""
        document = super(Frontier, self).to_dict()
        if self.demands is None:
            return document
        own = {"demands": self.demands.to_dict()}
        return {**document, **own} if self.demands.kept else {**own, **document}

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


_DIGITS = 12  # figures that agree so far are equal


def keep_least_lost(points: Sequence[Point]) -> list[Point]:
    """Of the points that stand for ``"auto"``, one for each promise and share: what loses least.

    A division, which leaves nobody out, stands for every share that may be left out.
    """
    groups: dict[Any, list[Point]] = {}
    out = []
    for point in points:
        if point._setting is None or not point._setting.auto:  # noqa: SLF001 - it is one of us
            out.append(point)
        else:
            groups.setdefault(repr(point.models), []).append(point)
    for group in groups.values():
        for share in sorted({point.suppression for point in group}):
            allowed = [one for one in group if one.suppression == share or one.whole]
            best = min(allowed, key=lambda one: inf if one.loss is None else one.loss)
            if best not in out:
                out.append(best)
    return out


def utility_of(points: Sequence[Point]) -> str:
    """Loss, or distance where the loss of a point is not known."""
    return "loss" if all(point.loss is not None for point in points) else "distance"


def mark_best(points: Sequence[Point], risk: str, utility: str) -> list[Point]:
    """Mark the points that are not dominated and those that give the same, safest first.

    Definition: a point dominates another if it is no worse in both risk and utility and better in
    one. Points that were drawn at random stand, on either side, at the upper ends of their
    intervals, so that a lucky draw neither marks one nor rules another out. Points with the same
    figures are one result, for which the one with the strongest promises stands.

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
        order = (*_compared_figures(point, risk, utility), leader.name, same or "", point.name)
        out.append((order, replace(point, best=not beaten, same_as=same)))
    return [point for _, point in sorted(out, key=lambda pair: pair[0])]


def _place(point: Point, risk: str, utility: str) -> tuple[float, float] | None:
    chance, cost = _upper(point, RISKS[risk].name), _upper(point, utility)
    if chance is None or cost is None:
        return None
    return round(chance, _DIGITS), round(cost, _DIGITS)


def _compared_figures(point: Point, risk: str, utility: str) -> tuple[float, float]:
    """The figures by which points are listed; those that lack one come last."""
    chance, cost = getattr(point, RISKS[risk].name), getattr(point, utility)
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
    figures = (getattr(point, name) for name in PointFigures.__slots__)
    return tuple(None if one is None else round(one, _DIGITS) for one in figures)
