"""Numeric columns: do means, variances, covariances and correlations survive?

Definition: the entries of each statistic (x on the original, x' on the release) are compared by the
mean square error, the mean absolute error and the mean variation, the mean of |x' - x| / |x| over
entries that are not 0. A label counts as the mean of the values it covers. The error of class means
is the mean over original rows of |class mean - value| / |value|, the class taken in the release.
Source: Domingo-Ferrer and Torra, "Disclosure control methods and information loss for microdata",
2001; Nguyen and Castelluccia, "Techniques d'anonymisation tabulaire", 2020, example 5 (class
means).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.codes import joint
from halfmask.metrics.estimate import Estimate, exact, failed
from halfmask.metrics.weighted import in_range, mean, rows_of, tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.sides import Sides
    from halfmask.metrics.weighted import Counts

_ROUNDING = 1e-12  # a statistic below this share of what it could be is 0


@dataclass(frozen=True, slots=True)
class Moment:
    """One statistic before and after: square error, absolute error and relative variation."""

    statistic: str
    square_error: float
    absolute_error: float
    variation: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def moments(sides: Sides) -> tuple[Moment, ...]:
    """Compare the statistics of the numeric columns; empty where there are none.

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
    return tuple(_moment(name, own[name], published[name]) for name in own if len(own[name]))


def _statistics(rows: NDArray[np.float64], counts: Counts) -> dict[str, NDArray[np.float64]]:
    """The means, covariances and correlations of (columns, entries)."""
    shares = np.full(rows.shape[1], 1 / rows.shape[1]) if counts is None else counts / counts.sum()
    middle = rows @ shares
    middle[np.abs(middle) < _ROUNDING * np.abs(rows).max(axis=1)] = 0.0
    centered = rows - middle[:, None]
    centered[rows.max(axis=1) == rows.min(axis=1)] = 0.0  # no rounding where nothing varies
    covariance = (centered * shares) @ centered.T
    spread = np.sqrt(covariance.diagonal())
    scale = np.where(spread > 0, spread, 1.0)
    covariance[np.abs(covariance) < _ROUNDING * np.outer(spread, spread)] = 0.0
    return {
        "mean": middle,
        "covariance": covariance[np.triu_indices(len(rows))],
        "correlation": (covariance / np.outer(scale, scale))[np.triu_indices(len(rows), 1)],
    }


def _moment(name: str, before: NDArray[np.float64], after: NDArray[np.float64]) -> Moment:
    off = np.abs(after - before)
    held = before != 0
    ratio = float((off[held] / np.abs(before[held])).mean()) if held.any() else None
    return Moment(name, float((off**2).mean()), float(off.mean()), ratio)


def class_mean_error(sides: Sides, column: str) -> Estimate:
    """How far the mean of a person's released class is from the person's own number."""
    target = sides.columns[column]
    if target.numbers is None:
        return failed(f"Column {column!r} is not numeric.", sides.before)
    quasi = sides.quasi
    if any(c.foreign or len(np.unique(c.level)) > 1 for c in quasi):
        return failed("It speaks of releases with one level per column.", sides.before)
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
    sums = np.bincount(theirs, numbers if rows is None else numbers * rows, minlength=count)
    sizes = tally(theirs, count, rows)
    own = target.numbers[target.before]
    known = inside & (sizes[mine] > 0) & (own != 0)
    if not known.any():
        return failed("No original row lies in a released class.", sides.before)
    guess = sums[mine[known]] / sizes[mine[known]]
    error = np.abs(guess - own[known]) / np.abs(own[known])
    held = None if sides.original_counts is None else sides.original_counts[known]
    return exact(mean(error, held), rows_of(int(known.sum()), held))
