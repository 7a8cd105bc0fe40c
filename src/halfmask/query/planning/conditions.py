"""Conditional aggregates: what their conditions and choices split the people of a row by.

A figure that depends on who meets a condition tells of those who meet it. So the conditions of all
conditional aggregates of a query are taken together: people for whom they come out the same are one
part of a row, and the figures are shown only where every part is large enough
(``query.answer_columns``).
Sums, differences and products of one column with itself depend on nobody's choice but where they
meet a limit, or nothing comes out; whatever else could be 1 for one person and 0 for the others
counts as a condition: its value splits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from halfmask.engines.request import ValueKind, kind_of
from halfmask.query.total_form.conversions import DATES, MOST, MOST_MULTIPLE, MOST_WHOLE
from halfmask.query.total_form.rows import TotalRows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from halfmask.query.planning.scope import QueryScope


MOST_DEGREE = 2
RANKED = ("min", "max", "median")  # they show somebody's place in an order
# With (x + 1e20) - 1e20 a float is cut off: numbers so far apart make a step of any sum.
MOST_SPREAD = 1e9


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A polynomial: its degree, the columns in it, and whether different ones are multiplied."""

    degree: int = 0
    columns: frozenset[exp.Expr] = frozenset()
    crossed: bool = False

    def plus(self, other: Polynomial) -> Polynomial:
        """The shape of a sum, or of whichever of both is chosen."""
        return Polynomial(
            max(self.degree, other.degree),
            self.columns | other.columns,
            self.crossed or other.crossed,
        )

    def times(self, other: Polynomial) -> Polynomial:
        """The shape of a product."""
        columns = self.columns | other.columns
        apart = bool(self.columns and other.columns) and len(columns) > 1
        return Polynomial(
            self.degree + other.degree, columns, self.crossed or other.crossed or apart
        )

    def power(self, exponent: int) -> Polynomial:
        """The shape of a power."""
        return self if exponent == 1 else self.times(self)


FLAT = Polynomial()
Nature = Literal["same", "limited", "choice"]
# How what may be computed from a row depends on the row. Whatever is not listed may jump.
NATURES: dict[Nature, tuple[type[exp.Expr], ...]] = {
    # The value as it stands in the row, or is written.
    "same": (exp.Column, exp.Paren, exp.Literal, exp.Boolean, exp.Null),
    # A polynomial, but for rows in which a number meets a limit or a date leaves the calendar.
    "limited": (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Pow, exp.Cast, exp.TryCast),
    # One of several values.
    "choice": (exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Abs),
}
_PLAIN = (
    exp.Literal,
    exp.Paren,
    exp.Neg,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.Null,
    exp.Boolean,
    exp.Interval,
)


@dataclass(slots=True)
class Conditions:
    """Collects what splits the people of a row, aggregate by aggregate.

    Attributes:
        scope: what the columns are.
        splits: expressions; people for whom all of them are the same belong to one part.
        missing: expressions that say where a value is missing, which split people further.
        limits: those of the splits that say where a number meets a limit or a date has no value.
        shown: the columns of which any aggregate shows values.
        values: the columns that conditional aggregates show something of: l counts them per part.
    """

    scope: QueryScope
    splits: list[exp.Expr] = field(default_factory=list)
    missing: list[exp.Expr] = field(default_factory=list)
    limits: list[exp.Expr] = field(default_factory=list)
    shown: list[exp.Expr] = field(default_factory=list)
    values: list[exp.Expr] = field(default_factory=list)

    def counted(self, named: Iterable[exp.Expr]) -> set[exp.Expr]:
        """The columns of which l counts the values behind every figure, ``named`` ones among them.

        A column that a condition inside an aggregate speaks of is not: behind a figure of those
        who meet it stand few of its values.
        """
        whole = {*self.values, *named}
        split = {c for s in self.splits if s not in self.limits for c in s.find_all(exp.Column)}
        return whole | ({*self.shown} - split)

    def add(self, kind: str, argument: exp.Expr) -> Literal["", "limited", "conditional"]:
        """Tell whether an aggregate is conditional, and keep what it splits by.

        ``"limited"``: only where a limit is met, so that missing values count as in a plain one.
        """
        walk = _Splits(self.scope)
        shape = walk.shape(argument)
        curved = 2 * shape.degree if kind.startswith(("var", "stddev")) else shape.degree
        mixed = shape.crossed or (curved > shape.degree and len(shape.columns) > 1)
        # The least of (x - 2000) * (x - 2000) is of whoever stands nearest: a choice.
        turned = kind in RANKED and (shape.degree > 1 or len(shape.columns) > 1)
        if curved > MOST_DEGREE or mixed or turned or walk.spread > MOST_SPREAD:
            walk.keep(sorted(shape.columns, key=lambda c: c.sql()))
        if len(_columns(argument)) > 1:
            # Where one of them is missing, the row drops out of this figure and of no other.
            walk.keep_missing(*_columns(argument))
        if kind == "count" and argument != self.scope.person:
            walk.keep_missing(argument)  # COUNT(x) and COUNT(DISTINCT x) tell where x is known
        shown = [*sorted(shape.columns, key=lambda c: c.sql()), *walk.stepped]
        self.shown += [c for c in dict.fromkeys(shown) if c not in self.shown]
        if not walk.found and not walk.missing and not walk.limits:
            return ""
        conditional = bool(walk.found or walk.missing)
        if conditional:
            walk.keep_missing(argument)
        self.limits += [s for s in walk.limits if s not in self.limits]
        self.splits += [s for s in (*walk.found, *walk.limits) if s not in self.splits]
        self.missing += [s for s in walk.missing if s not in self.missing]
        self.values += [c for c in dict.fromkeys(shown) if c not in self.values]
        return "conditional" if conditional else "limited"


