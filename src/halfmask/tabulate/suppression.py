"""Secondary suppression: which cells to withhold besides, so that no reader finds the others.

Definition: minimize the weight of withheld cells such that for every protected cell there is a
table that agrees with all published figures and differs enough in that cell.
Source: Fischetti, Salazar, "Solving the cell suppression problem on tabular data with linear
constraints", 2001; the heuristic after Repsilber, 1994 (`halfmask.tabulate.move_products`).

Every proof that a cell can be narrowed down becomes an inequality of the search. What solves all
inequalities costs at most as much as any safe pattern: that is the bound. Small tables are solved
so to the optimum; in large ones each cell gets a cheap move, and then cells are spared one by one:
whoever used them gets another move, while that saves something.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import PrivacyError
from halfmask.tabulate.attack import Attack
from halfmask.tabulate.move_products import MoveSet, ProductMoves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.release.tabulation.cells import CellGrid
    from halfmask.tabulate.attack import (
        ExposedCell,
        Flags,
        Move,
        Numbers,
        ProtectionProblem,
        ProtectionTarget,
    )

_NONE = 1e-9
_CLOSE = 1e-6
SMALL = 600  # cells up to which the optimum is looked for
_SPARING = 0.9  # how often a cell is spared rather than moves inserted anew
_WARMTH = 0.4  # of the mean price of a cell: how much worse a first step may be


@dataclass(frozen=True, slots=True, eq=False)
class SuppressionPattern:
    """Which cells are withheld, and how far that is from the least.

    Attributes:
        withheld: per cell.
        cost: the weight of what is withheld.
        bound: what every safe pattern costs at least.
        moves: per target that has one, a move that proves it.
    """

    withheld: Flags
    cost: float
    bound: float
    moves: dict[ProtectionTarget, Move]

    def with_bound(self, bound: float) -> SuppressionPattern:
        """The same pattern where more is known of all others."""
        return SuppressionPattern(
            self.withheld, self.cost, min(max(bound, self.bound), self.cost), self.moves
        )

    @property
    def gap(self) -> float:
        """The proven distance to the optimum, as a share of the cost; 0.0 is optimal."""
        apart = max(0.0, self.cost - self.bound)
        return 0.0 if apart <= _CLOSE * max(1.0, self.cost) else apart / self.cost


def find_pattern(
    grid: CellGrid, problem: ProtectionProblem, *, time_limit: float = 60.0
) -> SuppressionPattern:
    """The cheapest safe pattern that is found within ``time_limit`` seconds of processor.

    Raises:
        PrivacyError: even a table without any figure would not protect everybody.
    """
    clock = Deadline(time.thread_time(), time_limit)
    cuts = PatternCuts(problem)
    targets = problem.targets()
    # What sums alone demand bounds every pattern from below: the gap is known even if time ends.
    for target in targets:
        cuts.add_sums(target)
    search = _Search(grid, problem, targets)
    best = search.first()
    best = best.with_bound(cuts.solve_relaxation(clock)[1])
    if grid.size <= SMALL:
        best = _publish_needless(problem, best, clock, until=0.5)
        best = _to_the_optimum(problem, cuts, best, clock)
    elif best.gap > 0:
        best = search.improve(best, clock)
    return _publish_unused(problem, best)


def _publish_unused(problem: ProtectionProblem, best: SuppressionPattern) -> SuppressionPattern:
    """Publish cells that no move needs: readers may find them out, and they hide nobody."""
    if not all(target in best.moves for target in problem.targets()):
        return best  # some are safe without a move that is known: what is withheld must stay
    withheld = problem.primary.copy()
    for move in best.moves.values():
        withheld[move.cells] = True
    cost = float(problem.weight[withheld].sum())
    if cost >= best.cost:
        return best
    return SuppressionPattern(withheld, cost, min(best.bound, cost), best.moves)


def _publish_needless(
    problem: ProtectionProblem, best: SuppressionPattern, clock: Deadline, *, until: float
) -> SuppressionPattern:
    """Publish cells, the costliest first, without which every target still has some move."""
    withheld, moves = best.withheld.copy(), dict(best.moves)
    listed = np.flatnonzero(withheld & ~problem.primary)
    for cell in listed[np.argsort(-problem.weight[listed], kind="stable")].tolist():
        if best.gap == 0 or clock.left < clock.limit * until:
            break
        withheld[cell] = False
        again = [target for target, move in moves.items() if cell in move.cells]
        again += [target for target in problem.targets() if target not in moves]
        found: dict[ProtectionTarget, Move] = {}
        if Attack(problem, withheld).holes(again, found, every=False):
            withheld[cell] = True
            continue
        moves.update(found)
        best = SuppressionPattern(
            withheld.copy(), float(problem.weight[withheld].sum()), best.bound, dict(moves)
        )
    return best


def _to_the_optimum(
    problem: ProtectionProblem, cuts: PatternCuts, best: SuppressionPattern, clock: Deadline
) -> SuppressionPattern:
    """Solve, look for holes, add what they prove, until the cheapest of all is safe."""
    targets, bound = problem.targets(), best.bound
    while best.gap > 0 and clock.left > 0:
        wanted, low = cuts.solve(clock)
        bound = max(bound, low)
        best = best.with_bound(bound)
        if cuts.add_bridges(wanted.astype(np.float64)):
            continue
        moves: dict[ProtectionTarget, Move] = {}
        holes = Attack(problem, wanted).holes(targets, moves)
        cost = float(problem.weight[wanted].sum())
        if not holes:
            return (
                SuppressionPattern(wanted, cost, min(bound, cost), moves)
                if cost < best.cost
                else best
            )
        sure = [hole for hole in holes if hole.proven]
        if not sure:
            return best  # nobody knows whether this pattern is safe: the bound stands
        for hole in sure:
            cuts.add_hole(hole, wanted)
    return best


@dataclass(frozen=True, slots=True)
class Deadline:
    """How much processor time is left: what is found does not hang on who else computes."""

    start: float
    limit: float

    @property
    def left(self) -> float:
        """Seconds."""
        return self.start + self.limit - time.thread_time()


@dataclass(eq=False)
class _Search:
    """Patterns in which each target has a move; what several use is withheld once."""

    grid: CellGrid
    problem: ProtectionProblem
    targets: list[ProtectionTarget]
    _random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    _set: MoveSet = field(init=False)

    def __post_init__(self) -> None:
        products = ProductMoves(self.grid, self.problem, self._random)
        self._set = MoveSet(products, self.targets)

    def first(self) -> SuppressionPattern:
        """Cheap moves one by one, the farthest first; then the rest by programs."""
        alone = []
        for place in sorted(range(len(self.targets)), key=lambda i: -self.targets[i].amount):
            move = self._set.products.cheapest(self.targets[place])
            if move is None:
                alone.append(place)
            else:
                self._set.put(place, move)
        moves = {self.targets[place]: move for place, move in self._set.moves.items()}
        withheld = self.problem.primary | (self._set.used > 0)
        withheld = _by_programs(self.problem, withheld, [self.targets[i] for i in alone], moves)
        for place in alone:
            if self.targets[place] in moves:
                self._set.put(place, moves[self.targets[place]])
        return SuppressionPattern(withheld, float(self.problem.weight[withheld].sum()), 0.0, moves)

    def improve(self, best: SuppressionPattern, clock: Deadline) -> SuppressionPattern:
        """Spare cells, and insert moves anew, while there is time (simulated annealing)."""
        held, random = self._set, self._random
        if len(held.moves) < len(self.targets):
            return best  # some are safe without a move that is known: what is withheld must stay
        most, start = 200 * len(self.targets), clock.left
        least = 0.1 * clock.limit
        warm = _WARMTH * _mean(held.products.full[(held.used > 0) & ~self.problem.primary])
        lowest, kept = held.cost, dict(held.moves)
        for turn in range(most):
            # Annealing: what a step may lose falls with turns or time, whichever ends first.
            gone = max(turn / most, (start - clock.left) / max(start - least, _NONE))
            if gone >= 1:
                break
            self._change(held.cost + (1 - gone) * warm * random.exponential())
            if held.cost < lowest - _CLOSE:
                lowest, kept = held.cost, dict(held.moves)
        withheld = self.problem.primary.copy()
        for move in kept.values():
            withheld[move.cells] = True
        cost = float(self.problem.weight[withheld].sum())
        if cost >= best.cost:
            return best
        moves = {self.targets[place]: move for place, move in kept.items()}
        return SuppressionPattern(withheld, cost, best.bound, moves)

    def _change(self, most: float) -> None:
        """Spare one cell, or insert some moves anew that share cells, at this cost at most."""
        held, random = self._set, self._random
        secondary = np.flatnonzero((held.used > 0) & ~self.problem.primary)
        if not len(secondary):
            return
        if random.random() < _SPARING:
            some = secondary[random.integers(len(secondary), size=3)]
            gain = self.problem.weight[some] / held.used[some]  # for each move to be found
            held.spare(int(some[np.argmax(gain)]), most, random)
            return
        start = int(random.integers(len(self.targets)))
        near = random.permutation(held.neighbors(start))[: int(random.integers(2, 12))]
        again = list(dict.fromkeys([start, *near.tolist()]))
        random.shuffle(again)
        before = held.insert(again)
        if held.cost > most:
            held.restore(before)


def _mean(prices: Numbers) -> float:
    return float(prices.mean()) if len(prices) else 0.0


def _by_programs(
    problem: ProtectionProblem,
    withheld: Flags,
    alone: list[ProtectionTarget],
    moves: dict[ProtectionTarget, Move],
) -> Flags:
    """Protect what no product of moves protects by the cheapest move of all, one by one."""
    from scipy.optimize import linprog
    from scipy.sparse import hstack

    every = problem.primary | problem.free
    for target in alone:
        if not Attack(problem, withheld).holes([target], moves):
            continue
        cells = np.flatnonzero(every & problem.movable(target.cell))
        matrix = problem.relations[:, cells]
        # Withheld cells are nearly free: a move through them costs no further figure.
        price = np.where(withheld, _CLOSE, problem.weight)[cells] / target.amount
        high = np.concatenate([problem.room_up[cells], problem.room_down[cells]])
        low = np.zeros(len(high))
        at = int(np.searchsorted(cells, target.cell)) + (0 if target.sign > 0 else len(cells))
        low[at] = high[at] = target.amount
        result = linprog(
            np.concatenate([price, price]),
            A_eq=hstack([matrix, -matrix]).tocsr(),
            b_eq=np.zeros(matrix.shape[0]),
            bounds=np.column_stack([low, high]),
            method="highs",
        )
        if result.x is not None:
            change = np.abs(result.x[: len(cells)] - result.x[len(cells) :])
            withheld = withheld | np.isin(np.arange(problem.size), cells[change > _NONE])
        if result.x is None or Attack(problem, withheld).holes([target], moves):
            # The last resort: everything that may be withheld; a hole that is left then is left by
            # any table.
            withheld = every
            if Attack(problem, withheld).holes([target], moves):
                raise PrivacyError(
                    "Not even a table without any figure would protect everybody in it: use "
                    "coarser levels, fewer columns or weaker rules."
                )
    return withheld


@dataclass(eq=False)
class PatternCuts:
    """Inequalities that every safe pattern satisfies: of each, enough must be withheld."""

    problem: ProtectionProblem
    _rows: list[NDArray[np.int64]] = field(default_factory=list)
    _shares: list[Numbers] = field(default_factory=list)
    _needs: list[float] = field(default_factory=list)
    _bridges: set[tuple[int, int]] = field(default_factory=set)
    _lines: Any = None

    def add_sums(self, target: ProtectionTarget) -> None:
        """What moves inside one sum must be made up by other cells of it."""
        relations, problem = self.problem.relations, self.problem
        if self._lines is None:
            self._lines = relations.tocsc()
        column = slice(self._lines.indptr[target.cell], self._lines.indptr[target.cell + 1])
        movable = problem.movable(target.cell)
        for line, own in zip(self._lines.indices[column], self._lines.data[column], strict=True):
            part = slice(relations.indptr[line], relations.indptr[line + 1])
            cells, signs = relations.indices[part], relations.data[part]
            room = np.where(
                signs * own * target.sign > 0, problem.room_down[cells], problem.room_up[cells]
            )
            shares = np.minimum(room / target.amount, 1.0)
            shares[(cells == target.cell) | ~movable[cells]] = 0.0
            self._add(cells, shares)

    def add_hole(self, hole: ExposedCell, withheld: Flags) -> None:
        """What the proof of a hole says of all patterns."""
        problem, target = self.problem, hole.target
        if hole.prices is not None:
            cells, shares = self._proof(hole, withheld)
            if shares[withheld[cells]].sum() < 1 - _CLOSE:
                self._add(cells, shares)
                return
        # Withholding less never protects more: something that is published must go.
        others = np.flatnonzero(problem.free & ~withheld & problem.movable(target.cell))
        self._add(others, np.ones(len(others)))

    def _proof(self, hole: ExposedCell, withheld: Flags) -> tuple[NDArray[np.int64], Numbers]:
        problem, target = self.problem, hole.target
        movable = problem.movable(target.cell)
        chosen = np.flatnonzero(withheld & movable)
        lines = np.flatnonzero(np.diff(problem.relations[:, chosen].indptr))
        prices = np.zeros(problem.relations.shape[0])
        prices[lines] = hole.prices
        cost = -(problem.relations.T @ prices)
        cost[target.cell] -= target.sign
        cost[np.abs(cost) < _NONE] = 0.0
        with np.errstate(invalid="ignore"):
            reach = np.where(cost > 0, cost * problem.room_down, 0.0)
            reach += np.where(cost < 0, -cost * problem.room_up, 0.0)
        reach = np.minimum(np.nan_to_num(reach, posinf=target.amount), target.amount)
        reach[~movable] = 0.0
        reach[target.cell] = 0.0
        cells = np.flatnonzero(reach)
        return cells, reach[cells] / target.amount

    def _add(self, cells: NDArray[np.int64], shares: Numbers) -> None:
        fixed = self.problem.primary[cells]
        rest = 1 - float(shares[fixed].sum())
        if rest <= _CLOSE:
            return
        # What is withheld anyhow does its part; of the rest no cell counts for more than all.
        kept = (shares > _NONE) & self.problem.free[cells] & ~fixed
        self._rows.append(cells[kept])
        self._shares.append(np.minimum(shares[kept] / rest, 1.0))
        self._needs.append(1.0)

    def add_bridges(self, pattern: Numbers, most: int = 4000) -> int:
        """What no cheapest pattern has: a withheld cell alone in a sum, which no move can use.

        Returns:
            How many inequalities ``pattern`` broke.
        """
        relations, free = self.problem.relations, self.problem.free | self.problem.primary
        lines = np.repeat(np.arange(relations.shape[0]), np.diff(relations.indptr))
        own = pattern[relations.indices]
        over = 2 * own - (abs(relations) @ pattern)[lines]
        broken = np.flatnonzero(over > 1e-4)
        broken = broken[np.argsort(-over[broken], kind="stable")][:most]
        added = 0
        for at in broken.tolist():
            line, cell = int(lines[at]), int(relations.indices[at])
            if (line, cell) in self._bridges or self.problem.primary[cell]:
                continue
            self._bridges.add((line, cell))
            cells = relations.indices[relations.indptr[line] : relations.indptr[line + 1]]
            cells = cells[free[cells]].astype(np.int64)
            self._rows.append(cells)
            self._shares.append(np.where(cells == cell, -1.0, 1.0))
            self._needs.append(0.0)
            added += 1
        return added

    def solve_relaxation(self, clock: Deadline) -> tuple[Numbers, float]:
        """The cheapest pattern in which cells may be withheld in part, and its cost: a bound."""
        pattern, bound = self.problem.primary.astype(np.float64), 0.0
        while clock.left > clock.limit / 2:
            found = self._program(clock, whole=False)
            if found is None:
                break
            pattern, bound = found
            if not self.add_bridges(pattern):
                break
        return pattern, bound

    def solve(self, clock: Deadline) -> tuple[Flags, float]:
        """The cheapest pattern that satisfies all inequalities, and a bound on its cost."""
        found = self._program(clock, whole=True)
        if found is None:  # nothing in time: all that may be withheld, and no better bound
            return self.problem.primary | self.problem.free, 0.0
        return found[0] > 0.5, found[1]

    def _program(self, clock: Deadline, *, whole: bool) -> tuple[Numbers, float] | None:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        problem = self.problem
        base = float(problem.weight[problem.primary].sum())
        pattern = problem.primary.astype(np.float64)
        if not self._rows:
            return pattern, base
        ends = np.concatenate([[0], np.cumsum([len(row) for row in self._rows])])
        held = (np.concatenate(self._shares), np.concatenate(self._rows), ends)
        matrix = csr_array(held, shape=(len(self._rows), problem.size))
        columns = np.flatnonzero(problem.free & ~problem.primary)
        result = milp(
            problem.weight[columns],
            constraints=LinearConstraint(
                matrix[:, columns], lb=np.array(self._needs) - matrix @ pattern - _NONE
            ),
            bounds=Bounds(0, 1),
            integrality=np.ones(len(columns)) if whole else None,
            options={"time_limit": max(1.0, min(clock.left, clock.limit / 3)), "mip_rel_gap": 1e-6},
        )
        if result.x is None or (not whole and result.status != 0):
            return None
        pattern[columns] = result.x
        return pattern, base + max(0.0, float(result.mip_dual_bound if whole else result.fun))
