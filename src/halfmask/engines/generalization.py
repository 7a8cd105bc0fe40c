"""A row's level, and its keys as generalized at that level: written once as SQL for all engines."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import floor
from typing import Any

from sqlglot import exp

from halfmask.engines.request import REFUSED, WITHOUT_POLICY, Climb, Interval, Key, Request, Rule

MOST_WHOLE = 1 << 62  # beyond these, numbers have no interval
MOST_REAL = float(1 << 53)


def rows_by_level(request: Request, extra: dict[str, exp.Expr] | None = None) -> exp.Select:
    """One row per row: its level, its keys as generalized at that level, and what is counted."""
    columns = {f"r{i}": key.expression for i, key in enumerate(request.keys)}
    if request.demands is not None:
        columns["k"], columns["l"] = request.demands
    if request.person is not None:
        columns["person"] = request.person
    columns |= {f"v{i}": test.expression for i, test in enumerate(request.tests)}
    columns |= {f"a{i}": state.expression for i, state in enumerate(request.states)}
    columns |= extra or {}
    rows = request.source.copy()
    for name, expression in columns.items():
        rows = rows.select(exp.alias_(expression, name, quoted=True), copy=False)
    if not columns:
        rows = rows.select(exp.alias_(exp.Literal.number(1), "one"), copy=False)
    kept = [n for n in columns if not n.startswith("r") and n != "person"]
    placed = _select(
        exp.alias_(level_of(request), "level", copy=False),
        *(_column(f"r{i}") for i in range(len(request.keys))),
        *(_column(n) for n in kept),
    ).from_(rows.subquery("a", copy=False), copy=False)
    return _select(
        _column("level"),
        *(
            exp.alias_(generalize_key(key, i), f"g{i}", copy=False)
            for i, key in enumerate(request.keys)
        ),
        *(_column(n) for n in kept),
    ).from_(placed.subquery("c", copy=False), copy=False)


def level_of(request: Request) -> exp.Expr:
    """The finest level whose guarantee covers a person's demands."""
    case = exp.Case()
    if request.person is not None:
        case = case.when(_column("person").is_(exp.null()), _number(WITHOUT_POLICY), copy=False)
    if request.demands is None:
        first = _number(0)
        return case.else_(first) if request.person is not None else first
    k, l = _column("k"), _column("l")
    missing = exp.or_(k.is_(exp.null()), l.is_(exp.null()), copy=False)
    case = case.when(missing, _number(request.missing), copy=False)
    for level, (k_level, l_level) in enumerate(request.guarantees):
        covers = exp.and_(k <= _number(k_level), l <= _number(l_level), copy=False)
        case = case.when(covers, _number(level), copy=False)
    return case.else_(_number(REFUSED), copy=False)


def generalize_key(key: Key, index: int) -> exp.Expr:
    """The key at the row's own level; null where it has been taken away."""
    value = _column(f"r{index}")
    case = exp.Case()
    outside = exp.LT(this=_column("level"), expression=_number(0))
    case = case.when(outside, exp.null(), copy=False)
    current = 0
    result: exp.Expr = value
    for level, depth in enumerate(key.depths):
        if depth != current:
            if level:
                below = exp.LT(this=_column("level"), expression=_number(level))
                case = case.when(below, result.copy(), copy=False)
            current, result = depth, apply_rule(key.rules[depth - 1], value, key)
    return case.else_(result.copy(), copy=False)


def apply_rule(rule: Rule, value: exp.Expr, key: Key) -> exp.Expr:
    """One generalization of a value as it stands in the rows."""
    if isinstance(rule, Interval):
        return _lower_edge(rule.width, value, whole=key.kind == "integer", real=key.kind == "float")
    if isinstance(rule, Climb):
        return _climb(rule, value)
    return exp.null()


def _lower_edge(width: int, value: exp.Expr, *, whole: bool, real: bool) -> exp.Expr:
    """Where a number's interval begins; null for numbers that intervals do not reach."""
    if real:
        tiny, small = (
            exp.LT(this=exp.Abs(this=value.copy()), expression=as_double(most))
            for most in (1, MOST_REAL)
        )
        # What is next to 0 is not divided: PostgreSQL fails where a quotient vanishes.
        below = exp.LT(this=value.copy(), expression=as_double(0))
        near = exp.Case().when(below, as_double(-width), copy=False).else_(as_double(0), copy=False)
        steps = exp.Div(this=value.copy(), expression=as_double(width), typed=True)
        start = cast_to(exp.Floor(this=steps), "double") * as_double(width)
        return exp.Case().when(tiny, near, copy=False).when(small, start, copy=False)
    size = _number(width)
    number = cast_to(value.copy(), "bigint") if whole else value.copy()
    # Twice: the remainder of a negative number is negative, and the edge lies below it.
    rest = exp.Mod(
        this=exp.paren(exp.Mod(this=number.copy(), expression=size) + size.copy()),
        expression=size.copy(),
    )
    edge = number - exp.paren(rest)
    if not whole:
        return edge
    inside = exp.Between(this=value.copy(), low=_number(-MOST_WHOLE), high=_number(MOST_WHOLE))
    return exp.Case().when(inside, edge, copy=False)


def lower_edge(value: Any, width: int) -> int | None:
    """Where a number's interval begins, as the engines have it."""
    if value is None:
        return None
    if isinstance(value, float):
        if abs(value) < 1:
            return -width if value < 0 else 0
        return floor(value / width) * width if abs(value) < MOST_REAL else None
    if isinstance(value, int) and abs(value) > MOST_WHOLE:
        return None
    return floor(Fraction(value) / width) * width


def cast_to(node: exp.Expr, kind: str) -> exp.Expr:
    """A cast of a new expression, which is not copied."""
    return exp.Cast(this=node, to=_data_type(kind).copy())


@cache
def _data_type(kind: str) -> exp.DataType:
    """A kind of values as SQL writes it, parsed once."""
    return exp.DataType.build(kind)


def as_double(value: float) -> exp.Expr:
    """A number as a double, whose type no engine chooses."""
    return cast_to(exp.Literal.number(repr(float(value))), "double")


def _climb(rule: Climb, value: exp.Expr) -> exp.Expr:
    under: dict[object, list[object]] = {}
    for leaf, stand_in in rule.stand_ins.items():
        if leaf is not None:
            under.setdefault(stand_in, []).append(leaf)
    if set(under) <= {None}:
        return exp.null()
    case = exp.Case()
    for stand_in, leaves in under.items():
        found = exp.In(this=value.copy(), expressions=[exp.convert(v) for v in leaves])
        case = case.when(found, exp.convert(stand_in), copy=False)
    return case


def _select(*columns: exp.Expr) -> exp.Select:
    return exp.select(*columns, copy=False)


def _column(name: str, table: str | None = None) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def _number(value: int) -> exp.Expr:
    return exp.convert(value)
