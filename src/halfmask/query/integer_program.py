"""The least loss below one node as a mixed-integer program, solved by HiGHS.

Groups that choose among the same nodes and count the same are one kind. Variables: x[i, t] = how
many groups of kind i are published at level t; y[v, a] = node v receives a group that counts a.
Minimize the people x levels that are lost, such that every group stands somewhere, x[i, t] is 0
where y is, and where y[v, a] is 1, the others at v count what a lacks: each at most that much, so
that a large group stands in for no more than is missing. Counts add up, and so do distinct values
at first, as if no two groups shared one: a relaxation. Where a solution reaches a threshold only
by that, the node is told exactly and the program solved again: z[v, b] <= the x of the groups that
hold value b. A group that reaches a threshold alone counts as reaching it, so that no list of it
is needed.

What is known of the nodes below bounds the program from both sides: each loses at least its bound,
and at most what the limit leaves if all the others lose no more than theirs.

Work is counted, never timed: entries of the program and nodes of HiGHS's search, which is the same
search every time. Columns and rows stand in the order of keys; of groups of one kind, those that
come first in it stay finest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.query.groups import Distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.query.groups import Groups


OPTIMAL, INFEASIBLE = 0, 2
ENTRIES, SEARCHED = 1_000, 20  # of the largest program; nodes of its search, more of smaller ones


@dataclass(frozen=True, slots=True, eq=False)
class LevelProgram:
    """What may happen below a node.

    Attributes:
        groups: all groups.
        members: those below the node.
        finest: per group, the finest level it can be published at.
        node: per level, the number of each group's node.
        level: the level of the node.
        leave: whether groups may leave the node for the next level, whatever happens there.
        room: per group, what moving it may cost if nothing beyond the bounds is lost elsewhere.
        parts: the nodes one level below with their bounds.
        least: the sum of these bounds.
    """

    groups: Groups
    members: NDArray[np.int64]
    finest: NDArray[np.int64]
    node: list[NDArray[np.int64]]
    level: int
    leave: bool
    room: NDArray[np.int64]
    parts: list[tuple[int, int]]
    least: int


def solve_program(
    problem: LevelProgram, limit: int, shared: set[int], effort: float | None
) -> tuple[NDArray[np.int64] | None, int]:
    """The best levels that lose at most ``limit``, if found, and what is lost at least.

    A program beyond ``effort`` is not solved, or not to its end; None: whatever it takes. Nodes
    that turn out to be short of values only because some are shared are added to ``shared``.
    """
    bound = problem.least
    while True:
        model = _Model(problem, limit, shared)
        if effort is not None and model.rows.entries > ENTRIES * effort:
            break
        status, x, value = model.run(limit, effort)
        if status == INFEASIBLE:
            return None, limit + 1
        bound = max(bound, value)
        if x is None:
            break
        target = model.targets(x)
        short = _short(problem, target)
        if not short:
            lost = problem.groups.people[problem.members] * (
                target - problem.finest[problem.members]
            )
            return target, int(lost.sum()) if status == OPTIMAL else bound
        if short <= shared:
            break
        shared |= short
    return None, bound


def _short(problem: LevelProgram, target: NDArray[np.int64]) -> set[int]:
    """The nodes that do not meet their guarantee."""
    short: set[int] = set()
    for level in range(problem.level + 1):
        inside = problem.members[target == level]
        numbers, ids = np.unique(problem.node[level][inside], return_inverse=True)
        holds = problem.groups.passes(level, inside, ids, len(numbers))
        short |= set(numbers[~holds].tolist())
    return short


class _Model:
    """The program: columns x, then y, then z."""

    def __init__(self, problem: LevelProgram, limit: int, shared: set[int]) -> None:
        self.problem = problem
        self.rows = _Rows()
        self._kinds(shared)
        self._places(limit - problem.least)
        self._types()
        self._thresholds()
        self._bounds(limit)
        for v in sorted(shared):
            self._tell_apart(v)

    def _kinds(self, shared: set[int]) -> None:
        """Groups alike; where shared values are told apart, each is its own kind."""
        p = self.problem
        counts = [c.counts if isinstance(c, Distinct) else c for c in p.groups.counts]
        most = p.groups.thresholds.max(axis=0)
        capped = [np.minimum(c[p.members], m) for c, m in zip(counts, most, strict=True)]
        finest = p.finest[p.members]
        home = np.array(p.node)[finest, p.members]
        own = np.zeros(len(p.members), dtype=np.int64)
        if shared:
            wanted = np.array(sorted(shared))
            apart = np.isin(np.array(p.node)[:, p.members], wanted).any(axis=0)
            own[apart] = np.arange(1, 1 + apart.sum())
        key = np.column_stack([home, own, p.groups.people[p.members], *capped])
        _, first, kind, self.many = np.unique(
            key, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        self.kind = kind.reshape(-1)
        self.one = p.members[first]
        self.tests = _needed_tests(p.groups.thresholds, np.column_stack(capped)[first])
        self.counts = np.column_stack(capped)[first][:, self.tests]

    def _places(self, more: int) -> None:
        """The levels of each kind that cost no more than its room and ``more``."""
        p = self.problem
        finest, people = p.finest[self.one], p.groups.people[self.one]
        levels = np.arange(p.level + 1 + p.leave)
        cost = people[:, None] * (levels[None, :] - finest[:, None])
        able = (levels >= finest[:, None]) & (cost <= p.room[self.one][:, None] + more)
        self.of, self.at = np.nonzero(able)
        self.cost = cost[able]
        self.columns = len(self.of)
        self.rows.add(self.of, np.arange(self.columns), np.ones(self.columns), self.many, self.many)

    def _types(self) -> None:
        """Who counts the same at a node; y links them to its thresholds."""
        p = self.problem
        inner = np.flatnonzero(self.at <= p.level)
        node = np.array(p.node)[self.at[inner], self.one[self.of[inner]]]
        needed = p.groups.thresholds[self.at[inner]][:, self.tests]
        counted = np.minimum(self.counts[self.of[inner]], needed)
        types, first, which = np.unique(
            np.column_stack([node, counted]), axis=0, return_index=True, return_inverse=True
        )
        self.inner, self.which = inner, which.reshape(-1)
        self.node, self.counted, self.needed = types[:, 0], types[:, 1:], needed[first]
        lacking = (self.counted < self.needed).any(axis=1)
        self.y = np.full(len(types), -1)
        self.y[lacking] = self.columns + np.arange(lacking.sum())
        linked = np.flatnonzero(lacking[self.which])
        rows, x = np.arange(len(linked)), inner[linked]
        many = self.many[self.of[x]]
        self.rows.add(
            np.concatenate((rows, rows)),
            np.concatenate((x, self.y[self.which[linked]])),
            np.concatenate((np.ones(len(x)), -many)),
            np.full(len(x), -np.inf),
            np.zeros(len(x)),
        )
        self.columns += int(lacking.sum())

    def _thresholds(self) -> None:
        """Where a type is present, all at its node count what it lacks, and itself."""
        order = np.argsort(self.node[self.which], kind="stable")
        nodes = self.node[self.which][order]
        for r in range(self.needed.shape[1]):
            types = np.flatnonzero(self.counted[:, r] < self.needed[:, r])
            low, high = np.searchsorted(nodes, [self.node[types], self.node[types] + 1])
            size = high - low
            row = np.repeat(np.arange(len(types)), size)
            entry = order[np.arange(size.sum()) + np.repeat(low - (np.cumsum(size) - size), size)]
            lack = (self.needed - self.counted)[types, r]
            itself = np.minimum(self.counted[types, r], lack)
            self.rows.add(
                np.concatenate((row, np.arange(len(types)))),
                np.concatenate((self.inner[entry], self.y[types])),
                np.concatenate(
                    (np.minimum(self.counted[self.which[entry], r], lack[row]), -lack - itself)
                ),
                np.zeros(len(types)),
                np.full(len(types), np.inf),
            )

    def _bounds(self, limit: int) -> None:
        """What the nodes below lose, and everybody together."""
        p = self.problem
        moved = np.flatnonzero(self.cost > 0)
        self.rows.add(
            np.zeros(len(moved)), moved, self.cost[moved], np.array([p.least]), np.array([limit])
        )
        if p.level == 0:
            return
        below = p.node[p.level - 1][self.one[self.of[moved]]]
        names = np.array([v for v, _ in p.parts], dtype=np.int64)
        least = np.array([b for _, b in p.parts], dtype=np.int64)
        order = np.argsort(names)
        at = np.searchsorted(names[order], below)
        inside = (below >= 0) & (p.finest[self.one[self.of[moved]]] < p.level)
        part = order[np.minimum(at, len(order) - 1)] if len(order) else at
        moved, part = moved[inside], part[inside]
        self.rows.add(part, moved, self.cost[moved], least, least + limit - p.least)

    def _tell_apart(self, v: int) -> None:
        """Shared values count once at node ``v``."""
        x = self.inner[self.node[self.which] == v]
        types = np.flatnonzero((self.node == v) & (self.y >= 0))
        if not len(types):
            return
        groups = self.one[self.of[x]]
        thresholds = self.problem.groups.thresholds[self.at[x[0]]].tolist()
        for needed, count in zip(thresholds, self.problem.groups.counts, strict=True):
            if not isinstance(count, Distinct):
                continue
            alone = count.counts[groups] >= needed
            entries = dict.fromkeys(x[alone].tolist(), needed)
            holders: dict[int, list[int]] = {}
            for g, column in zip(groups[~alone].tolist(), x[~alone].tolist(), strict=True):
                for value in count.values[count.starts[g] : count.starts[g + 1]].tolist():
                    holders.setdefault(value, []).append(column)
            # In the order of who holds them: what the values are must not matter.
            for held in sorted(holders.values()):
                z, self.columns = self.columns, self.columns + 1
                self.rows.one([z, *held], [1, *[-1] * len(held)], -np.inf, 0)
                entries[z] = 1
            for y in self.y[types].tolist():
                self.rows.one([*entries, y], [*entries.values(), -needed], 0, np.inf)

    def run(self, limit: int, effort: float | None) -> tuple[int, NDArray[np.int64] | None, int]:
        """The status, the number of groups per place, and a lower bound of the loss."""
        from scipy.optimize import Bounds, milp

        upper = np.ones(self.columns)
        upper[: len(self.of)] = self.many[self.of]
        cost = np.zeros(self.columns)
        cost[: len(self.of)] = self.cost
        # A gap below one half proves a whole number optimal.
        options: dict[str, float] = {"mip_rel_gap": 0.5 / max(1, limit)}
        if effort is not None:
            options["node_limit"] = int(ENTRIES * effort * SEARCHED / self.rows.entries)
        # All columns are declared whole, also those that would be anyway: HiGHS 1.8 has been seen
        # to cut off the optimum where it had to find that out by itself.
        result = milp(
            cost,
            constraints=self.rows.constraint(self.columns),
            integrality=np.ones(self.columns),
            bounds=Bounds(0, upper),
            options=options,
        )
        x = None if result.x is None else np.rint(result.x[: len(self.of)]).astype(np.int64)
        # Stopped early, HiGHS may hand out what is no solution.
        if x is not None and (
            (x < 0).any()
            or (np.bincount(self.of, x, len(self.many)) != self.many).any()
            or int(self.cost @ x) > limit
        ):
            x = None
        return int(result.status), x, _whole(result.mip_dual_bound)

    def targets(self, x: NDArray[np.int64]) -> NDArray[np.int64]:
        """The level of each member."""
        target = np.empty(len(self.problem.members), dtype=np.int64)
        target[np.argsort(self.kind, kind="stable")] = np.repeat(self.at, x)
        return target


def _needed_tests(thresholds: NDArray[np.int64], counts: NDArray[np.int64]) -> list[int]:
    """The requirements that no earlier one implies, as if values were not shared."""
    needed: list[int] = []
    for r in range(counts.shape[1]):
        most = thresholds[:, r].max()
        if not any(
            (thresholds[:, e] >= thresholds[:, r]).all()
            and (counts[:, r] >= np.minimum(counts[:, e], most)).all()
            for e in needed
        ):
            needed.append(r)
    return needed


def _whole(value: float | None) -> int:
    """Losses are whole numbers, so a lower bound may be rounded up (tolerances aside)."""
    if value is None or not np.isfinite(value):
        return 0
    return max(0, int(np.ceil(value - 1e-4)))


class _Rows:
    """Rows lower <= sum of value x column <= upper."""

    def __init__(self) -> None:
        self._entries: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
        self._limits: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._count = 0
        self.entries = 0

    def add(
        self,
        rows: NDArray[Any],
        columns: NDArray[Any],
        values: NDArray[Any],
        lower: NDArray[Any],
        upper: NDArray[Any],
    ) -> None:
        """Add ``len(lower)`` rows; ``rows`` numbers them from 0."""
        self._entries.append((rows + self._count, columns, values))
        self._limits.append((lower, upper))
        self._count += len(lower)
        self.entries += len(columns)

    def one(
        self, columns: Sequence[int], values: Sequence[float], lower: float, upper: float
    ) -> None:
        """Add one row."""
        at = np.zeros(len(columns))
        self.add(at, np.array(columns), np.array(values), np.array([lower]), np.array([upper]))

    def constraint(self, columns: int) -> Any:
        """All rows as SciPy wants them."""
        from scipy.optimize import LinearConstraint
        from scipy.sparse import csr_array

        rows, at, values = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        lower, upper = (np.concatenate(part) for part in zip(*self._limits, strict=True))
        shape = (self._count, columns)
        matrix = csr_array(
            (values.astype(float), (rows.astype(np.int64), at.astype(np.int64))), shape=shape
        )
        return LinearConstraint(matrix, lower.astype(float), upper.astype(float))
