"""The cells of a table of figures: what adds up to what, and what a reader can work out of it.

A cell is one category of each column; the category of a total stands for all people. What adds up
along one column does so for every choice of categories of the other columns.

Definition: over all tables that satisfy every sum, agree with what is published, and lie within
what everybody knows (no count is negative), the least and the largest figure of a cell.
Source: Fischetti, Salazar, "Solving the cell suppression problem on tabular data with linear
constraints", 2001; linear and integer programs by HiGHS.

This is the audit that the door makes of what leaves, and that anybody can make of a table that
somebody else protected.
"""

from __future__ import annotations

import time
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

    Numbers = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Cells = NDArray[np.int64]

MOST_CELLS = 1 << 22
TOTAL, MISSING = "Total", "(missing)"
_NEAR = 1e-6
_SECONDS = 5.0  # for the whole numbers of one cell; beyond it the linear bound stands


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
class CellGrid:
    """All cells of a table of figures, numbered with the last column fastest.

    Example:
        >>> sex = Axis("sex", ("f", "m", "Total"), ((2, (0, 1)),))
        >>> CellGrid((sex,)).relations.toarray().tolist()
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

    def labels(self, cells: NDArray[np.int64] | None = None) -> dict[str, pa.Array]:
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


@dataclass(frozen=True, slots=True, eq=False)
class ReaderView:
    """What a reader knows of every cell before adding and subtracting.

    Attributes:
        grid: the cells.
        low: the least that a cell can be.
        high: the most; equal to ``low`` where the figure is published.
        whole: whether figures are whole numbers.
    """

    grid: CellGrid
    low: Numbers
    high: Numbers
    whole: bool

    @classmethod
    def of(
        cls, grid: CellGrid, values: Numbers, *, least: float = 0.0, whole: bool = True
    ) -> ReaderView:
        """The view of figures that are published as they are; NaN: withheld, at least ``least``."""
        hidden = np.isnan(values)
        return cls(grid, np.where(hidden, least, values), np.where(hidden, np.inf, values), whole)

    @property
    def unknown(self) -> Flags:
        """The cells whose figure is not published."""
        return self.low < self.high


@dataclass(frozen=True, slots=True, eq=False)
class CellBounds:
    """The least and the most that some cells can be.

    Attributes:
        cells: their numbers.
        low: the least.
        high: the most.
        proven: whether both are reached by a table; else they are bounds of linear programs.
    """

    cells: Cells
    low: Numbers
    high: Numbers
    proven: Flags


def require_sums(view: ReaderView) -> None:
    """Refuse figures that do not add up to their published totals; says how many sums fail."""
    relations = view.grid.relations
    if not relations.shape[0]:
        return
    positive, negative = relations.maximum(0), (-relations).maximum(0)
    with np.errstate(invalid="ignore"):
        least = positive @ view.low - _finite(negative, view.high)
        most = _finite(positive, view.high) - negative @ view.low
    size = np.abs(relations) @ np.abs(view.low)
    slack = _NEAR * np.maximum(1.0, size)
    broken = int(((least > slack) | (most < -slack)).sum())
    if broken:
        raise InputError(
            f"{broken} of {relations.shape[0]} sums do not add up to their totals: the tables are "
            "not of the same people, were rounded or perturbed, or a label means something else; "
            "correct them, or leave the totals out."
        )


def _finite(matrix: Any, values: Numbers) -> Numbers:
    """A product in which infinite terms stay infinite and absent ones count nothing."""
    endless = (matrix @ np.isinf(values).astype(float)) > 0
    found: Numbers = matrix @ np.where(np.isinf(values), 0.0, values)
    return np.where(endless, np.inf, found)


def find_intervals(
    view: ReaderView, cells: Cells | None = None, *, seconds: float = 600.0
) -> CellBounds:
    """The least and the most that cells can be, for all that are unknown or for ``cells``.

    Raises:
        InputError: no table fits the figures.
    """
    require_sums(view)
    chosen = np.flatnonzero(view.unknown) if cells is None else cells
    low, high = np.full(len(chosen), np.nan), np.full(len(chosen), np.nan)
    proven = np.ones(len(chosen), dtype=bool)
    place = {int(cell): i for i, cell in enumerate(chosen.tolist())}
    end = time.monotonic() + seconds
    for part in _components(view):
        program = Program.of(view, part)
        for cell in part.tolist():
            if cell not in place:
                continue
            at = place[cell]
            low[at], sure = program.extreme(cell, 1, whole=time.monotonic() < end)
            high[at], also = program.extreme(cell, -1, whole=time.monotonic() < end)
            proven[at] = sure and also
    fixed = np.isnan(low)
    low[fixed], high[fixed] = view.low[chosen[fixed]], view.high[chosen[fixed]]
    return CellBounds(chosen, low, high, proven)


def _components(view: ReaderView) -> list[Cells]:
    """Unknown cells that sums bind to each other, together."""
    from scipy.sparse.csgraph import connected_components

    unknown = np.flatnonzero(view.unknown)
    if not len(unknown):
        return []
    part = abs(view.grid.relations[:, unknown])
    count, labels = connected_components(part.T @ part, directed=False)
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=count))[:-1]
    return [unknown[one] for one in np.split(order, ends)]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The tables that fit what is known of some cells, as linear conditions."""

    cells: Cells
    matrix: Any
    sums: Numbers
    low: Numbers
    high: Numbers
    whole: bool

    @classmethod
    def of(cls, view: ReaderView, cells: Cells) -> Program:
        """The conditions on ``cells``; all others are known."""
        relations = view.grid.relations
        part = relations[:, cells]
        lines = np.flatnonzero(np.diff(part.indptr))
        known = np.where(view.unknown, 0.0, view.low)
        return cls(
            cells,
            part[lines],
            -(relations[lines] @ known),
            view.low[cells],
            view.high[cells],
            view.whole,
        )

    def extreme(self, cell: int, sign: int, *, whole: bool = True) -> tuple[float, bool]:
        """The least (1) or the most (-1) that a cell can be, and whether a table reaches it."""
        from scipy.optimize import linprog

        at = int(np.flatnonzero(self.cells == cell)[0])
        if not len(self.sums):
            return float(self.low[at] if sign > 0 else self.high[at]), True
        cost = np.zeros(len(self.cells))
        cost[at] = sign
        for presolve in (True, False):  # which may tell no table from no bound
            result = linprog(
                cost,
                A_eq=self.matrix,
                b_eq=self.sums,
                bounds=np.column_stack([self.low, self.high]),
                method="highs",
                options={"presolve": presolve},
            )
            if result.status != 4:
                break
        if result.status == 2:
            raise InputError(
                "No table fits these figures: they do not add up, or a count would be negative."
            )
        if result.status == 3:
            return -sign * np.inf, True
        found = float(result.x[at])
        if not self.whole:
            return found, True
        if np.abs(result.x - np.round(result.x)).max() < _NEAR:
            return float(np.round(found)), True
        return self._whole_extreme(at, cost, found) if whole else (_inward(found, sign), False)

    def _whole_extreme(self, at: int, cost: Numbers, linear: float) -> tuple[float, bool]:
        from scipy.optimize import Bounds, LinearConstraint, milp

        sign = int(cost[at])
        result = milp(
            cost,
            constraints=LinearConstraint(self.matrix, self.sums, self.sums),
            bounds=Bounds(self.low, self.high),
            integrality=np.ones(len(cost)),
            options={"time_limit": _SECONDS},
        )
        if result.status == 2:
            raise InputError("No table of whole numbers fits these figures: they do not add up.")
        if result.status == 0 and result.x is not None:
            return float(np.round(result.x[at])), True
        return _inward(linear, sign), False


def _inward(value: float, sign: int) -> float:
    """The whole number next to a linear bound that a whole figure cannot pass."""
    return float(np.ceil(value - _NEAR) if sign > 0 else np.floor(value + _NEAR))
