"""The optimum of objectives that add up over classes: DBIL and WCSD.

Column generation: a linear program over the classes found so far prices the rows; classes that cost
less than the prices of their rows are added until there are none. Its value then is a lower bound.
All classes that could take part in a better solution are those whose cost exceeds their prices by
less than what separates the best solution from the bound; among these the optimum is chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.partition.optimum.columns import Columns
from halfmask.anonymize.partition.optimum.instance import Instance, Optimum
from halfmask.metrics.partition import class_limit, sorted_classes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EPS = 1e-9
_BATCH = 4_000
_STEPS = 20_000_000  # steps of one search for classes, about ten seconds
_LISTED = 400_000  # classes among which the optimum is chosen at the end


def smallest_sum(instance: Instance, kind: int, starts: list[NDArray[np.int64]]) -> Optimum:
    """The division of least cost; ``starts`` are valid divisions to begin with."""
    columns = Columns(len(instance))
    for ids in starts:
        order, begins = sorted_classes(ids)
        costs = np.array([cost_of(instance, kind, one) for one in np.split(order, begins[1:-1])])
        columns.add(order, begins, costs)
    best = min(starts, key=lambda ids: total_cost(instance, kind, ids))
    value = total_cost(instance, kind, best)
    bound, prices = _generate(instance, kind, columns)
    if value - bound > _EPS and not instance.over:
        chosen, cost, _ = columns.chosen(min(instance.left, 10.0))
        if chosen is not None and cost < value - _EPS:
            best, value = chosen, cost
    if value - bound > _EPS and not instance.over:
        best, value, bound = _finish(instance, kind, (best, value, bound), prices)
    return Optimum(best, value, min(bound, value))


def total_cost(instance: Instance, kind: int, ids: NDArray[np.int64]) -> float:
    """What a division costs."""
    order, begins = sorted_classes(ids)
    parts = np.split(order, begins[1:-1])
    return float(sum(cost_of(instance, kind, one) for one in parts))


def cost_of(instance: Instance, kind: int, rows: NDArray[np.int64]) -> float:
    """What one class costs."""
    from halfmask.kernels import price

    inside = instance.far[np.ix_(rows, rows)]
    if kind == price.WCSD:
        return float(np.triu(inside, 1).sum())
    return float(len(rows) * inside.max(initial=0.0)) if kind == price.DBIL else 0.0


def _generate(instance: Instance, kind: int, columns: Columns) -> tuple[float, NDArray[np.float64]]:
    """Add classes until none improves the linear program; its proven bound, and the prices."""
    from halfmask.kernels import price

    bound, prices, patience = 0.0, np.zeros(len(instance)), _STEPS
    limit = class_limit(instance.k)
    while True:
        relaxed, prices = columns.relaxed()
        rows, starts, costs, lowest, whole = price.classes(
            instance.far, instance.k, prices, kind, np.inf, -_EPS, _BATCH, patience
        )
        if whole:  # no more than ``limit`` classes can each lower the bound by ``lowest``
            bound = max(bound, relaxed + limit * min(lowest, 0.0))
        if whole and not len(costs):
            return max(bound, relaxed), prices
        if columns.add(rows, starts, costs) == 0 or instance.over:
            return bound, prices


def _finish(
    instance: Instance,
    kind: int,
    known: tuple[NDArray[np.int64], float, float],
    prices: NDArray[np.float64],
) -> tuple[NDArray[np.int64], float, float]:
    """Choose among all classes that a better solution can hold."""
    from halfmask.kernels import price

    best, value, bound = known
    rows, starts, costs, _, whole = price.classes(
        instance.far, instance.k, prices, kind, np.inf, value - float(prices.sum()) + _EPS,
        _LISTED, 20 * _STEPS,
    )  # fmt: skip
    if not whole:
        return known
    candidates = Columns(len(instance))
    candidates.add(rows, starts, costs)
    order, begins = sorted_classes(best)
    own = [cost_of(instance, kind, one) for one in np.split(order, begins[1:-1])]
    candidates.add(order, begins, np.array(own))
    ids, cost, lower = candidates.chosen(instance.left)
    if ids is not None and cost < value:
        best, value = ids, cost
    return best, value, max(bound, min(lower, value))
