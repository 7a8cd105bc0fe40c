"""What one combination of levels gives.

What every method gives back: level combinations, and which one each distinct tuple takes.

The refusal when nothing satisfies the models: what came closest, and what to relax.

One anonymization task: a table's statistics, the models, a metric and a limit.

``Problem.evaluate`` tells what one combination of levels would cost. Classes that fail a model are
suppressed; where a model compares a class with the whole table, this is repeated on the rows that
remain until all remaining classes pass on their own, so that a release can be verified alone.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from halfmask.anonymize.groupings import Groupings
from halfmask.errors import SchemaError, UnsatisfiableError
from halfmask.metrics.cost import CellMetric, ClassFigures
from halfmask.models.k_anonymity import KAnonymity
from halfmask.release.demands import SET_ASIDE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.cost import ClassMetric, Metric
    from halfmask.models.verdict import Model
    from halfmask.table.classes import Classes
    from halfmask.table.hierarchy import Hierarchy


TOLERANCE = 1e-12  # values closer than this are ties


class NodeBounds(NamedTuple):
    """What one combination of levels tells of others: see ``NodeOutcome``."""

    levels: tuple[int, ...]
    hopeless: bool
    penalty: NDArray[np.float64] | None
    finer: float
    coarser: float


@dataclass(frozen=True, slots=True, eq=False)
class NodeOutcome:
    """What one combination of levels gives.

    Attributes:
        levels: the level of each column.
        value: the metric, suppressed rows included; infinite where it is not feasible.
        suppressed: how many rows would not leave.
        feasible: whether the models hold within the suppression limit.
        hopeless: whether no finer combination can be feasible either.
        penalty: per column, what every finer combination pays for rows it must suppress too.
        finer: what every finer combination costs at least, with a metric of whole classes.
        coarser: what every coarser combination costs at least, with such a metric.
        kept: per class, whether it leaves.
        classes: the classes, in the order of ``kept``.
    """

    levels: tuple[int, ...]
    value: float
    suppressed: int
    feasible: bool
    hopeless: bool
    penalty: NDArray[np.float64] | None
    kept: NDArray[np.bool_]
    classes: Classes
    finer: float = 0.0
    coarser: float = 0.0

    @property
    def bounds(self) -> NodeBounds:
        """What it tells of other combinations."""
        return NodeBounds(self.levels, self.hopeless, self.penalty, self.finer, self.coarser)

    @property
    def rank(self) -> tuple[float, int, int, tuple[int, ...]]:
        """The order of preference: value, fewer suppressed rows, lower levels, column order."""
        return (round(self.value / TOLERANCE), self.suppressed, sum(self.levels), self.levels)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A recoding of distinct tuples.

    Attributes:
        steps: the levels of each step, in the order in which they are tried; None if nothing
            satisfies the models.
        tuple_step: per distinct tuple, the index of its step; -1 where its rows are suppressed.
        value: the metric that was reached.
        gap: the proven distance to the optimum; None for a heuristic.
        closest: where nothing satisfies the models, the outcome that came closest.
        notes: what a reader of the release should know.
    """

    steps: Sequence[Sequence[int]] | None
    tuple_step: NDArray[np.int32]
    value: float
    gap: float | None
    closest: NodeOutcome | None = None
    notes: Sequence[str] = ()


