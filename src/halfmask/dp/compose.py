"""How budgets of different kinds add up under one promise."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from halfmask.dp.budget import Approximate, Budget, Concentrated, Pure, pure_to_concentrated
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable


def as_kind(cost: Budget, kind: Budget) -> Budget:
    """``cost`` in the kind of ``kind``, where one implies the other.

    Pure counts as approximate with delta 0 and as zCDP with rho = epsilon**2 / 2; no other step is
    taken silently.
    """
    if type(cost) is type(kind):
        return cost
    if isinstance(cost, Pure) and isinstance(kind, Approximate):
        return Approximate(cost.epsilon, 0)
    if isinstance(cost, Pure) and isinstance(kind, Concentrated):
        return pure_to_concentrated(cost)
    raise ParameterError(
        "budget", type(cost).__name__, f"a cost that the {type(kind).__name__} budget covers"
    )


def zero(kind: Budget) -> Budget:
    """Nothing, in the kind of ``kind``."""
    return kind * 0


def total(costs: Iterable[Budget], kind: Budget) -> Budget:
    """Sequential composition of ``costs`` in the kind of ``kind``.

    Example:
        >>> total([Pure("1/3")] * 3, Pure(1))
        epsilon = 1
    """
    return reduce(lambda a, b: a + b, (as_kind(cost, kind) for cost in costs), zero(kind))
