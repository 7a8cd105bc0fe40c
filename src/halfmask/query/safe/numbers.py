"""Arithmetic on rows that leaves neither 64 bits nor a double and never divides by zero."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from halfmask.query.planning.refusals import fail
from halfmask.query.safe.typed import LEAST, MOST, MOST_FACTORS, MOST_WHOLE, Typed, double

if TYPE_CHECKING:
    from halfmask.query.safe.rows import SafeRows


def literal(safe: SafeRows, node: exp.Expr) -> Typed:
    """A number or a text as it is written."""
    if node.is_string:
        return Typed(node.copy(), "text", constant=True)
    if node.name.isdigit() and int(node.name) <= MOST_WHOLE:
        return Typed(node.copy(), "integer", constant=True, most=int(node.name))
    if not (float(node.name) == 0 or LEAST <= float(node.name) <= MOST):
        fail(safe.scope.text, node, f"a number here is 0 or between {LEAST:g} and {MOST:g}.")
    return Typed(double(node.copy()), "float", constant=True)


def arithmetic(safe: SafeRows, node: exp.Expr) -> Typed:
    """Sums, differences and products: in whole numbers where they fit, else in doubles."""
    left, right = safe.number(node.this), safe.number(node.expression)
    product = isinstance(node, exp.Mul)
    constant = left.constant and right.constant
    most = left.most * right.most if product else left.most + right.most
    if left.kind == right.kind == "integer" and most <= 2 * MOST_WHOLE - 1:
        made = type(node)(this=exp.paren(left.node), expression=exp.paren(right.node))
        return Typed(exp.paren(made), "integer", constant, most)
    factors = left.factors + right.factors if product else max(left.factors, right.factors)
    made = type(node)(this=double(left.node), expression=double(right.node))
    return _float(safe, node, made, factors, constant=constant)


def negative(safe: SafeRows, node: exp.Expr) -> Typed:
    """The number with the other sign."""
    found = safe.number(node.this)
    return replace(found, node=exp.paren(exp.Neg(this=exp.paren(found.node))))


def division(safe: SafeRows, node: exp.Expr) -> Typed:
    """Quotients and remainders by a number that is written and not 0."""
    below = node.expression.unnest()
    below = below.this if isinstance(below, exp.Neg) else below
    if not isinstance(below, exp.Literal) or below.is_string or not float(below.name):
        fail(
            safe.scope.text,
            node,
            "divide by a number that is not 0: a failure would tell about a row.",
        )
    left, right = safe.number(node.this), safe.number(node.expression)
    if isinstance(node, exp.Div):
        quotient = exp.Div(this=double(left.node), expression=double(right.node), typed=True)
        factors = left.factors + right.factors
        return _float(safe, node, quotient, factors, constant=left.constant)
    if left.kind != "integer" or right.kind != "integer":
        fail(safe.scope.text, node, "whole numbers are needed here; or write FLOOR(x / 10).")
    made = type(node)(this=exp.paren(left.node), expression=exp.paren(right.node))
    most = right.most if isinstance(node, exp.Mod) else left.most
    return Typed(exp.paren(made), "integer", left.constant, most)


def of_one_number(safe: SafeRows, node: exp.Expr) -> Typed:
    """ABS, SIGN, FLOOR, CEIL and ROUND."""
    found = safe.number(node.this)
    made = node.copy()
    for name, value in node.args.items():
        if name != "this" and isinstance(value, exp.Expr) and value.find(exp.Column):
            safe.refuse(node)
    rounded = isinstance(node, exp.Round) and node.args.get("decimals") is not None
    if rounded:  # a whole number could be rounded up beyond 64 bits
        found = Typed(double(found.node), "float", found.constant, factors=found.factors)
    made.set("this", exp.paren(found.node))
    return replace(found, node=made, most=max(found.most, 1))


def _float(
    safe: SafeRows, node: exp.Expr, made: exp.Expr, factors: int, *, constant: bool
) -> Typed:
    if factors > MOST_FACTORS:
        fail(safe.scope.text, node, f"multiply or divide at most {MOST_FACTORS} numbers here.")
    return Typed(exp.paren(made), "float", constant, factors=factors)
