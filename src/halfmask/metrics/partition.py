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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.space import Space
    from halfmask.table.table import Table


def diameter_loss(space: Space, ids: NDArray[np.int64]) -> float:
    """DBIL: every row is charged the diameter of its class."""
    sizes, widths = diameters(space, ids)
    return math.fsum((sizes * widths).tolist())


def diameters(
    space: Space, ids: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The size and the diameter of every class."""
    from halfmask.kernels import space as kernels

    order, starts = sorted_classes(ids)
    return np.diff(starts), np.asarray(kernels.diameters(space.points, order, starts))


def largest_diameter(space: Space, ids: NDArray[np.int64]) -> float:
    """The diameter of the widest class."""
    return float(diameters(space, ids)[1].max(initial=0.0))


def split(space: Space, ids: NDArray[np.int64]) -> float:
    """The smallest distance between rows of different classes; infinite for a single class."""
    from halfmask.kernels import space as kernels

    return float(kernels.smallest_between(space.points, np.asarray(ids, dtype=np.int64)))


def pair_distances(space: Space, ids: NDArray[np.int64]) -> float:
    """WCSD: the distances of all pairs inside classes, each pair once."""
    from halfmask.kernels import space as kernels

    order, starts = sorted_classes(ids)
    return math.fsum(kernels.pair_sums(space.points, order, starts).tolist())


def squared_distances(space: Space, ids: NDArray[np.int64]) -> float:
    """WCSS: squared distances to the middle of the class.

    The middle has the mean of numbers (of those that are not missing) and the most frequent place
    of categories, the first one where several are.
    """
    order, starts = sorted_classes(ids)
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    points = space.points
    away = np.zeros(len(order))
    for c in range(points.numbers.shape[1]):
        x = points.numbers[order, c]
        there = ~np.isnan(x)
        total = np.bincount(owner, np.where(there, x, 0.0))
        count = np.bincount(owner, there)
        mean = total / np.maximum(count, 1)
        away += np.where(there, np.abs(x - mean[owner]), np.where(count[owner], points.spans[c], 0))
    for c in range(points.codes.shape[1]):
        codes = points.codes[order, c].astype(np.int64)
        size, begin = int(points.sizes[c]), int(points.offsets[c])
        middle = _most_frequent(owner, codes, size)[owner]
        away += points.table[begin + codes * size + middle]
    for m in range(points.marks.shape[1]):
        marks = points.marks[order, m].astype(np.int64)
        middle = _most_frequent(owner, marks, int(marks.max(initial=0)) + 1)[owner]
        away += np.where(marks != middle, points.steps[m], 0.0)
    return math.fsum((away**2).tolist())


def span_loss(space: Space, ids: NDArray[np.int64]) -> float:
    """SBIL: per class its size times the widths of its columns, each relative to the table's."""
    return math.fsum(_widths(space, ids, range(len(space.columns))).tolist())


def tree_loss(space: Space, ids: NDArray[np.int64]) -> float:
    """TBIL: for every row and hierarchy, the height of the class's common label as a share."""
    chosen = [c for c, line in enumerate(space.ordered) if not line]
    return math.fsum(_widths(space, ids, chosen).tolist())


def entropy_loss(table: Table, ids: NDArray[np.int64], columns: Sequence[str]) -> float:
    """EBIL: the entropy of each row's value given its class, in bits, over ``columns``."""
    _, owner = np.unique(ids, return_inverse=True)
    sizes = np.bincount(owner.reshape(-1))
    terms: list[float] = []
    for name in columns:
        encoded = table.encode(name)
        pairs = owner.reshape(-1).astype(np.int64) * len(encoded.values) + encoded.codes
        distinct, counts = np.unique(pairs, return_counts=True)
        of = sizes[distinct // len(encoded.values)]
        terms += (counts * np.log2(of / counts)).tolist()
    return math.fsum(terms)


def contingency_loss(
    table: Table, published: Sequence[str | None], original: Sequence[str | None]
) -> int:
    """CTBIL of one contingency table: the sum over its cells of |before - after|.

    Args:
        table: gives the number of rows, which both lists must have.
        published: the cell of each row after, as text.
        original: the cell of each row before.
    """
    from collections import Counter

    if not len(published) == len(original) == len(table):
        raise ValueError("Both lists must hold one cell per row.")
    before, after = Counter(original), Counter(published)
    return sum(abs(before[cell] - after[cell]) for cell in before.keys() | after.keys())


def average_class(ids: NDArray[np.int64], k: int) -> float:
    """C_AVG: how many times larger than ``k`` classes are on average."""
    return float(Fraction(len(ids), len(np.unique(ids)) * k))


def discernibility(ids: NDArray[np.int64], k: int) -> int:
    """Discernibility as it was first printed, not divided: classes below ``k`` cost n a row."""
    sizes = np.unique(ids, return_counts=True)[1].astype(object)
    return int(sum(s * s if s >= k else s * len(ids) for s in sizes))


def class_limit(demands: NDArray[np.int64]) -> int:
    """The most classes that people with these demands can form: floor(sum 1/k_i), exactly.

    Floats would cut valid solutions: ten times 1/10 adds up to 0.9999999999999999.
    """
    values, counts = np.unique(demands, return_counts=True)
    total = sum(
        (Fraction(int(c), int(k)) for k, c in zip(values, counts, strict=True)), Fraction(0)
    )
    return math.floor(total)


def sorted_classes(ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows in order of class, and where each class begins; the last entry is the end."""
    order = np.argsort(ids, kind="stable")
    _, first = np.unique(np.asarray(ids)[order], return_index=True)
    return order.astype(np.int64), np.append(first, len(order)).astype(np.int64)


def _widths(
    space: Space, ids: NDArray[np.int64], columns: Sequence[int] | range
) -> NDArray[np.float64]:
    """Per class and column, size times width; the table's width is one weight."""
    from halfmask.kernels import space as kernels

    order, starts = sorted_classes(ids)
    whole = np.array([0, len(order)], dtype=np.int64)
    out = []
    for c in columns:
        wide = np.asarray(kernels.column_widths(space.points, space.places, c, order, starts))
        span = float(kernels.column_widths(space.points, space.places, c, order, whole)[0])
        out.append(np.diff(starts) * wide * (space.weights[c] / span if span else 0.0))
    return np.concatenate(out) if out else np.zeros(0)


def _most_frequent(
    owner: NDArray[np.int64], codes: NDArray[np.int64], size: int
) -> NDArray[np.int64]:
    """The most frequent code of each class, the lowest where several are."""
    pairs, counts = np.unique(owner * size + codes, return_counts=True)
    order = np.lexsort((pairs, -counts, pairs // size))
    classes = (pairs // size)[order]
    first = np.flatnonzero(np.diff(classes, prepend=-1))
    return np.asarray(pairs[order][first] % size)
