"""Move a distribution until its tables meet noisy ones: multiplicative steps with a line search.

Source: McKenna, Sheldon, Miklau, "Graphical-model based estimation and inference for differential
privacy", 2019; the step of each cell is scaled by its size, so that rare cells keep up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.synthesize.beliefs import Beliefs, spread, sum_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_REACH = 5.0  # no cell changes by more than a factor of e**5 in one step


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A table that the distribution should have.

    Attributes:
        columns: whose values span it.
        counts: what it should be.
        variance: of the noise in it.
    """

    columns: tuple[str, ...]
    counts: Floats
    variance: float


def fitted(
    start: Beliefs, targets: Sequence[Target], rows: float, *, steps: int, enough: float = 1e-4
) -> Beliefs:
    """``start`` moved towards ``targets``; its tree must hold each of them.

    Args:
        start: where to begin; what no target speaks of stays as it is.
        targets: the tables to meet, weighted by their precision.
        rows: what all cells of a table sum to.
        steps: how many steps to try at most.
        enough: stop when a step improves less than this share.
    """
    homes = [start.tree.holder(target.columns) for target in targets]
    best = start
    length = 0.5 * min(target.variance for target in targets)
    loss, slopes = _slopes(best, targets, homes, rows)
    for _ in range(steps):
        moved = best.copy()
        moved.multiply({h: np.exp(np.clip(length * s, -_REACH, _REACH)) for h, s in slopes.items()})
        new_loss, new_slopes = _slopes(moved, targets, homes, rows)
        if not new_loss < loss:
            length *= 0.4
            continue
        done = loss - new_loss < enough * loss
        best, loss, slopes = moved, new_loss, new_slopes
        length *= 1.3
        if done:
            break
    return best


def _slopes(
    beliefs: Beliefs, targets: Sequence[Target], homes: Sequence[int | None], rows: float
) -> tuple[float, dict[int, Floats]]:
    """The weighted squared distance and, per clique, where to go."""
    loss = 0.0
    slopes: dict[int, Floats] = {}
    for target, home in zip(targets, homes, strict=True):
        assert home is not None  # noqa: S101 - the caller extended the tree
        clique = beliefs.tree.cliques[home]
        has = rows * sum_to(beliefs.tables[home], clique, target.columns)
        apart = has - target.counts
        weight = 1 / (target.variance * (has + target.variance**0.5))
        loss += 0.5 * float((apart * apart * weight).sum())
        slope = spread(-apart * weight, target.columns, clique)
        slopes[home] = slopes[home] + slope if home in slopes else slope
    return loss, slopes
