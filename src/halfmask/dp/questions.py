"""What can be asked with noise, and the exact figures that an engine hands over for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from halfmask.errors import ParameterError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

Kind = Literal["count", "sum", "mean", "variance", "deviation", "quantile"]
STEPS = 1000  # how many whole steps a bounded value is rounded to on each side of its center
LEVELS = 2  # of the tree that quantiles are read off
INTERVALS = 16**LEVELS  # how finely a bounded value is cut for them


@dataclass(frozen=True, slots=True)
class Scale:
    """How a bounded number becomes a whole one: value = center + step * whole.

    An engine clips a value to the bounds and sums ``floor((value - center) / step + 1/2)``, and for
    a variance its square.

    Example:
        >>> Scale.of("age", 0, 130).step
        0.065
    """

    low: float
    high: float

    @classmethod
    def of(cls, column: str, low: float | None, high: float | None) -> Scale:
        """The scale of a column; missing bounds are an error that says how to give them."""
        if low is None or high is None or not low < high:
            raise SchemaError(
                f"Column {column!r} needs public bounds for this question: give low and high, "
                "known without looking at the rows; values beyond them count as the bound."
            )
        return cls(float(low), float(high))

    @property
    def around_zero(self) -> Scale:
        """The scale for sums: a missing value adds nothing, so that no count is needed."""
        most = max(abs(self.low), abs(self.high))
        return Scale(-most, most)

    @property
    def center(self) -> float:
        """The value that becomes 0."""
        return (self.low + self.high) / 2

    @property
    def step(self) -> float:
        """What one whole step is worth."""
        return (self.high - self.low) / 2 / STEPS

    @property
    def edges(self) -> NDArray[np.float64]:
        """The edges of the intervals that quantiles are counted in."""
        return np.linspace(self.low, self.high, INTERVALS + 1)

    def whole(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Clipped and rounded values; what is no number becomes 0."""
        inside = np.clip(np.nan_to_num(values, nan=self.center), self.low, self.high)
        found: NDArray[np.int64] = np.floor((inside - self.center) / self.step + 0.5).astype(
            np.int64
        )
        return found


@dataclass(frozen=True, slots=True)
class Question:
    """One column of the answer.

    Attributes:
        name: what the answer calls it.
        kind: count, sum, mean, variance, (standard) deviation or quantile.
        column: what is summed or counted; empty where rows are counted.
        scale: how its values become whole numbers; None for a count.
        at: for a quantile its share, such as 0.5 for the median.
        sample: whether a variance is that of a sample (n - 1) rather than of all (n).
    """

    name: str
    kind: Kind
    column: str = ""
    scale: Scale | None = None
    at: float = 0.5
    sample: bool = False

    def __post_init__(self) -> None:
        if self.kind != "count" and self.scale is None:
            raise SchemaError(f"{self.kind} of column {self.column!r} needs public bounds.")
        if not 0 <= self.at <= 1:
            raise ParameterError("at", self.at, "0 to 1")


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """What an engine found, per group; all whole numbers.

    Attributes:
        counts: rows of each group.
        sums: per column, the sum of scaled values.
        squares: per column, the sum of squared scaled values; only for a variance.
        present: per column, how many rows have a value; a column that is not here has one in all.
        histograms: per column, groups x ``INTERVALS`` counts of values; only for quantiles.
    """

    counts: NDArray[np.int64]
    sums: Mapping[str, NDArray[np.int64]]
    squares: Mapping[str, NDArray[np.int64]]
    present: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    histograms: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def vector(self, name: str) -> NDArray[np.int64]:
        """One exact vector; leaves only with noise."""
        kind, _, column = name.partition(" ")
        if not column:
            return self.counts
        source = {"count": self.present, "sum": self.sums, "squares": self.squares}
        return source.get(kind, self.histograms)[column]
