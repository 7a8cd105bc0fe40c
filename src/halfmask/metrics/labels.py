"""Measures of classes that only their published labels tell of, without knowing the rows inside.

Definition: as in ``halfmask.metrics.partition``, where the width of a class in a column is that of
its label: the range that it covers, or the height of its lowest common label.
Source: Michel, "Personalizing privacy constraints in generalization-based anonymization models",
2019, section 3.4.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.codes import joint
from halfmask.metrics.space import is_ordered, positions, rooted_height
from halfmask.metrics.weighted import tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.shared_column import SharedColumn
    from halfmask.metrics.sides import Sides


def paired(both: Sides) -> NDArray[np.int64] | None:
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


def class_sizes(both: Sides) -> NDArray[np.int64]:
    """How many rows each published class holds."""
    keys, count = joint([(column.after, column.labels) for column in both.quasi])
    return tally(keys, count, both.released_counts)


def weight(both: Sides, name: str) -> float:
    """The weight of a column."""
    column = both.original.schema.columns.get(name)
    return 1.0 if column is None else float(column.weight)


def trees(both: Sides) -> float:
    """The weight of all columns whose values do not stand on a line."""
    return sum(weight(both, c.name) for c in both.quasi if not is_ordered(both.original, c.name))


def span_loss(both: Sides) -> float:
    """SBIL: the width of each row's labels, relative to the table's."""
    total = 0.0
    for column in both.quasi:
        present = np.flatnonzero(column.leaf_rows)
        whole = _widths(both, column, np.array([0, len(present)]), present)[0]
        if whole:
            wide = _widths(both, column, column.starts, column.covered)
            total += weight(both, column.name) * float(wide @ column.label_rows) / whole
    return total


def tree_loss(both: Sides) -> float:
    """TBIL: the height of each row's labels as a share of that of the hierarchy."""
    return sum(
        weight(both, c.name) * float(_widths(both, c, c.starts, c.covered) @ c.label_rows)
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
    cell = column.leaves + np.arange(column.labels)
    single = column.sizes == 1
    cell[single] = column.covered[column.starts[:-1][single]]
    return column.before, cell.astype(np.int32)[column.after], column.leaves + column.labels


def _widths(
    both: Sides, column: SharedColumn, starts: NDArray[np.int64], covered: NDArray[np.int64]
) -> NDArray[np.float64]:
    """How wide each label is, 0 to 1; a value that the original does not know is a point."""
    table, known = both.original, covered < column.known
    inside, begins = np.where(known, covered, 0), starts[:-1]
    if is_ordered(table, column.name):
        at = positions(table, column.name)[inside]
        missing = np.isnan(at)
        low = np.minimum.reduceat(np.where(missing, np.inf, at), begins)
        high = np.maximum.reduceat(np.where(missing, -np.inf, at), begins)
        mixed = np.logical_or.reduceat(missing, begins) & (np.diff(starts) > 1)
        wide = np.where(high >= low, high - low, 0.0)
        return np.where(mixed, 1.0, wide)
    hierarchy = table.hierarchy(column.name)
    height = rooted_height(hierarchy)
    wide = np.zeros(len(begins))
    for level in range(height):
        labels = hierarchy.maps[level][inside]
        wide += np.minimum.reduceat(labels, begins) != np.maximum.reduceat(labels, begins)
    return wide / max(height, 1)
