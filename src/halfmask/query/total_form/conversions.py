"""Expressions with what is known of their values, and the limits that values are kept within.

Casts, texts and dates in total form: what does not convert is null, what grows is cut.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from halfmask.engines.expressions import evaluate_row, move_moment
from halfmask.engines.generalization import cast_to
from halfmask.query.vocabulary import fail

if TYPE_CHECKING:
    from collections.abc import Callable

    from halfmask.query.total_form.rows import TotalRows


MOST_WHOLE = (1 << 62) - 1  # the sum of two stays within 64 bits
MOST_FACTORS = 6  # so many numbers of 1e30, multiplied, stay far within a double
MOST, LEAST = 1e30, 1e-30
MOST_EXACT = 16  # decimal places from the first digit of a double to its last
GRAIN = 30 + MOST_EXACT  # of a number that is clamped
MOST_GRAIN = 300  # what is no multiple of less does not vanish, which PostgreSQL calls a failure
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
        most: of whole numbers, the largest absolute value once they are clamped.
        factors: of other numbers, how many are multiplied.
        grain: they are whole multiples of 10 to the power of minus this, once they are clamped.
        raw: whether its numbers may be any that a column holds.
        decimal: of decimals, how many digits they have, and how many of them after the point.
    """

    node: exp.Expr
    kind: str
    constant: bool = False
    most: int = 0
    factors: int = 1
    grain: int = 0
    raw: bool = False
    decimal: tuple[int, int] = (0, 0)


def clamp_number(found: Typed, most: int = MOST_WHOLE) -> Typed:
    """A number with which arithmetic cannot fail; values beyond the limits count as the limit."""
    if found.kind == "null":
        return Typed(double(found.node), "float", constant=True)
    if found.kind == "integer":
        if not found.raw:
            return found
        if found.most <= most:
            return replace(found, node=in_brackets(found.node, "bigint"), raw=False)
        return replace(found, node=_clamp(found.node, most), most=most, raw=False)
    if not found.raw and found.kind == "float":
        return found
    node = _between(double(found.node))
    return Typed(node, "float", found.constant, factors=found.factors, grain=GRAIN)


def double(node: exp.Expr) -> exp.Expr:
    """The number as a double; every number has one."""
    return in_brackets(node, "double")


def in_brackets(node: exp.Expr, kind: str) -> exp.Expr:
    """An expression, cast to a kind of values."""
    return cast_to(exp.Paren(this=node), kind)


def case_of(*branches: tuple[exp.Expr, exp.Expr], other: exp.Expr | None = None) -> exp.Case:
    """CASE WHEN ... THEN ... ELSE."""
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Case(ifs=ifs) if other is None else exp.Case(ifs=ifs, default=other)


def literal(value: float | str, kind: str = "double") -> exp.Expr:
    """A constant of a kind."""
    text = value if isinstance(value, str) else repr(value)
    made = exp.Literal.string(text) if isinstance(value, str) else exp.Literal.number(text)
    return cast_to(made, kind)


def whole_of_boolean(node: exp.Expr) -> exp.Expr:
    """1 for what is true, 0 for what is false."""
    return cast_to(in_brackets(node, "int"), "bigint")


