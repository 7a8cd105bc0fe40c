"""How far a reader can narrow down withheld cells: moves that leave all published figures as is.

A move changes withheld cells so that every sum still holds. A cell is protected where some move
brings it far enough from its true figure: the reader cannot tell the two tables apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Cells = NDArray[np.int64]

_NEAR = 1e-7
_SECONDS = 1.0  # for one move in whole numbers


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """A change of figures: these cells, by these amounts."""

    cells: Cells
    amounts: Numbers


@dataclass(frozen=True, eq=False)
class ProtectionProblem:
    """What must be protected, and what may be withheld for it.

    Attributes:
        relations: one line per sum, 1 for parts and -1 for the whole.
        primary: the cells that must be withheld.
        free: the cells that may be withheld.
        weight: what withholding a cell costs.
        rise: per cell, how far it must be able to rise; 0: no need.
        fall: the same downwards.
        room_up: how far a reader must believe that a cell can rise at most.
        room_down: the same downwards.
        owner: the one contributor of a cell, who knows its figure; -1 where there is none.
        whole: whether figures are counts, so that moves are whole numbers.
    """

    relations: Any
    primary: Flags
    free: Flags
    weight: Numbers
    rise: Numbers
    fall: Numbers
    room_up: Numbers
    room_down: Numbers
    owner: NDArray[np.int64]
    whole: bool

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.weight)

    def targets(self) -> list[ProtectionTarget]:
        """All that must be protected."""
        found = [
            ProtectionTarget(int(p), 1, float(self.rise[p])) for p in np.flatnonzero(self.rise > 0)
        ]
        return found + [
            ProtectionTarget(int(p), -1, float(self.fall[p])) for p in np.flatnonzero(self.fall > 0)
        ]

    def movable(self, cell: int) -> Flags:
        """The cells that can move as far as those know who attack ``cell``.

        Whoever alone contributes to a cell knows its figure; all of them together attack
        everybody's cells but their own.
        """
        own = self.owner[cell]
        return (self.owner < 0) | ((self.owner == own) if own >= 0 else False)


@dataclass(frozen=True, slots=True)
class ProtectionTarget:
    """One cell, a direction, and how far it must be able to move."""

    cell: int
    sign: int
    amount: float


@dataclass(frozen=True, slots=True, eq=False)
class ExposedCell:
    """A cell that a reader can narrow down too far, and the proof of it.

    Attributes:
        target: what is not protected.
        reached: how far the cell can move.
        prices: the multipliers of the sums that prove it; None where only whole moves fail.
        proven: whether it is a hole for sure; else the program took too long to tell.
    """

    target: ProtectionTarget
    reached: float
    prices: Numbers | None
    proven: bool = True


@dataclass(eq=False)
class Attack:
    """The reader's view of one pattern of withheld cells."""

    problem: ProtectionProblem
    withheld: Flags
    _views: dict[int, _MovableCells] = field(default_factory=dict)

    def holes(
        self,
        targets: list[ProtectionTarget],
        moves: dict[ProtectionTarget, Move],
        *,
        every: bool = True,
    ) -> list[ExposedCell]:
        """Everything (or the first) that is not protected; ``moves`` gets proofs of what is."""
        found: list[ExposedCell] = []
        for target in targets:
            view = self._view(int(self.problem.owner[target.cell]), target.cell)
            move, hole = view.reach(target)
            if hole is not None:
                found.append(hole)
                if not every:
                    return found
            elif move is not None:
                moves[target] = move
        return found

    def _view(self, owner: int, cell: int) -> _MovableCells:
        if owner not in self._views:
            cells = np.flatnonzero(self.withheld & self.problem.movable(cell))
            self._views[owner] = _MovableCells.of(self.problem, cells)
        return self._views[owner]


@dataclass(eq=False)
class _MovableCells:
    """The withheld cells that can move, and the sums that bind them."""

    problem: ProtectionProblem
    cells: NDArray[np.int64]
    lines: NDArray[np.int64]
    matrix: Any
    place: dict[int, int]

    @classmethod
    def of(cls, problem: ProtectionProblem, cells: NDArray[np.int64]) -> _MovableCells:
        part = problem.relations[:, cells]
        lines = np.flatnonzero(np.diff(part.indptr))
        return cls(
            problem, cells, lines, part[lines], {int(c): i for i, c in enumerate(cells.tolist())}
        )

    def reach(self, target: ProtectionTarget) -> tuple[Move | None, ExposedCell | None]:
        """A move that reaches the target, or how far the cell can move instead."""
        cost, low, high = self._bounds()
        at = self.place[target.cell]
        cost[at] = -target.sign
        # Not beyond the target: what lies farther proves nothing more.
        if target.sign > 0:
            high[at] = min(high[at], target.amount)
        else:
            low[at] = max(low[at], -target.amount)
        move, prices = self._solve(cost, low, high)
        reached = 0.0 if move is None else float(move[at]) * target.sign
        if move is None or not self._reaches(reached, target):
            return None, ExposedCell(target, reached, prices)
        # Readers of counts know that they are whole: what moves in fractions only is no doubt of
        # theirs.
        if not self._valid(move):
            move, sure = self._whole_move(cost, low, high)
            reached = 0.0 if move is None else float(move[at]) * target.sign
            if move is None or not self._reaches(reached, target):
                return None, ExposedCell(target, reached, None, sure)
        changed = np.flatnonzero(np.abs(move) > _NEAR)
        return Move(self.cells[changed], move[changed]), None

    @staticmethod
    def _reaches(reached: float, target: ProtectionTarget) -> bool:
        return reached >= target.amount - _NEAR * max(1.0, target.amount)

    def _bounds(self) -> tuple[Numbers, Numbers, Numbers]:
        low, high = -self.problem.room_down[self.cells], self.problem.room_up[self.cells]
        return np.zeros(len(self.cells)), low.copy(), high.copy()

    def _solve(
        self, cost: Numbers, low: Numbers, high: Numbers
    ) -> tuple[Numbers | None, Numbers | None]:
        from scipy.optimize import linprog

        if not len(self.lines):
            # Nothing binds these cells: each goes where its own bounds end.
            ends = np.where(cost < 0, high, np.where(cost > 0, low, 0.0))
            return ends, np.zeros(0)
        result = linprog(
            cost,
            A_eq=self.matrix,
            b_eq=np.zeros(len(self.lines)),
            bounds=np.column_stack([low, high]),
            method="highs",
        )
        if result.x is None:
            return None, None
        return np.asarray(result.x), np.asarray(result.eqlin.marginals)

    def _valid(self, move: Numbers) -> bool:
        """Whether a move is one: of whole numbers where figures are counts, exactly so."""
        if not self.problem.whole:
            return True
        whole = np.round(move)
        return bool(np.abs(whole - move).max(initial=0) < 1e-6 and not (self.matrix @ whole).any())

    def _whole_move(
        self, cost: Numbers, low: Numbers, high: Numbers
    ) -> tuple[Numbers | None, bool]:
        """The farthest move in whole numbers, and whether there is none beyond it."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        result = milp(
            cost,
            constraints=LinearConstraint(self.matrix, 0, 0),
            bounds=Bounds(low, high),
            integrality=np.ones(len(cost)),
            options={"time_limit": _SECONDS},
        )
        found = None if result.x is None else np.round(result.x)
        return found, result.status in (0, 2)
