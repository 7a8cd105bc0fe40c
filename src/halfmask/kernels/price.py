"""All classes that could enter an optimal partition, found depth first under a bound.

A class costs its size times its diameter, the sum of its distances, or nothing as long as no two
rows are farther apart than a limit. Rows carry prices (the duals of a linear program); wanted are
the classes that cost less than the prices of their rows plus a threshold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.kernels.compiler import kernel, real_rows, reals, zeros

if TYPE_CHECKING:
    from numpy.typing import NDArray

DBIL, WCSD, CLIQUE = 0, 1, 2


def priced_classes(
    far: NDArray[np.float64],
    k: NDArray[np.int64],
    prices: NDArray[np.float64],
    kind: int,
    tau: float,
    threshold: float,
    most: int,
    patience: int,
) -> tuple[Any, Any, Any, Any, Any]:
    """Classes whose cost less prices is below ``threshold``.

    Classes that fall into two valid ones are left out: parts never cost more than the whole. Gives
    the rows of all classes one after the other, where each begins, their costs, the lowest
    difference, and whether nothing was cut short (by ``most`` classes or ``patience`` steps).
    """
    n = len(k)
    cap = min(n, 2 * int(k.max()) - 1) if n else 0
    order = np.argsort(-prices, kind="stable")
    rows = np.empty(most * max(cap, 1), np.int64)
    starts, costs = np.zeros(most + 1, np.int64), np.empty(most, np.float64)
    found, lowest, whole = _classes(
        far[np.ix_(order, order)], k[order], prices[order], kind, tau, threshold, patience, cap,
        rows, starts, costs,
    )  # fmt: skip
    rows = order[rows[: starts[found]]]
    return rows, starts[: found + 1], costs[:found], lowest, whole


@kernel
def _classes(
    d: Any, need: Any, price: Any, kind: int, tau: float, threshold: float, patience: int, cap: int,
    rows: Any, starts: Any, costs: Any,
) -> Any:  # fmt: skip
    """Fill ``rows``, ``starts`` and ``costs``: how many classes, the lowest, whether all."""
    n, most = len(need), len(costs)
    reach = real_rows(cap + 2, n, 0.0)
    members, following, asked = zeros(cap + 2), zeros(cap + 2), zeros(cap + 2)
    cost = reals(cap + 2, 0.0)  # the diameter, or the sum of distances
    paid, best = reals(cap + 2, 0.0), reals(cap + 1, 0.0)
    found, lowest, steps = 0, np.inf, 0
    for first in range(n):
        members[1], cost[1], paid[1], asked[1] = first, 0.0, price[first], need[first]
        for y in range(n):
            reach[1, y] = d[first, y]
        following[1] = first + 1
        depth = 1
        fresh = True
        while depth > 0:
            if fresh:
                steps += 1
                if steps > patience:
                    return found, lowest, False
                fresh = False
                whole = depth * cost[depth] if kind == DBIL else cost[depth]
                if kind == CLIQUE:
                    whole = 0.0
                left = whole - paid[depth]
                if (
                    depth >= asked[depth]
                    and left < threshold
                    and not _falls_apart(need, members, depth, asked[depth])
                ):
                    lowest = min(lowest, left)
                    if found == most:
                        return found, lowest, False
                    for i in range(depth):
                        rows[starts[found] + i] = members[i + 1]
                    starts[found + 1] = starts[found] + depth
                    costs[found] = whole
                    found += 1
                if depth == cap or not _promising(
                    price, reach[depth], following[depth], depth, cost[depth], paid[depth],
                    asked[depth], cap, kind, tau, threshold, best,
                ):  # fmt: skip
                    depth -= 1
                    continue
            x = following[depth]
            while x < n and kind == CLIQUE and reach[depth, x] > tau:
                x += 1
            if x >= n:
                depth -= 1
                continue
            following[depth] = x + 1
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
    return found, lowest, True


@kernel
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


@kernel
def _promising(
    price: Any, reach: Any, begin: int, size: int, cost: float, paid: float, asked: int,
    cap: int, kind: int, tau: float, threshold: float, best: Any,
) -> bool:  # fmt: skip
    """Whether some larger class could stay below the threshold."""
    n = len(price)
    forced, room = max(asked - size, 0), cap - size
    if n - begin < forced:
        return False
    wide = cost
    if kind == DBIL and forced > 0:  # the class must reach this far to be large enough
        for i in range(forced):
            best[i] = np.inf
        for y in range(begin, n):
            _insert(best, forced, reach[y])
        wide = max(wide, best[forced - 1])
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
    total = base - paid
    for i in range(room):
        if i < forced or best[i] < 0:
            total += best[i]
    return total < threshold


@kernel
def _insert(best: Any, size: int, x: float) -> None:
    """Keep the ``size`` smallest numbers in ascending order."""
    if size == 0 or x >= best[size - 1]:
        return
    i = size - 1
    while i > 0 and best[i - 1] > x:
        best[i] = best[i - 1]
        i -= 1
    best[i] = x
