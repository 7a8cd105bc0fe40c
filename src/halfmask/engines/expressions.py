"""SQL expressions over one row, in plain Python: three-valued logic and the common functions."""

from __future__ import annotations

import datetime as dt
import math
import operator
import re
from calendar import monthrange
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from halfmask.errors import UnsupportedByEngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlglot.expressions import Expr

Row = dict[tuple[str, str], Any]


def evaluate_row(node: Expr, row: Row) -> Any:
    """The value of an expression in a row.

    Raises:
        UnsupportedByEngineError: for what the reference does not know.
    """
    special = _SPECIAL.get(type(node))
    if special is not None:
        return special(node, row)
    strict = _STRICT.get(type(node))
    if strict is None:
        raise UnsupportedByEngineError("reference", f"{node.key} in an expression")
    arguments = [evaluate_row(a, row) for a in _arguments(node)]
    return None if any(a is None for a in arguments) else strict(*arguments)


def _arguments(node: Expr) -> list[Expr]:
    found = []
    for name in node.arg_types:
        part = node.args.get(name)
        if isinstance(part, list):
            found += [p for p in part if isinstance(p, exp.Expr)]
        elif isinstance(part, exp.Expr):
            found.append(part)
    return found


def _column(node: Expr, row: Row) -> Any:
    key = (node.text("table"), node.name)
    found = row[key] if key in row else next(v for (_, n), v in row.items() if n == node.name)
    if isinstance(found, float):
        return math.nan if math.isnan(found) else found + 0.0  # one NaN, one zero: they are keys
    return found


def _literal(node: Expr, _: Row) -> Any:
    if node.args["is_string"]:
        return node.name
    return int(node.name) if node.name.isdigit() else float(node.name)


def _and(node: Expr, row: Row) -> Any:
    left, right = evaluate_row(node.this, row), evaluate_row(node.expression, row)
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(node: Expr, row: Row) -> Any:
    left, right = evaluate_row(node.this, row), evaluate_row(node.expression, row)
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _is(node: Expr, row: Row) -> Any:
    wanted = node.expression
    found = evaluate_row(node.this, row)
    return found is None if isinstance(wanted, exp.Null) else found is evaluate_row(wanted, row)


def _in(node: Expr, row: Row) -> Any:
    found = evaluate_row(node.this, row)
    options = [evaluate_row(e, row) for e in node.expressions]
    if found is None:
        return None
    if any(sort_key(found) == sort_key(o) for o in options if o is not None):
        return True
    return None if any(o is None for o in options) else False


def _case(node: Expr, row: Row) -> Any:
    subject = node.args.get("this")
    for branch in node.args["ifs"]:
        test = evaluate_row(branch.this, row)
        if (test is True) if subject is None else _same(test, evaluate_row(subject, row)):
            return evaluate_row(branch.args["true"], row)
    default = node.args.get("default")
    return None if default is None else evaluate_row(default, row)


def _if(node: Expr, row: Row) -> Any:
    branch = node.args["true"] if evaluate_row(node.this, row) is True else node.args.get("false")
    return None if branch is None else evaluate_row(branch, row)


def _coalesce(node: Expr, row: Row) -> Any:
    parts = (evaluate_row(p, row) for p in [node.this, *node.expressions])
    return next((p for p in parts if p is not None), None)


def _nullif(node: Expr, row: Row) -> Any:
    found, other = evaluate_row(node.this, row), evaluate_row(node.expression, row)
    return None if other is not None and _same(found, other) else found


def _extreme(node: Expr, row: Row) -> Any:
    """GREATEST and LEAST, which pass over what is missing."""
    found = [v for p in [node.this, *node.expressions] if (v := evaluate_row(p, row)) is not None]
    pick = max if isinstance(node, exp.Greatest) else min
    return pick(found, key=sort_key, default=None)


def _cast(node: Expr, row: Row) -> Any:
    found = evaluate_row(node.this, row)
    kind = node.args["to"].this.name
    if kind not in _CASTS:
        raise UnsupportedByEngineError("reference", f"a cast to {kind}")
    if kind == "DECIMAL" and found is not None:
        return _decimal(found, *(int(p.name) for p in node.args["to"].expressions))
    return None if found is None else _CASTS[kind](found)


def _to_whole(found: Any) -> int:
    return round(found) if isinstance(found, float | Decimal) else int(found)


def _to_text(found: Any) -> str:
    if isinstance(found, bool):
        return "true" if found else "false"
    return format(found, "f") if isinstance(found, Decimal) else str(found)


