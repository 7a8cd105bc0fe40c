"""All classes that could enter an optimal partition, found depth first under a bound.

A class costs its size times its diameter, the sum of its distances, or nothing as long as no two
rows are farther apart than a limit. Rows carry prices (the duals of a linear program); wanted are
the classes that cost less than the prices of their rows plus a threshold. Beyond how many rows a
class holds, rows may demand values of a sensitive column, and some may have to stand together.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import bare, kernel, reals, zeros
from halfmask.kernels.partition.construction import Demands, meets_demands

if TYPE_CHECKING:
    from numpy.typing import NDArray

DBIL, WCSD, CLIQUE = 0, 1, 2
_FIRST, _DEPTH, _FRESH, _STEPS, _FOUND = 0, 1, 2, 3, 4
_SLICE = 4_000_000  # rows looked at between two looks at the clock


class Rules(NamedTuple):
    """What a class must keep.

    Attributes:
        demands: what each row demands of the class it stands in.
        bond: (rows) the bond that a row is in; -1: none. A bond stands in one class.
        bonds: (bonds) how many rows each has.
    """

    demands: Demands
    bond: NDArray[np.int64]
    bonds: NDArray[np.int64]

    @classmethod
    def of_sizes(cls, k: NDArray[np.int64]) -> Rules:
        """Demands for rows alone."""
        n = len(k)
        nothing = Demands(
            k,
            np.zeros((n, 0), np.int32),
            np.zeros((n, 0), np.int64),
            np.zeros((n, 0), np.float64),
            np.zeros((0, 1), np.float64),
        )
        return cls(nothing, np.full(n, -1, np.int64), np.zeros(0, np.int64))

    @property
    def plain(self) -> bool:
        """Whether the number of rows alone decides."""
        return self.demands.values.shape[1] == 0 and len(self.bonds) == 0

    def take(self, some: NDArray[np.int64]) -> Rules:
        """The same of some rows, in this order; all rows of their bonds are among them."""
        d = self.demands
        taken = d._replace(
            k=d.k[some],
            values=np.ascontiguousarray(d.values[some]),
            l=np.ascontiguousarray(d.l[some]),
            t=np.ascontiguousarray(d.t[some]),
        )
        return Rules(taken, self.bond[some], self.bonds)


class ClassSearch(NamedTuple):
    """Which classes are wanted.

    Attributes:
        kind: what a class costs: ``DBIL``, ``WCSD`` or ``CLIQUE``.
        tau: how far apart two rows of a clique may be.
        threshold: what a class may cost beyond the prices of its rows.
    """

    kind: int
    tau: float
    threshold: float


class FoundClasses(NamedTuple):
    """Classes as they are found.

    Attributes:
        rows: the rows of all classes, one after the other.
        starts: where each class begins; one more for the end.
        costs: what each costs.
    """

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    costs: NDArray[np.float64]


def priced_classes(
    far: NDArray[np.float64],
    rules: Rules,
    prices: NDArray[np.float64],
    wanted: ClassSearch,
    most: int,
    patience: int,
    deadline: float = np.inf,
) -> tuple[Any, Any, Any, Any, Any]:
    """Classes whose cost less prices is below the ``wanted`` threshold.

    Where the number of rows alone decides, classes that fall into two valid ones are left out:
    parts never cost more than the whole, so that classes stay below twice the highest demand. Gives
    the rows of all classes one after the other, where each begins, their costs, the lowest
    difference, and whether nothing was cut short (by ``most`` classes, ``patience`` steps, or the
    ``deadline`` as ``time.monotonic`` counts).
    """
    k, plain = rules.demands.k, rules.plain
    n = len(k)
    cap = (min(n, 2 * int(k.max()) - 1) if plain else n) if n else 0
    order = np.argsort(-prices, kind="stable")
    rows = np.empty(most * max(cap, 1), np.int64)
    out = FoundClasses(rows, np.zeros(most + 1, np.int64), np.empty(most, np.float64))
    walk = Walk.start(n, cap)
    place = far[np.ix_(order, order)], rules.take(order), prices[order]
    whole, begun = False, time.monotonic()
    while begun < deadline or not walk.at[_STEPS]:  # a first slice in any case
        pause = min(patience, int(walk.at[_STEPS]) + max(1, _SLICE // max(n * cap, 1)))
        whole = _classes(*place, wanted, pause, walk, out)
        if whole or walk.at[_STEPS] <= pause or pause == patience:
            break
        begun = time.monotonic()
    found, lowest = int(walk.at[_FOUND]), float(walk.lowest[0])
    rows = order[rows[: out.starts[found]]]
    return rows, out.starts[: found + 1], out.costs[:found], lowest, whole


class Walk(NamedTuple):
    """Where a walk over classes stands, so that it can go on after a look at the clock.

    Attributes:
        at: the first member, how many there are, whether this class is new, the steps, the found.
        lowest: the lowest difference so far.
        members: the class.
        following: per depth, the next row that may join.
        asked: per depth, how many rows the class must have.
        cost: per depth, the diameter, or the sum of distances.
        paid: per depth, the prices of its rows.
        reach: per depth, what each row would add.
    """

    at: NDArray[np.int64]
    lowest: NDArray[np.float64]
    members: NDArray[np.int64]
    following: NDArray[np.int64]
    asked: NDArray[np.int64]
    cost: NDArray[np.float64]
    paid: NDArray[np.float64]
    reach: NDArray[np.float64]

    @classmethod
    def start(cls, rows: int, cap: int) -> Walk:
        """Before the first class."""
        members, following, asked = (np.zeros(cap + 2, np.int64) for _ in range(3))
        cost, paid = (np.zeros(cap + 2) for _ in range(2))
        reach = np.zeros((cap + 2, rows))
        return cls(
            np.zeros(5, np.int64), np.full(1, np.inf), members, following, asked, cost, paid, reach
        )


@kernel
def _classes(d: Any, rules: Any, price: Any, wanted: Any, pause: int, walk: Any, out: Any) -> bool:
    """Fill ``out`` up to so many steps: whether all classes were seen.

    Short of that the walk has more steps than ``pause``, and goes on from there, or no room.
    """
    kind, tau, threshold = wanted.kind, wanted.tau, wanted.threshold
    rows, starts, costs = out.rows, out.starts, out.costs
    demands, bonds = rules.demands, rules.bonds
    plain = demands.values.shape[1] == 0 and len(bonds) == 0
    need, at = demands.k, walk.at
    members, following, asked = walk.members, walk.following, walk.asked
    cost, paid, reach = walk.cost, walk.paid, walk.reach
    n, most, cap = len(need), len(costs), len(members) - 2
    counts, inside = zeros(demands.shares.shape[1]), zeros(len(bonds))
    best = reals(cap + 1, 0.0)
    found, depth, fresh = at[_FOUND], at[_DEPTH], at[_FRESH] == 1
    while at[_FIRST] < n:
        if depth == 0:
            first = at[_FIRST]
            members[1], cost[1], paid[1], asked[1] = first, 0.0, price[first], need[first]
            for y in range(n):
                reach[1, y] = d[first, y]
            following[1] = first + 1
            depth, fresh = 1, True
        while depth > 0:
            if fresh:
                at[_STEPS] += 1
                if at[_STEPS] > pause:
                    at[_FOUND], at[_DEPTH], at[_FRESH] = found, depth, 1
                    return False
                fresh = False
                whole = depth * cost[depth] if kind == DBIL else cost[depth]
                if kind == CLIQUE:
                    whole = 0.0
                left = whole - paid[depth]
                if (
                    depth >= asked[depth]
                    and left < threshold
                    and (not plain or not _falls_apart(need, members, depth, asked[depth]))
                    and (plain or _is_allowed(rules, members, depth, counts, inside))
                ):
                    walk.lowest[0] = min(walk.lowest[0], left)
                    if found == most:
                        at[_FOUND] = found
                        return False
                    for i in range(depth):
                        rows[starts[found] + i] = members[i + 1]
                    starts[found + 1] = starts[found] + depth
                    costs[found] = whole
                    found += 1
                if depth == cap or not _promising(price, walk, depth, wanted, best):
                    depth -= 1
                    continue
            x = following[depth]
            while x < n and kind == CLIQUE and reach[depth, x] > tau:
                x += 1
            if x >= n:
                depth -= 1
                continue
            following[depth] = x + 1
            # Kept per depth: to step back costs nothing.
            if kind == WCSD:
                cost[depth + 1] = cost[depth] + reach[depth, x]
                for y in range(x + 1, n):
                    reach[depth + 1, y] = reach[depth, y] + d[x, y]
            else:
                cost[depth + 1] = max(cost[depth], reach[depth, x])
                for y in range(x + 1, n):
                    reach[depth + 1, y] = max(reach[depth, y], d[x, y])
            depth += 1
            members[depth] = x
            paid[depth] = paid[depth - 1] + price[x]
            asked[depth] = max(asked[depth - 1], need[x])
            following[depth] = x + 1
            fresh = True
        at[_FIRST] += 1
    at[_FOUND] = found
    return True


@bare
def _is_allowed(rules: Any, members: Any, size: int, counts: Any, inside: Any) -> bool:
    """Whether a class meets all demands and parts no bond; ``counts``, ``inside`` are scratch."""
    bond, bonds = rules.bond, rules.bonds
    if not meets_demands(rules.demands, members, 1, size + 1, counts):
        return False
    for i in range(1, size + 1):
        if bond[members[i]] >= 0:
            inside[bond[members[i]]] += 1
    whole = True
    for i in range(1, size + 1):
        one = bond[members[i]]
        if one >= 0:
            if inside[one] > 0 and inside[one] != bonds[one]:
                whole = False
            inside[one] = 0
    return whole


@bare
def _falls_apart(need: Any, members: Any, size: int, highest: int) -> bool:
    """Whether the class can be cut into two valid ones."""
    for part in range(1, size):
        if size - part < highest:
            return False
        content = 0
        for i in range(1, size + 1):
            content += need[members[i]] <= part
        if content >= part:
            return True
    return False


@bare
def _promising(price: Any, walk: Any, size: int, wanted: Any, best: Any) -> bool:
    """Whether some larger class than the one of ``size`` rows could stay below the threshold."""
    kind, tau = wanted.kind, wanted.tau
    reach, begin, cost = walk.reach[size], walk.following[size], walk.cost[size]
    n = len(price)
    forced, room = max(walk.asked[size] - size, 0), len(walk.members) - 2 - size
    if n - begin < forced:
        return False
    wide = cost
    if kind == DBIL and forced > 0:  # the class must reach this far to be large enough
        for i in range(forced):
            best[i] = np.inf
        for y in range(begin, n):
            _insert(best, forced, reach[y])
        wide = max(wide, best[forced - 1])
    # Reach only grows: a row that joins later adds at least what it would add now. So the cheapest
    # rows that are forced, and of the others those that pay for themselves, bound all larger ones.
    base = size * wide if kind == DBIL else (cost if kind == WCSD else 0.0)
    for i in range(room):
        best[i] = np.inf
    for y in range(begin, n):
        if kind == DBIL:
            extra = max(wide, reach[y]) - price[y]
        elif kind == WCSD:
            extra = reach[y] - price[y]
        else:
            extra = -price[y] if reach[y] <= tau else np.inf
        _insert(best, room, extra)
    total = base - walk.paid[size]
    for i in range(room):
        if i < forced or best[i] < 0:
            total += best[i]
    return bool(total < wanted.threshold)


@bare
def _insert(best: Any, size: int, x: float) -> None:
    """Keep the ``size`` smallest numbers in ascending order."""
    if size == 0 or x >= best[size - 1]:
        return
    i = size - 1
    while i > 0 and best[i - 1] > x:
        best[i] = best[i - 1]
        i -= 1
    best[i] = x
