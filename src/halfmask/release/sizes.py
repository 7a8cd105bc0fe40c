"""How large the published classes are, in a bounded number of bins."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SizeBin:
    """Classes of ``smallest`` to ``largest`` rows: how many, and how many rows they hold."""

    smallest: int
    largest: int
    classes: int
    rows: int


@dataclass(frozen=True, slots=True)
class ClassSizes:
    """The sizes of the published classes.

    Attributes:
        count: how many classes there are.
        smallest: rows of the smallest class.
        largest: rows of the largest class.
        mean: rows per class on average.
        bins: at most twenty or so ranges, each about a quarter wider than the one before.
    """

    count: int
    smallest: int
    largest: int
    mean: float
    bins: tuple[SizeBin, ...]

    @classmethod
    def of(cls, sizes: NDArray[np.int64]) -> ClassSizes:
        """Summarize the sizes of one or more classes."""
        edges = _edges(int(sizes.min()), int(sizes.max()))
        place = np.searchsorted(edges, sizes, side="right") - 1
        classes = np.bincount(place, minlength=len(edges) - 1)
        rows = np.bincount(place, weights=sizes, minlength=len(edges) - 1)
        bins = tuple(
            SizeBin(int(edges[i]), int(edges[i + 1] - 1), int(classes[i]), int(rows[i]))
            for i in range(len(edges) - 1)
        )
        return cls(len(sizes), int(sizes.min()), int(sizes.max()), float(sizes.mean()), bins)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain values."""
        return asdict(self)


def _edges(smallest: int, largest: int, bins: int = 20) -> NDArray[np.int64]:
    """Whole-number edges that start at ``smallest`` and end just above ``largest``."""
    if largest - smallest < bins:
        return np.arange(smallest, largest + 2)
    raw = np.geomspace(max(smallest, 1), largest + 1, bins + 1)
    edges = np.unique(np.ceil(raw).astype(np.int64))
    edges[0], edges[-1] = smallest, largest + 1
    distinct: NDArray[np.int64] = np.unique(edges)
    return distinct
