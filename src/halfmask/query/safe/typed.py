"""Expressions with what is known of their values, and the limits that values are kept within."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

MOST_WHOLE = 1 << 62  # the sum of two stays within 64 bits
MOST_FACTORS = 6  # so many numbers of 1e30, multiplied, stay far within a double
MOST, LEAST = 1e30, 1e-30
NUMBERS = ("integer", "float", "decimal")
DATES = ("date", "timestamp")


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression that cannot fail.

    Attributes:
        node: its safe form.
        kind: integer, float, decimal, text, boolean, date, timestamp, null or other.
        constant: whether no row is read for it.
        most: of whole numbers, the largest absolute value once they are ``ready``.
        factors: of other numbers, how many are multiplied.
        raw: whether it is a column as it stands in the table.
    """

    node: exp.Expr
    kind: str
    constant: bool = False
    most: int = 0
    factors: int = 1
    raw: bool = False


def ready(found: Typed) -> Typed:
    """A number with which arithmetic cannot fail; values beyond the limits count as the limit."""
    if not found.raw:
        return found
    if found.kind == "integer":
        return replace(found, node=_whole(found.node, found.most), raw=False)
    return Typed(_between(double(found.node)), "float")


def double(node: exp.Expr) -> exp.Expr:
    """The number as a double; every number has one."""
    return exp.cast(exp.paren(node), "double")


def dated(found: Typed) -> exp.Expr:
    """A date within the years that every engine can compute with."""
    if found.constant:
        return found.node
    node = found.node
    last, first = (
        exp.cast(exp.Literal.string(day), found.kind) for day in ("9999-12-31", "0001-01-01")
    )
    case = exp.Case().when(exp.GT(this=node.copy(), expression=last.copy()), last)
    case = case.when(exp.LT(this=node.copy(), expression=first.copy()), first)
    return case.else_(node.copy())


def _whole(node: exp.Expr, most: int) -> exp.Expr:
    if most < MOST_WHOLE:
        return exp.cast(node.copy(), "bigint")
    high, low = (exp.cast(exp.Literal.number(end), "bigint") for end in (most, -most))
    case = exp.Case().when(exp.GT(this=node.copy(), expression=high.copy()), high)
    case = case.when(exp.LT(this=node.copy(), expression=low.copy()), low)
    return case.else_(exp.cast(node.copy(), "bigint"))


def _between(node: exp.Expr) -> exp.Expr:
    high, low, tiny, below, zero = (
        exp.cast(exp.Literal.number(repr(end)), "double")
        for end in (MOST, -MOST, LEAST, -LEAST, 0.0)
    )
    case = exp.Case().when(exp.GT(this=node.copy(), expression=high.copy()), high)
    case = case.when(exp.LT(this=node.copy(), expression=low.copy()), low)
    near = exp.and_(
        exp.GT(this=node.copy(), expression=below), exp.LT(this=node.copy(), expression=tiny)
    )
    return case.when(near, zero).else_(node.copy())