def unsatisfiable(
    closest: NodeOutcome, problem: RecodingProblem, quasi: Sequence[str]
) -> UnsatisfiableError:
    """Return the error that explains ``closest``."""
    verdicts = [model.check(closest.classes) for model in problem.models]
    people = int(closest.classes.people.sum())
    advice = []
    for model, verdict in zip(problem.models, verdicts, strict=True):
        if verdict.holds:
            continue
        if words := model.shortfall(closest.classes):
            advice.append(f"{verdict.model}: {words}")
        else:
            of = f" of column {verdict.column!r}" if verdict.column else ""
            advice.append(
                f"{verdict.model}{of}: {verdict.required} is required, the closest recoding "
                f"achieves {verdict.achieved} ({verdict.failing_rows} of {verdict.rows} rows fail);"
                " ask for no more than that"
            )
    if closest.suppressed < problem.rows:
        share = -(-closest.suppressed * 10_000 // problem.rows) / 10_000
        advice.append(f"or allow suppression = {share} or more")
    else:
        advice.append(f"the table holds {people} people in all")
    if any(model.policy and not v.holds for model, v in zip(problem.models, verdicts, strict=True)):
        advice.append(f"or {SET_ASIDE}")
    if (problem.heights[: len(quasi)] == 0).any():
        advice.append("or give every quasi-identifier a hierarchy that ends in one label")
    return UnsatisfiableError(
        "No recoding satisfies the models within the suppression limit.",
        verdicts=verdicts,
        levels=dict(zip(quasi, closest.levels, strict=True)),
        suppressed=closest.suppressed,
        advice=advice,
    )


class RecodingProblem:
    """What is to be minimized over all combinations of levels."""

    def __init__(
        self,
        tuples: Classes,
        hierarchies: Sequence[Hierarchy],
        models: Sequence[Model],
        metric: Metric,
        *,
        suppression: float | Fraction = 0.0,
        weights: Sequence[float] | None = None,
    ) -> None:
        self.groupings = Groupings(tuples, hierarchies)
        self.hierarchies = tuple(hierarchies)
        self.heights = np.array([h.height for h in hierarchies], dtype=np.int64)
        self.metric = metric
        self.rows = int(tuples.rows.sum())
        self._hollow = bool((tuples.rows == 0).any())  # tuples that only a population holds
        given = np.asarray(weights if weights is not None else [1.0] * len(hierarchies))
        if not (given >= 0).all() or not given.sum() > 0:
            raise SchemaError("Weights must be at least 0, and one of a quasi-identifier above 0.")
        self.weights = given / given.sum()
        self.cellwise = isinstance(metric, CellMetric)
        from halfmask.kernels import lattice

        self._kernels = lattice
        self._prepare_costs(tuples)
        self._promise(models, suppression)

    def under(self, models: Sequence[Model], suppression: float) -> RecodingProblem:
        """The same task under other models; groupings and costs are shared, not made again."""
        other = copy(self)
        other._promise(models, suppression)  # noqa: SLF001 - it is one of us
        return other

    def _promise(self, models: Sequence[Model], suppression: float | Fraction) -> None:
        self.models = tuple(models)
        self.limit = int(Fraction(str(suppression)) * self.rows)
        self.evaluations = 0
        # Rows that a class needs at least, as many as people.
        self._needed = max((m.k for m in models if isinstance(m, KAnonymity)), default=1)
        self._absorbing = tuple(m for m in models if m.absorbing)
        self._fragile = tuple(m for m in models if not m.absorbing)
        self._single = tuple(m for m in models if not m.whole)
        self._monotone = all(m.monotone for m in models)
        self._relative = tuple(m for m in models if m.relative or m.whole)
        self._brittle = tuple(m for m in self._fragile if m not in self._relative)

    def _prepare_costs(self, tuples: Classes) -> None:
        columns = len(self.hierarchies)
        layout = tuples.layout
        assert layout is not None  # noqa: S101 - tuples are made with one
        self.layout = layout
        cells = cast("CellMetric", self.metric) if self.cellwise else None
        self.geometric = cells is not None and cells.geometric
        self.scores = np.zeros((columns, int(self.heights.max(initial=0)) + 1))
        self._extra: list[tuple[NDArray[np.float64], ...]] = []
        self._worst: list[float] = []
        for c, hierarchy in enumerate(self.hierarchies):
            if cells is not None:
                codes = layout.codes(tuples.keys, c)
                size = len(hierarchy.labels[0])
                counts = np.bincount(codes, weights=tuples.rows, minlength=size)
                costs = cells.costs(hierarchy, counts.astype(np.int64))
                self.scores[c, : len(costs.scores)] = costs.scores
                self._extra.append(costs.extra)
                saved = counts @ costs.extra[0][hierarchy.maps[0]]
                self._worst.append(float(costs.scores[0] + saved))
        # What a label costs to suppress or, for metrics of whole classes, how many leaves it has.
        each = self._extra or [tuple(map(np.log, h.leaves)) for h in self.hierarchies]
        flat = [numbers for levels in each for numbers in levels]
        ends = np.cumsum([0] + [len(numbers) for numbers in flat], dtype=np.int64)
        self._flat = np.concatenate(flat).astype(np.float64)
        self._places = np.zeros(self.scores.shape, dtype=np.int64)  # of each column and level
        at = 0
        for c, levels in enumerate(each):
            self._places[c, : len(levels)] = ends[at : at + len(levels)]
            at += len(levels)
        self.tuple_rows = tuples.rows[tuples.rows > 0]
        self._everything = float(sum(np.log(h.size) for h in self.hierarchies))
        self._reads_labels = getattr(self.metric, "reads_labels", True)
        # What merging classes costs at least, no less than they do; where the metric can tell.
        self._merged = getattr(self.metric, "merged", None)
        # No merging and no suppressed row makes a metric of whole classes smaller than this.
        self.least = 0.0
        if not self.cellwise:
            grouping = self._grouping([0] * columns, tuples)
            self.least = cast("ClassMetric", self.metric).value(grouping)

    def evaluate(self, levels: Sequence[int], near: NodeOutcome | None = None) -> NodeOutcome:
        """Return what generalizing column c to ``levels[c]`` gives; ``near`` is a finer outcome."""
        self.evaluations += 1
        classes = self.groupings.at(levels, near)
        sound = self._pass(self._absorbing, classes)
        if self._hollow:
            sound = sound & (classes.rows > 0)
        below = np.where(sound, 0, classes.rows)  # lost to every finer node as well
        lost = int(np.add.reduce(below))
        kept = sound
        if self._fragile and lost <= self.limit:
            kept = self._survivors(classes, sound)
        suppressed = lost if kept is sound else self.rows - int(np.add.reduce(classes.rows[kept]))
        feasible = suppressed <= self.limit and suppressed < self.rows
        feasible = feasible and self._absent_pass(classes, kept)
        hopeless = lost > self.limit
        if self._fragile and not hopeless and not (feasible and not suppressed):
            # With nothing to suppress, promises that survive merging fail downwards.
            hopeless = self.limit == 0 and self._monotone
            if not hopeless:
                for model in self._fragile:
                    below = np.maximum(below, model.unavoidable(classes, self.limit))
                lost = int(np.add.reduce(below))
                hopeless = lost > self.limit
        penalty, value = None, np.inf
        if lost and not hopeless and self.cellwise:
            penalty = self._penalty(levels, classes, below)
        if feasible:
            # As many lost rows as finer nodes lose at least are the same rows.
            paid = penalty if suppressed == lost else None
            value = self._value(levels, classes, kept, suppressed, paid)
        outcome = (tuple(levels), value, suppressed, feasible, hopeless, penalty, kept, classes)
        if self.cellwise:
            return NodeOutcome(*outcome)
        # Whatever is merged or suppressed from here on costs no less than these classes do.
        metric = cast("ClassMetric", self.metric)
        if feasible and not suppressed:
            coarser = value
        elif self._merged is not None:
            coarser = self._merged(self._present(classes), self._needed, self.rows)
        else:
            coarser = metric.value(self._grouping(levels, classes))
        return NodeOutcome(*outcome, metric.least(lost, self.rows), coarser)

    @property
    def columns(self) -> int:
        """How many quasi-identifiers there are."""
        return len(self.hierarchies)

    def savings(self, column: int) -> tuple[NDArray[np.float64], ...]:
        """Per level and label, what publishing a row saves against suppressing it."""
        return self._extra[column]

    def worst(self, column: int) -> float:
        """The score of a column if every row were suppressed."""
        return self._worst[column]

    def combined(self, scores: Sequence[float]) -> float:
        """The table's value from the scores of its columns."""
        return float(self._kernels.combine(np.asarray(scores), self.weights, self.geometric))

    def leverage(self, column: int, score: float) -> float:
        """How much the table's value falls when a column's score falls a little from ``score``."""
        weight = float(self.weights[column])
        return weight / (1 + score) if self.geometric else weight

    def passing(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it satisfies all models that look at single classes."""
        return self._pass(self._single, classes)

    def members(self, outcome: NodeOutcome) -> NDArray[np.bool_]:
        """Which distinct tuples belong to classes that ``outcome`` keeps."""
        maps = [h.maps[level] for h, level in zip(self.hierarchies, outcome.levels, strict=True)]
        ids, _, _ = self.groupings.tuples.regroup(range(len(maps)), maps)
        return np.asarray(outcome.kept[ids])

    def _survivors(self, classes: Classes, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which classes remain when no more need to go.

        Classes that fail on their own go first; only then are the others compared with what is
        left, and again after each removal.
        """
        if self._brittle:
            kept = kept & self._pass(self._brittle, classes)
        if len(self._relative) == 1:
            found = self._relative[0].survivors(classes, kept)
            if found is not None:
                return found
        while self._relative and kept.any():
            everything = bool(kept.all())
            passing = self._pass(self._relative, classes if everything else classes.select(kept))
            if passing.all():
                break
            kept = kept.copy()
            kept[kept] = passing
        return kept

    def _pass(self, models: Sequence[Model], classes: Classes) -> NDArray[np.bool_]:
        if len(models) == 1:
            return models[0].passes(classes)
        out = np.ones(len(classes), dtype=bool)
        for model in models:
            out &= model.passes(classes)
        return out

    def _present(self, classes: Classes) -> NDArray[np.int64]:
        """The sizes of the classes that hold rows: all of them, where there is no population."""
        return classes.rows[classes.rows > 0] if self._hollow else classes.rows

    def _absent_pass(self, classes: Classes, kept: NDArray[np.bool_]) -> bool:
        """Whether classes that hold only people of the population keep the promise too."""
        if classes.population is None:
            return True
        from dataclasses import replace

        rows = np.where(kept, classes.rows, 0)
        left = replace(classes, rows=rows, people=np.where(kept, classes.people, 0))
        models = [m for m in self.models if m.population is not None]
        return all(bool(m.passes(left).all()) for m in models)

    def _value(
        self,
        levels: Sequence[int],
        classes: Classes,
        kept: NDArray[np.bool_],
        suppressed: int,
        paid: NDArray[np.float64] | None,
    ) -> float:
        if not self.cellwise:
            grouping = self._grouping(levels, classes, kept)
            return cast("ClassMetric", self.metric).value(grouping)
        scores = self.scores[_COLUMNS[: len(levels)], levels]
        if suppressed:
            if paid is None:
                paid = self._penalty(levels, classes, np.where(kept, 0, classes.rows))
            scores = scores + paid
        return float(self._kernels.combine(scores, self.weights, self.geometric))

    def _penalty(
        self, levels: Sequence[int], classes: Classes, lost: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """What suppressing so many rows of each class costs, per column."""
        return np.asarray(
            self._kernels.penalty(
                classes.keys,
                lost,
                self.layout.words,
                self.layout.shifts,
                self.layout.masks,
                self._places[_COLUMNS[: len(levels)], levels],
                self._flat,
            )
        )

    def _grouping(
        self,
        levels: Sequence[int],
        classes: Classes,
        kept: NDArray[np.bool_] | None = None,
    ) -> ClassFigures:
        """The classes of ``kept``, or all that hold rows."""
        if kept is None and self._hollow:
            kept = classes.rows > 0
        rows = classes.rows if kept is None else classes.rows[kept]
        log_leaves = _UNREAD
        if self._reads_labels:
            keys = classes.keys if kept is None else classes.keys[kept]
            layout, places = self.layout, self._places[_COLUMNS[: len(levels)], levels]
            log_leaves = self._kernels.add_up_labels(
                keys, layout.words, layout.shifts, layout.masks, places, self._flat
            )
        suppressed = self.rows - int(np.add.reduce(rows))
        return ClassFigures(
            rows, log_leaves, suppressed, self.rows, self._everything, self.tuple_rows
        )

    def spreads(self) -> NDArray[np.float64]:
        """Per column and level, the entropy of its labels over the rows: how far it divides them.

        Only of metrics of whole classes.
        """
        tuples, found = self.groupings.tuples, np.zeros(self.scores.shape)
        for c, hierarchy in enumerate(self.hierarchies):
            codes = self.layout.codes(tuples.keys, c)
            for level, place in enumerate(hierarchy.maps):
                rows = np.bincount(place[codes], weights=tuples.rows)
                share = rows[rows > 0] / self.rows
                found[c, level] = -float(share @ np.log(share))
        return found


_COLUMNS = np.arange(4096)
_UNREAD = np.zeros(0)