def _to_moment(found: Any) -> dt.datetime:
    if isinstance(found, dt.datetime):
        return found
    if isinstance(found, dt.date):
        return dt.datetime(found.year, found.month, found.day)
    return dt.datetime.fromisoformat(found)


def _to_date(found: Any) -> dt.date:
    return dt.date.fromisoformat(found) if isinstance(found, str) else _to_moment(found).date()


def _decimal(found: Any, digits: int = 18, after: int = 3) -> Decimal:
    with localcontext() as context:
        context.prec = 76  # twice what any engine has, so that nothing is rounded twice
        made = Decimal(found).quantize(Decimal(1).scaleb(-after), ROUND_HALF_UP)
    if len(made.as_tuple().digits) > digits:
        raise UnsupportedByEngineError("reference", f"a DECIMAL of more than {digits} digits")
    return made


_CASTS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("INT", "BIGINT", "SMALLINT", "TINYINT"), _to_whole),
    **dict.fromkeys(("DOUBLE", "FLOAT"), float),
    **dict.fromkeys(("TEXT", "VARCHAR"), _to_text),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ"), _to_moment),
    "DATE": _to_date,
    "DECIMAL": _decimal,
}


def sort_key(found: Any) -> Any:
    """A value as engines order it: not-a-number is the largest number, and equal to itself."""
    if isinstance(found, float) and math.isnan(found):
        return (1, 0.0)
    return (0, found) if isinstance(found, int | float | Decimal) else found


