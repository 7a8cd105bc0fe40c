"""What a reader can work out of a table of figures: the least and the most that each cell can be.

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
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.release.grid import Grid

    Numbers = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Cells = NDArray[np.int64]

_NEAR = 1e-6
_SECONDS = 5.0  # for the whole numbers of one cell; beyond it the linear bound stands


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What a reader knows of every cell before adding and subtracting.

    Attributes:
        grid: the cells.
        low: the least that a cell can be.
        high: the most; equal to ``low`` where the figure is published.
        whole: whether figures are whole numbers.
    """

    grid: Grid
    low: Numbers
    high: Numbers
    whole: bool

    @classmethod
    def of(cls, grid: Grid, values: Numbers, *, least: float = 0.0, whole: bool = True) -> View:
        """The view of figures that are published as they are; NaN: withheld, at least ``least``."""
        hidden = np.isnan(values)
        return cls(grid, np.where(hidden, least, values), np.where(hidden, np.inf, values), whole)

    @property
    def unknown(self) -> Flags:
        """The cells whose figure is not published."""
        return self.low < self.high


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
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


def require_sums(view: View) -> None:
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


def find_intervals(view: View, cells: Cells | None = None, *, seconds: float = 600.0) -> Intervals:
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
    return Intervals(chosen, low, high, proven)


def _components(view: View) -> list[Cells]:
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
    def of(cls, view: View, cells: Cells) -> Program:
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
        result = linprog(
            cost,
            A_eq=self.matrix,
            b_eq=self.sums,
            bounds=np.column_stack([self.low, self.high]),
            method="highs",
        )
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