class _Splits:
    """One argument: the shape that is left once everybody of a part has the same splits."""

    def __init__(self, scope: QueryScope) -> None:
        self.scope, self.total = scope, TotalRows(scope)
        self.found: list[exp.Expr] = []
        self.limits: list[exp.Expr] = []
        self.missing: list[exp.Expr] = []
        self.stepped: list[exp.Expr] = []
        self.spread = 1.0

    def keep(self, splits: Iterable[exp.Expr]) -> None:
        self.found += [s.copy() for s in splits if s not in self.found]

    def keep_missing(self, *values: exp.Expr) -> None:
        known = [value for value in values if value.find(exp.Column)]
        tests = [_is_true(exp.paren(value.copy()).is_(exp.null())) for value in known]
        self.missing += [test for test in tests if test not in self.missing]

    def shape(self, node: exp.Expr) -> Polynomial:
        """What a node is a polynomial of; its conditions and steps are kept on the way."""
        if not node.find(exp.Column):
            self.spread *= _spread(node)
            return FLAT
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, NATURES["limited"]):
            self._limit(node)
        if isinstance(node, exp.Paren | exp.Neg | exp.Alias):
            return self.shape(node.this)
        if isinstance(node, exp.Add | exp.Sub):
            return self.shape(node.this).plus(self.shape(node.expression))
        if isinstance(node, exp.Mul):
            return self.shape(node.this).times(self.shape(node.expression))
        if isinstance(node, exp.Div) and not node.expression.find(exp.Column):
            return self.shape(node.this).plus(self.shape(node.expression))
        if isinstance(node, exp.Pow) and node.expression.sql() in ("1", "2"):
            return self.shape(node.this).power(int(node.expression.sql()))
        if isinstance(node, exp.Cast) and self._keeps_value(node):
            return self.shape(node.this)
        choice = self._choice(node)
        return self._step(node) if choice is None else choice

    def _column(self, node: exp.Column) -> Polynomial:
        if self._kind(node) == "boolean":
            self.keep([node])
            return FLAT
        return Polynomial(1, frozenset([node]))

    def _limit(self, node: exp.Expr) -> None:
        """Keep where an operand lies beyond what arithmetic takes, or a date has no value."""
        sides = [node.this, node.expression] if isinstance(node, exp.Binary) else [node.this]
        if self.total.of(node).kind in DATES:
            for date in (s for s in sides if s.find(exp.Column)):
                known = exp.paren(date.copy()).is_(exp.null()).not_()
                gone = exp.paren(node.copy()).is_(exp.null())
                self._keep_limit(exp.and_(known, gone, copy=False))
            return
        if isinstance(node, exp.Cast) or any(self.total.of(s).kind in DATES for s in sides):
            return
        factors = [t.most for t in map(self.total.of, sides) if t.constant and t.kind == "integer"]
        multiple = factors[0] if isinstance(node, exp.Mul) and factors else 1
        for side in sides:
            if side.find(exp.Column):
                self._limit_of(side, multiple if 0 < multiple <= MOST_MULTIPLE else 1)

    def _limit_of(self, side: exp.Expr, multiple: int) -> None:
        typed = self.total.of(side)
        most: float = MOST_WHOLE // multiple if typed.kind == "integer" else MOST
        digits, after = typed.decimal
        small = typed.most <= most if typed.kind == "integer" else 0 < digits - after <= 30
        if not typed.raw or typed.kind == "boolean" or small:
            return
        high = exp.Literal.number(repr(most))
        beyond = [
            exp.GT(this=exp.paren(side.copy()), expression=high),
            exp.LT(this=exp.paren(side.copy()), expression=exp.Neg(this=high.copy())),
        ]
        self._keep_limit(exp.or_(*beyond, copy=False))

    def _keep_limit(self, met: exp.Expr) -> None:
        test = _is_true(met)
        if test not in self.limits:
            self.limits.append(test)

    def _kind(self, node: exp.Column) -> ValueKind:
        return kind_of(self.scope.tables[node.table].columns[node.name])

    def _keeps_value(self, node: exp.Cast) -> bool:
        """Whether different values stay different, and none gets lost."""
        to, inner = node.args["to"], node.this.unnest()
        if to.expressions:  # VARCHAR(1), DECIMAL(9, 0)
            return False
        column = self._kind(inner) if isinstance(inner, exp.Column) else None
        if column == "text":
            return _is_text(to)
        if column == "integer":
            return bool(to.is_type("bigint", "double")) or _is_text(to)
        return bool(to.is_type("double")) and column in (None, "decimal", "float")

    def _choice(self, node: exp.Expr) -> Polynomial | None:
        """CASE and its kin: which branch is taken splits; the branches are looked into."""
        if isinstance(node, exp.Case):
            branches = [branch.args["true"] for branch in node.args["ifs"]]
            return self._branches(_branch_taken(node), [*branches, node.args.get("default")])
        if isinstance(node, exp.If):
            taken = exp.Case().when(node.this.copy(), exp.Literal.number(1))
            parts = [node.args["true"], node.args.get("false")]
            return self._branches(taken.else_(exp.Literal.number(0)), parts)
        if isinstance(node, exp.Coalesce):
            parts = [node.this, *node.expressions]
            self.keep_missing(*parts[:-1])
            return self._branches(None, parts)
        if isinstance(node, exp.Nullif):
            same = exp.EQ(this=node.this.copy(), expression=node.expression.copy())
            return self._branches(_is_true(same), [node.this])
        if isinstance(node, exp.Abs):
            zero = exp.Literal.number(0)
            return self._branches(
                _is_true(exp.GTE(this=node.this.copy(), expression=zero)), [node.this]
            )
        if isinstance(node, exp.Greatest | exp.Least):
            parts = [node.this, *node.expressions]
            self.keep_missing(*parts)
            for i, left in enumerate(parts):
                for right in parts[i + 1 :]:
                    self.keep([_is_true(exp.GTE(this=left.copy(), expression=right.copy()))])
            return self._branches(None, parts)
        return None

    def _branches(self, taken: exp.Expr | None, parts: list[exp.Expr | None]) -> Polynomial:
        if taken is not None and taken.find(exp.Column):
            self.keep([taken])
        shape = FLAT
        for part in parts:
            if part is not None:
                shape = shape.plus(self.shape(part))
        return shape

    def _step(self, node: exp.Expr) -> Polynomial:
        """Whatever is left may jump: its value splits."""
        self.keep([node])
        if not isinstance(node, exp.Predicate | exp.Connector | exp.Not):
            self.stepped += _columns(node)
        return FLAT


