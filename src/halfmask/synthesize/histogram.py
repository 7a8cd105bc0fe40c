"""One noisy count per combination of values: the baseline of all private synthesizers.

Definition: add noise to every cell of the full table, the empty ones too; draw rows by the counts.
Source: Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis",
2006 (the Laplace histogram, "LPA").

Tables with too many cells to list are drawn sparsely, with exactly the same distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import ParameterError
from halfmask.synthesize.inference import draw_values
from halfmask.synthesize.marginals import simplex

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from halfmask.dp.views import NoisyViews

DENSE = 1 << 22  # cells up to which every count is listed
MOST_NUMBERED = 1 << 62  # cells that have a number


@dataclass(frozen=True, slots=True, eq=False)
class NoisyHistogram:
    """Weights of the cells that have any."""

    sizes: Mapping[str, int]
    cells: NDArray[np.int64]
    weights: NDArray[np.float64]
    rows: int

    def draw(self, rows: int, random: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """``rows`` rows as public codes per column."""
        picked = self.cells[draw_values(np.zeros(rows, np.int64), self.weights[None, :], random)]
        drawn = {}
        for name in reversed(list(self.sizes)):
            picked, drawn[name] = np.divmod(picked, self.sizes[name])
        return {name: drawn[name] for name in self.sizes}


def learn(views: NoisyViews, *, ordered: Collection[str] = ()) -> NoisyHistogram:
    """A noisy histogram over all columns, for the whole budget."""
    del ordered
    columns, cells = tuple(views.sizes), prod(views.sizes.values())
    if cells > MOST_NUMBERED:
        raise ParameterError(
            "method", "histogram", "marginals: all columns together have over 2**62 combinations"
        )
    if cells <= DENSE:
        noisy = views.count(columns, views.limit).counts.ravel()
        return _of_counts(views.sizes, np.arange(noisy.size), noisy, float(noisy.sum()))
    found, counts, total = views.heavy(columns, views.limit)
    return _of_counts(views.sizes, found, counts, total)


def _of_counts(
    sizes: Mapping[str, int],
    cells: NDArray[np.int64],
    noisy: NDArray[np.int64],
    total: float,
) -> NoisyHistogram:
    """The model of noisy counts: no negatives, and the noisy total kept."""
    rows = max(1, round(total))
    weights = simplex(noisy, float(rows)) if len(noisy) else np.ones(1)
    kept = np.flatnonzero(weights > 0)
    return NoisyHistogram(sizes, cells[kept], weights[kept], rows)
