"""What is left of the classes: loss, precision, discernibility, class sizes, class labels.

Definition: loss, precision and discernibility as in the metrics that a search minimizes, read from
the published labels; the average class size is rows / classes; the classification metric is the
share of original rows that are suppressed or whose class label is not the majority of their class.
Source: Iyengar, "Transforming data to satisfy privacy constraints", 2002.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.codes import joint, pairs
from halfmask.metrics.weighted import tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.shared_column import SharedColumn
    from halfmask.metrics.sides import Sides
    from halfmask.table.hierarchy import Hierarchy


@dataclass(frozen=True, slots=True)
class GeneralizedColumn:
    """What became of one quasi-identifier.

    Attributes:
        loss: 0 (as it was) to 1 (nothing left), suppressed rows included; None where values are
            new, so that no hierarchy says what they cover.
        precision: 1 - level / height, the mean over rows, where a range or set stands at the lowest
            level with one label over all of it; None likewise.
        distinct: values before; ``distinct_released`` labels after.
    """

    name: str
    loss: float | None
    precision: float | None
    distinct: int
    distinct_released: int


@dataclass(frozen=True, slots=True)
class ClassUtility:
    """The classes of a release beside those of its original.

    Attributes:
        loss: the geometric aggregate of the columns' losses, by their weights, as of a release;
            None where values are new.
        precision: the mean of the columns' precision.
        discernibility: the chance that two rows cannot be told apart, suppressed rows included.
        classes: classes before; ``classes_released`` after; ``mean_class`` rows in each.
        classification: per sensitive column, the classification metric.
        columns: the quasi-identifiers.
    """

    loss: float | None
    precision: float | None
    discernibility: float
    classes: int
    classes_released: int
    mean_class: float
    mean_class_released: float
    classification: tuple[tuple[str, float], ...]
    columns: tuple[GeneralizedColumn, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        out = asdict(self)
        out["classification"] = [
            {"column": name, "value": value} for name, value in self.classification
        ]
        return out


def class_utility(sides: Sides) -> ClassUtility:
    """Measure the classes of both sides."""
    quasi = sides.quasi
    suppressed = max(0, sides.before - sides.after)
    total = sides.after + suppressed
    columns = tuple(_column(sides, c, suppressed, total) for c in quasi)
    losses = [c.loss for c in columns if c.loss is not None]
    precisions = [c.precision for c in columns if c.precision is not None]
    _, before = joint([(c.before, c.leaves) for c in quasi])
    ids, after = joint([(c.after, c.labels) for c in quasi])
    sizes = tally(ids, after, sides.released_counts)
    weights = [sides.original.schema.columns[c.name].weight for c in quasi]
    return ClassUtility(
        float(np.expm1(np.average(np.log1p(losses), weights=weights)))
        if len(losses) == len(columns)
        else None,
        float(np.mean(precisions)) if len(precisions) == len(columns) else None,
        (float(sizes @ sizes) + suppressed * total) / total**2,
        before,
        after,
        sides.before / before,
        sides.after / after,
        tuple((c.name, _classification(c, ids, after, total)) for c in sides.sensitive),
        columns,
    )


def _column(sides: Sides, column: SharedColumn, suppressed: int, total: int) -> GeneralizedColumn:
    distinct = len(sides.original.encode(column.name).values)
    if column.loss is None:
        return GeneralizedColumn(column.name, None, None, distinct, column.labels)
    hierarchy = sides.original.hierarchy(column.name)
    lost = (column.loss * sides.after + suppressed) / total if hierarchy.size > 1 else 0.0
    height = max(hierarchy.height, 1)
    levels = np.minimum(_levels(column, hierarchy), height)
    steps = (int(levels @ column.label_rows) / height + suppressed) / total
    return GeneralizedColumn(column.name, lost, 1 - steps, distinct, column.labels)


def _levels(column: SharedColumn, hierarchy: Hierarchy) -> NDArray[np.int64]:
    """Per label, its level; of a range or set, the lowest level with one label over all of it."""
    common = np.zeros(column.labels, dtype=np.int64)
    for row in hierarchy.maps:
        held, begins = row[column.covered], column.starts[:-1]
        common += np.minimum.reduceat(held, begins) != np.maximum.reduceat(held, begins)
    return np.where(column.level > hierarchy.height + 1, common, column.level)


def _classification(column: SharedColumn, ids: Any, classes: int, total: int) -> float:
    owner, _, counts = pairs(ids, column.after, column.labels, classes, column.after_counts)
    starts = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
    kept = int(np.maximum.reduceat(counts, starts).sum())
    return (total - kept) / total
