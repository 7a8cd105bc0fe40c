"""Measures of a partition of rows into classes: of rows that are known, of labels, and bounds.

Definition: DBIL = sum |e| diam(e); diameter = max diam(e); split = the smallest distance between
rows of different classes; WCSD = sum over classes of the distances of all their pairs; WCSS = sum
of squared distances to the class's middle (means, most frequent categories); SBIL = sum |e| sum_A
width_A(e) / width_A(D); TBIL = sum over rows and hierarchies of height(lowest common label) /
height; EBIL = sum over rows and columns of the entropy (bits) inside the class; CTBIL = sum over
cells of a contingency table of |before - after|; C_AVG = n / (|E| k); discernibility = sum |e|^2
+ n per row of a class below k; classes <= floor(sum 1/k_i).
Source: Michel, "Personalizing privacy constraints in generalization-based anonymization models",
2019, sections 3.4, 5.3.2 and 6.3.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.sides import Cover
from halfmask.metrics.space import is_ordered, levels_by_height, line_positions, space_of
from halfmask.metrics.weighted import joint, pairs
from halfmask.table.tuples import contiguous, ones, tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.common_ground import SharedColumn
    from halfmask.metrics.sides import Sides
    from halfmask.metrics.space import Space
    from halfmask.table.table import Table
    from halfmask.table.tuples import Counts


@dataclass(frozen=True, eq=False)
class PointClasses:
    """Rows as points, in classes.

    Attributes:
        space: the rows, equal ones of a class once.
        ids: the class of each.
        counts: how many rows each stands for.
    """

    space: Space
    ids: NDArray[np.int64]
    counts: Counts

    @classmethod
    def of_rows(cls, space: Space, ids: NDArray[np.int64]) -> PointClasses:
        """The classes of rows that stand for themselves."""
        return cls(space, ids, ones(len(ids)))

    @cached_property
    def order(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The points in order of class, and where each class begins; the last entry is the end."""
        return sorted_classes(self.ids)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many rows each class holds."""
        order, starts = self.order
        return np.asarray(np.add.reduceat(self.counts[order], starts[:-1]))

    @cached_property
    def diameters(self) -> NDArray[np.float64]:
        """The largest distance in each class."""
        from halfmask.kernels import distance as kernels

        return np.asarray(kernels.diameters(self.space.points, *self.order))

    def widths(self, column: int) -> NDArray[np.float64]:
        """Per class, its size times its width in one column."""
        from halfmask.kernels import distance as kernels

        space = self.space
        wide = kernels.column_widths(space.points, space.places, column, *self.order)
        return np.asarray(self.sizes * wide)


def diameter_loss(classes: PointClasses) -> float:
    """DBIL: every row is charged the diameter of its class."""
    return math.fsum((classes.sizes * classes.diameters).tolist())


def largest_diameter(classes: PointClasses) -> float:
    """The diameter of the widest class."""
    return float(classes.diameters.max(initial=0.0))


def class_separation(classes: PointClasses) -> float:
    """The smallest distance between rows of different classes; infinite for a single class."""
    from halfmask.kernels import distance as kernels

    space, ids = classes.space, classes.ids
    first, tuples = distinct_rows(space)
    low = np.full(len(first), len(ids), dtype=np.int64)
    high = np.full(len(first), -1, dtype=np.int64)
    numbers = np.unique(ids, return_inverse=True)[1].reshape(-1)
    np.minimum.at(low, tuples, numbers)
    np.maximum.at(high, tuples, numbers)
    if (low < high).any():  # rows that are alike stand in different classes
        return 0.0
    return float(kernels.smallest_between(space.take(first).points, low))


def pair_distances(classes: PointClasses) -> float:
    """WCSD: the distances of all pairs inside classes, each pair once."""
    from halfmask.kernels import distance as kernels

    held = contiguous(classes.counts)
    return math.fsum(kernels.pair_sums(classes.space.points, *classes.order, held).tolist())


def squared_distances(classes: PointClasses) -> float:
    """WCSS: squared distances to the middle of the class.

    The middle has the mean of numbers (of those that are not missing) and the most frequent place
    of categories, the first one where several are.
    """
    order, starts = classes.order
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    points = classes.space.points
    held = classes.counts[order]
    away = np.zeros(len(order))
    for c in range(points.numbers.shape[1]):
        x = points.numbers[order, c]
        there = ~np.isnan(x)
        total = np.bincount(owner, np.where(there, x, 0.0) * held)
        count = np.bincount(owner, there * held)
        mean = total / np.maximum(count, 1)
        away += np.where(there, np.abs(x - mean[owner]), np.where(count[owner], points.spans[c], 0))
    for c in range(points.codes.shape[1]):
        codes = points.codes[order, c].astype(np.int64)
        size, begin = int(points.sizes[c]), int(points.offsets[c])
        middle = _most_frequent(owner, codes, size, held)[owner]
        away += points.table[begin + codes * size + middle]
    for m in range(points.marks.shape[1]):
        marks = points.marks[order, m].astype(np.int64)
        middle = _most_frequent(owner, marks, int(marks.max(initial=0)) + 1, held)[owner]
        away += np.where(marks != middle, points.steps[m], 0.0)
    return math.fsum((away**2 * held).tolist())


def span_loss(classes: PointClasses, original: Space | None = None) -> float:
    """SBIL: per class its size times the widths of its columns, each relative to the table's.

    Args:
        classes: the rows.
        original: the table, where ``classes`` hold only a part of it.
    """
    from halfmask.kernels import distance as kernels

    space = classes.space
    table = original or space
    rows, ends = np.arange(len(table)), np.array([0, len(table)])
    terms: list[float] = []
    for c, weight in enumerate(space.weights.tolist()):
        span = float(kernels.column_widths(table.points, table.places, c, rows, ends)[0])
        if span:
            terms += (classes.widths(c) * (weight / span)).tolist()
    return math.fsum(terms)


def tree_loss(classes: PointClasses) -> float:
    """TBIL: for every row and hierarchy, the height of the class's common label as a share."""
    chosen = [c for c, line in enumerate(classes.space.ordered) if not line]
    return math.fsum(term for c in chosen for term in classes.widths(c).tolist())


