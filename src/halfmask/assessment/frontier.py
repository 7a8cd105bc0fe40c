"""``hm.frontier``: risk against utility over many settings.

The rows are grouped once; every setting is then searched on the same statistics, and its risk and
utility are read from the classes it would publish. Nothing is released.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.anonymize.problem import Problem
from halfmask.anonymize.run import RECODINGS
from halfmask.assessment.write import write
from halfmask.errors import ParameterError, PrivacyError
from halfmask.metrics.covering import covering_rows
from halfmask.metrics.registry import metric_named
from halfmask.metrics.risk.disclosure import disclosure
from halfmask.metrics.sides import sides
from halfmask.metrics.utility.classes import class_utility
from halfmask.metrics.utility.distributions import column_distance, hellinger
from halfmask.models.needs import prepare, statistics
from halfmask.release.document import plain, versions
from halfmask.table.hierarchies.check import check_hierarchies
from halfmask.table.table import require_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.anonymize.solution import Solution
    from halfmask.metrics.sides import Published
    from halfmask.models.verdict import Model
    from halfmask.table.classes import Classes
    from halfmask.table.table import Table

FORMAT = "halfmask.frontier/1"
SUPPRESSION = (0.0, 0.02, 0.05)


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


def frontier(
    table: Table,
    *models: Model | Sequence[Model],
    methods: Sequence[str] = ("optimal",),
    suppression: Sequence[float] = SUPPRESSION,
    metric: str = "loss",
    time_limit: float | None = None,
    releases: Mapping[str, Published | Table] | None = None,
) -> Frontier:
    """Try all combinations of settings and mark those that no other beats.

    Args:
        table: rows with quasi-identifiers and hierarchies.
        models: promises; a list means alternatives, and one of each list is combined.
        methods: ways of searching.
        suppression: shares of rows that may be left out.
        metric: what each search minimizes.
        time_limit: seconds for each search.
        releases: finished tables (perturbed, synthetic) to put beside them, by name.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [30, 30, 41, 41]}, schema={"age": "quasi"})
        >>> hm.frontier(people, [hm.KAnonymity(k) for k in (2, 3)], suppression=[0.0])
        Frontier(2 settings, 2 not dominated)
    """
    require_table(table)
    choices = [tuple(m) if isinstance(m, Sequence) else (m,) for m in models]
    if not choices and not releases:
        raise ParameterError("models", (), "at least one model, such as KAnonymity(5)")
    for method in methods:
        if method not in RECODINGS:
            raise ParameterError("methods", method, "one of " + ", ".join(RECODINGS))
    points, impossible = [], []
    if choices:
        everything = [model for choice in choices for model in choice]
        shared = _Shared(table, everything, metric)
        for method, share, chosen in product(methods, suppression, product(*choices)):
            name = _name(method, share, chosen)
            point = shared.point(name, method, share, chosen, time_limit)
            if point is None:
                impossible.append(name)
            else:
                points.append(point)
    points += [_given(table, name, release) for name, release in (releases or {}).items()]
    return Frontier(len(table), tuple(_marked(points)), tuple(impossible))


class _Shared:
    """What all settings have in common: the table's distinct tuples and groupings of them."""

    def __init__(self, table: Table, models: Sequence[Model], metric: str) -> None:
        self.table = prepare(table, models)
        check_hierarchies(self.table)
        sensitive = self.table.schema.sensitive
        self.tuples, _ = statistics(self.table, models)
        self.quasi = self.table.schema.quasi
        self.hierarchies = [self.table.hierarchy(name) for name in self.quasi]
        self.weights = [self.table.schema.columns[name].weight for name in self.quasi]
        self.metric = metric_named(metric)
        self.sensitive = [name for name in sensitive if name in self.tuples.histograms]
        self.groupings: Any = None
        self.rows = int(self.tuples.rows.sum())

    def point(
        self,
        name: str,
        method: str,
        share: float,
        models: Sequence[Model],
        time_limit: float | None,
    ) -> Point | None:
        """Search one setting; None where nothing satisfies it."""
        problem = Problem(
            self.tuples,
            self.hierarchies,
            models,
            self.metric,
            suppression=share,
            weights=self.weights,
        )
        if self.groupings is None:
            self.groupings = problem.groupings
        problem.groupings = self.groupings
        solve = importlib.import_module(RECODINGS[method]).solve
        try:
            solution: Solution = solve(problem, seed=0, time_limit=time_limit)
        except PrivacyError:
            return None
        if solution.steps is None or solution.closest is not None:
            return None
        return self.measure(name, method, share, models, solution)

    def measure(
        self,
        name: str,
        method: str,
        share: float,
        models: Sequence[Model],
        solution: Solution,
    ) -> Point:
        """Read risk and utility from the classes that a solution publishes."""
        classes = self.published(solution)
        kept = int(classes.rows.sum())
        people = int(classes.people.sum())
        chance = 1.0 / classes.people
        total = int(self.tuples.people.sum())
        gains = [disclosure(classes, column) for column in self.sensitive]
        excess = [
            (one.best_guess - one.prior_guess) / (1 - one.prior_guess)
            for one in gains
            if one.prior_guess < 1
        ]
        return Point(
            name,
            method,
            share,
            tuple(model.to_dict() for model in models),
            float(chance @ classes.people) / max(total, people),
            float(chance.max()),
            max(excess) if excess else None,
            float(solution.value),
            self.distance(solution),
            1 - kept / self.rows,
            len(classes),
        )

    def published(self, solution: Solution) -> Classes:
        """The classes of the published rows: the same labels at the same levels."""
        assert solution.steps is not None  # noqa: S101 - only asked of solutions
        parts = []
        for step, levels in enumerate(solution.steps):
            mine = self.tuples.select(solution.tuple_step == step)
            maps = [self.map_of(c, level) for c, level in enumerate(levels)]
            parts.append(mine.coarsen(range(len(maps)), maps))
        return parts[0] if len(parts) == 1 else _joined(parts)

    def map_of(self, column: int, level: int) -> NDArray[np.int32]:
        """The map of one level; one above the top is a suppressed cell."""
        maps = self.hierarchies[column].maps
        return maps[level] if level < len(maps) else np.zeros(maps.shape[1], dtype=np.int32)

    def distance(self, solution: Solution) -> float:
        """The mean Hellinger distance of the columns, labels spread evenly over their values."""
        assert solution.steps is not None  # noqa: S101
        layout = self.tuples.layout
        assert layout is not None  # noqa: S101
        out = []
        for c, hierarchy in enumerate(self.hierarchies):
            codes = layout.codes(self.tuples.keys, c)
            size = len(hierarchy.labels[0])
            p = np.bincount(codes, weights=self.tuples.rows, minlength=size)
            q = np.zeros(size)
            for step, levels in enumerate(solution.steps):
                level_map = self.map_of(c, levels[c])
                mine = solution.tuple_step == step
                labels = level_map[codes[mine]]
                count = int(level_map.max()) + 1
                mass = np.bincount(labels, weights=self.tuples.rows[mine], minlength=count)
                width = np.bincount(level_map, minlength=count)
                q += (mass / width)[level_map]
            out.append(hellinger(p / p.sum(), q / max(q.sum(), 1e-300)))
        return float(np.mean(out))


