"""SQL expressions over one row, in plain Python: three-valued logic and the common functions."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from halfmask.errors import UnsupportedByEngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlglot.expressions import Expr

Row = dict[tuple[str, str], Any]


def value(node: Expr, row: Row) -> Any:
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
    arguments = [value(a, row) for a in _arguments(node)]
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
    if key in row:
        return row[key]
    return next(v for (_, name), v in row.items() if name == node.name)


def _literal(node: Expr, _: Row) -> Any:
    if node.args["is_string"]:
        return node.name
    return int(node.name) if node.name.isdigit() else float(node.name)


def _and(node: Expr, row: Row) -> Any:
    left, right = value(node.this, row), value(node.expression, row)
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(node: Expr, row: Row) -> Any:
    left, right = value(node.this, row), value(node.expression, row)
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _is(node: Expr, row: Row) -> Any:
    wanted = node.expression
    found = value(node.this, row)
    return found is None if isinstance(wanted, exp.Null) else found is value(wanted, row)


def _in(node: Expr, row: Row) -> Any:
    found = value(node.this, row)
    options = [value(e, row) for e in node.expressions]
    if found is None:
        return None
    if found in [o for o in options if o is not None]:
        return True
    return None if any(o is None for o in options) else False


def _case(node: Expr, row: Row) -> Any:
    subject = node.args.get("this")
    for branch in node.args["ifs"]:
        test = value(branch.this, row)
        if (test is True) if subject is None else (test == value(subject, row)):
            return value(branch.args["true"], row)
    default = node.args.get("default")
    return None if default is None else value(default, row)


def _if(node: Expr, row: Row) -> Any:
    branch = node.args["true"] if value(node.this, row) is True else node.args.get("false")
    return None if branch is None else value(branch, row)


def _coalesce(node: Expr, row: Row) -> Any:
    parts = (value(p, row) for p in [node.this, *node.expressions])
    return next((p for p in parts if p is not None), None)


def _cast(node: Expr, row: Row) -> Any:
    found = value(node.this, row)
    if found is None:
        return None
    kind = node.args["to"].this.name
    if kind in ("INT", "BIGINT", "SMALLINT", "TINYINT"):
        return round(float(found)) if not isinstance(found, int) else found
    if kind in ("DOUBLE", "FLOAT"):
        return float(found)
    if kind in ("TEXT", "VARCHAR"):
        return str(found)
    raise UnsupportedByEngineError("reference", f"a cast to {kind}")


def _like(text: str, pattern: str) -> bool:
    regex = "".join(".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def _substring(text: str, start: int, length: int | None = None) -> str:
    return text[start - 1 :] if length is None else text[start - 1 : start - 1 + length]


def _modulo(left: Any, right: Any) -> Any:
    return None if right == 0 else type(left)(math.fmod(left, right))


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
    exp.Null: lambda _node, _row: None,
    exp.Boolean: lambda node, _row: bool(node.this),
    exp.Paren: lambda node, row: value(node.this, row),
    exp.NullSafeEQ: lambda node, row: value(node.this, row) == value(node.expression, row),
}
_STRICT: dict[type[Expr], Callable[..., Any]] = {
    exp.Not: lambda a: not a,
    exp.Neg: lambda a: -a,
    exp.Add: lambda a, b: a + b,
    exp.Sub: lambda a, b: a - b,
    exp.Mul: lambda a, b: a * b,
    exp.Div: lambda a, b: a / b if b else None,
    exp.IntDiv: lambda a, b: int(a / b) if b else None,
    exp.Mod: _modulo,
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
    exp.Between: lambda a, low, high: low <= a <= high,
    exp.Like: _like,
    exp.Upper: str.upper,
    exp.Lower: str.lower,
    exp.Length: len,
    exp.Substring: _substring,
    exp.Abs: abs,
    exp.Floor: math.floor,
    exp.Ceil: math.ceil,
    exp.Sqrt: math.sqrt,
    exp.Greatest: max,
    exp.Least: min,
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
    return rows if where is None else [r for r in rows if value(where.this, r) is True]


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
        found = [{**row, **r} for r in right if value(join.args["on"], {**row, **r}) is True]
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
            buckets.setdefault(tuple(value(k, row) for k in keys), []).append(row)
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
        found = [v for r in rows if (v := value(part, r)) is not None]
        return len(set(found)) if distinct else len(found)
    if isinstance(node, exp.Max | exp.Min):
        extreme = max if isinstance(node, exp.Max) else min
        return extreme((v for r in rows if (v := value(node.this, r)) is not None), default=None)
    if isinstance(node, exp.GT):
        return _over(node.this, rows) > _over(node.expression, rows)
    if isinstance(node, exp.Literal):
        return _literal(node, {})
    return value(node, rows[0]) if rows else None


def type_of(node: Expr, source: exp.Select, tables: Mapping[str, pa.Table]) -> pa.DataType:
    """The type of an expression: of a column as declared, else of the values it takes."""
    if isinstance(node, exp.Column):
        for table in source.find_all(exp.Table):
            if table.alias_or_name == node.table and table.name in tables:
                return tables[table.name].schema.field(node.name).type
    found = [v for r in joined_rows(tables, source) if (v := value(node, r)) is not None]
    return pa.array(found).type if found else pa.string()
