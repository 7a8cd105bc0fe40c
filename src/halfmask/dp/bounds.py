"""What epsilon means for one person: the best chance of an attacker who knows everything else.

Definition: of n equally likely values, P(the attacker names the true one) <= e^e / (e^e + n - 1),
where e is the privacy loss between any two of them.
Source: Nguyen, Castelluccia, "Techniques d'anonymisation tabulaire", 2020, Theorem 22.

Between "this person is in the table" and "is not", the loss is epsilon. Between two values of one
person it is 2 epsilon, since neighbors add or remove a person and a change is both.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1
from typing import TYPE_CHECKING

from halfmask.dp.budget import Approximate, Budget, Concentrated, Number, Pure, epsilon_of, exact
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

_UP = 1 + 1e-12


def attacker(epsilon: Number, values: int, *, delta: Number = 0) -> float:
    """The bound of Theorem 22, rounded up; ``delta`` is added, since it promises nothing there.

    Example:
        >>> round(attacker(10, 10**6), 4)
        0.0216
    """
    if values < 2:
        raise ParameterError("values", values, "at least 2")
    loss = float(exact("epsilon", epsilon))
    if loss > 700:
        return 1.0
    odds = expm1(loss) + 1
    return min(1.0, odds / (odds + values - 1) * _UP + float(exact("delta", delta)))


@dataclass(frozen=True, slots=True)
class ColumnBound:
    """How well an attacker can guess one column of one person, before and after the release."""

    column: str
    values: int
    before: float
    after: float


def column_bounds(promise: Budget, sizes: Mapping[str, int]) -> tuple[ColumnBound, ...]:
    """The bound for each column with its number of public values, and first for membership."""
    epsilon, delta = stated(promise)
    member = ColumnBound("(in the table?)", 2, 0.5, attacker(epsilon, 2, delta=delta))
    # A changed value is one person removed and another added: twice epsilon, and delta grows too.
    grown = min(1.0, float(delta) * (expm1(min(float(epsilon), 700.0)) + 2)) if delta else 0.0
    return (
        member,
        *(
            ColumnBound(name, size, 1 / size, attacker(2 * epsilon, size, delta=grown))
            for name, size in sizes.items()
            if size > 1
        ),
    )


def stated(promise: Budget) -> tuple[Number, Number]:
    """Epsilon and delta of any budget; zCDP is read at delta = 1e-9."""
    if isinstance(promise, Pure):
        return promise.epsilon, 0
    if isinstance(promise, Approximate):
        return promise.epsilon, promise.delta
    if isinstance(promise, Concentrated):
        return epsilon_of(promise, 1e-9), 1e-9
    raise ParameterError("promise", type(promise).__name__, "a budget")
