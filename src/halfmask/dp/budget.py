"""Privacy budgets: how much may be spent, in exact arithmetic, and how costs add up.

Definition: ``Pure(epsilon)``; ``Approximate(epsilon, delta)``; ``Concentrated(rho)`` (zCDP).
Budgets of one kind add up when a table is used again (sequential composition); on disjoint people
the largest counts (parallel composition). Neighboring tables differ by all rows of one person.
The total of costs of several kinds is told in the kind that was granted. In epsilon and delta, pure
and approximate costs add up; concentrated ones add up in rho, which is read at half of the granted
delta; pure ones go to either side, whichever is smaller. In rho, pure epsilon counts as
epsilon**2 / 2.
Source: Dwork, Roth, "The algorithmic foundations of differential privacy", 2014, Theorems 3.16 and
3.20; Bun, Steinke, "Concentrated differential privacy", 2016, Propositions 1.3 and 1.4, Lemma 1.7.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from math import exp, inf, log, log1p, sqrt
from typing import TYPE_CHECKING, Self

from halfmask.errors import ParameterError, PrivacyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    DisjointPart = tuple[str, ...] | None


def require_positive(name: str, amount: Fraction, sensitivity: int) -> None:
    """Refuse a mechanism that would spend nothing, or that nobody could touch."""
    if amount <= 0:
        raise ParameterError(name, str(amount), "above 0")
    if sensitivity < 1:
        raise ParameterError("sensitivity", sensitivity, "at least 1")


def score_rate(epsilon: Fraction, sensitivity: int) -> Fraction:
    """The exponent of one point of a score, when one of several candidates is chosen."""
    rate = epsilon / (2 * sensitivity)
    if rate.denominator >= 1 << 30 or rate.numerator >= 1 << 30:
        return Fraction(int(rate * (1 << 24)), 1 << 24)  # rounded down: less to tell, no more
    return rate


Number = int | float | str | Fraction
_SAFE = 1e-9  # relative error granted to floating-point bounds, always to the careful side


def exact_number(name: str, value: Number) -> Fraction:
    """``value`` as a fraction; a float is read as it is printed, so that 0.1 is one tenth."""
    try:
        found = Fraction(str(value)) if isinstance(value, float) else Fraction(value)
    except (ValueError, TypeError, OverflowError, ZeroDivisionError) as error:
        raise ParameterError(name, value, "a finite number") from error
    if found < 0:
        raise ParameterError(name, value, "0 or more")
    return found


@dataclass(frozen=True, slots=True)
class Budget:
    """What all kinds share: values are compared and added part by part."""

    def parts(self) -> tuple[Fraction, ...]:
        """The numbers that make up the budget."""
        return tuple(getattr(self, field.name) for field in fields(self))

    def same(self, other: object) -> Self:
        """``other``, which must be of this kind."""
        if type(other) is not type(self):
            kinds = f"{type(self).__name__} and {type(other).__name__}"
            raise ParameterError("budget", kinds, "two budgets of one kind")
        return other

    def __add__(self, other: Budget) -> Self:
        pairs = zip(self.parts(), self.same(other).parts(), strict=True)
        return type(self)(*(a + b for a, b in pairs))

    def __sub__(self, other: Budget) -> Self:
        """What is left; never below zero."""
        pairs = zip(self.parts(), self.same(other).parts(), strict=True)
        return type(self)(*(max(a - b, Fraction(0)) for a, b in pairs))

    def __le__(self, other: Budget) -> bool:
        pairs = zip(self.parts(), self.same(other).parts(), strict=True)
        return all(a <= b for a, b in pairs)

    def __ge__(self, other: Budget) -> bool:
        return self.same(other) <= self

    def __lt__(self, other: Budget) -> bool:
        return self <= other and self != other

    def __gt__(self, other: Budget) -> bool:
        return self.same(other) < self

    def __mul__(self, share: Number) -> Self:
        factor = exact_number("share", share)
        return type(self)(*(part * factor for part in self.parts()))

    __rmul__ = __mul__

    def __truediv__(self, count: int) -> Self:
        return self * Fraction(1, count)

    def __str__(self) -> str:
        return ", ".join(
            f"{field.name} = {float(getattr(self, field.name)):.6g}" for field in fields(self)
        )

    def to_dict(self) -> dict[str, str]:
        """The kind and the exact parts as text, as the ledger keeps them."""
        parts = {field.name: str(getattr(self, field.name)) for field in fields(self)}
        return {"kind": type(self).__name__.lower(), **parts}


@dataclass(frozen=True, slots=True, init=False, repr=False, order=False)
class Pure(Budget):
    """Pure differential privacy.

    Example:
        >>> Pure(0.1) + Pure(0.2) == Pure("0.3")
        True
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", exact_number("epsilon", epsilon))

    __repr__ = Budget.__str__


