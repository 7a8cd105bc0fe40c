"""The cells of a table of figures: categories of each column, totals, and what adds up to what.

A cell is one category of each column; the category of a total stands for all people. What adds up
along one column does so for every choice of categories of the other columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

MOST_CELLS = 1 << 22
TOTAL, MISSING = "Total", "(missing)"


@dataclass(frozen=True, slots=True)
class Axis:
    """The categories of one column, and which of them add up to which.

    Attributes:
        column: the column.
        labels: one per category, the finest ones first, a total last.
        sums: (whole, parts) by position: the parts are disjoint and together the whole.
    """

    column: str
    labels: tuple[str, ...]
    sums: tuple[tuple[int, tuple[int, ...]], ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def to_dict(self) -> dict[str, Any]:
        """The axis as plain values: the parts of every label that has parts."""
        parts: dict[str, list[list[str]]] = {}
        for whole, listed in self.sums:
            parts.setdefault(self.labels[whole], []).append([self.labels[one] for one in listed])
        return {"column": self.column, "labels": list(self.labels), "parts": parts}


@dataclass(frozen=True)
class Grid:
    """All cells of a table of figures, numbered with the last column fastest.

    Example:
        >>> sex = Axis("sex", ("f", "m", "Total"), ((2, (0, 1)),))
        >>> Grid((sex,)).relations.toarray().tolist()
        [[1.0, 1.0, -1.0]]
    """

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if self.size > MOST_CELLS:
            raise ParameterError(
                "cells", self.size, f"at most {MOST_CELLS:,}: fewer columns or coarser levels"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """How many categories each column has."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return prod(self.shape)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that span the table."""
        return tuple(axis.column for axis in self.axes)

    @cached_property
    def relations(self) -> Any:
        """A sparse matrix, one line per sum: 1 for each part, -1 for the whole."""
        from scipy.sparse import coo_array

        numbers = np.arange(self.size, dtype=np.int64).reshape(self.shape)
        rows, cells, signs, done = [], [], [], 0
        for side, axis in enumerate(self.axes):
            lines = np.moveaxis(numbers, side, 0).reshape(len(axis), -1)
            for whole, parts in axis.sums:
                picked = np.array([*parts, whole])
                count = lines.shape[1]
                rows.append(np.tile(np.arange(done, done + count), len(picked)))
                cells.append(lines[picked].ravel())
                signs.append(np.repeat([1.0] * len(parts) + [-1.0], count))
                done += count
        if not rows:
            return coo_array((0, self.size)).tocsr()
        where = (np.concatenate(rows), np.concatenate(cells))
        return coo_array((np.concatenate(signs), where), shape=(done, self.size)).tocsr()

    def categories(self, cells: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Per column, the position of the category of each cell."""
        return tuple(np.unravel_index(cells, self.shape))

    def named(self, cells: NDArray[np.int64] | None = None) -> dict[str, pa.Array]:
        """Per column, the label of each cell."""
        chosen = np.arange(self.size) if cells is None else cells
        return {
            axis.column: pa.array(axis.labels, pa.string()).take(pa.array(place))
            for axis, place in zip(self.axes, self.categories(chosen), strict=True)
        }

    def number(self, rows: pa.Table) -> NDArray[np.int64]:
        """The cell that each row of labels names; -1 where a label is unknown."""
        found = np.zeros(rows.num_rows, dtype=np.int64)
        known = np.ones(rows.num_rows, dtype=bool)
        for axis in self.axes:
            labels = pa.array(axis.labels, pa.string())
            codes = pc.fill_null(pc.index_in(rows[axis.column], value_set=labels), -1).to_numpy()
            known &= codes >= 0
            found = found * len(axis) + np.maximum(codes, 0)
        return np.where(known, found, -1)


def tree_axis(column: str, leaves: Sequence[str], parts: Mapping[str, object]) -> Axis:
    """The axis of ``leaves`` and of wholes that are named with their parts.

    Args:
        column: the column.
        leaves: labels that may have no parts.
        parts: label to its parts, or to several lists of parts, each of which adds up to it.

    Raises:
        InputError: something is its own part.
    """
    divisions = {whole: _divisions(column, listed) for whole, listed in parts.items()}
    every = [one for lists in divisions.values() for listed in lists for one in listed]
    labels = tuple(dict.fromkeys([*leaves, *every, *divisions]))
    # Wholes last, so that totals stand behind what they are totals of.
    labels = (*(x for x in labels if x not in divisions), *(x for x in labels if x in divisions))
    place = {label: i for i, label in enumerate(labels)}
    _refuse_circles(column, divisions)
    sums = tuple(
        (place[whole], tuple(place[one] for one in listed))
        for whole, lists in divisions.items()
        for listed in lists
    )
    return Axis(column, labels, sums)


def _divisions(column: str, listed: object) -> list[list[str]]:
    if not isinstance(listed, list | tuple) or not listed:
        raise InputError(f"The parts of column '{column}' are no lists: give label = [parts].")
    lists = [list(one) for one in listed] if isinstance(listed[0], list | tuple) else [list(listed)]
    if any(len(set(one)) != len(one) or not all(isinstance(x, str) for x in one) for one in lists):
        raise InputError(f"Parts of column '{column}' are named twice, or are no text: list each.")
    return lists


def _refuse_circles(column: str, divisions: Mapping[str, list[list[str]]]) -> None:
    left = {whole: {x for one in lists for x in one} for whole, lists in divisions.items()}
    while left:
        free = [whole for whole, below in left.items() if not below & left.keys()]
        if not free:
            raise InputError(f"Parts of column '{column}' contain themselves: list smaller ones.")
        for whole in free:
            del left[whole]
