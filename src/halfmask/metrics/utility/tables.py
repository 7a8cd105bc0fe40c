"""What is left of classes and of numeric columns in a release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.estimate import Estimate, exact_estimate, failed_estimate
from halfmask.metrics.weighted import in_range, joint, pairs, weighted_mean
from halfmask.table.document import Result, document_field
from halfmask.table.tuples import tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.common_ground import SharedColumn
    from halfmask.metrics.sides import Sides
    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.tuples import Counts


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
class ClassUtility(Result):
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
    classification: tuple[tuple[str, float], ...] = field(
        metadata=document_field(parts=("column", "value"))
    )
    columns: tuple[GeneralizedColumn, ...]


def class_utility(sides: Sides) -> ClassUtility:
    """Measure the classes of both sides.

    Definition: loss, precision and discernibility as in the metrics that a search minimizes, read
    from the published labels; the average class size is rows / classes; the classification metric
    is the share of original rows that are suppressed or whose class label is not the majority of
    their class.
    Source: Iyengar, "Transforming data to satisfy privacy constraints", 2002.
    """
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


def sample_leaves(
    column: SharedColumn, entries: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.int64]:
    """Per entry of the release, a leaf under its label, each with the same chance."""
    labels = column.after[entries]
    sizes = column.sizes[labels]
    pick = np.minimum((random.random(len(sizes)) * sizes).astype(np.int64), sizes - 1)
    return np.asarray(column.covered[column.starts[labels] + pick])


_ALIKE = 1e-6  # components whose sizes differ by less have no order
_ROUNDING = 1e-12  # a statistic below this share of what it could be is 0


@dataclass(frozen=True, slots=True)
class Moment(Result):
    """One statistic before and after: square error, absolute error and relative variation."""

    statistic: str
    square_error: float
    absolute_error: float
    variation: float | None


def moments(sides: Sides) -> tuple[Moment, ...]:
    """Compare the statistics of the numeric columns; empty where there are none.

    Definition: the entries of each statistic (x on the original, x' on the release) are compared by
    the mean square error, the mean absolute error and the mean variation, the mean of |x' - x| /
    |x| over entries that are not 0. A label counts as the mean of the values it covers. Factors are
    those of the first principal component of the correlations: how each column correlates with it
    (factor correlation), the share of the column's variance that it explains (communality, the
    square of that), and the weight of the column in its score (factor score). The error
    of class means is the mean over original rows of |class mean - value| / |value|, the class taken
    in the release.
    Source: Domingo-Ferrer and Torra, "Disclosure control methods and information loss for
    microdata", 2001; Nguyen and Castelluccia, "Techniques d'anonymisation tabulaire", 2020, example
    5 (class means).

    Columns of numbers so large that their squares are none are left out.
    """
    columns = [
        c
        for c in sides.columns.values()
        if c.numbers is not None and in_range(c.numbers) is c.numbers
    ]
    if not columns:
        return ()
    before = np.stack([c.numbers[c.before] for c in columns if c.numbers is not None])
    after = np.stack([c.label_numbers[c.after] for c in columns])
    own = _statistics(before, sides.original_counts)
    published = _statistics(after, sides.released_counts)
    for name in ("factor correlation", "factor score"):  # which way an axis points is arbitrary
        if name in own and name in published and own[name] @ published[name] < 0:
            published[name] = -published[name]
    both = [name for name in own if len(own[name]) and name in published]
    return tuple(_moment(name, own[name], published[name]) for name in both)


def _statistics(rows: NDArray[np.float64], counts: Counts) -> dict[str, NDArray[np.float64]]:
    """The means, covariances, correlations and first factors of (columns, entries)."""
    shares = counts / counts.sum()
    middle = rows @ shares
    middle[np.abs(middle) < _ROUNDING * np.abs(rows).max(axis=1)] = 0.0
    centered = rows - middle[:, None]
    centered[rows.max(axis=1) == rows.min(axis=1)] = 0.0  # no rounding where nothing varies
    covariance = (centered * shares) @ centered.T
    spread = np.sqrt(covariance.diagonal())
    scale = np.where(spread > 0, spread, 1.0)
    covariance[np.abs(covariance) < _ROUNDING * np.outer(spread, spread)] = 0.0
    correlation = covariance / np.outer(scale, scale)
    return {
        "mean": middle,
        "covariance": covariance[np.triu_indices(len(rows))],
        "correlation": correlation[np.triu_indices(len(rows), 1)],
        **_factors(correlation),
    }


def _factors(correlation: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """What the first principal component makes of each column; empty where there is no first."""
    sizes, axes = np.linalg.eigh(correlation)
    if len(sizes) < 2 or sizes[-1] <= _ALIKE or sizes[-1] - sizes[-2] < _ALIKE * sizes[-1]:
        return {}
    axis, root = axes[:, -1], np.sqrt(sizes[-1])
    loading = axis * root
    return {"factor correlation": loading, "communality": loading**2, "factor score": axis / root}


def _moment(name: str, before: NDArray[np.float64], after: NDArray[np.float64]) -> Moment:
    off = np.abs(after - before)
    held = before != 0
    ratio = float((off[held] / np.abs(before[held])).mean()) if held.any() else None
    return Moment(name, float((off**2).mean()), float(off.mean()), ratio)


def class_mean_error(sides: Sides, column: str) -> Estimate:
    """How far the mean of a person's released class is from the person's own number."""
    target = sides.columns[column]
    if target.numbers is None:
        return failed_estimate(f"Column {column!r} is not numeric.", sides.before)
    quasi = sides.quasi
    if any(c.foreign or len(np.unique(c.level)) > 1 for c in quasi):
        return failed_estimate("It speaks of releases with one level per column.", sides.before)
    labels = [c.only_label()[c.before] for c in quasi]
    inside = np.all([held >= 0 for held in labels], axis=0)
    both = [
        (np.concatenate([c.after, np.maximum(held, 0)]).astype(np.int32), c.labels)
        for c, held in zip(quasi, labels, strict=True)
    ]
    ids, count = joint(both)
    published = len(target.after)
    mine, theirs = ids[published:], ids[:published]
    numbers, rows = target.label_numbers[target.after], sides.released_counts
    sums = np.bincount(theirs, numbers * rows, minlength=count)
    sizes = tally(theirs, count, rows)
    own = target.numbers[target.before]
    known = inside & (sizes[mine] > 0) & (own != 0)
    if not known.any():
        return failed_estimate("No original row lies in a released class.", sides.before)
    guess = sums[mine[known]] / sizes[mine[known]]
    error = np.abs(guess - own[known]) / np.abs(own[known])
    held = sides.original_counts[known]
    return exact_estimate(weighted_mean(error, held), int(held.sum()))
