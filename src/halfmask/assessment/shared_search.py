"""Recodings of one table under many settings, searched on the same statistics.

The rows are grouped once; every setting is then searched on the same distinct tuples, and its risk
and utility are read from the classes it would publish.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.anonymize.problem import Problem
from halfmask.anonymize.run import RECODINGS
from halfmask.assessment.points import Point
from halfmask.errors import PrivacyError
from halfmask.metrics.registry import metric_named
from halfmask.metrics.risk.disclosure import disclosure
from halfmask.metrics.utility.distributions import hellinger
from halfmask.models.needs import prepare, statistics
from halfmask.table.hierarchies.auto import settled
from halfmask.table.hierarchies.check import check_hierarchies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.solution import Solution
    from halfmask.models.verdict import Model
    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


class SharedSearch:
    """What all settings have in common: the table's distinct tuples and groupings of them."""

    def __init__(self, table: Table, models: Sequence[Model], metric: str) -> None:
        self.table = prepare(settled(table), models)
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
