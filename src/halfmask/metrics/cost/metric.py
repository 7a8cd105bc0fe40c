"""What a search minimizes: metrics that add up over cells, and metrics of whole classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from halfmask.table.hierarchy import Hierarchy


@dataclass(frozen=True, slots=True, eq=False)
class CellCosts:
    """What one column costs at each level.

    Attributes:
        scores: (levels) the column's score if every row carries its label of that level.
        extra: per level and label, what one suppressed row adds to the score.
    """

    scores: NDArray[np.float64]
    extra: tuple[NDArray[np.float64], ...]


@runtime_checkable
class CellMetric(Protocol):
    """A metric that is known per column and level before any class is formed.

    The table's value is the weighted mean of the column scores, or, if ``geometric``,
    prod (1 + score)^weight - 1 with weights that sum to 1.
    """

    name: ClassVar[str]

    @property
    def geometric(self) -> bool:
        """Whether column scores combine as a geometric mean."""
        ...

    def costs(self, hierarchy: Hierarchy, counts: NDArray[np.int64]) -> CellCosts:
        """Return the costs of a column whose value i occurs ``counts[i]`` times."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """What a metric of whole classes sees.

    Attributes:
        rows: the sizes of the classes that leave.
        log_leaves: per such class, the natural logarithm of how many leaf tuples its labels cover.
        suppressed: how many rows do not leave.
        total: how many rows the table has.
        log_all_leaves: the logarithm of the number of all leaf tuples.
        tuples: the sizes of the distinct tuples of the original table.
    """

    rows: NDArray[np.int64]
    log_leaves: NDArray[np.float64]
    suppressed: int
    total: int
    log_all_leaves: float
    tuples: NDArray[np.int64]


@runtime_checkable
class ClassMetric(Protocol):
    """A metric that depends on which rows fall together."""

    name: ClassVar[str]

    def value(self, grouping: Grouping) -> float:
        """Return the metric of a grouping."""
        ...


Metric = CellMetric | ClassMetric