def _joined(parts: list[Classes]) -> Classes:
    """Classes of different steps side by side; steps never share labels."""
    from dataclasses import replace

    names = parts[0].histograms.keys()
    histograms = {}
    for name in names:
        held = [part.histograms[name] for part in parts]
        lengths = np.concatenate([np.diff(h.starts) for h in held])
        histograms[name] = replace(
            held[0],
            starts=np.concatenate(([0], np.cumsum(lengths))),
            values=np.concatenate([h.values for h in held]),
            counts=np.concatenate([h.counts for h in held]),
        )
    return replace(
        parts[0],
        keys=np.concatenate([part.keys for part in parts]),
        rows=np.concatenate([part.rows for part in parts]),
        people=np.concatenate([part.people for part in parts]),
        histograms=histograms,
        population=None,
        members=None,
    )


def _given(table: Table, name: str, release: Published | Table) -> Point:
    """A finished table as a point."""
    paired = sides(table, release)
    fits = covering_rows(paired.quasi)
    chance = np.where(fits > 0, 1.0 / np.maximum(fits, 1), 0.0)
    utility = class_utility(paired)
    distance = [column_distance(column, paired.after).hellinger for column in paired.quasi]
    return Point(
        name,
        "given",
        0.0,
        (),
        float(chance.mean()),
        float(chance.max()),
        None,
        utility.loss,
        float(np.mean(distance)),
        max(0.0, 1 - paired.after / paired.before),
        utility.classes_released,
    )


def _name(method: str, share: float, models: Sequence[Model]) -> str:
    said = []
    for model in models:
        facts = model.to_dict()
        numbers = [
            f"{key} = {value}"
            for key, value in facts.items()
            if key in ("k", "l", "t", "alpha", "beta", "delta", "limit", "lower", "upper")
        ]
        said.append(f"{facts['model']} ({', '.join(numbers)})" if numbers else str(facts["model"]))
    return f"{', '.join(said)}; {method}, up to {share:.0%} suppressed"


def _marked(points: list[Point]) -> list[Point]:
    """Mark the points that no other beats; loss decides, or distance where a loss is not known."""
    from dataclasses import replace

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
