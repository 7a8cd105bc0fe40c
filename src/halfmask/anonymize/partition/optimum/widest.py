"""The optimum of the diameter: the tightest limit under which all rows find a class.

The limit is one of the distances. Below the distance of each row to the nearest rows that could
just fill its class nothing works, which is often the answer. Between that and the best division
known, limits are tried by halving: a division under the limit lowers one side; a linear program
over all classes under the limit that cannot cover every row raises the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.partition.optimum.columns import Columns
from halfmask.anonymize.partition.optimum.instance import Instance, Optimum

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EPS = 1e-9
_UNCOVERED = 1.0
_BATCH = 4_000
_STEPS = 4_000_000
_LISTED = 200_000  # classes that are listed to decide a limit for good
_TRIES = 60


def smallest_diameter(
    instance: Instance, starts: list[NDArray[np.int64]], seed: int | None
) -> Optimum:
    """The division whose widest class is tightest."""
    best = min(starts, key=lambda ids: diameter_of(instance, ids))
    low = float(instance.nearest().max(initial=0.0))
    rng = np.random.default_rng(seed)
    closed: set[float] = set()
    while True:
        high = diameter_of(instance, best)
        limits = np.unique(
            instance.far[(instance.far >= low - _EPS) & (instance.far < high - _EPS)]
        )
        limits = limits[~np.isin(limits, list(closed))]
        if not len(limits) or instance.over:
            return Optimum(best, high, high if not len(limits) and not closed else low)
        limit = float(limits[0] if len(limits) < 3 else limits[len(limits) // 2])
        ids, impossible = _under(instance, limit, rng)
        if ids is not None:
            best = ids
        elif impossible:
            low = float(instance.far[instance.far > limit + _EPS].min(initial=high))
        else:
            closed.add(limit)  # undecided


def diameter_of(instance: Instance, ids: NDArray[np.int64]) -> float:
    """The largest distance inside a class."""
    return float(instance.far[np.equal.outer(ids, ids)].max(initial=0.0))


def _under(
    instance: Instance, limit: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64] | None, bool]:
    """A division under ``limit``, or None and whether there is none."""
    close = instance.far <= limit + _EPS
    for _ in range(_TRIES):
        ids = _greedy(close, instance.k, rng)
        if ids is not None:
            return ids, False
    return _covered(instance, limit)


def _greedy(
    close: NDArray[np.bool_], k: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64] | None:
    """Give the row with the fewest choices a class of rows close to all of it, again and again."""
    n = len(k)
    ids = np.full(n, -1, dtype=np.int64)
    noise = rng.random(n)
    number = 0
    while (free := ids < 0).any():
        choices = (close & free).sum(axis=1) - k + noise
        row = int(np.argmin(np.where(free, choices, np.inf)))
        members, shared, need = [row], close[row] & free, int(k[row])
        shared[row] = False
        while len(members) < need and shared.any():
            score = np.maximum(k - need, 0) * n + choices
            following = int(np.argmin(np.where(shared, score, np.inf)))
            members.append(following)
            need = max(need, int(k[following]))
            shared &= close[following]
            shared[following] = False
        if len(members) >= need:
            ids[members] = number
            number += 1
            continue
        joined = [c for c in range(number) if close[row][ids == c].all()]
        joined = [c for c in joined if (ids == c).sum() + 1 >= k[row]]
        if not joined:
            return None
        ids[row] = joined[0]
    return ids


def _covered(instance: Instance, limit: float) -> tuple[NDArray[np.int64] | None, bool]:
    """Cover the rows by classes under ``limit``; a linear program may prove that none do."""
    from halfmask.kernels import price

    n = len(instance)
    columns = Columns(n)
    alone = np.where(instance.k > 1, _UNCOVERED, 0.0)  # who demands nobody may stand alone
    columns.add(np.arange(n), np.arange(n + 1), alone)
    while True:
        relaxed, prices = columns.relaxed()
        rows, starts, costs, _, whole = price.classes(
            instance.far, instance.k, prices, price.CLIQUE, limit + _EPS, -_EPS, _BATCH, _STEPS
        )
        if relaxed <= _EPS:
            break
        if whole and not len(costs):
            return None, True
        if columns.add(rows, starts, costs) == 0 or instance.over:
            return None, False
    ids, cost, _ = columns.chosen(min(instance.left, 10.0))
    if ids is not None and cost < _EPS:
        return ids, False
    return _among_all(instance, limit)


def _among_all(instance: Instance, limit: float) -> tuple[NDArray[np.int64] | None, bool]:
    """Decide with all classes under ``limit``, where they can be listed."""
    from halfmask.kernels import price

    free = np.zeros(len(instance))
    rows, starts, costs, _, whole = price.classes(
        instance.far, instance.k, free, price.CLIQUE, limit + _EPS, 1.0, _LISTED, 20 * _STEPS
    )
    if not whole:
        return None, False
    columns = Columns(len(instance))
    columns.add(rows, starts, costs)
    ids, _, bound = columns.chosen(instance.left)
    return ids, ids is None and bound == np.inf
