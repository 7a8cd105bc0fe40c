"""Recodings of one table under many settings, searched on the same statistics.

The rows are grouped once; every setting is then searched on the same distinct tuples, groupings
and costs, goes on from what weaker settings have ruled out, and begins at what they have found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize import local, optimal
from halfmask.anonymize.bounds import Bounds
from halfmask.anonymize.problem import Problem
from halfmask.anonymize.shared_groupings import SharedGroupings
from halfmask.assessment.figures import Figures, Measure, level_map
from halfmask.assessment.settings import at_least
from halfmask.metrics.cost.registry import metric_named
from halfmask.models.needs import statistics
from halfmask.table.classes import distinct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.groupings import Groupings
    from halfmask.anonymize.incumbent import Found
    from halfmask.anonymize.solution import Solution
    from halfmask.assessment.settings import Setting
    from halfmask.models.verdict import Model
    from halfmask.table.classes import Classes
    from halfmask.table.table import Table

_STARTS = 4  # optima of earlier settings that a search begins at


class SharedSearch:
    """What all settings have in common: the table's distinct tuples and groupings of them."""

    def __init__(
        self,
        table: Table,
        models: Sequence[Model],
        metric: str,
        counts: NDArray[np.int64] | None = None,
    ) -> None:
        self.table, self.counts = table, counts
        tuples, _ = statistics(table, models, counts)
        quasi = table.schema.quasi
        hierarchies = [table.hierarchy(name) for name in quasi]
        weights = [table.schema.columns[name].weight for name in quasi]
        chosen = metric_named(metric)
        self._problem = Problem(tuples, hierarchies, models, chosen, weights=weights)
        self._problem.groupings = SharedGroupings(tuples, hierarchies)
        self._published = self._with_sensitive(tuples)
        self.measure = Measure(table, self._published.tuples)
        self._optima: list[tuple[int, ...]] = []
        self._ruled_out: list[tuple[Setting, NDArray[np.uint8]]] = []
        self._figures: dict[tuple[tuple[int, ...], bytes], Figures] = {}

    def run(
        self, chain: Sequence[Setting], time_limit: float | None
    ) -> Iterator[tuple[Setting, Figures | None, float | None]]:
        """Per setting of a chain its figures and gap; no figures where nothing satisfies it.

        An infinite gap says that time was up before anything was found.
        """
        bounds: Bounds | None = None
        previous: Setting | None = None
        failed = False
        for setting in chain:
            stronger = previous is not None and at_least(setting, previous)
            if failed and stronger:
                yield setting, None, 0.0
                continue
            problem = self._problem.under(setting.models, setting.suppression)
            if setting.method == "local":
                solution = local.solve(problem, seed=None, time_limit=time_limit)
                figures = None if solution.steps is None else self._measured(solution)
                gap = solution.gap
            else:
                if optimal.listable(problem):
                    bounds = self._learned(setting, bounds if stronger else Bounds(problem))
                found = optimal.search(
                    problem,
                    time_limit=time_limit,
                    bounds=bounds,
                    starts=self._optima[-_STARTS:],
                )
                figures, gap = self._read(found), found.gap
                if bounds is not None:
                    self._ruled_out.append((setting, bounds.ruled_out))
            failed, previous = figures is None and gap == 0.0, setting
            yield setting, figures, gap

    def _learned(self, setting: Setting, bounds: Bounds | None) -> Bounds:
        """Bounds with all that weaker settings, in whatever chain, have ruled out."""
        assert bounds is not None  # noqa: S101 - a chain keeps its bounds
        weaker = [nodes for other, nodes in self._ruled_out if at_least(setting, other)]
        if weaker:
            bounds.rule_out_too(np.bitwise_or.reduce(weaker))
        return bounds

    def _with_sensitive(self, tuples: Classes) -> Groupings:
        """Groupings that also carry the sensitive columns that no model reads."""
        sensitive = self.table.schema.sensitive
        lacking = [name for name in sensitive if name not in tuples.histograms]
        if not lacking:
            return self._problem.groupings
        populations = [m.population for m in self._problem.models if m.population is not None]
        more, _ = distinct(
            self.table,
            self.table.schema.quasi,
            columns=sensitive,
            population=populations[0] if populations else None,
            counts=self.counts,
        )
        return SharedGroupings(more, self._problem.hierarchies)

    def _read(self, found: Found) -> Figures | None:
        """The figures of an optimum; the same classes are measured once."""
        best = found.best
        if best is None:
            return None
        if best.levels in self._optima:
            self._optima.remove(best.levels)
        self._optima.append(best.levels)
        key = (best.levels, np.packbits(best.kept).tobytes())
        if key not in self._figures:
            # Classes are numbered by first occurrence, whatever else they carry.
            classes = self._published.at(best.levels)
            self._figures[key] = self.measure.recoded([(best.levels, classes.select(best.kept))])
        return self._figures[key]

    def _measured(self, solution: Solution) -> Figures:
        """The figures of a decision list."""
        assert solution.steps is not None  # noqa: S101 - only asked of solutions
        parts = []
        tuples, hierarchies = self._published.tuples, self._problem.hierarchies
        for step, levels in enumerate(solution.steps):
            mine = tuples.select((solution.tuple_step == step) & (tuples.rows > 0))
            maps = [level_map(h, level) for h, level in zip(hierarchies, levels, strict=True)]
            parts.append((levels, mine.coarsen(range(len(maps)), maps)))
        return self.measure.recoded(parts)