def guard(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A value where a condition holds, else null.

    What may fail takes the guarded value, rather than being guarded itself: engines may compute a
    branch before they know its condition.
    """
    return case_of((condition, value))


def comparison_of(kind: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """A comparison of two expressions."""
    return kind(this=left, expression=right)


def _clamp(node: exp.Expr, most: int) -> exp.Expr:
    high, low = literal(most, "bigint"), literal(-most, "bigint")
    inside = case_of(
        (comparison_of(exp.GT, node, high), high),
        (comparison_of(exp.LT, node, low), low),
        other=exp.Paren(this=node),
    )
    return in_brackets(inside, "bigint")


def _between(node: exp.Expr) -> exp.Expr:
    high, low, tiny, below = (literal(end) for end in (MOST, -MOST, LEAST, -LEAST))
    return case_of(
        (comparison_of(exp.GT, node, high), high),
        (comparison_of(exp.LT, node, low), low),
        (
            exp.and_(comparison_of(exp.GT, node, below), comparison_of(exp.LT, node, tiny)),
            literal(0.0),
        ),
        other=node,
    )


MOST_CHARACTERS = 1_000  # of a text that was put together
MOST_CASED = 1 << 20  # of a text whose case is changed, or that is read as a number or a date
MOST_WRITTEN = 100  # characters that one of a text may be replaced by
MOST_WILDCARDS = 2  # before the end of a pattern, so that a text is compared in few steps
MOMENT = exp.DataType.build("timestamp", dialect="duckdb")
FIRST, LAST = "0001-01-01", "9999-12-31"

_YEAR = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
_DAY = (
    f"({_YEAR}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
    f"02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
)
_TIME = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?"
_SPELLINGS = {
    "integer": "[+-]?[0-9]{1,18}",
    "float": "[+-]?[0-9]{1,30}([.][0-9]{1,30})?([eE][+-]?[0-9]{1,2})?",
    "date": _DAY,
    "timestamp": f"{_DAY}([ T]{_TIME})?",
}
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_KINDS = {
    **dict.fromkeys(_BITS, "integer"),
    **dict.fromkeys(("DOUBLE", "FLOAT"), "float"),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR", "NCHAR", "NVARCHAR"), "text"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"), "timestamp"),
    "DATE": "date",
    "BOOLEAN": "boolean",
    "DECIMAL": "decimal",
}
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_DAYS = {"WEEK": 7, "DAY": 1}
_SECONDS = {"HOUR": 3600, "MINUTE": 60, "SECOND": 1}
_UNITS = (*_MONTHS, *_DAYS, *_SECONDS)
_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "YEAR",
    exp.Month: "MONTH",
    exp.Day: "DAY",
    exp.DayOfMonth: "DAY",
    exp.Quarter: "QUARTER",
    exp.Week: "WEEK",
    exp.WeekOfYear: "WEEK",
    exp.DayOfWeek: "DOW",
    exp.DayOfYear: "DOY",
}
_NAMES = {"DAYOFWEEK": "DOW", "DAYOFYEAR": "DOY", "DAYOFWEEK_ISO": "ISODOW"}


# -- casts ----------------------------------------------------------------------------------------


def cast(total: TotalRows, node: exp.Expr) -> Typed:
    """CAST and TRY_CAST: null where the value does not convert; what is written must convert."""
    name = node.args["to"].this.name
    target = _KINDS.get(name)
    if target is None or node.args.get("format"):
        fail(
            total.scope.text,
            node,
            "a CAST here is to BIGINT, INT, SMALLINT, TINYINT, DOUBLE, DECIMAL, TEXT, DATE, "
            "TIMESTAMP or BOOLEAN.",
        )
    found = total.of(node.this)
    if target == "decimal":
        return _to_decimal(total, node, found)
    made = convert(total, node, found, target)
    if target == "integer" and _BITS[name] < 64:
        made = _within_bits(made, _BITS[name])
    return made


def convert(total: TotalRows, node: exp.Expr, found: Typed, target: str) -> Typed:
    """A value in another kind, null where it does not convert."""
    if found.kind == target:
        return found
    if found.kind == "null":
        to = {"float": "double", "integer": "bigint"}.get(target, target)
        return Typed(exp.cast(found.node, to), target, constant=True)
    rule = _CONVERSIONS.get((found.kind, target))
    if rule is None:
        _refuse_conversion(total, node, found.kind, target)
    made = replace(rule(found), constant=found.constant)
    if isinstance(found.node, exp.Literal) and evaluate_row(made.node, {}) is None:
        fail(total.scope.text, node, f"what is written here does not convert to {target}.")
    return made


def bounded_numeric(node: exp.Expr) -> exp.Expr:
    """A number of any number of digits as a double."""
    ends = ("1e100", "-1e100", "1e-100", "-1e-100")
    high, low, tiny, below = (exp.Literal.number(end) for end in ends)
    case = exp.Case().when(comparison_of(exp.GT, node, high), literal(1e100))
    case = case.when(comparison_of(exp.LT, node, low), literal(-1e100))
    near = exp.and_(comparison_of(exp.GT, node, below), comparison_of(exp.LT, node, tiny))
    return case.when(near, literal(0.0)).else_(exp.cast(node.copy(), "double"))


def clamp_date(node: exp.Expr, kind: str) -> exp.Expr:
    """A date within the years that every engine can compute with."""
    to = MOMENT if kind == "timestamp" else exp.DataType.build("date")
    end = f"{LAST} 23:59:59.999999" if kind == "timestamp" else LAST
    last, first = (exp.cast(exp.Literal.string(day), to) for day in (end, FIRST))
    case = exp.Case().when(comparison_of(exp.GT, node, last), last)
    return case.when(comparison_of(exp.LT, node, first), first).else_(node.copy())


def in_microseconds(node: exp.Expr, unit: str) -> exp.Expr:
    """A moment in the unit that all engines have; null where it lies beyond all of their years."""
    if unit == "us":
        return node
    return (exp.Cast if unit == "ns" else exp.TryCast)(this=node.copy(), to=MOMENT.copy())


def _refuse_conversion(total: TotalRows, node: exp.Expr, kind: str, target: str) -> NoReturn:
    words = f"{kind} is not converted to {target} here, because engines write it differently"
    if target not in ("text", "decimal"):
        words = f"{kind} has no meaning as {target}"
    fail(total.scope.text, node, f"{words}: prepare the column beforehand.")


def _to_whole(found: Typed) -> Typed:
    value = double(clamp_number(found).node)
    small = comparison_of(exp.LT, exp.Abs(this=value), literal(float(1 << 61)))
    near = exp.cast(exp.Floor(this=guard(small, value) + literal(0.5)), "bigint")
    return Typed(near, "integer", most=1 << 61)


def _to_float(found: Typed) -> Typed:
    return Typed(double(found.node), "float", raw=found.raw)


def _of_boolean(found: Typed) -> Typed:
    return Typed(whole_of_boolean(found.node), "integer", most=1)


def _spelling_rule(target: str, to: exp.DataType, **known: int | bool) -> Callable[[Typed], Typed]:
    def converted(found: Typed) -> Typed:
        made = _where_spelled(found, _SPELLINGS[target], to)
        return Typed(made, target, **known)  # type: ignore[arg-type]

    return converted


def _where_spelled(found: Typed, spelling: str, to: exp.DataType) -> exp.Expr:
    text = exp.Trim(this=_cut(found.node, MOST_CASED))
    pattern = exp.Literal.string(f"^{spelling}$")
    matches = exp.Paren(this=exp.RegexpLike(this=text, expression=pattern))
    return exp.cast(guard(matches, text), to)


def _is_true(found: Typed) -> Typed:
    case = exp.Case()
    text = exp.Lower(this=exp.Trim(this=_cut(found.node, MOST_CASED)))
    for words, value in ((_TRUE, exp.true()), (_FALSE, exp.false())):
        listed = [exp.Literal.string(word) for word in words]
        case = case.when(exp.In(this=text, expressions=listed), value)
    return Typed(case, "boolean")


def _is_not_zero(found: Typed) -> Typed:
    return Typed(
        exp.Paren(this=comparison_of(exp.NEQ, found.node, exp.Literal.number(0))), "boolean"
    )


def _as_text(found: Typed) -> Typed:
    return Typed(exp.cast(exp.Paren(this=found.node), "text"), "text")


def _word(found: Typed) -> Typed:
    case = exp.Case().when(found.node, exp.Literal.string("true"))
    return Typed(
        case.when(exp.not_(exp.Paren(this=found.node)), exp.Literal.string("false")), "text"
    )


def _date(found: Typed) -> Typed:
    return Typed(exp.cast(exp.Paren(this=found.node), "date"), "date")


def _moment(found: Typed) -> Typed:
    return Typed(exp.cast(exp.Paren(this=found.node), MOMENT), "timestamp")


_CONVERSIONS: dict[tuple[str, str], Callable[[Typed], Typed]] = {
    ("float", "integer"): _to_whole,
    ("decimal", "integer"): _to_whole,
    ("boolean", "integer"): _of_boolean,
    ("text", "integer"): _spelling_rule("integer", exp.DataType.build("bigint"), most=10**18),
    ("integer", "float"): _to_float,
    ("decimal", "float"): _to_float,
    ("boolean", "float"): lambda found: _to_float(_of_boolean(found)),
    ("text", "float"): _spelling_rule("float", exp.DataType.build("double"), raw=True),
    ("integer", "boolean"): _is_not_zero,
    ("text", "boolean"): _is_true,
    ("integer", "text"): _as_text,
    ("date", "text"): _as_text,
    ("boolean", "text"): _word,
    ("timestamp", "date"): _date,
    ("text", "date"): _spelling_rule("date", exp.DataType.build("date")),
    ("date", "timestamp"): _moment,
    ("text", "timestamp"): _spelling_rule("timestamp", MOMENT),
}


def _within_bits(found: Typed, bits: int) -> Typed:
    most = 1 << (bits - 1)
    if found.most < most:
        return found
    low, high = literal(-most, "bigint"), literal(most - 1, "bigint")
    inside = exp.Between(this=found.node, low=low, high=high)
    made = exp.cast(guard(inside, found.node), "bigint")
    return Typed(made, "integer", found.constant, most)


def _to_decimal(total: TotalRows, node: exp.Expr, found: Typed) -> Typed:
    """Whole numbers, decimals and texts as decimals; null where there are too many digits."""
    given = [int(part.name) for part in node.args["to"].expressions]
    digits, after = (*given, 0)[:2] if given else (18, 3)
    if not 1 <= digits <= 38 or not 0 <= after <= digits:
        fail(total.scope.text, node, "a DECIMAL has 1 to 38 digits, some of them after the point.")
    to = exp.DataType.build(f"decimal({digits}, {after})")
    if found.kind == "text":
        before = digits - after
        spelling = "[+-]?" + (f"[0-9]{{1,{before}}}" if before else "0")
        made = _where_spelled(found, spelling + (f"([.][0-9]{{1,{after}}})?" if after else ""), to)
    elif found.kind in ("integer", "decimal"):
        value: exp.Expr = exp.Paren(this=found.node)
        before = found.decimal[0] - found.decimal[1] if found.kind == "decimal" else 0
        fits = found.most < 10 ** (digits - after) if found.kind == "integer" else False
        if not fits and not (found.kind == "decimal" and before < digits - after):
            # What is compared are doubles: a little less than the largest that fits.
            small = literal(float(10 ** (digits - after)) * (1 - 1e-9) - 1)
            value = guard(comparison_of(exp.LT, exp.Abs(this=double(found.node)), small), value)
        made = exp.cast(value, to)
    else:
        _refuse_conversion(total, node, found.kind, "decimal")
    return Typed(made, "decimal", found.constant, raw=True, decimal=(digits, after))


# -- texts ----------------------------------------------------------------------------------------


def of_text(total: TotalRows, node: exp.Expr) -> Typed:
    """UPPER, LENGTH, SUBSTRING and others; all but the first argument are written."""
    made = node.copy()
    found = total.want(node.this, ("text",), "text")
    # PostgreSQL has no room for four bytes of each character of a text of hundreds of megabytes.
    cased = isinstance(node, exp.Upper | exp.Lower)
    made.set("this", _cut(found.node, MOST_CASED) if cased else found.node)
    for name, value in node.args.items():
        if name != "this" and isinstance(value, exp.Expr):
            _require_written(total, node, name, value)
    if node.args.get("occurrence") or isinstance(node.args.get("position"), exp.Expr):
        total.refuse(node)
    if isinstance(node, exp.Length | exp.StrPosition):
        return Typed(exp.cast(made, "bigint"), "integer", found.constant, most=1 << 40)
    if isinstance(node, exp.Replace):
        made = _replace(total, node, made)
    return Typed(made, "text", found.constant)


def _require_written(total: TotalRows, node: exp.Expr, name: str, value: exp.Expr) -> None:
    if not isinstance(value, exp.Literal):
        total.refuse(node, "Write a text or a number that is not negative as it is.")
    if name in ("start", "length") or isinstance(node, exp.Left | exp.Right):
        if value.is_string or not value.name.isdigit() or int(value.name) > 1 << 30:
            total.refuse(node, "Write a whole number that is not negative.")
        if name == "start" and int(value.name) < 1:
            total.refuse(node, "The first character has the number 1.")
    elif not value.is_string or (not value.name and name != "replacement"):
        total.refuse(node, "Write a text that is not empty.")


def _replace(total: TotalRows, node: exp.Expr, made: exp.Expr) -> exp.Expr:
    """A text in which another is replaced; cut before and after where it can grow."""
    replacement = node.args.get("replacement")
    new = len(replacement.name) if replacement is not None else 0
    if new <= len(node.expression.name):
        return made
    if new > MOST_WRITTEN:
        fail(total.scope.text, node, f"a text is replaced by at most {MOST_WRITTEN} characters.")
    made.set("this", _cut(made.this))
    return _cut(made)


def _cut(node: exp.Expr, most: int = MOST_CHARACTERS) -> exp.Expr:
    return exp.Left(this=node.copy(), expression=exp.Literal.number(most))


def match_pattern(total: TotalRows, node: exp.Expr) -> Typed:
    """LIKE and ILIKE with a written pattern of few wildcards."""
    found, pattern = total.want(node.this, ("text",), "text"), node.expression
    if not isinstance(pattern, exp.Literal) or not pattern.is_string or "\\" in pattern.name:
        total.refuse(node, "Write a pattern as it is, without a backslash.")
    text, written = found.node, pattern.name
    if isinstance(node, exp.ILike):
        text, written = exp.Lower(this=_cut(text, MOST_CASED)), written.lower()
    while "%%" in written:
        written = written.replace("%%", "%")
    wildcards = written.rstrip("%").count("%")
    if wildcards > MOST_WILDCARDS:
        fail(
            total.scope.text,
            node,
            f"a pattern has at most {MOST_WILDCARDS} % before its end: join conditions by AND.",
        )
    if wildcards == MOST_WILDCARDS:
        text = _cut(text)
    made: exp.Expr = exp.Like(this=text, expression=exp.Literal.string(written))
    made = exp.Paren(this=made)
    return Typed(exp.Paren(this=exp.not_(made)) if node.args.get("negate") else made, "boolean")


def concatenate(total: TotalRows, node: exp.Expr) -> Typed:
    """CONCAT (nothing where a text is missing) and || of texts, cut where they are long."""
    parts = node.expressions if isinstance(node, exp.Concat) else [node.this, node.expression]
    texts = [convert(total, part, total.of(part), "text") for part in parts]
    made: exp.Expr | None = None
    for one in texts:
        # Cut before as well: two long texts together can be longer than an engine holds.
        text = one.node.copy() if one.constant else _cut(one.node)
        if isinstance(node, exp.Concat):
            text = exp.Coalesce(this=text, expressions=[exp.Literal.string("")])
        made = text if made is None else exp.DPipe(this=made, expression=text)
    if made is None:
        total.refuse(node)
    return Typed(_cut(exp.Paren(this=made)), "text", all(one.constant for one in texts))


# -- dates ----------------------------------------------------------------------------------------


def part_of_date(total: TotalRows, node: exp.Expr) -> Typed:
    """EXTRACT, YEAR, MONTH and others."""
    unit = _PARTS.get(type(node)) or node.this.name.upper()
    unit = _NAMES.get(unit, unit)
    given = node.expression if isinstance(node, exp.Extract) else node.this
    found = total.want(given, DATES, "a date")
    if unit not in (*_UNITS, "DOW", "DOY", "ISODOW"):
        total.refuse(node)
    _require_moment(total, node, found, unit)
    if unit in ("DOW", "ISODOW"):  # the first of January of the year 1 was a Monday
        days = _days_between(exp.cast(exp.Literal.string(FIRST), "date"), found.node)
        sunday = 1 if unit == "DOW" else 0
        rest = exp.Mod(this=exp.Paren(this=days + sunday), expression=exp.Literal.number(7))
        made: exp.Expr = exp.Paren(this=rest + (1 - sunday))
    else:
        made = _part(unit, found.node)
    return Typed(exp.cast(made, "bigint"), "integer", found.constant, most=1 << 14)


def truncate_moment(total: TotalRows, node: exp.Expr) -> Typed:
    """The first moment of a date's year, month or other unit."""
    unit = _unit(total, node, node.args.get("unit"))
    found = total.want(node.this, DATES, "a date")
    _require_moment(total, node, found, unit)
    return Typed(_trunc(unit, found.node, found.kind), found.kind, found.constant)


def day(total: TotalRows, node: exp.Expr) -> Typed:
    """The day of a date, of a moment, or of a text."""
    if any(node.args.get(name) for name in ("zone", "expressions")):
        total.refuse(node)
    return convert(total, node, total.of(node.this), "date")


def subtract_moments(total: TotalRows, node: exp.Expr) -> Typed:
    """How many borders of units lie between two dates."""
    unit = _unit(total, node, node.args.get("unit"))
    later, earlier = (total.want(node.args[n], DATES, "a date") for n in ("this", "expression"))
    constant = later.constant and earlier.constant
    if unit in _SECONDS:
        for one in (later, earlier):
            _require_moment(total, node, one, unit)
    made = _borders(unit, earlier.node, later.node)
    return Typed(exp.cast(exp.Paren(this=made), "bigint"), "integer", constant, most=1 << 40)


def shift_moment(total: TotalRows, node: exp.Expr) -> Typed:
    """DATE_ADD and DATE_SUB by a written number of units."""
    found = total.want(node.this, DATES, "a date")
    return _move_date(total, node, found, node.expression, back=isinstance(node, exp.DateSub))


def shifted_date(total: TotalRows, node: exp.Expr) -> Typed | None:
    """A date plus or minus a written interval or number of days, or the days between two dates.

    None where no date is added or subtracted.
    """
    if not isinstance(node, exp.Add | exp.Sub):
        return None
    left, right = node.this, node.expression
    if isinstance(node, exp.Add) and isinstance(left.unnest(), exp.Interval):
        left, right = right, left
    first = None if isinstance(left.unnest(), exp.Interval) else total.of(left)
    if first is None or first.kind not in DATES:
        return None
    if not isinstance(right.unnest(), exp.Interval):
        second = total.of(right)
        if isinstance(node, exp.Sub) and first.kind == second.kind == "date":
            days = exp.cast(_days_between(second.node, first.node), "bigint")
            return Typed(days, "integer", most=1 << 22)
        if second.kind != "integer":
            total.refuse(node, "Write DATE_DIFF('hour', earlier, later).")
    return _move_date(total, node, first, right, back=isinstance(node, exp.Sub))


def _move_date(
    total: TotalRows, node: exp.Expr, found: Typed, amount: exp.Expr, *, back: bool
) -> Typed:
    """A date moved by an amount; null where that leads out of the years 1 to 9999."""
    count, unit = _amount(total, node, amount)
    count = -count if back else count
    try:
        end = move_moment(dt.datetime.fromisoformat(LAST if count > 0 else FIRST), unit, -count)
    except (OverflowError, ValueError):
        fail(total.scope.text, node, "this leads out of the years 1 to 9999.")
    kind = "timestamp" if unit in _SECONDS else found.kind
    start = exp.cast(exp.Paren(this=found.node), MOMENT)
    inside = comparison_of(
        exp.LTE if count > 0 else exp.GTE, start, literal_moment(end.isoformat(" "))
    )
    by = exp.Interval(this=exp.Literal.string(str(abs(count))), unit=exp.var(unit))
    made = (exp.Add if count > 0 else exp.Sub)(this=guard(inside, start.copy()), expression=by)
    to = MOMENT if kind == "timestamp" else exp.DataType.build("date")
    return Typed(exp.cast(exp.Paren(this=made), to), kind, found.constant)


def literal_moment(text: str) -> exp.Expr:
    """A moment as a constant."""
    return exp.cast(exp.Literal.string(text), MOMENT)


def _amount(total: TotalRows, node: exp.Expr, amount: exp.Expr) -> tuple[int, str]:
    """How many of which unit, in units that all engines know."""
    amount = amount.unnest()
    unit = "DAY"
    if isinstance(amount, exp.Interval):
        unit, amount = _unit(total, node, amount.args.get("unit")), amount.this.unnest()
    elif node.args.get("unit") is not None:
        unit = _unit(total, node, node.args["unit"])
    sign = 1
    if isinstance(amount, exp.Neg):
        sign, amount = -1, amount.this.unnest()
    digits = amount.name.removeprefix("-") if isinstance(amount, exp.Literal) else ""
    if not digits.isdigit() or len(digits) > 12:
        total.refuse(node, "Write a whole number of days, months or other units.")
    sign = -sign if amount.name.startswith("-") else sign
    if unit in ("YEAR", "QUARTER"):
        return sign * int(digits) * _MONTHS[unit], "MONTH"
    return sign * int(digits) * (7 if unit == "WEEK" else 1), "DAY" if unit == "WEEK" else unit


def _unit(total: TotalRows, node: exp.Expr, unit: exp.Expr | None) -> str:
    name = "DAY" if unit is None else unit.name.upper().removesuffix("S")
    if unit is not None and (unit.find(exp.Column) or name not in _UNITS):
        total.refuse(node, f"Use one of {', '.join(_UNITS)}.")
    return name


def _require_moment(total: TotalRows, node: exp.Expr, found: Typed, unit: str) -> None:
    if unit in _SECONDS and found.kind == "date":
        fail(total.scope.text, node, f"a date has no {unit.lower()}: CAST it to TIMESTAMP.")


def _part(unit: str, node: exp.Expr) -> exp.Expr:
    made: exp.Expr = exp.Extract(this=exp.var(unit), expression=exp.Paren(this=node.copy()))
    if unit == "SECOND":  # with a fraction, or without
        made = exp.Floor(this=double(made))
    return exp.cast(made, "bigint")


def _trunc(unit: str, node: exp.Expr, kind: str) -> exp.Expr:
    start = exp.cast(exp.Paren(this=node.copy()), MOMENT)
    made = exp.TimestampTrunc(this=start, unit=exp.var(unit))
    return exp.cast(made, MOMENT if kind == "timestamp" else exp.DataType.build("date"))


def _days_between(earlier: exp.Expr, later: exp.Expr) -> exp.Expr:
    ends = [exp.cast(exp.Paren(this=one.copy()), "date") for one in (later, earlier)]
    made = exp.DateDiff(this=ends[0], expression=ends[1], unit=exp.var("DAY"))
    return exp.cast(made, "bigint")


def _borders(unit: str, earlier: exp.Expr, later: exp.Expr) -> exp.Expr:
    """Borders of units between two dates, from parts that engines agree on."""

    def step(name: str) -> exp.Expr:
        return exp.Paren(this=_part(name, later) - _part(name, earlier))

    if unit == "YEAR":
        return step("YEAR")
    if unit in ("QUARTER", "MONTH"):
        return step("YEAR") * (4 if unit == "QUARTER" else 12) + step(unit)
    if unit == "WEEK":
        days = _days_between(_trunc("WEEK", earlier, "date"), _trunc("WEEK", later, "date"))
        return exp.IntDiv(this=days, expression=exp.Literal.number(7))
    made = _days_between(earlier, later)
    for name, size in (("HOUR", 24), ("MINUTE", 60), ("SECOND", 60)):
        if unit == "DAY":
            break
        made = exp.Paren(this=made * size + step(name))
        if unit == name:
            break
    return made