def entropy_loss(
    table: Table,
    ids: NDArray[np.int64],
    columns: Sequence[str],
    counts: Counts,
    rows: NDArray[np.int64] | None = None,
) -> float:
    """EBIL: the entropy of each row's value given its class, in bits, over ``columns``.

    Args:
        table: the table.
        ids: the classes.
        columns: whose entropy is added up.
        counts: how many rows each stands for.
        rows: which rows the classes speak of; None: all.
    """
    classes, owner = np.unique(ids, return_inverse=True)
    sizes = tally(owner.reshape(-1), len(classes), counts)
    terms: list[float] = []
    for name in columns:
        encoded = table.encode(name)
        codes = encoded.codes if rows is None else encoded.codes[rows]
        group, _, held = pairs(
            owner.reshape(-1).astype(np.int64), codes, len(encoded.values), len(classes), counts
        )
        terms += (held * np.log2(sizes[group] / held)).tolist()
    return math.fsum(terms)


def generalized_cells(classes: PointClasses) -> int:
    """CTBIL over the contingency tables of every column and every two columns.

    A row whose class differs in the columns of a table leaves its cell for the cell of a wider
    label, which changes two cells by one each.
    """
    order, starts = classes.order
    places, begins = classes.space.places[order], starts[:-1]
    same = np.minimum.reduceat(places, begins) == np.maximum.reduceat(places, begins)
    sizes = classes.sizes
    columns = range(places.shape[1])
    kept = sum(int(sizes[same[:, a] & same[:, b]].sum()) for a in columns for b in range(a + 1))
    tables = places.shape[1] * (places.shape[1] + 1) // 2
    return 2 * (tables * int(sizes.sum()) - kept)


def average_class(sizes: NDArray[np.int64], k: int) -> float:
    """C_AVG: how many times larger than ``k`` classes of these sizes are on average."""
    return float(Fraction(int(sizes.sum()), len(sizes) * k))


def discernibility(sizes: NDArray[np.int64], k: int) -> int:
    """Discernibility as it was first printed, not divided: classes below ``k`` cost n a row."""
    # Python's integers: squares of very large classes leave 64 bits.
    large, small = sizes[sizes >= k].astype(object), int(sizes[sizes < k].sum())
    return int((large**2).sum()) + small * int(sizes.sum())


