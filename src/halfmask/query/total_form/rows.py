"""Puts the row expressions of one query into total form, or refuses them: numbers and logic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from sqlglot import exp

from halfmask.engines.request import Interval, kind_of
from halfmask.query.total_form import conversions
from halfmask.query.total_form.conversions import (
    DATES,
    GRAIN,
    LEAST,
    MOST,
    MOST_DECIMALS,
    MOST_DIGITS,
    MOST_EXACT,
    MOST_EXPONENT,
    MOST_FACTORS,
    MOST_GRAIN,
    MOST_MULTIPLE,
    MOST_NODES,
    MOST_WHOLE,
    MOST_WIDTH,
    NUMBERS,
    Typed,
    case_of,
    clamp_number,
    comparison_of,
    double,
    guard,
    literal,
    whole_of_boolean,
)
from halfmask.query.vocabulary import fail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from halfmask.engines.request import AggregateState, GroupMeasure, Key, Request, ValueKind
    from halfmask.query.planning.scope import QueryScope


class TotalRows:
    """What may be computed from the rows of a query.

    Args:
        scope: the tables and their names.
    """

    def __init__(self, scope: QueryScope) -> None:
        self.scope = scope
        # Parts are shared by all that is made of them; whoever takes a form away gets a copy.
        self._known: dict[int, tuple[exp.Expr, Typed]] = {}

    def __call__(self, node: exp.Expr) -> exp.Expr:
        """The total form of an expression of any kind.

        Raises:
            UnsupportedQueryError: it has none.
        """
        return self.of(node).node.copy()

    def condition(self, node: exp.Expr) -> exp.Expr:
        """The total form of a condition."""
        return self.boolean(node).node.copy()

    def kind(self, node: exp.Expr) -> tuple[ValueKind, int]:
        """What the values of an expression are, and how many digits follow the point."""
        found = self.of(node)
        kinds: dict[str, ValueKind] = dict.fromkeys(DATES, "temporal")
        kinds |= {"null": "other", "unknown": "other"}
        return kinds.get(found.kind, found.kind), found.decimal[1]  # type: ignore[arg-type]

    def source(self, source: exp.Select) -> exp.Select:
        """FROM, JOIN and WHERE in total form."""
        for join in source.args.get("joins") or []:
            if join.args.get("on") is not None:
                join.set("on", self.condition(join.args["on"]))
        where = source.args.get("where")
        if where is not None:
            where.set("this", self.condition(where.this))
        return source

    def request(self, request: Request) -> Request:
        """All that is computed from the rows of ``source`` in total form."""
        return replace(
            request,
            keys=tuple(map(self._key, request.keys)),
            tests=tuple(replace(t, expression=self._as_value(t.expression)) for t in request.tests),
            states=tuple(map(self.state, request.states)),
        )

    def _key(self, key: Key) -> Key:
        """What is grouped by, with intervals that no number falls out of by failing."""
        found = self.of(key.expression)
        widths = [rule.width for rule in key.rules if isinstance(rule, Interval)]
        if widths and found.kind == "decimal" and found.decimal[0] > MOST_DIGITS:
            fail(
                self.scope.text,
                key.expression,
                f"intervals need decimals of at most {MOST_DIGITS} digits: CAST to DOUBLE.",
            )
        if max(widths, default=0) > MOST_WIDTH:
            fail(
                self.scope.text, key.expression, f"an interval is at most {MOST_WIDTH:,} wide here."
            )
        return replace(key, expression=self._as_value(key.expression))

    def state(self, state: AggregateState) -> AggregateState:
        """A part of an aggregate in total form."""
        total = self._as_ordered if state.kind in ("min", "max") else self
        found = replace(state, expression=total(state.expression))
        if state.kind != "sum":
            return found
        typed = self.of(state.expression)
        if typed.kind == "boolean":
            return replace(found, expression=whole_of_boolean(found.expression), of="integer")
        wide = typed.kind == "decimal" and typed.decimal[0] > MOST_DIGITS
        return replace(found, of="float", scale=0) if wide else found

    def measure(self, measure: GroupMeasure) -> GroupMeasure:
        """An aggregate that does not merge, in total form."""
        return replace(measure, expression=self._as_value(measure.expression))

    def of(self, node: exp.Expr) -> Typed:
        """An expression with what is known of its values."""
        if id(node) not in self._known:
            rule = _RULES.get(type(node))
            if rule is None:
                self.refuse(node)
            found = rule(self, node)
            if sum(1 for _ in found.node.walk()) > MOST_NODES:
                fail(self.scope.text, node, "this expression is too long: compute less at once.")
            self._known[id(node)] = node, found
        return self._known[id(node)][1]

    def boolean(self, node: exp.Expr) -> Typed:
        """A condition."""
        return self.want(node, ("boolean",), "a condition")

    def number(self, node: exp.Expr, most: int = MOST_WHOLE) -> Typed:
        """A number that is ready for arithmetic."""
        found = self.of(node)
        if found.kind == "boolean":
            return Typed(whole_of_boolean(found.node), "integer", found.constant, 1)
        return clamp_number(self._require_kind(node, found, NUMBERS, "a number"), most)

    def want(self, node: exp.Expr, kinds: Sequence[str], words: str) -> Typed:
        """An expression of one of these kinds; nothing is converted into them."""
        return self._require_kind(node, self.of(node), kinds, words)

    def alike(
        self, node: exp.Expr, parts: Sequence[exp.Expr], *, chosen: bool = False
    ) -> tuple[str, list[Typed]]:
        """Expressions that are compared, or of which one is chosen, in one kind."""
        found = [self.of(part) for part in parts]
        kinds = {one.kind for one in found} - {"null"}
        if len(kinds) <= 1 and not kinds & {"decimal", "other", "unknown"}:
            return next(iter(kinds), "null"), found
        if len([one for one in found if one.kind != "null"]) == 1 and chosen:
            return kinds.pop(), found
        target = _common(kinds, found, chosen=chosen)
        if target is None:
            self._refuse_mixture(
                node, f"values of the types {' and '.join(sorted(kinds))} meet here"
            )
        if target == "decimal":
            return target, _as_decimals(found)
        return target, [
            one if one.kind in (target, "null") else conversions.convert(self, part, one, target)
            for part, one in zip(parts, found, strict=True)
        ]

    def refuse(self, node: exp.Expr, instead: str = "Prepare the column beforehand.") -> NoReturn:
        """Refuse what has no value for some rows."""
        fail(
            self.scope.text,
            node,
            f"{node.key.upper()} is refused here: it would fail on some values, and a failure "
            f"would tell about a row. {instead}",
        )

    def _as_value(self, node: exp.Expr) -> exp.Expr:
        """What comes back from the engine as a value."""
        if self.of(node).kind == "unknown":
            fail(
                self.scope.text,
                node,
                "intervals, lists and types of the database's own are not read here, nor texts "
                "that are equal without being the same: make a table that CASTs the column to TEXT "
                'COLLATE "C" or to DOUBLE, or prepare it beforehand.',
            )
        return self(node)

    def _as_ordered(self, node: exp.Expr) -> exp.Expr:
        """The same, of values that are ordered alike everywhere: listed texts as texts."""
        shown = self._as_value(node)
        if self.of(node).kind == "text" and any(map(self._is_listed, node.find_all(exp.Column))):
            return conversions.in_brackets(shown, "text")
        return shown

    def _is_listed(self, column: exp.Column) -> bool:
        import pyarrow as pa

        source = self.scope.tables[column.text("table") or self.scope.main]
        return bool(pa.types.is_dictionary(source.columns[column.name]))

    def _require_kind(
        self, node: exp.Expr, found: Typed, kinds: Sequence[str], words: str
    ) -> Typed:
        if found.kind not in (*kinds, "null"):
            self._refuse_mixture(
                node, f"{words} is needed here, and this is of the type {found.kind}"
            )
        return found

    def _refuse_mixture(self, node: exp.Expr, what: str) -> NoReturn:
        fail(self.scope.text, node, f"{what}: CAST one of them, or prepare the column beforehand.")


def _common(kinds: set[str], found: Sequence[Typed], *, chosen: bool) -> str | None:
    """The kind in which values of several kinds meet."""
    if kinds == {"decimal"} or (kinds == {"decimal", "integer"}):
        columns = {one.decimal for one in found if one.kind == "decimal"}
        whole = [one for one in found if one.kind == "integer"]
        if len(columns) == 1 and all(_fits(one, *next(iter(columns))) for one in whole):
            return "decimal"
    if kinds <= {"integer", "boolean"}:
        return "integer"
    if kinds <= {*NUMBERS, "boolean"}:
        return "float"
    for target, others in (
        ("timestamp", {"text", "date"}),
        ("date", {"text"}),
        ("boolean", {"text"}),
        ("float", {"text", "integer", "decimal"}),
        ("integer", {"text"}),
    ):
        if target in kinds and kinds <= {target, *others}:
            written = all(one.constant for one in found if one.kind == "text")
            return None if chosen and not (written and target in DATES) else target
    return "float" if kinds <= {"text", *NUMBERS} and not chosen else None


def _fits(one: Typed, digits: int, after: int) -> bool:
    return one.constant and isinstance(one.node, exp.Literal) and one.most < 10 ** (digits - after)


def _as_decimals(found: Sequence[Typed]) -> list[Typed]:
    like = next(one.decimal for one in found if one.kind == "decimal")
    kind = exp.DataType.build(f"decimal({like[0]}, {like[1]})")
    return [
        replace(one, node=exp.cast(one.node, kind), kind="decimal", decimal=like)
        if one.kind == "integer"
        else one
        for one in found
    ]


# -- columns and constants ----------------------------------------------------------------------


def _column(total: TotalRows, node: exp.Expr) -> Typed:
    import pyarrow as pa

    node = node.copy()
    source = total.scope.tables[node.text("table") or total.scope.main]
    data_type: pa.DataType = source.columns[node.name]
    if pa.types.is_dictionary(data_type):
        data_type = data_type.value_type
    kind: str = kind_of(data_type)
    if kind == "integer":
        signed = pa.types.is_signed_integer(data_type)
        return Typed(node, kind, most=1 << (data_type.bit_width - signed), raw=True)
    if kind == "decimal":
        if pa.types.is_decimal256(data_type):  # of any number of digits
            return Typed(conversions.bounded_numeric(node), "float", raw=True)
        digits = (data_type.precision, data_type.scale)
        if source.not_a_number:
            node = guard(comparison_of(exp.LTE, node, _largest_decimal(data_type)), node)
        return Typed(node, kind, raw=True, decimal=digits)
    if (
        pa.types.is_nested(data_type)
        or isinstance(data_type, pa.BaseExtensionType)
        or (pa.types.is_interval(data_type))
    ):
        return Typed(node, "unknown", raw=True)
    if kind == "temporal":
        moment = "timestamp" if pa.types.is_timestamp(data_type) else "other"
        kind = "date" if pa.types.is_date(data_type) else moment
        moved = conversions.in_microseconds(node, data_type.unit) if kind == "timestamp" else node
        if kind in DATES:  # a table in memory was looked at when it was read
            known = source.table is not None
            return Typed(moved if known else conversions.clamp_date(moved, kind), kind, raw=True)
    return Typed(node, kind, raw=True)


def _largest_decimal(data_type: pa.DataType) -> exp.Expr:
    """The largest number of a type: what is none, NaN, is above it."""
    digits, after = data_type.precision, data_type.scale
    return literal(f"{'9' * (digits - after)}.{'9' * after}", f"decimal({digits}, {after})")


def _literal(total: TotalRows, node: exp.Expr) -> Typed:
    """A number or a text as it is written."""
    if node.is_string:
        return Typed(node.copy(), "text", constant=True)
    if node.name.isdigit() and int(node.name) <= MOST_WHOLE:
        return Typed(node.copy(), "integer", constant=True, most=int(node.name))
    if not (float(node.name) == 0 or LEAST <= float(node.name) <= MOST):
        fail(total.scope.text, node, f"a number here is 0 or between {LEAST:g} and {MOST:g}.")
    return Typed(double(node.copy()), "float", constant=True, grain=GRAIN)


def _plain(kind: str) -> Callable[[TotalRows, exp.Expr], Typed]:
    return lambda _, node: Typed(node.copy(), kind, constant=True)


def _inside(total: TotalRows, node: exp.Expr) -> Typed:
    return total.of(node.this)


# -- numbers --------------------------------------------------------------------------------------


def _arithmetic(total: TotalRows, node: exp.Expr) -> Typed:
    """Sums, differences and products: in whole numbers where they fit, else in doubles."""
    shifted = conversions.shifted_date(total, node)
    if shifted is not None:
        return shifted
    left, right = total.number(node.this), total.number(node.expression)
    product = isinstance(node, exp.Mul)
    if product:
        left, right = _narrow(total, node, left, right)
    constant = left.constant and right.constant
    most = left.most * right.most if product else left.most + right.most
    if left.kind == right.kind == "integer" and most <= 2 * MOST_WHOLE:
        first = exp.cast(left.node, "bigint") if constant else exp.Paren(this=left.node)
        made = type(node)(this=first, expression=exp.Paren(this=right.node))
        return Typed(exp.Paren(this=made), "integer", constant, most)
    join = sum if product else max
    sizes = join((left.factors, right.factors)), join((left.grain, right.grain))
    made = type(node)(this=double(left.node), expression=double(right.node))
    return _float(total, node, made, sizes, constant=constant)


def _narrow(total: TotalRows, node: exp.Expr, left: Typed, right: Typed) -> tuple[Typed, Typed]:
    """A column times a small written number stays whole: the column is kept that much smaller."""
    if left.constant and 0 < left.most <= MOST_MULTIPLE:
        return left, total.number(node.expression, MOST_WHOLE // left.most)
    if right.constant and 0 < right.most <= MOST_MULTIPLE:
        return total.number(node.this, MOST_WHOLE // right.most), right
    return left, right


def _negative(total: TotalRows, node: exp.Expr) -> Typed:
    """The number with the other sign."""
    found = total.number(node.this)
    return replace(found, node=exp.Paren(this=exp.Neg(this=exp.Paren(this=found.node))))


def _division(total: TotalRows, node: exp.Expr) -> Typed:
    """Quotients and remainders; null where the divisor is 0, or too small to divide by."""
    left, right = total.number(node.this), total.number(node.expression)
    constant = left.constant and right.constant
    if isinstance(node, exp.Div):
        below = double(right.node)
        if not _is_written(node.expression):
            below = guard(comparison_of(exp.GTE, exp.Abs(this=below), literal(LEAST)), below)
        made: exp.Expr = exp.Div(this=double(left.node), expression=below, typed=True)
        factors = left.factors + (right.factors if _is_written(node.expression) else 1)
        grain = left.grain + 30 * right.factors + MOST_EXACT
        return _float(total, node, made, (factors, grain), constant=constant)
    if left.kind != "integer" or right.kind != "integer":
        fail(total.scope.text, node, "whole numbers are needed here; or write FLOOR(x / 10).")
    below = exp.Paren(this=right.node)
    if not _is_written(node.expression):
        below = exp.Nullif(this=below, expression=exp.Literal.number(0))
    made = type(node)(this=exp.Paren(this=left.node), expression=below)
    most = right.most if isinstance(node, exp.Mod) else left.most
    return Typed(exp.cast(exp.Paren(this=made), "bigint"), "integer", constant, most)


def _is_written(node: exp.Expr) -> bool:
    """Whether a divisor is a number other than 0, as written."""
    below = node.unnest()
    below = below.this.unnest() if isinstance(below, exp.Neg) else below
    return isinstance(below, exp.Literal) and not below.is_string and float(below.name) != 0


def _of_one_number(total: TotalRows, node: exp.Expr) -> Typed:
    """ABS and SIGN."""
    found = total.number(node.this)
    if isinstance(node, exp.Sign):
        sign = exp.Sign(this=exp.Paren(this=found.node))
        return Typed(exp.cast(sign, "bigint"), "integer", found.constant, 1)
    return replace(found, node=exp.Abs(this=exp.Paren(this=found.node)))


def _round(total: TotalRows, node: exp.Expr) -> Typed:
    """FLOOR, CEIL and ROUND; halves are rounded away from zero."""
    found = total.number(node.this)
    decimals = _decimals(total, node)
    if found.kind == "integer" and decimals >= 0:
        return found
    scale = literal(float(10 ** abs(decimals)))
    value = double(found.node)
    if decimals:
        shift = exp.Mul if decimals > 0 else exp.Div
        extra = {"typed": True} if decimals < 0 else {}
        value = exp.Paren(this=shift(this=value, expression=scale, **extra))
    steps = _whole_steps(type(node), value)
    if decimals:
        back = exp.Div if decimals > 0 else exp.Mul
        extra = {"typed": True} if decimals > 0 else {}
        steps = exp.Paren(this=back(this=steps, expression=scale, **extra))
    factors = found.factors + (1 if decimals else 0)
    finest = MOST_DECIMALS + MOST_EXACT
    if decimals < 0:  # divided first, by as many digits
        _float(total, node, steps, (factors, found.grain + finest), constant=found.constant)
    sizes = factors, finest if decimals > 0 else 0
    return _float(total, node, steps, sizes, constant=found.constant)


def _decimals(total: TotalRows, node: exp.Expr) -> int:
    given = node.args.get("decimals")
    if any(node.args.get(name) for name in ("to", "truncate", "casts_non_integer_decimals")):
        total.refuse(node)
    if given is None:
        return 0
    sign, written = (-1, given.this) if isinstance(given, exp.Neg) else (1, given)
    if not isinstance(written, exp.Literal) or not written.name.isdigit():
        fail(total.scope.text, node, "how many decimals are kept is a number as it is written.")
    if int(written.name) > MOST_DECIMALS:
        fail(total.scope.text, node, f"at most {MOST_DECIMALS} decimals can be kept.")
    return sign * int(written.name)


def _whole_steps(kind: type[exp.Expr], value: exp.Expr) -> exp.Expr:
    """A double without its fraction; from 2 ** 53 on it has none."""
    made: exp.Expr
    if kind is exp.Round:
        half = literal(0.5)
        down = exp.Neg(this=double(exp.Floor(this=half - value)))
        up = double(exp.Floor(this=value + half))
        made = case_of((comparison_of(exp.LT, value, literal(0.0)), down), other=up)
    else:
        made = double(kind(this=value))
    small = comparison_of(exp.LT, exp.Abs(this=value), literal(float(1 << 53)))
    return case_of((small, made), other=value)


def _function(total: TotalRows, node: exp.Expr) -> Typed:
    """LN, EXP and SQRT; null where there is no such number, or none within the limits."""
    found = total.number(node.this)
    value = double(found.node)
    within: dict[type[exp.Expr], exp.Expr] = {
        exp.Ln: comparison_of(exp.GT, value, literal(0.0)),
        exp.Sqrt: comparison_of(exp.GTE, value, literal(0.0)),
        exp.Exp: comparison_of(exp.LTE, exp.Abs(this=value), literal(MOST_EXPONENT)),
    }
    made = type(node)(this=guard(within[type(node)], value))
    sizes = 1, GRAIN  # logarithms of what is next to 1 are not as small as that
    if isinstance(node, exp.Sqrt):
        sizes = found.factors, found.grain // 2 + 1 + MOST_EXACT
    return _float(total, node, made, sizes, constant=found.constant)


def _power(total: TotalRows, node: exp.Expr) -> Typed:
    """Powers; null of negative numbers unless the exponent is small, whole and written."""
    base, written = total.number(node.this), node.expression.unnest()
    value = double(base.node)
    times = int(written.name) if isinstance(written, exp.Literal) and written.name.isdigit() else 0
    if 1 <= times <= MOST_FACTORS:
        made: exp.Expr = exp.Pow(this=value, expression=literal(float(times)))
        sizes = base.factors * times, base.grain * times
        return _float(total, node, made, sizes, constant=base.constant)
    exponent = total.number(node.expression)
    power = double(exponent.node)
    above = guard(comparison_of(exp.GT, value, literal(0.0)), value)
    logarithm = exp.Paren(this=exp.Mul(this=power, expression=exp.Ln(this=above)))
    small = comparison_of(exp.LTE, exp.Abs(this=logarithm), literal(MOST_EXPONENT))
    made = exp.Pow(this=guard(small, above), expression=power)
    constant = base.constant and exponent.constant
    sizes = base.factors + exponent.factors, exponent.grain + GRAIN
    return _float(total, node, made, sizes, constant=constant)


def _float(
    total: TotalRows, node: exp.Expr, made: exp.Expr, sizes: tuple[int, int], *, constant: bool
) -> Typed:
    factors, grain = sizes
    if factors > MOST_FACTORS or grain > MOST_GRAIN:
        fail(total.scope.text, node, f"multiply or divide at most {MOST_FACTORS} numbers here.")
    return Typed(exp.Paren(this=made), "float", constant, factors=factors, grain=grain)


# -- conditions and choices -----------------------------------------------------------------------


def _compare(total: TotalRows, node: exp.Expr) -> Typed:
    """Equality, order, BETWEEN and IN."""
    if node.args.get("query") or node.args.get("unnest"):
        total.refuse(node)
    parts = _parts(node, ("this", "expression", "low", "high"))
    for part in parts:
        if total.of(part).kind in ("other", "unknown"):
            total.want(part, (*NUMBERS, *DATES, "text", "boolean"), "a value")
    _, typed = total.alike(node, parts)
    made = exp.Paren(this=_rebuilt(node, parts, typed))
    return Typed(made, "boolean", all(one.constant for one in typed))


def _choice(total: TotalRows, node: exp.Expr) -> Typed:
    """COALESCE, NULLIF, GREATEST and LEAST."""
    parts = _parts(node, ("this", "expression"))
    kind, typed = total.alike(node, parts, chosen=True)
    made = _rebuilt(node, parts, typed)
    return _largest(made, kind, typed)


def _case(total: TotalRows, node: exp.Expr) -> Typed:
    """CASE in both forms, and IF."""
    whens = node.args["ifs"] if isinstance(node, exp.Case) else [node]
    if isinstance(node, exp.Case) and node.this is not None:
        _, tests = total.alike(node, [node.this, *(when.this for when in whens)])
        conditions = [comparison_of(exp.EQ, tests[0].node, test.node) for test in tests[1:]]
    else:
        conditions = [total.boolean(when.this).node for when in whens]
    other = node.args.get("default") or node.args.get("false")
    values = [when.args["true"] for when in whens] + ([] if other is None else [other])
    kind, typed = total.alike(node, values, chosen=True)
    branches = zip(conditions, (one.node for one in typed), strict=False)
    made = case_of(*branches, other=None if other is None else typed[-1].node)
    return _largest(made, kind, typed)


def _logic(total: TotalRows, node: exp.Expr) -> Typed:
    """AND, OR and NOT of conditions."""
    made = node.copy()
    for name in ("this", "expression"):
        if node.args.get(name) is not None:
            made.set(name, exp.Paren(this=total.boolean(node.args[name]).node))
    return Typed(exp.Paren(this=made), "boolean")


def _test_of(total: TotalRows, node: exp.Expr) -> Typed:
    """IS NULL of anything, IS TRUE of a condition."""
    is_null = isinstance(node.expression, exp.Null)
    tested = total.of(node.this) if is_null else total.boolean(node.this)
    made = exp.Is(this=exp.Paren(this=tested.node), expression=node.expression.copy())
    return Typed(exp.Paren(this=made), "boolean")


def _parts(node: exp.Expr, names: Sequence[str]) -> list[exp.Expr]:
    single = [node.args.get(name) for name in names]
    return [part for part in [*single, *node.expressions] if part is not None]


def _rebuilt(node: exp.Expr, parts: Sequence[exp.Expr], typed: Sequence[Typed]) -> exp.Expr:
    total = {id(part): one.node for part, one in zip(parts, typed, strict=True)}

    def one(value: Any) -> Any:
        if isinstance(value, list):
            return [one(v) for v in value]
        if id(value) in total:
            return total[id(value)]
        return value.copy() if isinstance(value, exp.Expr) else value

    made: exp.Expr = type(node)(**{name: one(value) for name, value in node.args.items()})
    return made


def _largest(made: exp.Expr, kind: str, typed: Sequence[Typed]) -> Typed:
    return Typed(
        made,
        kind,
        all(one.constant for one in typed),
        max(one.most for one in typed),
        max(one.factors for one in typed),
        max(one.grain for one in typed),
        raw=any(one.raw for one in typed),
        decimal=next((one.decimal for one in typed if one.kind == "decimal"), (0, 0)),
    )


# fmt: off
_GROUPS: tuple[tuple[Callable[[TotalRows, exp.Expr], Typed], str], ...] = (
    (_column, "Column"), (_inside, "Paren"), (_plain("boolean"), "Boolean"),
    (_plain("null"), "Null"), (_literal, "Literal"), (conversions.cast, "Cast TryCast"),
    (_arithmetic, "Add Sub Mul"), (_negative, "Neg"), (_division, "Div IntDiv Mod"),
    (_of_one_number, "Abs Sign"), (_round, "Floor Ceil Round"), (_function, "Ln Exp Sqrt"),
    (_power, "Pow"), (_compare, "EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ Between In"),
    (_choice, "Coalesce Nullif Greatest Least"), (_case, "Case If"), (_logic, "And Or Not"),
    (_test_of, "Is"), (conversions.match_pattern, "Like ILike"),
    (conversions.of_text, "Upper Lower Trim Length Left Right Substring Replace StrPosition"),
    (conversions.concatenate, "Concat DPipe"),
    (conversions.truncate_moment, "DateTrunc TimestampTrunc"),
    (conversions.part_of_date, "Extract Year Month Day Quarter Week WeekOfYear DayOfWeek"),
    (conversions.part_of_date, "DayOfYear DayOfMonth"), (conversions.day, "Date TsOrDsToDate"),
    (conversions.subtract_moments, "DateDiff TimestampDiff"),
    (conversions.shift_moment, "DateAdd DateSub"),
)
# fmt: on
_RULES = {getattr(exp, name): rule for rule, names in _GROUPS for name in names.split()}
