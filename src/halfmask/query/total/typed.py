"""Expressions with what is known of their values, and the limits that values are kept within."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

MOST_WHOLE = (1 << 62) - 1  # the sum of two stays within 64 bits
MOST_FACTORS = 6  # so many numbers of 1e30, multiplied, stay far within a double
MOST, LEAST = 1e30, 1e-30
MOST_EXPONENT = 69.0  # e to this power is just below MOST
MOST_DIGITS = 28  # ten thousand million decimals of so many digits add up within 38
MOST_DECIMALS = 15
MOST_MULTIPLE = 1_000_000  # a whole number times so much stays whole
MOST_WIDTH = 10**15  # of an interval
MOST_NODES = 20_000  # of one expression as rewritten
NUMBERS = ("integer", "float", "decimal")
DATES = ("date", "timestamp")


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression that has a value for every row.

    Attributes:
        node: its total form.
        kind: integer, float, decimal, text, boolean, date, timestamp, null or other.
        constant: whether no row is read for it.
        most: of whole numbers, the largest absolute value once they are ``ready``.
        factors: of other numbers, how many are multiplied.
        raw: whether its numbers may be any that a column holds.
        decimal: of decimals, how many digits they have, and how many of them after the point.
    """

    node: exp.Expr
    kind: str
    constant: bool = False
    most: int = 0
    factors: int = 1
    raw: bool = False
    decimal: tuple[int, int] = (0, 0)


def ready(found: Typed, most: int = MOST_WHOLE) -> Typed:
    """A number with which arithmetic cannot fail; values beyond the limits count as the limit."""
    if found.kind == "null":
        return Typed(double(found.node), "float", constant=True)
    if found.kind == "integer":
        if not found.raw:
            return found
        if found.most <= most:
            return replace(found, node=exp.cast(exp.paren(found.node), "bigint"), raw=False)
        return replace(found, node=_clamped(found.node, most), most=most, raw=False)
    if not found.raw and found.kind == "float":
        return found
    return Typed(_between(double(found.node)), "float", found.constant, factors=found.factors)


def double(node: exp.Expr) -> exp.Expr:
    """The number as a double; every number has one."""
    return exp.cast(exp.paren(node), "double")


def literal(value: float | str, kind: str = "double") -> exp.Expr:
    """A constant of a kind."""
    text = value if isinstance(value, str) else repr(value)
    made = exp.Literal.string(text) if isinstance(value, str) else exp.Literal.number(text)
    return exp.cast(made, kind)


def whole_of_boolean(node: exp.Expr) -> exp.Expr:
    """1 for what is true, 0 for what is false."""
    return exp.cast(exp.cast(exp.paren(node), "int"), "bigint")


def guarded(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A value where a condition holds, else null."""
    return exp.Case().when(condition, value)


def compared(kind: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """A comparison of two expressions, which are copied."""
    return kind(this=left.copy(), expression=right.copy())


def _clamped(node: exp.Expr, most: int) -> exp.Expr:
    high, low = literal(most, "bigint"), literal(-most, "bigint")
    case = exp.Case().when(compared(exp.GT, node, high), high)
    case = case.when(compared(exp.LT, node, low), low)
    return case.else_(exp.cast(exp.paren(node.copy()), "bigint"))


def _between(node: exp.Expr) -> exp.Expr:
    high, low, tiny, below = (literal(end) for end in (MOST, -MOST, LEAST, -LEAST))
    case = exp.Case().when(compared(exp.GT, node, high), high)
    case = case.when(compared(exp.LT, node, low), low)
    near = exp.and_(compared(exp.GT, node, below), compared(exp.LT, node, tiny))
    return case.when(near, literal(0.0)).else_(node.copy())
