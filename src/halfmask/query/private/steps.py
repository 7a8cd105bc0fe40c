"""Values as whole steps, intervals and public codes, computed by the engine within their bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.dp.questions import INTERVALS, STEPS, Scale

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.dp.domain import Bins


def whole(argument: exp.Expr, scale: Scale) -> exp.Expr:
    """A value as a whole number of steps from the center, clipped; null where it is missing."""
    from sqlglot import exp

    value = exp.cast(argument.copy(), "double")
    shifted = exp.paren(value.copy() - _double(scale.center))
    steps = exp.Div(this=shifted, expression=_double(scale.step), typed=True)
    rounded = exp.Floor(this=steps + _double(0.5))
    return _within(value, scale, rounded, (-STEPS, STEPS))


def interval(argument: exp.Expr, scale: Scale) -> exp.Expr:
    """The number of the interval that a value falls into; null where it is missing."""
    from sqlglot import exp

    value = exp.cast(argument.copy(), "double")
    shifted = exp.paren(value.copy() - _double(scale.low))
    width = _double((scale.high - scale.low) / INTERVALS)
    place = exp.Floor(this=exp.Div(this=shifted, expression=width, typed=True))
    return _within(value, scale, place, (0, INTERVALS - 1))


def binned(argument: exp.Expr, domain: Bins) -> exp.Expr:
    """The code of the public interval that a value falls into, as the domain has it."""
    from sqlglot import exp

    value = exp.cast(argument.copy(), "double")
    last = len(domain.edges) - 2
    case = exp.Case().when(value.is_(exp.null()), _integer(last + 1 if domain.missing else 0))
    for code, edge in enumerate(domain.edges[1:-1]):
        case = case.when(exp.LT(this=value.copy(), expression=_double(edge)), _integer(code))
    return case.else_(_integer(last))


def _within(value: exp.Expr, scale: Scale, inside: exp.Expr, ends: tuple[int, int]) -> exp.Expr:
    from sqlglot import exp

    low, high = ends
    return (
        exp.Case()
        .when(value.is_(exp.null()), exp.null())
        .when(exp.LTE(this=value.copy(), expression=_double(scale.low)), _integer(low))
        .when(exp.GTE(this=value.copy(), expression=_double(scale.high)), _integer(high))
        .else_(exp.cast(inside, "bigint"))
    )


def _double(value: float) -> exp.Expr:
    from sqlglot import exp

    return exp.cast(exp.Literal.number(repr(float(value))), "double")


def _integer(value: int) -> exp.Expr:
    from sqlglot import exp

    return exp.cast(exp.Literal.number(str(value)), "bigint")
