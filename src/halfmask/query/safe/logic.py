"""Comparisons, conditions and choices among values of one kind, without conversion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from halfmask.query.safe.typed import DATES, NUMBERS, Typed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.query.safe.rows import SafeRows


def compare(safe: SafeRows, node: exp.Expr) -> Typed:
    """Equality, order, BETWEEN and IN."""
    if node.args.get("query") or node.args.get("unnest"):
        safe.refuse(node)
    safe.want(node.this, (*NUMBERS, *DATES, "text", "boolean"), "a value")
    parts = _parts(node, ("this", "expression", "low", "high"))
    _, typed = safe.alike(node, parts)
    return Typed(exp.paren(_rebuilt(node, parts, typed)), "boolean", all(t.constant for t in typed))


def choice(safe: SafeRows, node: exp.Expr) -> Typed:
    """COALESCE, NULLIF, GREATEST and LEAST."""
    parts = _parts(node, ("this", "expression"))
    kind, typed = safe.alike(node, parts, chosen=True)
    return _largest(_rebuilt(node, parts, typed), kind, typed)


def case(safe: SafeRows, node: exp.Expr) -> Typed:
    """CASE in both forms, and IF."""
    whens = node.args["ifs"] if isinstance(node, exp.Case) else [node]
    if isinstance(node, exp.Case) and node.this is not None:
        _, tests = safe.alike(node, [node.this, *(when.this for when in whens)])
        conditions: list[exp.Expr] = [
            exp.EQ(this=tests[0].node.copy(), expression=test.node) for test in tests[1:]
        ]
    else:
        conditions = [safe.boolean(when.this).node for when in whens]
    other = node.args.get("default") or node.args.get("false")
    values = [when.args["true"] for when in whens] + ([] if other is None else [other])
    kind, typed = safe.alike(node, values, chosen=True)
    made = exp.Case()
    for condition, value in zip(conditions, typed, strict=False):
        made = made.when(condition, value.node)
    if other is not None:
        made = made.else_(typed[-1].node)
    return _largest(made, kind, typed)


def logic(safe: SafeRows, node: exp.Expr) -> Typed:
    """AND, OR and NOT of conditions."""
    made = node.copy()
    for name in ("this", "expression"):
        if node.args.get(name) is not None:
            made.set(name, exp.paren(safe.boolean(node.args[name]).node))
    return Typed(exp.paren(made), "boolean")


def test_of(safe: SafeRows, node: exp.Expr) -> Typed:
    """IS NULL of anything, IS TRUE of a condition."""
    is_null = isinstance(node.expression, exp.Null)
    tested = safe.of(node.this) if is_null else safe.boolean(node.this)
    made = exp.Is(this=exp.paren(tested.node), expression=node.expression.copy())
    return Typed(exp.paren(made), "boolean")


def _parts(node: exp.Expr, names: Sequence[str]) -> list[exp.Expr]:
    single = [node.args.get(name) for name in names]
    return [part for part in [*single, *node.expressions] if part is not None]


def _rebuilt(node: exp.Expr, parts: Sequence[exp.Expr], typed: Sequence[Typed]) -> exp.Expr:
    safe = {id(part): one.node for part, one in zip(parts, typed, strict=True)}
    made: exp.Expr = type(node)(
        **{
            name: [safe.get(id(v), v) for v in value]
            if isinstance(value, list)
            else safe.get(id(value), value)
            for name, value in node.args.items()
        }
    )
    return made.copy()


def _largest(made: exp.Expr, kind: str, typed: Sequence[Typed]) -> Typed:
    most, factors = max(one.most for one in typed), max(one.factors for one in typed)
    return Typed(made, kind, all(one.constant for one in typed), most, factors)
