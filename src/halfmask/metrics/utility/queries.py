"""Random counting queries: how wrong are counts that analysts might ask for?

Definition: a query counts rows that satisfy a random condition (an interval of numbers, a set of
other values) on each of some columns; its error is |count on the release - count on the original|
divided by the larger of the count on the original and a floor (0.1 % of its rows). Counts on the
release are scaled to the original's number of rows only if asked for.
Source: Zhang et al., "Accurate and efficient private release of datacubes and contingency tables",
2011 (floor); Benkhelif, 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.codes import joint
from halfmask.metrics.estimate import Estimate, mean
from halfmask.metrics.weighted import tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.shared_column import SharedColumn
    from halfmask.metrics.sides import Sides
    from halfmask.metrics.weighted import Counts

_FLOOR = 0.001


@dataclass(frozen=True, slots=True)
class CountingQueries:
    """The errors of random counting queries.

    Attributes:
        error: the mean relative error.
        median: the median one.
        worst: the 95 % quantile.
        queries: how many were asked; ``columns`` how many columns each names.
    """

    error: Estimate
    median: float
    worst: float
    queries: int
    columns: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "error": self.error.to_dict(),
            "median": self.median,
            "worst": self.worst,
            "queries": self.queries,
            "columns": self.columns,
        }


def counting_queries(
    sides: Sides, *, queries: int = 200, columns: int = 2, seed: int = 0, scaled: bool = False
) -> CountingQueries:
    """Ask ``queries`` random counts on both sides."""
    random = np.random.default_rng(seed)
    shared = list(sides.columns.values())
    wide = min(columns, len(shared))
    errors = []
    ends = [np.cumsum(c.leaf_rows) for c in shared]
    tuples: dict[tuple[int, ...], Any] = {}
    for _ in range(queries):
        chosen = tuple(sorted(random.choice(len(shared), wide, replace=False).tolist()))
        if chosen not in tuples:
            picked = [shared[i] for i in chosen]
            tuples[chosen] = (
                _distinct([(c.before, c.leaves) for c in picked], sides.original_counts),
                _distinct([(c.after, c.labels) for c in picked], sides.released_counts),
            )
        before, after = tuples[chosen]
        real, guess = before[0].astype(np.float64), after[0].astype(np.float64)
        for place, i in enumerate(chosen):
            wanted = _condition(shared[i], ends[i], random)
            real = real * wanted[before[1][place]]
            guess = guess * shared[i].inside(wanted)[after[1][place]]
        truth, answer = float(real.sum()), float(guess.sum())
        if scaled:
            answer *= sides.before / sides.after
        errors.append(abs(answer - truth) / max(truth, _FLOOR * sides.before, 1.0))
    return CountingQueries(
        mean(errors, f"{queries} random queries"),
        float(np.median(errors)),
        float(np.quantile(errors, 0.95)),
        queries,
        wide,
    )


def _distinct(
    columns: list[tuple[NDArray[np.int32], int]], counts: Counts
) -> tuple[NDArray[np.int64], list[NDArray[np.int32]]]:
    """How many rows each combination has, and its codes."""
    ids, count = joint(columns)
    first = np.empty(count, dtype=np.int64)
    first[ids] = np.arange(len(ids))
    return tally(ids, count, counts), [codes[first] for codes, _ in columns]


def _condition(
    column: SharedColumn, ends: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.bool_]:
    """Which leaves satisfy a random condition: an interval that starts and ends at rows' values.

    ``ends`` counts the rows up to each leaf.
    """
    picked = np.searchsorted(ends, random.integers(0, int(ends[-1]), 2), side="right")
    if column.numbers is not None:
        low, high = column.numbers[picked].min(), column.numbers[picked].max()
        return np.asarray((column.numbers >= low) & (column.numbers <= high))
    chosen = random.random(column.leaves) < 0.5
    chosen[picked[0]] = True
    return np.asarray(chosen)
