"""Distances between original and released rows, column by column.

Definition: numeric columns differ by |a - b| / range of the original and at most 1, where a label
stands for the mean of the values it covers; other columns by 0 for the same value, 1 - 1/m for a
label that covers the value and m - 1 others, and 1 otherwise. Columns of very many values differ by
0 for the label that covers the value in most released rows, and by 1 otherwise.
Source: Gower, "A general coefficient of similarity and some of its properties", 1971.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.weighted import class_rows, joint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.common_ground import SharedColumn

_CELLS = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class RowDistances:
    """The columns in which rows are compared, ready for the kernel."""

    columns: tuple[SharedColumn, ...]
    numeric: NDArray[np.bool_]
    tables: NDArray[np.float32]
    offsets: NDArray[np.int64]
    widths: NDArray[np.int64]
    leaf_numbers: tuple[NDArray[np.float64], ...]
    label_numbers: tuple[NDArray[np.float64], ...]

    def nearest(
        self,
        leaves: NDArray[np.int64],
        labels: NDArray[np.int64] | None = None,
        *,
        k: int = 1,
        seed: int = 0,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The nearest released rows of the entries ``leaves`` of the original, and how far.

        Args:
            leaves: which entries of the original.
            labels: among which entries of the release, whose rows are numbered through; None: all.
            k: how many.
            seed: breaks ties.
        """
        from halfmask.kernels.distance import ColumnDistances, ComparedRows, nearest_rows

        left = np.stack([c.before[leaves] for c in self.columns], axis=1).astype(np.int32)
        a = np.stack([n[left[:, c]] for c, n in enumerate(self.leaf_numbers)], axis=1)
        # Rows with the same labels are as far: each combination of labels is looked at once.
        held = [c.after if labels is None else c.after[labels] for c in self.columns]
        counts = self.columns[0].after_counts
        counts = counts if labels is None else counts[labels]
        sizes = [c.labels for c in self.columns]
        ids, count = joint(list(zip(held, sizes, strict=True)))
        members = class_rows(ids, count, counts)
        first = members.at(members.starts[:-1])[0]
        right = np.stack([codes[first] for codes in held], axis=1).astype(np.int32)
        b = np.stack([n[right[:, c]] for c, n in enumerate(self.label_numbers)], axis=1)
        by = ColumnDistances(self.numeric, self.tables, self.offsets, self.widths)
        found, far = nearest_rows(
            ComparedRows(left, a), ComparedRows(right, b), by, members.starts, k, seed
        )
        found = np.asarray(found)
        rows = members.at(np.maximum(found, 0).ravel())[1].reshape(found.shape)
        return np.where(found >= 0, rows, -1), np.asarray(far)

    def matrix(self, leaves: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """All distances between some entries of the original and some of the release."""
        out = np.zeros((len(leaves), len(labels)))
        for c, column in enumerate(self.columns):
            left, right = column.before[leaves], column.after[labels]
            if self.numeric[c]:
                a, b = self.leaf_numbers[c][left], self.label_numbers[c][right]
                out += np.minimum(np.abs(a[:, None] - b[None, :]), 1.0)
            else:
                cells = left[:, None].astype(np.int64) * self.widths[c] + right[None, :]
                out += self.tables[self.offsets[c] + cells]
        return out


def row_distances(columns: Sequence[SharedColumn]) -> RowDistances:
    """Prepare the comparison of ``columns``."""
    numeric, tables, offsets, widths = [], [], [0], []
    leaf_numbers, label_numbers = [], []
    for column in columns:
        numbers = column.numbers
        large = column.leaves * column.labels > _CELLS
        numeric.append(numbers is not None or large)
        if numbers is not None:
            own = numbers[column.leaf_rows > 0]
            span = float(own.max() - own.min()) or 1.0
            leaf_numbers.append(numbers / span)
            label_numbers.append(column.label_numbers / span)
            table = np.zeros(0, dtype=np.float32)
        elif large:  # too many values for a table: numbers that are the same or 1 apart
            leaf_numbers.append(_likeliest(column))
            label_numbers.append(np.arange(column.labels, dtype=np.float64))
            table = np.zeros(0, dtype=np.float32)
        else:
            leaf_numbers.append(np.zeros(column.leaves))
            label_numbers.append(np.zeros(column.labels))
            table = _table(column)
        tables.append(table)
        widths.append(column.labels)
        offsets.append(offsets[-1] + len(table))
    return RowDistances(
        tuple(columns),
        np.array(numeric),
        np.concatenate(tables) if tables else np.zeros(0, np.float32),
        np.array(offsets[:-1], dtype=np.int64),
        np.array(widths, dtype=np.int64),
        tuple(leaf_numbers),
        tuple(label_numbers),
    )


def _table(column: SharedColumn) -> NDArray[np.float32]:
    out = np.ones((column.leaves, column.labels), dtype=np.float32)
    owner = np.repeat(np.arange(column.labels), column.sizes)
    out[column.covered, owner] = (1.0 - 1.0 / column.sizes)[owner]
    return out.ravel()


def _likeliest(column: SharedColumn) -> NDArray[np.float64]:
    """Per leaf, the label that covers it in most released rows; none of them where none does."""
    out = np.full(column.leaves, -2.0)  # 1 or more from every label
    owner = np.repeat(np.arange(column.labels), column.sizes)
    order = np.argsort(column.label_rows[owner], kind="stable")  # the last written stays
    out[column.covered[order]] = owner[order]
    return out