def _same(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return False
    return bool(sort_key(left) == sort_key(right))


def _compare(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda left, right: test(sort_key(left), sort_key(right))


def _between(node: Expr, row: Row) -> Any:
    """Two comparisons: one that fails decides, whatever the other bound is."""
    found, low, high = (evaluate_row(node.args[name], row) for name in ("this", "low", "high"))
    if found is None:
        return None
    known = [sort_key(low) <= sort_key(found)] if low is not None else []
    known += [sort_key(found) <= sort_key(high)] if high is not None else []
    if not all(known):
        return False
    return True if len(known) == 2 else None


def _like(node: Expr, row: Row) -> Any:
    text, pattern = evaluate_row(node.this, row), evaluate_row(node.expression, row)
    if text is None or pattern is None:
        return None
    if isinstance(node, exp.ILike):
        text, pattern = _lower(text), _lower(pattern)
    regex = "".join(".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    found = re.fullmatch(regex, text, re.DOTALL) is not None
    return found != bool(node.args.get("negate"))


def _matches(text: str, pattern: str) -> bool:
    return re.fullmatch(pattern.removeprefix("^").removesuffix("$"), text) is not None


def _upper(text: str) -> str:
    # Letter by letter, as engines do: Python's upper makes SS of ß.
    return "".join(u if len(u := c.upper()) == 1 else c for c in text)


def _lower(text: str) -> str:
    return "".join(u if len(u := c.lower()) == 1 else c for c in text)


def _trim(node: Expr, row: Row) -> Any:
    text, characters = evaluate_row(node.this, row), node.args.get("expression")
    if text is None:
        return None
    side = str(node.args.get("position") or "BOTH").upper()
    ends = {"LEADING": str.lstrip, "TRAILING": str.rstrip}.get(side, str.strip)
    return ends(text, " " if characters is None else evaluate_row(characters, row))


def _substring(text: str, start: int, length: int | None = None) -> str:
    return text[start - 1 :] if length is None else text[start - 1 : start - 1 + length]


def _quotient(left: Any, right: Any) -> Any:
    if not right:
        return None
    return left / right


def _whole_quotient(left: int, right: int) -> Any:
    if not right:
        return None
    found = abs(left) // abs(right)  # towards zero, where Python rounds down
    return found if (left < 0) == (right < 0) else -found


def _modulo(left: Any, right: Any) -> Any:
    if not right:
        return None
    # The sign is that of the left side; in Python it is the right one's.
    if isinstance(left, int) and isinstance(right, int):
        return -(-left % abs(right)) if left < 0 else left % abs(right)
    return type(left)(math.fmod(left, right))


def _add(node: Expr, row: Row) -> Any:
    """Sums and differences, also of a moment and an interval."""
    by = node.expression
    left = evaluate_row(node.this, row)
    back = isinstance(node, exp.Sub)
    if isinstance(by, exp.Interval):
        count = int(by.this.name)
        return (
            left if left is None else move_moment(left, by.text("unit"), -count if back else count)
        )
    right = evaluate_row(by, row)
    if left is None or right is None:
        return None
    return left - right if back else left + right


def move_moment(moment: dt.datetime, unit: str, count: int) -> dt.datetime:
    """A moment so many months, days, hours, minutes or seconds later."""
    if unit != "MONTH":
        return moment + dt.timedelta(**{f"{unit.lower()}s": count})
    year, month = divmod(moment.year * 12 + moment.month - 1 + count, 12)
    last = monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def _extract(node: Expr, row: Row) -> Any:
    found = evaluate_row(node.expression, row)
    if found is None:
        return None
    unit = node.this.name
    if unit in ("QUARTER", "WEEK", "DOY"):
        quarter = (found.month + 2) // 3
        week, of_year = found.isocalendar()[1], found.timetuple().tm_yday
        return {"QUARTER": quarter, "WEEK": week, "DOY": of_year}[unit]
    return getattr(found, unit.lower())


def _truncate(node: Expr, row: Row) -> Any:
    found, unit = evaluate_row(node.this, row), node.args["unit"].name
    if found is None:
        return None
    if unit == "WEEK":
        found, unit = found - dt.timedelta(days=found.weekday()), "DAY"
    if unit == "QUARTER":
        found, unit = found.replace(day=1, month=(found.month + 2) // 3 * 3 - 2), "MONTH"
    units = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
    kept = units[: units.index(unit) + 1]
    parts = {u.lower(): getattr(found, u.lower()) for u in kept}
    return dt.datetime(**{"month": 1, "day": 1, **parts})


def _days(node: Expr, row: Row) -> Any:
    later, earlier = evaluate_row(node.this, row), evaluate_row(node.expression, row)
    return None if later is None or earlier is None else (later - earlier).days


def _alike(node: Expr, row: Row) -> bool:
    left, right = evaluate_row(node.this, row), evaluate_row(node.expression, row)
    return left is right or _same(left, right)


_SPECIAL: dict[type[Expr], Callable[[Any, Row], Any]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.And: _and,
    exp.Or: _or,
    exp.Is: _is,
    exp.In: _in,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Null: lambda _node, _row: None,
    exp.Boolean: lambda node, _row: bool(node.this),
    exp.Paren: lambda node, row: evaluate_row(node.this, row),
    exp.NullSafeEQ: lambda node, row: _alike(node, row),
    exp.NullSafeNEQ: lambda node, row: not _alike(node, row),
    exp.Nullif: _nullif,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.Between: _between,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Trim: _trim,
    exp.Add: _add,
    exp.Sub: _add,
    exp.Extract: _extract,
    exp.TimestampTrunc: _truncate,
    exp.DateDiff: _days,
}
_STRICT: dict[type[Expr], Callable[..., Any]] = {
    exp.Not: lambda a: not a,
    exp.Neg: lambda a: -a,
    exp.Mul: lambda a, b: a * b,
    exp.Div: _quotient,
    exp.IntDiv: _whole_quotient,
    exp.Mod: _modulo,
    exp.EQ: _compare(operator.eq),
    exp.NEQ: _compare(operator.ne),
    exp.GT: _compare(operator.gt),
    exp.GTE: _compare(operator.ge),
    exp.LT: _compare(operator.lt),
    exp.LTE: _compare(operator.le),
    exp.RegexpLike: _matches,
    exp.Upper: _upper,
    exp.Lower: _lower,
    exp.Length: len,
    exp.Left: lambda text, n: text[:n],
    exp.Right: lambda text, n: text[-n:] if n else "",
    exp.Substring: _substring,
    exp.Replace: lambda text, old, new="": text.replace(old, new),
    exp.StrPosition: lambda text, part: text.find(part) + 1,
    exp.Abs: abs,
    exp.Sign: lambda a: (a > 0) - (a < 0),
    exp.Floor: math.floor,
    exp.Ceil: math.ceil,
    exp.Sqrt: math.sqrt,
    exp.Ln: math.log,
    exp.Exp: math.exp,
    exp.Pow: lambda a, b: a**b,
    exp.DPipe: lambda a, b: f"{a}{b}",
    exp.Year: lambda d: d.year,
    exp.Month: lambda d: d.month,
    exp.Day: lambda d: d.day,
}


def joined_rows(tables: Mapping[str, pa.Table], source: exp.Select) -> list[Row]:
    """The rows of FROM, JOIN and WHERE."""
    first = source.args.get("from_") or source.args["from"]
    rows = _table_rows(tables, first.this)
    for join in source.args.get("joins") or []:
        rows = _join(rows, _table_rows(tables, join.this), join)
    where = source.args.get("where")
    return rows if where is None else [r for r in rows if evaluate_row(where.this, r) is True]


def _table_rows(tables: Mapping[str, pa.Table], node: Expr) -> list[Row]:
    alias = node.alias_or_name
    if isinstance(node, exp.Subquery):
        grouped = small_query(lambda s: joined_rows(tables, s), tables, node.this)
        return [{(alias, n): v for n, v in r.items()} for r in grouped.to_pylist()]
    return [{(alias, n): v for n, v in r.items()} for r in tables[node.name].to_pylist()]


def _join(left: list[Row], right: list[Row], join: exp.Join) -> list[Row]:
    empty = dict.fromkeys(right[0]) if right else {}
    out = []
    for row in left:
        found = [{**row, **r} for r in right if evaluate_row(join.args["on"], {**row, **r}) is True]
        if not found and join.args.get("side") == "LEFT":
            found = [{**row, **empty}]
        out += found
    return out


def small_query(
    rows_of: Callable[[exp.Select], list[Row]], tables: Mapping[str, pa.Table], query: Expr
) -> pa.Table:
    """The queries of planning: a list of types (LIMIT 0), DISTINCT, or grouped counts."""
    if not isinstance(query, exp.Select):
        raise UnsupportedByEngineError("reference", "this statement")
    items = query.expressions
    limit = query.args.get("limit")
    if limit is not None and limit.expression.name == "0":
        return pa.schema(
            [pa.field(i.alias_or_name, type_of(i.unalias(), query, tables)) for i in items]
        ).empty_table()
    group = query.args.get("group")
    source = query.args.get("from_") or query.args.get("from")
    inner = source.this if source is not None else None
    if isinstance(inner, exp.Subquery):
        found = small_query(rows_of, tables, inner.this).to_pylist()
        rows: list[Row] = [{("", n): v for n, v in r.items()} for r in found]
    else:
        rows = rows_of(query)
    buckets: dict[tuple[Any, ...], list[Row]] = (
        {} if group or query.args.get("distinct") else {(): rows}
    )
    if group or query.args.get("distinct"):
        keys = group.expressions if group else [i.unalias() for i in items]
        for row in rows:
            buckets.setdefault(tuple(evaluate_row(k, row) for k in keys), []).append(row)
    having = query.args.get("having")
    out = []
    for members in buckets.values():
        if having is not None and not _over(having.this, members):
            continue
        out.append({i.alias_or_name: _over(i.unalias(), members) for i in items})
    return (
        pa.Table.from_pylist(out, pa.schema([]))
        if not items
        else pa.table({i.alias_or_name: [o[i.alias_or_name] for o in out] for i in items})
    )


def _over(node: Expr, rows: list[Row]) -> Any:
    if isinstance(node, exp.Count):
        if isinstance(node.this, exp.Star):
            return len(rows)
        distinct = isinstance(node.this, exp.Distinct)
        part = node.this.expressions[0] if distinct else node.this
        found = [v for r in rows if (v := evaluate_row(part, r)) is not None]
        return len(set(found)) if distinct else len(found)
    if isinstance(node, exp.Max | exp.Min):
        extreme = max if isinstance(node, exp.Max) else min
        return extreme(
            (v for r in rows if (v := evaluate_row(node.this, r)) is not None), default=None
        )
    if isinstance(node, exp.GT):
        return _over(node.this, rows) > _over(node.expression, rows)
    if isinstance(node, exp.Literal):
        return _literal(node, {})
    return evaluate_row(node, rows[0]) if rows else None


def type_of(
    node: Expr, source: exp.Select, tables: Mapping[str, pa.Table], kind: str = "text"
) -> pa.DataType:
    """The type of an expression: of a column as declared, else of the values it takes.

    ``kind`` is what it holds where it takes none.
    """
    if isinstance(node, exp.Column):
        for table in source.find_all(exp.Table):
            if table.alias_or_name == node.table and table.name in tables:
                return tables[table.name].schema.field(node.name).type
    found = [v for r in joined_rows(tables, source) if (v := evaluate_row(node, r)) is not None]
    return pa.array(found).type if found else _EMPTY.get(kind, pa.string())


_EMPTY = {"integer": pa.int64(), "float": pa.float64(), "boolean": pa.bool_()}
_EMPTY |= {"decimal": pa.decimal128(38, 0), "temporal": pa.timestamp("us")}
