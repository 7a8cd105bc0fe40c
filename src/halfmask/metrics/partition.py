"""Measures of a partition of rows into classes, on the distance of ``halfmask.metrics.space``.

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
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.codes import joint, pairs
from halfmask.metrics.weighted import tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.space import Space
    from halfmask.metrics.weighted import Counts
    from halfmask.table.table import Table


def diameter_loss(space: Space, ids: NDArray[np.int64], counts: Counts = None) -> float:
    """DBIL: every row is charged the diameter of its class."""
    sizes, widths = diameters(space, ids, counts)
    return math.fsum((sizes * widths).tolist())


def diameters(
    space: Space, ids: NDArray[np.int64], counts: Counts = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The size and the diameter of every class."""
    from halfmask.kernels import space as kernels

    order, starts = sorted_classes(ids)
    widths = np.asarray(kernels.diameters(space.points, order, starts))
    return _rows(order, starts, counts), widths


def largest_diameter(space: Space, ids: NDArray[np.int64]) -> float:
    """The diameter of the widest class."""
    return float(diameters(space, ids)[1].max(initial=0.0))


def split(space: Space, ids: NDArray[np.int64]) -> float:
    """The smallest distance between rows of different classes; infinite for a single class."""
    from halfmask.kernels import space as kernels

    first, tuples = distinct(space)
    low = np.full(len(first), len(ids), dtype=np.int64)
    high = np.full(len(first), -1, dtype=np.int64)
    numbers = np.unique(ids, return_inverse=True)[1].reshape(-1)
    np.minimum.at(low, tuples, numbers)
    np.maximum.at(high, tuples, numbers)
    if (low < high).any():  # rows that are alike stand in different classes
        return 0.0
    return float(kernels.smallest_between(space.take(first).points, low))


def pair_distances(space: Space, ids: NDArray[np.int64], counts: Counts = None) -> float:
    """WCSD: the distances of all pairs inside classes, each pair once."""
    from halfmask.kernels import space as kernels

    order, starts = sorted_classes(ids)
    held = np.ones(len(ids), dtype=np.int64) if counts is None else counts
    return math.fsum(kernels.pair_sums(space.points, order, starts, held).tolist())


def squared_distances(space: Space, ids: NDArray[np.int64], counts: Counts = None) -> float:
    """WCSS: squared distances to the middle of the class.

    The middle has the mean of numbers (of those that are not missing) and the most frequent place
    of categories, the first one where several are.
    """
    order, starts = sorted_classes(ids)
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    points = space.points
    held = np.ones(len(order), dtype=np.int64) if counts is None else counts[order]
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


def span_loss(
    space: Space, ids: NDArray[np.int64], original: Space | None = None, counts: Counts = None
) -> float:
    """SBIL: per class its size times the widths of its columns, each relative to the table's.

    Args:
        space: the rows.
        ids: their classes.
        original: the table, where ``space`` holds only a part of it.
        counts: how many rows each stands for; None: one.
    """
    from halfmask.kernels import space as kernels

    table = original or space
    rows, ends = np.arange(len(table)), np.array([0, len(table)])
    terms: list[float] = []
    for c, weight in enumerate(space.weights.tolist()):
        span = float(kernels.column_widths(table.points, table.places, c, rows, ends)[0])
        if span:
            terms += (_widths(space, ids, c, counts) * (weight / span)).tolist()
    return math.fsum(terms)


def tree_loss(space: Space, ids: NDArray[np.int64], counts: Counts = None) -> float:
    """TBIL: for every row and hierarchy, the height of the class's common label as a share."""
    chosen = [c for c, line in enumerate(space.ordered) if not line]
    return math.fsum(term for c in chosen for term in _widths(space, ids, c, counts).tolist())


def entropy_loss(
    table: Table,
    ids: NDArray[np.int64],
    columns: Sequence[str],
    rows: NDArray[np.int64] | None = None,
    counts: Counts = None,
) -> float:
    """EBIL: the entropy of each row's value given its class, in bits, over ``columns``.

    Args:
        table: the table.
        ids: the classes.
        columns: whose entropy is added up.
        rows: which rows the classes speak of; None: all.
        counts: how many rows each stands for; None: one.
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


def generalized_cells(space: Space, ids: NDArray[np.int64], counts: Counts = None) -> int:
    """CTBIL over the contingency tables of every column and every two columns.

    A row whose class differs in the columns of a table leaves its cell for the cell of a wider
    label, which changes two cells by one each.
    """
    order, starts = sorted_classes(ids)
    places, begins = space.places[order], starts[:-1]
    same = np.minimum.reduceat(places, begins) == np.maximum.reduceat(places, begins)
    sizes = _rows(order, starts, counts)
    columns = range(places.shape[1])
    kept = sum(int(sizes[same[:, a] & same[:, b]].sum()) for a in columns for b in range(a + 1))
    tables = places.shape[1] * (places.shape[1] + 1) // 2
    return 2 * (tables * int(sizes.sum()) - kept)


def class_sizes(ids: NDArray[np.int64], counts: Counts = None) -> NDArray[np.int64]:
    """How many rows each class holds."""
    values, owner = np.unique(ids, return_inverse=True)
    return tally(owner.reshape(-1), len(values), counts)


def average_class(ids: NDArray[np.int64], k: int, counts: Counts = None) -> float:
    """C_AVG: how many times larger than ``k`` classes are on average."""
    sizes = class_sizes(ids, counts)
    return float(Fraction(int(sizes.sum()), len(sizes) * k))


def discernibility(ids: NDArray[np.int64], k: int, counts: Counts = None) -> int:
    """Discernibility as it was first printed, not divided: classes below ``k`` cost n a row."""
    sizes = class_sizes(ids, counts)
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


def distinct(space: Space) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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


def _rows(order: NDArray[np.int64], starts: NDArray[np.int64], counts: Counts) -> NDArray[np.int64]:
    """How many rows each class holds."""
    if counts is None:
        return np.diff(starts)
    return np.asarray(np.add.reduceat(counts[order], starts[:-1]))


def _widths(
    space: Space, ids: NDArray[np.int64], column: int, counts: Counts
) -> NDArray[np.float64]:
    """Per class, its size times its width in one column."""
    from halfmask.kernels import space as kernels

    order, starts = sorted_classes(ids)
    wide = kernels.column_widths(space.points, space.places, column, order, starts)
    return np.asarray(_rows(order, starts, counts) * wide)


def _most_frequent(
    owner: NDArray[np.int64], codes: NDArray[np.int64], size: int, held: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The most frequent code of each class, the lowest where several are."""
    group, code, counts = pairs(owner, codes, size, int(owner[-1]) + 1, held)
    order = np.lexsort((code, -counts, group))
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    return np.asarray(code[order][first])
