"""The aggregates of a query under EPSILON: what each needs, bounded, from rows.

Values become whole steps, intervals and public codes, computed by the engine within their bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from halfmask.dp.domain import bounds_of
from halfmask.dp.views import INTERVALS, STEPS, Question, QuestionKind, Scale
from halfmask.engines.request import kind_of
from halfmask.engines.tallies import BoundedTerm
from halfmask.query import vocabulary
from halfmask.query.vocabulary import fail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from sqlglot import exp

    from halfmask.dp.domain import Bins
    from halfmask.query.planning.scope import QueryScope
    from halfmask.query.total_form.rows import TotalRows


def whole_steps(argument: exp.Expr, scale: Scale) -> exp.Expr:
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


def bin_number(argument: exp.Expr, domain: Bins) -> exp.Expr:
    """The code of the public interval that a value falls into, as the domain has it."""
    from sqlglot import exp

    value = exp.cast(argument.copy(), "double")
    first = domain.below
    last = first + len(domain.edges) - 2
    absent = len(domain) - 1 if domain.missing else first
    case = exp.Case().when(value.is_(exp.null()), _integer(absent))
    for place, number in enumerate(domain.special):
        same = exp.EQ(this=value.copy(), expression=_double(number))
        case = case.when(same, _integer(domain.special_code(place)))
    for code, edge in enumerate(domain.edges[1:-1], first):
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


PEOPLE = "people, each once"
_KINDS: dict[str, QuestionKind] = {
    "count": "count",
    "sum": "sum",
    "avg": "mean",
    "var_samp": "variance",
    "var_pop": "variance",
    "stddev_samp": "deviation",
    "stddev_pop": "deviation",
    "median": "quantile",
}


@dataclass(eq=False)
class _Aggregate:
    """One aggregate: its kind, its argument (None: rows) and the bounds of it."""

    call: exp.Expr
    kind: QuestionKind
    argument: exp.Expr | None
    label: str = ""
    scale: Scale | None = None
    at: float = 0.5
    sample: bool = False


class NoiseAggregates:
    """Collects the aggregates of a question."""

    def __init__(self, scope: QueryScope, declared: Mapping[str, object], total: TotalRows) -> None:
        self.scope, self.declared, self.total = scope, declared, total
        self._all: list[_Aggregate] = []

    def add(self, call: exp.Expr) -> None:
        """Plan one aggregate, or refuse it at its place."""
        from sqlglot import exp

        whole, condition = call, None
        if isinstance(call, exp.Filter):
            condition, call = call.expression.this, call.this
        name = vocabulary.aggregates()[type(call)]
        if name in ("min", "max"):
            other = "0.99" if name == "max" else "0.01"
            fail(
                self.scope.text,
                call,
                f"{name.upper()} is refused under EPSILON: one person decides it. Ask for a "
                f"quantile: QUANTILE_CONT(column, {other}).",
            )
        argument = call.this
        if isinstance(argument, exp.Distinct):
            self._all.append(self._people(whole, call, name, argument))
            return
        if isinstance(argument, exp.Star) or argument is None:
            argument = None if condition is None else exp.Literal.number(1)
        kind, label, scale = _KINDS[name], _label(argument), None
        if kind != "count":
            argument, scale = self._bounds_of(call, argument)
        argument = None if argument is None else self.total(argument)
        if condition is not None and argument is not None:
            argument = exp.Case().when(self.total.condition(condition), argument)
            label = f"{label} where {_label(condition)}"
        one = _Aggregate(whole, kind, argument, label, scale)
        if kind != "count":
            one.at = float(call.args["share"].name) if call.args.get("share") else 0.5
            one.sample = name.endswith("_samp")
        self._all.append(one)

    def questions(self) -> tuple[Question, ...]:
        """One question per aggregate."""
        return tuple(
            Question(f"a{i}", one.kind, one.label, self._scale_of(one), one.at, one.sample)
            for i, one in enumerate(self._all)
        )

    def labels(self) -> tuple[str, ...]:
        """The arguments that are counted or summed, each once."""
        kept = [one.label for one in self._all if one.label and one.kind != "quantile"]
        return tuple(dict.fromkeys(kept))

    def parts(self) -> tuple[BoundedTerm, ...]:
        """What the engine adds up, in the order of ``labels``."""
        found = []
        for label in self.labels():
            same = [one for one in self._all if one.label == label and one.kind != "quantile"]
            kinds = {one.kind for one in same}
            summing = [one for one in same if one.kind != "count"]
            argument = same[0].argument
            assert argument is not None  # noqa: S101 - what has a label has an argument
            if not summing:
                found.append(BoundedTerm(argument, distinct=label == PEOPLE))
                continue
            scale = self._scale_of(summing[0])
            assert scale is not None  # noqa: S101 - whatever is summed has bounds
            squared = STEPS if kinds & {"variance", "deviation"} else 0
            found.append(BoundedTerm(whole_steps(argument, scale), summed=True, squared=squared))
        return tuple(found)

    def trees(self) -> dict[str, exp.Expr]:
        """Per column of a quantile, the interval of a value."""
        return {
            one.label: interval(one.argument, one.scale)
            for one in self._all
            if one.kind == "quantile" and one.argument is not None and one.scale is not None
        }

    def arguments(self) -> list[exp.Expr]:
        """What must be a number."""
        return [one.argument for one in self._sums() if one.argument is not None]

    def require_numbers(self, types: Sequence[pa.DataType]) -> None:
        """Refuse sums of what is no number."""
        for one, found in zip(self._sums(), types, strict=True):
            if kind_of(found) not in ("integer", "decimal", "float"):
                fail(self.scope.text, one.call, f"{one.kind} needs numbers.")

    def _sums(self) -> list[_Aggregate]:
        return [one for one in self._all if one.kind != "count"]

    def _scale_of(self, one: _Aggregate) -> Scale | None:
        """A sum alone is taken around zero; beside a mean of the same column it shares its sums."""
        if one.scale is None:
            return None
        same = {o.kind for o in self._all if o.label == one.label} - {"quantile", "count"}
        return one.scale.around_zero if same == {"sum"} and one.kind == "sum" else one.scale

    def _people(
        self, whole_call: exp.Expr, call: exp.Expr, name: str, argument: exp.Distinct
    ) -> _Aggregate:
        person, inside = self.scope.person, argument.expressions
        if name != "count" or person is None or whole_call is not call or inside != [person]:
            fail(
                self.scope.text,
                call,
                "DISTINCT is refused under EPSILON: only people can be counted once each, as "
                "COUNT(DISTINCT person).",
            )
        return _Aggregate(whole_call, "count", person.copy(), PEOPLE)

    def _bounds_of(self, call: exp.Expr, argument: exp.Expr | None) -> tuple[exp.Expr, Scale]:
        """An argument and its public bounds: written around it, or declared for its column.

        What is written around it is taken off: engines clip a missing value to a bound.
        """
        from sqlglot import exp

        if argument is None:
            fail(self.scope.text, call, "only COUNT takes *.")
        found, inside = _clamp_bounds(argument)
        if found is None and isinstance(argument, exp.Column):
            stated = self.declared.get(argument.name)
            found = bounds_of(stated)
        if found is None or not found[0] < found[1] or bounds_of(found) is None:
            name = argument.name if isinstance(argument, exp.Column) else _label(argument)
            fail(
                self.scope.text,
                call,
                f"{name} needs public bounds, finite and known without looking at the rows: write "
                f"{call.key.upper()}(LEAST(GREATEST({name}, low), high)), or declare "
                "domain = { low = ..., high = ... } for the column in the schema, low below high.",
            )
        return inside, Scale(*found)


def _label(argument: exp.Expr | None) -> str:
    """What an argument is called in the receipt."""
    from sqlglot import exp

    if argument is None:
        return ""
    plain = argument.copy()
    for column in plain.find_all(exp.Column):
        column.set("table", None)
        column.this.args["quoted"] = False
    if isinstance(plain, exp.Column):
        return plain.name
    return plain.sql(dialect="duckdb")


def _clamp_bounds(argument: exp.Expr) -> tuple[tuple[float, float] | None, exp.Expr]:
    """The bounds that LEAST(GREATEST(x, low), high) states, in either order, and x."""
    from sqlglot import exp

    outer, inner = argument, None
    if isinstance(outer, exp.Least | exp.Greatest):
        inner = next((p for p in _operands(outer) if isinstance(p, exp.Least | exp.Greatest)), None)
    if inner is None or type(inner) is type(outer):
        return None, argument
    first, second = _number(outer), _number(inner)
    value = next((p for p in _operands(inner) if p.find(exp.Column)), None)
    if first is None or second is None or value is None:
        return None, argument
    return ((second, first) if isinstance(outer, exp.Least) else (first, second)), value


def _operands(node: exp.Expr) -> list[exp.Expr]:
    return [part.unnest() for part in [node.this, *node.expressions]]


def _number(node: exp.Expr) -> float | None:
    """The one number among the two operands."""
    from sqlglot import exp

    found = []
    for part in _operands(node):
        sign, value = (-1, part.this) if isinstance(part, exp.Neg) else (1, part)
        if isinstance(value, exp.Literal) and not value.is_string:
            found.append(sign * float(value.name))
    return found[0] if len(found) == 1 and len(_operands(node)) == 2 else None
