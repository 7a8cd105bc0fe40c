"""Functions of text and of dates that have a value for every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from halfmask.query.planning.refusals import fail
from halfmask.query.safe.typed import DATES, Typed, dated

if TYPE_CHECKING:
    from halfmask.query.safe.rows import SafeRows

# fmt: off
_UNITS = {
    "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "DOW", "DOY", "ISODOW",
}
# fmt: on


def constant(safe: SafeRows, node: exp.Expr) -> Typed:
    """CAST of what is written, such as DATE '2000-01-01'; that of a column may fail."""
    if node.find(exp.Column) or not isinstance(node, exp.Cast):
        safe.refuse(node)
    name = node.to.this.name.lower()
    kinds = {"date": "date", "varchar": "text", "text": "text", "boolean": "boolean"}
    kind = "timestamp" if name.startswith("timestamp") else kinds.get(name)
    if kind is None:
        fail(safe.scope.text, node, "write the number as it is, without CAST.")
    return Typed(node.copy(), kind, constant=True)


def of_text(safe: SafeRows, node: exp.Expr) -> Typed:
    """LIKE, LENGTH, SUBSTRING and others; all but the first argument are written."""
    made = node.copy()
    made.set("this", safe.want(node.this, ("text",), "text").node)
    for name, value in node.args.items():
        if name != "this" and isinstance(value, exp.Expr) and value.find(exp.Column):
            safe.refuse(node)
    if isinstance(node, exp.Like | exp.ILike):
        return Typed(exp.paren(made), "boolean")
    counts = isinstance(node, exp.Length | exp.StrPosition)
    return Typed(made, "integer" if counts else "text", most=1 << 40)


def joined(safe: SafeRows, node: exp.Expr) -> Typed:
    """CONCAT and || of texts."""
    made = node.copy()
    for name, value in node.args.items():
        if isinstance(value, list):
            made.set(name, [safe.want(v, ("text",), "text").node for v in value])
        elif isinstance(value, exp.Expr):
            made.set(name, safe.want(value, ("text",), "text").node)
    return Typed(exp.paren(made) if isinstance(node, exp.DPipe) else made, "text")


def part_of_date(safe: SafeRows, node: exp.Expr) -> Typed:
    """EXTRACT, YEAR, MONTH and others."""
    made, place = node.copy(), "this"
    if isinstance(node, exp.Extract):
        _require_unit(safe, node, node.this)
        place = "expression"
    made.set(place, dated(safe.want(node.args[place], DATES, "a date")))
    return Typed(exp.cast(made, "bigint"), "integer", most=1 << 32)


def truncated(safe: SafeRows, node: exp.Expr) -> Typed:
    """The first moment of a date's year, month or other unit."""
    _require_unit(safe, node, node.args.get("unit"))
    made = node.copy()
    made.set("this", dated(safe.want(node.this, DATES, "a date")))
    return Typed(exp.cast(made, "timestamp"), "timestamp")


def day(safe: SafeRows, node: exp.Expr) -> Typed:
    """The day of a date or of a moment."""
    found = safe.want(node.this, DATES, "a date")
    return Typed(exp.cast(dated(found), "date"), "date", found.constant)


def apart(safe: SafeRows, node: exp.Expr) -> Typed:
    """How many units lie between two dates."""
    _require_unit(safe, node, node.args.get("unit"))
    made = node.copy()
    for name in ("this", "expression"):
        made.set(name, dated(safe.want(node.args[name], DATES, "a date")))
    return Typed(exp.cast(made, "bigint"), "integer", most=1 << 40)


def _require_unit(safe: SafeRows, node: exp.Expr, unit: exp.Expr | None) -> None:
    if unit is not None and (unit.find(exp.Column) or unit.name.upper() not in _UNITS):
        safe.refuse(node)