def class_limit(demands: NDArray[np.int64]) -> int:
    """The most classes that people with these demands can form: floor(sum 1/k_i), exactly.

    Floats would cut valid solutions: ten times 1/10 adds up to 0.9999999999999999.
    """
    values, counts = np.unique(demands, return_counts=True)
    total = sum(
        (Fraction(int(c), int(k)) for k, c in zip(values, counts, strict=True)), Fraction(0)
    )
    return math.floor(total)


def distinct_rows(space: Space) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first row of every distinct tuple, and the tuple of each row."""
    columns = [(space.places[:, c], int(size)) for c, size in enumerate(space.sizes)]
    tuples, count = joint(columns)
    first = np.zeros(count, dtype=np.int64)
    first[tuples[::-1]] = np.arange(len(tuples))[::-1]
    return first, tuples


def sorted_classes(ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows in order of class, and where each class begins; the last entry is the end."""
    order = np.argsort(ids, kind="stable")
    _, first = np.unique(np.asarray(ids)[order], return_index=True)
    return order.astype(np.int64), np.append(first, len(order)).astype(np.int64)


def _most_frequent(
    owner: NDArray[np.int64], codes: NDArray[np.int64], size: int, held: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The most frequent code of each class, the lowest where several are."""
    group, code, counts = pairs(owner, codes, size, int(owner[-1]) + 1, held)
    order = np.lexsort((code, -counts, group))
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    return np.asarray(code[order][first])


def classes_of_entries(both: Sides) -> NDArray[np.int64] | None:
    """The class of each entry of the original, -1 where it was left out; None if values don't tell.

    Values tell where each of them has one published label and the classes that follow from this
    have the published sizes.
    """
    before, after = [], []
    for column in both.quasi:
        inside = column.covered < column.known
        if column.foreign or (np.bincount(column.covered[inside]) > 1).any():
            return None
        label = np.full(column.known, column.labels, dtype=np.int32)  # the last: never published
        owner = np.repeat(np.arange(column.labels), column.sizes)
        label[column.covered[inside]] = owner[inside]
        before.append(label[column.before])
        after.append(column.after)
    sizes = [column.labels + 1 for column in both.quasi]
    stacked = [np.concatenate(pair) for pair in zip(before, after, strict=True)]
    keys, count = joint(list(zip(stacked, sizes, strict=True)))
    own, published = keys[: len(before[0])], keys[len(before[0]) :]
    wanted = tally(published, count, both.released_counts)
    found = tally(own, count, both.original_counts)
    if (found != wanted)[wanted > 0].any():
        return None
    return np.where(wanted[own] > 0, own, -1)


def released_class_sizes(both: Sides) -> NDArray[np.int64]:
    """How many rows each published class holds.

    Definition: as in ``halfmask.metrics.partition``, where the width of a class in a column is that
    of its label: the range that it covers, or the height of its lowest common label.
    Source: Michel, "Personalizing privacy constraints in generalization-based anonymization
    models", 2019, section 3.4.2.
    """
    keys, count = joint([(column.after, column.labels) for column in both.quasi])
    return tally(keys, count, both.released_counts)


def column_weight(both: Sides, name: str) -> float:
    """The weight of a column."""
    column = both.original.schema.columns.get(name)
    return 1.0 if column is None else float(column.weight)


def tree_weight(both: Sides) -> float:
    """The weight of all columns whose values do not stand on a line."""
    return sum(
        column_weight(both, c.name) for c in both.quasi if not is_ordered(both.original, c.name)
    )


def released_span_loss(both: Sides) -> float:
    """SBIL: the width of each row's labels, relative to the table's."""
    total = 0.0
    for column in both.quasi:
        present = np.flatnonzero(column.leaf_rows)
        whole = _label_widths(both, column, np.array([0, len(present)]), present)[0]
        if whole:
            wide = _label_widths(both, column, column.starts, column.covered)
            total += column_weight(both, column.name) * float(wide @ column.label_rows) / whole
    return total


def released_tree_loss(both: Sides) -> float:
    """TBIL: the height of each row's labels as a share of that of the hierarchy."""
    return sum(
        column_weight(both, c.name)
        * float(_label_widths(both, c, c.starts, c.covered) @ c.label_rows)
        for c in both.quasi
        if not is_ordered(both.original, c.name)
    )


def contingency_loss(both: Sides) -> int:
    """CTBIL over the contingency tables of every column and every two columns."""
    cells = [_cells(column) for column in both.quasi]
    total, own = 0, len(both.original)
    for a in range(len(cells)):
        for b in range(a + 1):
            chosen = [cells[a]] if a == b else [cells[a], cells[b]]
            keys, count = joint([(np.concatenate((old, new)), size) for old, new, size in chosen])
            old = tally(keys[:own], count, both.original_counts)
            new = tally(keys[own:], count, both.released_counts)
            total += int(np.abs(old - new).sum())
    return total


def _cells(column: SharedColumn) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """The cell of each entry of either side; a label of one value is that value."""
    cell = column.leaves + np.arange(column.labels)  # behind the leaves: wide labels are new cells
    single = column.sizes == 1
    cell[single] = column.covered[column.starts[:-1][single]]
    return column.before, cell.astype(np.int32)[column.after], column.leaves + column.labels


def _label_widths(
    both: Sides, column: SharedColumn, starts: NDArray[np.int64], covered: NDArray[np.int64]
) -> NDArray[np.float64]:
    """How wide each label is, 0 to 1; a value that the original does not know is a point."""
    table, known = both.original, covered < column.known
    inside, begins = np.where(known, covered, 0), starts[:-1]
    if is_ordered(table, column.name):
        at = line_positions(table, column.name)[inside]
        missing = np.isnan(at)
        low = np.minimum.reduceat(np.where(missing, np.inf, at), begins)
        high = np.maximum.reduceat(np.where(missing, -np.inf, at), begins)
        # A missing value is 1 from every other: a label over it and more is as wide as can be.
        mixed = np.logical_or.reduceat(missing, begins) & (np.diff(starts) > 1)
        wide = np.where(high >= low, high - low, 0.0)
        return np.where(mixed, 1.0, wide)
    levels = levels_by_height(table.hierarchy(column.name))
    wide = np.zeros(len(begins))
    for level in levels:
        labels = level[inside]
        wide += np.minimum.reduceat(labels, begins) != np.maximum.reduceat(labels, begins)
    return wide / max(len(levels), 1)


@dataclass(frozen=True, slots=True)
class LossBounds:
    """The least and the most that DBIL and EBIL of the published rows can be."""

    dbil: tuple[float, float]
    ebil: tuple[float, float]


def class_bounds(both: Sides, pairs: int) -> LossBounds | None:
    """Bound the losses of the rows that stay.

    Definition: a class of m rows consists of m rows that its labels cover, whoever they are. Its
    diameter is at most the largest distance of two rows that fit, and at least the least radius
    that holds m of them around one of them. The entropy of its values is least where the most
    frequent values that fit fill it, and most where it holds all values as evenly as their rows
    allow.
    Source: ours, for DBIL and EBIL of ``halfmask.metrics.partition``.

    None where some class has fewer rows that fit than it publishes, so that its rows stand for
    nobody, or where more than ``pairs`` pairs of rows would have to be looked at.
    """
    from halfmask.kernels import lattice as kernels

    columns = both.quasi
    found = Cover(columns)
    fitting = found.covered_tuples(pairs)
    if fitting is None:
        return None
    starts, fits = fitting
    rows = tally(found.ids, found.count, both.original_counts)
    sizes = found.released.rows.astype(np.int64)
    upto = np.concatenate(([0], np.cumsum(rows[fits])))  # a class's rows are a difference of two
    if (upto[starts[1:]] - upto[starts[:-1]] < sizes).any():
        return None
    codes = np.stack([column.before[found.first] for column in columns])
    space = space_of(both.original, [column.name for column in columns])
    classes = kernels.Fits(sizes, starts, fits, rows, found.first, codes)
    dbil = kernels.radii(space.points, classes)
    ebil = kernels.entropies(classes, max(column.leaves for column in columns))
    return LossBounds(dbil, ebil)