@dataclass(frozen=True, slots=True, init=False, repr=False, order=False)
class Approximate(Budget):
    """Approximate differential privacy; ``delta`` is the chance that nothing is promised."""

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", exact_number("epsilon", epsilon))
        object.__setattr__(self, "delta", exact_number("delta", delta))
        if self.delta >= 1:
            raise ParameterError("delta", delta, "below 1, far below one over the number of people")

    __repr__ = Budget.__str__


@dataclass(frozen=True, slots=True, init=False, repr=False, order=False)
class Concentrated(Budget):
    """Zero-concentrated differential privacy."""

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", exact_number("rho", rho))

    __repr__ = Budget.__str__


def budget(epsilon: Number, delta: Number = 0) -> Pure | Approximate:
    """The budget that a user states: pure where ``delta`` is 0.

    Example:
        >>> budget(1)
        epsilon = 1
    """
    if exact_number("epsilon", epsilon) == 0:
        raise ParameterError("epsilon", epsilon, "above 0")
    return Approximate(epsilon, delta) if exact_number("delta", delta) else Pure(epsilon)


MOST_EPSILON, MOST_DELTA = Fraction(20), Fraction(1, 10**4)


def require_modest(amount: Budget, *, insist: bool = False) -> None:
    """Refuse a budget that promises next to nothing, unless the controller insists.

    Raises:
        PrivacyError: epsilon is above 20, delta above 0.0001, or rho above what epsilon 20 means.
    """
    if isinstance(amount, Concentrated):
        large = amount.rho > MOST_EPSILON**2 / 2
    else:
        epsilon, *delta = amount.parts()
        large = epsilon > MOST_EPSILON or any(part > MOST_DELTA for part in delta)
    if large and not insist:
        raise PrivacyError(
            f"A budget of {amount} promises next to nothing: stay within epsilon = 20 and delta = "
            "0.0001, or let the controller insist (insist=True, --insist)."
        )


def read_budget(document: dict[str, str]) -> Budget:
    """The budget that ``to_dict`` wrote."""
    kinds = {"pure": Pure, "approximate": Approximate, "concentrated": Concentrated}
    parts = {key: Fraction(value) for key, value in document.items() if key != "kind"}
    made: Budget = kinds[document["kind"]](**parts)
    return made


def parallel(budgets: Iterable[Budget]) -> Budget:
    """What mechanisms on disjoint people cost together: part by part the largest."""
    several = list(budgets)
    first = several[0]
    columns = zip(*(first.same(one).parts() for one in several), strict=True)
    return type(first)(*(max(column) for column in columns))


def pure_to_concentrated(pure: Pure) -> Concentrated:
    """Pure epsilon is rho = epsilon**2 / 2."""
    return Concentrated(pure.epsilon**2 / 2)


def delta_of(rho: float, epsilon: float) -> float:
    """An upper bound of the delta that rho-zCDP has at ``epsilon`` ."""
    if rho <= 0:
        return 0.0
    low, high = 1.0, epsilon / rho + 2.0
    for _ in range(200):  # the derivative in alpha has one sign change
        alpha = (low + high) / 2
        slope = (2 * alpha - 1) * rho - epsilon + log1p(-1.0 / alpha) if alpha > 1 else -inf
        low, high = (alpha, high) if slope < 0 else (low, alpha)
    alpha = max((low + high) / 2, 1 + 1e-9)
    value = exp((alpha - 1) * (alpha * rho - epsilon) + alpha * log1p(-1 / alpha)) / (alpha - 1)
    return min(1.0, value * (1 + _SAFE))


def concentrated_within(promise: Approximate) -> Concentrated:
    """The largest rho (rounded down) whose zCDP implies ``promise``.

    Any alpha gives a valid bound, so a slip of the search only loses accuracy, never privacy.
    """
    epsilon, delta = float(promise.epsilon) * (1 - _SAFE), float(promise.delta) * (1 - _SAFE)
    if epsilon <= 0 or delta <= 0:
        raise ParameterError("delta", float(promise.delta), "above 0 for Gaussian noise")
    low, high = 0.0, epsilon + 1
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    return Concentrated(Fraction(int(low * (1 - _SAFE) * (1 << 60)), 1 << 60))


def epsilon_of(spent: Concentrated, delta: Number) -> float:
    """An upper bound of the epsilon that ``spent`` means at ``delta``."""
    rho, target = float(spent.rho), float(exact_number("delta", delta)) * (1 - _SAFE)
    low, high = 0.0, rho + 2 * sqrt(rho * log(1 / target)) + 1
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of(rho, middle) <= target else (middle, high)
    return high * (1 + _SAFE)


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


def total_of_parts(costs: Iterable[tuple[Budget, DisjointPart]], kind: Budget) -> Budget:
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


def atoms(parts: Iterable[DisjointPart]) -> Sequence[str | None]:
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
