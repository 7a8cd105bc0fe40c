"""How near synthetic rows come to original ones, against how near original rows are to each other.

Definition: the distance of two rows is the share of columns in which they differ; each row's
    nearest other row counts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SAMPLE = 1_000


@dataclass(frozen=True, slots=True)
class Nearest:
    """Distances to the nearest original row, 0 to 1.

    Attributes:
        synthetic: the mean over synthetic rows.
        original: the mean over original rows, each without itself.
        synthetic_zero: the share of synthetic rows at distance 0.
        original_zero: the same for original rows.
        rows: how many rows of each were looked at.
    """

    synthetic: float
    original: float
    synthetic_zero: float
    original_zero: float
    rows: int

    def to_dict(self) -> dict[str, float]:
        """Return the figures as plain values."""
        return asdict(self)


def nearest(
    original: NDArray[np.int32], synthetic: NDArray[np.int32], random: np.random.Generator
) -> Nearest:
    """Measure a sample of both tables against all original rows."""
    size = min(_SAMPLE, len(original), len(synthetic))
    drawn = random.choice(len(synthetic), size, replace=False)
    held = random.choice(len(original), size, replace=False)
    from_synthetic = least_distance(synthetic[drawn], original, skip=None)
    from_original = least_distance(original[held], original, skip=held)
    return Nearest(
        synthetic=float(from_synthetic.mean()),
        original=float(from_original.mean()),
        synthetic_zero=float((from_synthetic == 0).mean()),
        original_zero=float((from_original == 0).mean()),
        rows=size,
    )


def least_distance(
    rows: NDArray[np.int32], others: NDArray[np.int32], *, skip: NDArray[np.int64] | None
) -> NDArray[np.float64]:
    """The distance of each row to the nearest of ``others``; ``skip`` names one not to look at."""
    return nearest_rows(rows, others, skip=skip)[1]


def nearest_rows(
    rows: NDArray[np.int32], others: NDArray[np.int32], *, skip: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nearest of ``others`` to each row, and its distance; ties go to the first."""
    place = np.empty(len(rows), dtype=np.int64)
    distance = np.empty(len(rows))
    columns = np.ascontiguousarray(others.T)
    step = max(1, 8_000_000 // max(len(others), 1))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        differ = np.zeros((len(block), len(others)), dtype=np.int16)
        for k in range(rows.shape[1]):
            differ += block[:, k, None] != columns[k]
        if skip is not None:
            differ[np.arange(len(block)), skip[start : start + step]] = rows.shape[1] + 1
        best = differ.argmin(axis=1)
        place[start : start + step] = best
        distance[start : start + step] = differ[np.arange(len(block)), best] / rows.shape[1]
    return place, distance