def _columns(node: exp.Expr) -> list[exp.Column]:
    return list(dict.fromkeys(node.find_all(exp.Column)))


def _spread(constant: exp.Expr) -> float:
    """How far a constant, its parts multiplied, can be from 1."""
    spread = 1.0
    for node in constant.walk(prune=lambda n: isinstance(n, exp.Interval | exp.Cast)):
        if isinstance(node, exp.Literal) and not node.is_string:
            size = abs(float(node.name))
            spread *= max(size, 1 / size) if size else 1.0
        elif not isinstance(node, _PLAIN) and not _is_moment(node):
            return math.inf  # POW(10, 20), CAST('1e20' AS DOUBLE)
    return spread


def _is_moment(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and bool(node.to.is_type(*exp.DataType.TEMPORAL_TYPES))


def _is_text(to: exp.Expr) -> bool:
    return bool(to.is_type(*exp.DataType.TEXT_TYPES))


def _is_true(condition: exp.Expr) -> exp.Expr:
    """1 where a condition holds; 0 where it does not, or is unknown."""
    case = exp.Case().when(condition, exp.Literal.number(1))
    return case.else_(exp.Literal.number(0))


def _branch_taken(case: exp.Case) -> exp.Expr:
    """The number of the branch in place of what it gives."""
    taken = case.copy()
    for i, branch in enumerate(taken.args["ifs"], start=1):
        branch.set("true", exp.Literal.number(i))
    taken.set("default", exp.Literal.number(0))
    return taken
