"""Moves of tables that are made of moves of columns, and the search for a cheap set of them.

In one column a move shifts an amount from one category to another, with all wholes that contain
them; the product of one move per column keeps all sums of a table, in whole numbers, and so does
the sum of several products (`halfmask.kernels.secondary_suppression` finds cheap ones).
Source: Repsilber, "Preservation of confidentiality in aggregated data" (hypercubes), 1994.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from halfmask.tabulate.attack import Move

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.kernels.secondary_suppression import ColumnMoves
    from halfmask.release.tabulation.cells import Axis, CellGrid
    from halfmask.tabulate.attack import Cells, Numbers, ProtectionProblem, ProtectionTarget

_CHOICES = 400  # moves of one column that are kept for one category
_VISITS = 20_000  # products that are looked at for one cell, at most
_LONGEST = 512  # cells of one move


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
            self._known[node] = _pad([self._one(gain, loss) for gain, loss in pairs])
        return self._known[node]

    def _one(self, gain: int, loss: int | None) -> dict[int, int]:
        rise = set(self._above[gain])
        fall = set() if loss is None else set(self._above[loss])
        return {**dict.fromkeys(rise - fall, 1), **dict.fromkeys(fall - rise, -1)}


def _pad(moves: list[dict[int, int]]) -> tuple[Cells, Cells]:
    width = max(len(move) for move in moves)
    nodes = np.full((len(moves), width), -1, dtype=np.int64)
    signs = np.zeros((len(moves), width), dtype=np.int64)
    for i, move in enumerate(moves):
        nodes[i, : len(move)] = list(move)
        signs[i, : len(move)] = list(move.values())
    return nodes, signs


class ProductMoves:
    """Cheap moves for the cells of one table, while prices change."""

    def __init__(
        self, grid: CellGrid, problem: ProtectionProblem, random: np.random.Generator
    ) -> None:
        self.problem = problem
        free = problem.free | problem.primary
        self.full: Numbers = np.where(problem.primary, 0.0, problem.weight)
        self.full[~free] = np.inf
        self.price: Numbers = self.full.copy()
        self._columns = _column_moves(grid, random)
        widest = int(np.prod(self._columns.widths))
        known = problem.owner >= 0  # those who alone contribute to a cell know it
        self._up = np.where(known, 0.0, problem.room_up)
        self._down = np.where(known, 0.0, problem.room_down)
        self._held = np.zeros(problem.size)
        self._product = (np.zeros(widest, np.int64), np.zeros(widest))
        size = max(_LONGEST, widest)
        self._move = (np.zeros(size, np.int64), np.zeros(size))

    def cheapest(
        self, target: ProtectionTarget, earlier: Move | None = None, spared: int = -1
    ) -> Move | None:
        """A move that reaches the target at a low price of its cells; None: none was found.

        Args:
            target: the cell, the direction and how far.
            earlier: a move that reaches it with the cell ``spared``, which must not be used now.
            spared: that cell; its price is infinite.
        """
        from halfmask.kernels.secondary_suppression import CellRoom, Changes, Goal, cheapest_move

        problem, amount = self.problem, target.sign * target.amount
        half = target.sign * (np.floor(target.amount / 2) if problem.whole else target.amount / 2)
        none = earlier is None or len(earlier.cells) > _LONGEST // 2
        cells, amounts = (_NO_CELLS, _NO_AMOUNTS) if none else (earlier.cells, earlier.amounts)  # type: ignore[union-attr]
        owner = problem.owner[target.cell]
        own = np.flatnonzero(problem.owner == owner) if owner >= 0 else _NO_CELLS
        self._up[own], self._down[own] = problem.room_up[own], problem.room_down[own]
        size = cheapest_move(
            Goal(int(target.cell), float(amount), float(half), -1 if none else int(spared)),
            Changes(cells, amounts),
            _VISITS,
            self._columns,
            CellRoom(self.price, self._up, self._down, self._held),
            Changes(*self._product),
            Changes(*self._move),
        )
        self._up[own] = self._down[own] = 0.0
        if not size:
            return None
        return Move(self._move[0][:size].copy(), self._move[1][:size].copy())


_NO_CELLS = np.empty(0, np.int64)
_NO_AMOUNTS = np.empty(0)


def _column_moves(grid: CellGrid, random: np.random.Generator) -> ColumnMoves:
    """The moves of all categories of all columns, one after the other."""
    from halfmask.kernels.secondary_suppression import ColumnMoves

    begins, widths, nodes, signs = [0], [], [], []
    for axis in grid.axes:
        moves = AxisMoves(axis)
        found = [moves.of(node, random) for node in range(len(axis))]
        width = max(held.shape[1] for held, _ in found)
        widths.append(width)
        for held, change in found:
            begins.append(begins[-1] + len(held))
            wide = ((0, 0), (0, width - held.shape[1]))
            nodes.append(np.pad(held, wide, constant_values=-1).ravel())
            signs.append(np.pad(change, wide).ravel())
    return ColumnMoves(
        np.array(grid.shape, np.int64), np.array(begins, np.int64), np.array(widths, np.int64),
        np.concatenate(nodes), np.concatenate(signs),
    )  # fmt: skip


@dataclass(eq=False)
class MoveSet:
    """A move for each target; what several use is withheld once.

    Attributes:
        cost: the weight of all cells that are withheld beside those that must be.
    """

    products: ProductMoves
    targets: list[ProtectionTarget]
    cost: float = 0.0
    moves: dict[int, Move] = field(default_factory=dict)
    used: NDArray[np.int64] = field(init=False)
    _uses: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        size = self.products.problem.size
        self.used = np.zeros(size, dtype=np.int64)
        self._uses = np.zeros((len(self.targets), size), dtype=bool)

    def put(self, target: int, move: Move) -> None:
        """Withhold what a move needs."""
        new = move.cells[self.used[move.cells] == 0]
        self.cost += float(self.products.full[new].sum())
        self.products.price[new] = 0.0
        self.used[move.cells] += 1
        self._uses[target, move.cells] = True
        self.moves[target] = move

    def take(self, target: int) -> Move:
        """Take the move of a target back."""
        move = self.moves.pop(target)
        self._uses[target, move.cells] = False
        self.used[move.cells] -= 1
        gone = move.cells[self.used[move.cells] == 0]
        self.cost -= float(self.products.full[gone].sum())
        self.products.price[gone] = self.products.full[gone]
        return move

    def users(self, cell: int) -> list[int]:
        """The targets whose moves use a cell."""
        found: list[int] = np.flatnonzero(self._uses[:, cell]).tolist()
        return found

    def neighbors(self, target: int) -> NDArray[np.int64]:
        """The targets whose moves share more than one cell with that of a target."""
        return np.flatnonzero(self._uses[:, self.moves[target].cells].sum(axis=1) > 1)

    def spare(self, cell: int, most: float, random: np.random.Generator) -> dict[int, Move] | None:
        """Give those who use a cell other moves; their earlier ones.

        Where somebody has no other, or the cost would be above ``most``, everything stays, and None
        comes back.
        """
        again = self.users(cell)
        random.shuffle(again)
        before = {target: self.take(target) for target in again}
        self.products.price[cell] = np.inf
        failed = False
        for target in again:
            move = self.products.cheapest(self.targets[target], before[target], cell)
            if move is not None:
                self.put(target, move)
            failed = move is None or self.cost > most
            if failed:
                break
        self.products.price[cell] = self.products.full[cell]
        if failed:
            self.restore(before)
            return None
        return before

    def insert(self, again: list[int]) -> dict[int, Move]:
        """Give some targets moves anew; their earlier ones."""
        before = {target: self.take(target) for target in again}
        for target in again:
            move = self.products.cheapest(self.targets[target])
            self.put(target, before[target] if move is None else move)
        return before

    def restore(self, before: dict[int, Move]) -> None:
        """Undo."""
        for target in before:
            if target in self.moves:
                self.take(target)
        for target, move in before.items():
            self.put(target, move)
