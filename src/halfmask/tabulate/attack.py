"""How far a reader can narrow down withheld cells: moves that leave all published figures as is.

A move changes withheld cells so that every sum still holds. A cell is protected where some move
brings it far enough from its true figure: the reader cannot tell the two tables apart.

In one column a move shifts an amount from one category to another, with all wholes that contain
them; the product of one move per column keeps all sums of a table, in whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.release.tabulation.cells import Axis, CellGrid

    Numbers = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Cells = NDArray[np.int64]

_NEAR = 1e-7
_SECONDS = 1.0  # for one move in whole numbers
_MOST = 1 << 10  # products of moves that are compared for one cell
_CHOICES = 400  # moves of one column that are kept for one category


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
    _views: dict[int, _View] = field(default_factory=dict)

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

    def _view(self, owner: int, cell: int) -> _View:
        if owner not in self._views:
            cells = np.flatnonzero(self.withheld & self.problem.movable(cell))
            self._views[owner] = _View.of(self.problem, cells)
        return self._views[owner]


@dataclass(eq=False)
class _View:
    """The withheld cells that can move, and the sums that bind them."""

    problem: ProtectionProblem
    cells: NDArray[np.int64]
    lines: NDArray[np.int64]
    matrix: Any
    place: dict[int, int]

    @classmethod
    def of(cls, problem: ProtectionProblem, cells: NDArray[np.int64]) -> _View:
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
        if target.sign > 0:
            high[at] = min(high[at], target.amount)
        else:
            low[at] = max(low[at], -target.amount)
        move, prices = self._solve(cost, low, high)
        reached = 0.0 if move is None else float(move[at]) * target.sign
        if move is None or not self._reaches(reached, target):
            return None, ExposedCell(target, reached, prices)
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


@dataclass(eq=False)
class AxisMoves:
    """The moves of one column that raise one category by one."""

    axis: Axis
    _above: list[tuple[int, ...]] = field(init=False)
    _leaves: list[int] = field(init=False)
    _known: dict[int, tuple[Cells, Cells]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parents: list[list[int]] = [[] for _ in self.axis.labels]
        for whole, parts in self.axis.sums:
            for part in parts:
                parents[part].append(whole)
        wholes = {whole for whole, _ in self.axis.sums}
        self._leaves = [i for i in range(len(self.axis)) if i not in wholes]
        self._above = [self._chain(leaf, parents) for leaf in range(len(self.axis))]

    @staticmethod
    def _chain(node: int, parents: list[list[int]]) -> tuple[int, ...]:
        found, todo = [], [node]
        while todo:
            here = todo.pop()
            if here not in found:
                found.append(here)
                todo += parents[here]
        return tuple(found)

    def of(self, node: int, random: np.random.Generator) -> tuple[Cells, Cells]:
        """Per move, the categories that change (-1: none) and by how much."""
        if node not in self._known:
            under = [leaf for leaf in self._leaves if node in self._above[leaf]]
            apart = [leaf for leaf in self._leaves if node not in self._above[leaf]]
            pairs: list[tuple[int, int | None]] = [(leaf, None) for leaf in under]
            pairs += list(product(under, apart))
            if len(pairs) > _CHOICES:
                picked = random.choice(len(pairs), _CHOICES, replace=False)
                pairs = [pairs[i] for i in sorted(picked.tolist())]
            self._known[node] = _padded([self._one(gain, loss) for gain, loss in pairs])
        return self._known[node]

    def _one(self, gain: int, loss: int | None) -> dict[int, int]:
        rise = set(self._above[gain])
        fall = set() if loss is None else set(self._above[loss])
        return {**dict.fromkeys(rise - fall, 1), **dict.fromkeys(fall - rise, -1)}


def _padded(moves: list[dict[int, int]]) -> tuple[Cells, Cells]:
    width = max(len(move) for move in moves)
    nodes = np.full((len(moves), width), -1, dtype=np.int64)
    signs = np.zeros((len(moves), width), dtype=np.int64)
    for i, move in enumerate(moves):
        nodes[i, : len(move)] = list(move)
        signs[i, : len(move)] = list(move.values())
    return nodes, signs


@dataclass(eq=False)
class ProductMoves:
    """For every cell, the cheapest product of one move per column."""

    grid: CellGrid
    problem: ProtectionProblem
    random: np.random.Generator
    _axes: list[AxisMoves] = field(init=False)

    def __post_init__(self) -> None:
        self._axes = [AxisMoves(axis) for axis in self.grid.axes]

    def cheapest(self, target: ProtectionTarget, price: Numbers) -> Move | None:
        """The move that reaches the target at the least price of its cells; None: there is none.

        Args:
            target: the cell, the direction and how far.
            price: per cell, what withholding it costs now; infinite where it must not be.
        """
        problem = self.problem
        up, down = np.append(price, 0.0), np.append(price, 0.0)
        fixed = ~problem.movable(target.cell)
        up[:-1][fixed | (problem.room_up < target.amount)] = np.inf
        down[:-1][fixed | (problem.room_down < target.amount)] = np.inf
        if target.sign < 0:
            up, down = down, up
        cells, signs = self._products(target.cell, up, down)
        cost = np.where(signs > 0, up[cells], down[cells]).sum(axis=1)
        best = int(np.argmin(cost))
        if not np.isfinite(cost[best]):
            return None
        used = cells[best] < self.grid.size
        return Move(cells[best][used], signs[best][used] * (target.sign * target.amount))

    def _products(self, cell: int, up: Numbers, down: Numbers) -> tuple[Cells, Cells]:
        """Products of the moves of each column that cost least along their own line."""
        places = [int(one[0]) for one in self.grid.categories(np.array([cell]))]
        keep = max(4, int(_MOST ** (1 / len(places))))
        cells, signs = np.zeros((1, 1), np.int64), np.ones((1, 1), np.int64)
        step = self.grid.size
        for axis, moves, place in zip(self.grid.axes, self._axes, places, strict=True):
            nodes, change = moves.of(place, self.random)
            step //= len(axis)
            if len(nodes) > keep:
                line = np.where(change == 0, self.grid.size, cell + (nodes - place) * step)
                cost = np.where(change > 0, up[line], down[line]).sum(axis=1)
                picked = np.argsort(cost + self.random.random(len(cost)) * 1e-3)[:keep]
                nodes, change = nodes[picked], change[picked]
            signs = (signs[:, None, :, None] * change[None, :, None, :]).reshape(
                len(cells) * len(nodes), -1
            )
            cells = (cells[:, None, :, None] * len(axis) + nodes[None, :, None, :]).reshape(
                len(signs), -1
            )
        return np.where(signs == 0, self.grid.size, cells), signs
