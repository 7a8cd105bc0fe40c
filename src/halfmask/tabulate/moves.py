"""Moves inside a table of figures: changes that leave every sum as it is.

In one column a move shifts an amount from one category to another, with all wholes that contain
them; the product of one move per column keeps all sums of a table. Such a move, inside the
withheld cells, proves that a reader cannot tell two tables apart, in whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.release.grid import Axis, Grid
    from halfmask.tabulate.attack import Problem, Target

    Numbers = NDArray[np.float64]
    Cells = NDArray[np.int64]

_MOST = 1 << 10  # products of moves that are compared for one cell
_CHOICES = 400  # moves of one column that are kept for one category


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """A change of figures: these cells, by these amounts."""

    cells: Cells
    amounts: Numbers


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

    grid: Grid
    problem: Problem
    random: np.random.Generator
    _axes: list[AxisMoves] = field(init=False)

    def __post_init__(self) -> None:
        self._axes = [AxisMoves(axis) for axis in self.grid.axes]

    def cheapest(self, target: Target, price: Numbers) -> Move | None:
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
