"""Risk and utility of what a setting would publish, read from its classes.

Definition: the mean risk is the mean, over all rows of the table, of 1 / people in the class (rows
left out: 0); the highest is 1 / people in the smallest class. Inference is (guess - prior) / (1 -
prior), where guess is how often the likeliest value of a class is right and prior how often that
of all published rows is; the largest over sensitive columns. Loss is that of a release. Distance
is the mean Hellinger distance of the quasi-identifiers' distributions, as in comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.common_ground import leaf_bins
from halfmask.metrics.utility.distributions import hellinger
from halfmask.release.loss import column_loss, table_loss
from halfmask.release.partition import Partition, Ranges
from halfmask.table.classes import grouped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.histogram import Histogram
    from halfmask.table.table import Table

    Part = tuple[Sequence[int], Classes]  # the levels of some classes, and the classes


@dataclass(frozen=True, slots=True)
class Figures:
    """What a point shows; see ``Point``."""

    risk: float
    highest_risk: float
    inference: float | None
    loss: float | None
    distance: float
    suppressed: float
    classes: int


class Measure:
    """Measures what is published of one table, by levels or by classes of rows."""

    def __init__(self, table: Table, tuples: Classes) -> None:
        self.table = table
        self.quasi = table.schema.quasi
        self.weights = {name: table.schema.columns[name].weight for name in self.quasi}
        self.sensitive = [name for name in table.schema.sensitive if name in tuples.histograms]
        self.rows = int(tuples.rows.sum())
        layout = tuples.layout
        assert layout is not None  # noqa: S101 - tuples are made with one
        self.layout = layout
        self._held = [
            np.bincount(
                layout.codes(tuples.keys, c),
                weights=tuples.rows,
                minlength=len(table.encode(name).values),
            ).astype(np.int64)
            for c, name in enumerate(self.quasi)
        ]
        self._bins = [
            leaf_bins(table, name, held) for name, held in zip(self.quasi, self._held, strict=True)
        ]

    def recoded(self, parts: Sequence[Part]) -> Figures:
        """The figures of classes at the levels of a recoding; one part per step."""
        losses = {name: self._column_loss(parts, c) for c, name in enumerate(self.quasi)}
        spread = [self._spread(parts, c) for c in range(len(self.quasi))]
        return self._figures([classes for _, classes in parts], losses, spread)

    def divided(self, partition: Partition, step: NDArray[np.int32]) -> Figures:
        """The figures of a division of rows; classes with the same labels are one."""
        kept = np.flatnonzero(step >= 0)
        ids = np.unique(partition.same(self.table)[step[kept]], return_inverse=True)[1]
        columns = {name: name for name in self.sensitive}
        classes = grouped(self.table, kept, ids.reshape(-1), columns=columns)
        losses = {name: column_loss(partition, self.table, step, name) for name in self.quasi}
        mass = np.bincount(step[kept], minlength=len(partition)).astype(np.float64)
        spread = [_laid(partition, self.table, name, mass) for name in self.quasi]
        return self._figures([classes], losses, spread)

    def _figures(
        self,
        parts: Sequence[Classes],
        losses: dict[str, Fraction],
        spread: Sequence[NDArray[np.float64]],
    ) -> Figures:
        found = sum(float((part.rows / part.people).sum()) for part in parts)
        smallest = min(int(part.people.min()) for part in parts)
        kept = sum(int(part.rows.sum()) for part in parts)
        gains = [self._gain([part.histograms[n] for part in parts], kept) for n in self.sensitive]
        known = [gain for gain in gains if gain is not None]
        return Figures(
            risk=found / self.rows,
            highest_risk=1 / smallest,
            inference=max(known) if known else None,
            loss=table_loss(losses, self.weights),
            distance=self._distance(spread),
            suppressed=(self.rows - kept) / self.rows,
            classes=sum(len(part) for part in parts),
        )

    def _gain(self, held: Sequence[Histogram], rows: int) -> float | None:
        """How much better than guessing a value of one column can be told; None: all are equal."""
        prior = int(np.sum([h.totals() for h in held], axis=0).max())
        right = sum(int(np.maximum.reduceat(h.counts, h.starts[:-1]).sum()) for h in held)
        return None if prior == rows else (right - prior) / (rows - prior)

    def _column_loss(self, parts: Sequence[Part], c: int) -> Fraction:
        hierarchy = self.table.hierarchy(self.quasi[c])
        if hierarchy.size <= 1:
            return Fraction(0)
        kept = covered = 0
        for levels, classes in parts:
            rows = int(classes.rows.sum())
            kept += rows
            if levels[c] > hierarchy.height:
                covered += rows * hierarchy.size
            else:
                leaves = hierarchy.leaves[levels[c]][self.layout.codes(classes.keys, c)]
                covered += int(leaves @ classes.rows)
        covered += (self.rows - kept) * hierarchy.size
        return Fraction(covered - self.rows, self.rows * (hierarchy.size - 1))

    def _spread(self, parts: Sequence[Part], c: int) -> NDArray[np.float64]:
        """The published rows over the values of a column, each label's evenly."""
        hierarchy = self.table.hierarchy(self.quasi[c])
        out = np.zeros(hierarchy.maps.shape[1])
        for levels, classes in parts:
            codes = self.layout.codes(classes.keys, c)
            out += _evenly(level_map(hierarchy, levels[c]), codes, classes.rows)
        return out

    def _distance(self, spread: Sequence[NDArray[np.float64]]) -> float:
        out = []
        for held, mass, (bin_of, bins) in zip(self._held, spread, self._bins, strict=True):
            p = np.bincount(bin_of, weights=held, minlength=bins)
            q = np.bincount(bin_of, weights=mass, minlength=bins)
            out.append(hellinger(p / p.sum(), q / max(q.sum(), 1e-300)))
        return float(np.mean(out))


def level_map(hierarchy: Hierarchy, level: int) -> NDArray[np.int32]:
    """The map of one level; one above the top is a suppressed cell."""
    maps = hierarchy.maps
    return maps[level] if level < len(maps) else np.zeros(maps.shape[1], dtype=np.int32)


def _evenly(
    label_of: NDArray[np.int32], labels: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Rows with labels as rows with values: each value gets its part of its label's rows."""
    count = int(label_of.max()) + 1
    mass = np.bincount(labels, weights=rows, minlength=count)
    return np.asarray((mass / np.bincount(label_of, minlength=count))[label_of])


def _laid(
    partition: Partition, table: Table, name: str, mass: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The rows of each class over the values that its label covers."""
    labels, hierarchy = partition.labels[name], table.hierarchy(name)
    size = hierarchy.maps.shape[1]
    if isinstance(labels, Ranges):
        each = mass / (labels.high - labels.low + 1)
        change = np.bincount(labels.low, weights=each, minlength=size + 1)
        change -= np.bincount(labels.high + 1, weights=each, minlength=size + 1)
        return np.maximum(np.cumsum(change)[:-1], 0.0)
    out = np.zeros(size)
    for level in np.unique(labels.level).tolist():
        at = labels.level == level
        label_of = level_map(hierarchy, level)
        out += _evenly(label_of, label_of[labels.value[at]].astype(np.int64), mass[at])
    return out
