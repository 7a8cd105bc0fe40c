"""What a search minimizes: metrics that add up over cells, and metrics of whole classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from halfmask.errors import ParameterError

if TYPE_CHECKING:
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
class ClassFigures:
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
    """A metric that depends on which rows fall together.

    Neither merging classes nor suppressing whole classes may make it smaller: the search rests on
    that.
    """

    name: ClassVar[str]

    def value(self, grouping: ClassFigures) -> float:
        """Return the metric of a grouping."""
        ...

    def least(self, suppressed: int, total: int) -> float:
        """What a grouping costs at least that suppresses so many rows or more."""
        ...


Metric = CellMetric | ClassMetric


@dataclass(frozen=True, slots=True)
class Loss:
    """The share of each column's domain that published labels leave open, from 0 to 1.

    Definition: a cell's share is the number of leaves its label covers divided by the number D of
    leaves (a suppressed row: 1); a column's loss is L = (mean share - 1/D) / (1 - 1/D); the table's
    is prod (1 + L)^(1/columns) - 1, or the mean of L.
    Source: Iyengar, "Transforming data to satisfy privacy constraints", 2002; the geometric
    aggregate follows ARX.
    """

    name: ClassVar[str] = "loss"
    aggregate: Literal["geometric", "arithmetic"] = "geometric"

    @property
    def geometric(self) -> bool:
        """Whether column losses combine as a geometric mean."""
        return self.aggregate == "geometric"

    def costs(self, hierarchy: Hierarchy, counts: NDArray[np.int64]) -> CellCosts:
        """Return the costs of a column whose value i occurs ``counts[i]`` times."""
        total = int(counts.sum())
        scores, extra = [], []
        for level, row in enumerate(hierarchy.maps):
            lost = cell_loss(hierarchy, level)
            scores.append(float(counts @ lost[row]) / total)
            extra.append((1.0 - lost) / total)
        if hierarchy.size == 1:  # one possible value: suppressing it tells nothing away
            extra = [np.zeros_like(e) for e in extra]
        return CellCosts(np.asarray(scores), tuple(extra))


def cell_loss(hierarchy: Hierarchy, level: int) -> NDArray[np.float64]:
    """The loss of one cell by its label: 0 for a single leaf, 1 for all of them."""
    if hierarchy.size == 1:
        return np.zeros(len(hierarchy.labels[level]))
    return np.asarray((hierarchy.leaves[level] - 1) / (hierarchy.size - 1), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Height:
    """The mean level of the columns.

    Definition: the mean of the columns' levels; suppressed rows cost nothing, so combine it with a
    suppression limit.
    Source: Samarati, "Protecting respondents' identities in microdata release", 2001.
    """

    name: ClassVar[str] = "height"
    geometric: ClassVar[bool] = False

    def costs(self, hierarchy: Hierarchy, counts: NDArray[np.int64]) -> CellCosts:  # noqa: ARG002
        """Return the level itself as the score of each level."""
        scores = np.arange(hierarchy.height + 1, dtype=np.float64)
        return CellCosts(scores, tuple(np.zeros(len(labels)) for labels in hierarchy.labels))


@dataclass(frozen=True, slots=True)
class Precision:
    """The mean relative height of published labels, from 0 to 1.

    Definition: the mean over columns and rows of level / height (a suppressed row: 1); this is one
    minus Sweeney's precision.
    Source: Sweeney, "Achieving k-anonymity privacy protection using generalization and
    suppression", 2002.
    """

    name: ClassVar[str] = "precision"
    geometric: ClassVar[bool] = False

    def costs(self, hierarchy: Hierarchy, counts: NDArray[np.int64]) -> CellCosts:
        """Return the costs of a column whose value i occurs ``counts[i]`` times."""
        scores = np.arange(hierarchy.height + 1) / max(hierarchy.height, 1)
        total = int(counts.sum())
        extra = tuple(
            np.full(len(labels), (1.0 - score) / total)
            for labels, score in zip(hierarchy.labels, scores, strict=True)
        )
        return CellCosts(scores, extra)


@dataclass(frozen=True, slots=True)
class NonUniformEntropy:
    """The share of each column's information that published labels hide, from 0 to 1.

    Definition: per column, the mean over rows of -log2(n(value) / n(label)), n counting rows of the
    original table (a suppressed row's label covers all rows), divided by what suppressing every row
    would hide; the table's is the mean over columns.
    Source: Gionis and Tassa, "k-anonymization with minimal loss of information", 2009.
    """

    name: ClassVar[str] = "entropy"
    geometric: ClassVar[bool] = False

    def costs(self, hierarchy: Hierarchy, counts: NDArray[np.int64]) -> CellCosts:
        """Return the costs of a column whose value i occurs ``counts[i]`` times."""
        total = int(counts.sum())
        present = counts > 0
        everything = float(counts[present] @ np.log2(total / counts[present])) / total
        scores, extra = [], []
        for row, labels in zip(hierarchy.maps, hierarchy.labels, strict=True):
            size = np.bincount(row, weights=counts, minlength=len(labels))
            hidden = np.log2(size[row[present]] / counts[present])
            scores.append(float(counts[present] @ hidden) / total)
            extra.append(np.log2(total / np.maximum(size, 1.0)) / total)
        if everything == 0.0:  # a constant column has nothing to hide
            return CellCosts(np.zeros(len(scores)), tuple(np.zeros_like(e) for e in extra))
        return CellCosts(np.asarray(scores) / everything, tuple(e / everything for e in extra))


@dataclass(frozen=True, slots=True)
class Discernibility:
    """The chance that two rows drawn at random cannot be told apart, from 0 to 1.

    Definition: sum of |E|^2 over published classes plus |D| per suppressed row, divided by |D|^2.
    Source: Bayardo and Agrawal, "Data privacy through optimal k-anonymization", 2005.
    """

    name: ClassVar[str] = "discernibility"
    reads_labels: ClassVar[bool] = False

    def value(self, grouping: ClassFigures) -> float:
        """Return the metric of a grouping."""
        alike = int(grouping.rows @ grouping.rows) + grouping.suppressed * grouping.total
        return alike / grouping.total**2

    def least(self, suppressed: int, total: int) -> float:
        """Each suppressed row costs as much as all rows, any other one or more."""
        return (suppressed * total + total - suppressed) / total**2

    def merged(self, rows: NDArray[np.int64], needed: int, total: int) -> float:
        """Each row is like all of its class, and like as many as a class needs."""
        return int(rows @ np.maximum(rows, min(needed, total))) / total**2


@dataclass(frozen=True, slots=True)
class AverageClassSize:
    """Rows per class.

    Definition: |D| / number of classes, where the suppressed rows together count as one class.
    Source: LeFevre, DeWitt and Ramakrishnan, "Mondrian multidimensional k-anonymity", 2006, without
    the division by k, so that releases under different models compare.
    """

    name: ClassVar[str] = "average-class-size"
    reads_labels: ClassVar[bool] = False

    def value(self, grouping: ClassFigures) -> float:
        """Return the metric of a grouping."""
        return grouping.total / (len(grouping.rows) + (grouping.suppressed > 0))

    def least(self, suppressed: int, total: int) -> float:
        """Every row that leaves may be a class."""
        return total / (total - suppressed + (suppressed > 0))

    def merged(self, rows: NDArray[np.int64], needed: int, total: int) -> float:
        """A class holds one that is large enough by itself, or as many others as it needs."""
        small = rows[rows < needed]
        rest = int(small.sum())
        # What is left over of the others is one class more, or suppressed with them.
        return total / (len(rows) - len(small) + rest // needed + (rest > 0))


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """The mean share of all leaf tuples that a published row covers.

    Definition: the mean over rows of the product over columns of the number of leaves under the
    label (a suppressed row: all leaves of all columns), as a share of all leaf tuples.
    Source: Goldberger and Tassa, "Efficient anonymizations with enhanced utility", 2010.
    """

    name: ClassVar[str] = "ambiguity"

    def value(self, grouping: ClassFigures) -> float:
        """Return the metric of a grouping."""
        # Logarithms: the number of all leaf tuples may leave every float, the share does not.
        covered = np.exp(grouping.log_leaves - grouping.log_all_leaves)
        return float(grouping.rows @ covered + grouping.suppressed) / grouping.total

    def least(self, suppressed: int, total: int) -> float:
        """A suppressed row costs 1."""
        return suppressed / total


@dataclass(frozen=True, slots=True)
class KullbackLeibler:
    """Bits lost when original tuples are guessed from the release.

    Definition: KL(p || q) in bits, where p is the distribution of original tuples and q spreads
    each class evenly over the leaf tuples that its labels cover (suppressed rows: over all leaf
    tuples).
    Source: Kifer and Gehrke, "Injecting utility into anonymized datasets", 2006.
    """

    name: ClassVar[str] = "kl"

    def value(self, grouping: ClassFigures) -> float:
        """Return the metric of a grouping."""
        total = grouping.total
        original = grouping.tuples / total
        rows, spread = grouping.rows, grouping.log_leaves
        if grouping.suppressed:  # one more class, over everything
            rows = np.append(rows, grouping.suppressed)
            spread = np.append(spread, grouping.log_all_leaves)
        guess = np.log(rows / total) - spread
        nats = float(original @ np.log(original)) - float((rows / total) @ guess)
        return max(nats, 0.0) / float(np.log(2.0))

    def least(self, suppressed: int, total: int) -> float:  # noqa: ARG002 - it hangs on which rows
        """Nothing is known from their number."""
        return 0.0


METRICS: dict[str, Metric] = {
    "loss": Loss(),
    "mean-loss": Loss("arithmetic"),
    "precision": Precision(),
    "height": Height(),
    "entropy": NonUniformEntropy(),
    "discernibility": Discernibility(),
    "average-class-size": AverageClassSize(),
    "ambiguity": Ambiguity(),
    "kl": KullbackLeibler(),
}


def metric_named(name: str) -> Metric:
    """Return the metric called ``name``."""
    if name not in METRICS:
        raise ParameterError("metric", name, "one of " + ", ".join(METRICS))
    return METRICS[name]
