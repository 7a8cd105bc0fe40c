"""How budgets of different kinds add up under one promise.

Definition: the total of costs is told in the kind that was granted. In epsilon and delta, pure and
approximate costs add up; concentrated ones add up in rho, which is read at half of the granted
delta; pure ones go to either side, whichever is smaller. In rho, pure epsilon counts as
epsilon**2 / 2. On disjoint people the largest total counts.
Source: Dwork, Roth, "The algorithmic foundations of differential privacy", 2014, Theorems 3.16 and
3.20; Bun, Steinke, "Concentrated differential privacy", 2016, Propositions 1.3 and 1.4, Lemma 1.7.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from halfmask.dp.budget import (
    Approximate,
    Budget,
    Concentrated,
    Pure,
    epsilon_of,
    parallel,
    pure_to_concentrated,
)
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Part = tuple[str, ...] | None

_GRID = 10**9  # of an epsilon that is computed from rho, rounded up


def as_kind(cost: Budget, kind: Budget) -> Budget:
    """``cost`` in the kind of ``kind``, where it says the same or less.

    Pure counts as approximate with delta 0 and as zCDP with rho = epsilon**2 / 2, and rho as
    epsilon at half of the delta of ``kind``; an epsilon with a delta is neither pure nor zCDP.
    """
    if type(cost) is type(kind):
        return cost
    if isinstance(cost, Approximate) and not cost.delta:
        return as_kind(Pure(cost.epsilon), kind)
    if isinstance(cost, Pure) and isinstance(kind, Approximate):
        return Approximate(cost.epsilon, 0)
    if isinstance(cost, Pure) and isinstance(kind, Concentrated):
        return pure_to_concentrated(cost)
    if isinstance(cost, Concentrated) and isinstance(kind, Approximate) and kind.delta:
        return Approximate(_epsilon(cost.rho, kind.delta / 2), kind.delta / 2)
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
    several = list(costs)
    if isinstance(kind, Approximate) and kind.delta:
        return _approximate(several, kind)
    found = zero(kind)
    for cost in several:
        found = found + as_kind(cost, kind)
    return found


def total_of_parts(costs: Iterable[tuple[Budget, Part]], kind: Budget) -> Budget:
    """The total where each cost is for the people of a part; None: for everybody.

    Nobody is in two parts, so the largest total of one part counts (parallel composition).

    Example:
        >>> total_of_parts([(Pure(1), ("Lille",)), (Pure(2), ("Nice",)), (Pure(1), None)], Pure(9))
        epsilon = 3
    """
    several = list(costs)
    return parallel(
        total([cost for cost, part in several if part is None or atom in part], kind)
        for atom in atoms(part for _, part in several)
    )


def atoms(parts: Iterable[Part]) -> Sequence[str | None]:
    """Every value that a part names, and None for people with another one."""
    return [None, *sorted({value for part in parts if part is not None for value in part})]


def _approximate(costs: list[Budget], kind: Approximate) -> Approximate:
    pure = [c.epsilon for c in costs if isinstance(c, Pure)]
    mixed = [c for c in costs if isinstance(c, Approximate)]
    rho = sum((c.rho for c in costs if isinstance(c, Concentrated)), Fraction(0))
    epsilon = sum((c.epsilon for c in mixed), Fraction(0))
    delta = sum((c.delta for c in mixed), Fraction(0))
    if delta >= 1:
        raise ParameterError("delta", float(delta), "below 1 in all")
    half = kind.delta / 2
    plain = Approximate(epsilon + sum(pure, Fraction(0)), delta)
    if rho:
        plain = Approximate(plain.epsilon + _epsilon(rho, half), delta + half)
    if not pure:
        return plain
    squares = rho + sum((e**2 for e in pure), Fraction(0)) / 2
    joined = Approximate(epsilon + _epsilon(squares, half), delta + half)
    fits = bool(rho) or joined.delta <= kind.delta
    return joined if fits and joined.epsilon < plain.epsilon else plain


def _epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    found = epsilon_of(Concentrated(rho), delta)
    return Fraction(int(found * _GRID) + 1, _GRID)
