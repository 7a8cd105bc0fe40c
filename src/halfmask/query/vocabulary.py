"""Which parts of SQL may stand in a query; everything else is refused by name.

A list of what is allowed, not of what is forbidden: an engine's functions can read files, call
programs or draw random numbers.

What a query may not hold, refused at its place in the text.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NoReturn

from halfmask.errors import UnsupportedQueryError

if TYPE_CHECKING:
    from sqlglot import exp


# fmt: off
_SCALARS = (
    "Column", "Identifier", "Literal", "Boolean", "Null", "Alias", "Paren", "Add", "Sub", "Mul",
    "Div", "IntDiv", "Mod", "Neg", "EQ", "NEQ", "GT", "GTE", "LT", "LTE", "NullSafeEQ",
    "NullSafeNEQ", "And", "Or", "Not", "Is", "In", "Between", "Like", "ILike", "Case", "If",
    "Coalesce", "Nullif", "Cast", "TryCast", "DataType", "DataTypeParam", "Interval", "Var",
    "Extract", "Year", "Month", "Day", "Quarter", "Week", "WeekOfYear", "DayOfWeek", "DayOfYear",
    "DayOfMonth", "DateTrunc", "TimestampTrunc", "DateDiff", "DateAdd", "DateSub",
    "TsOrDsToDate", "Date", "Upper", "Lower", "Trim", "Length", "Substring", "Concat", "DPipe",
    "Left", "Right", "Round", "Floor", "Ceil", "Abs", "Ln", "Exp", "Sqrt", "Pow", "Sign",
    "Greatest", "Least", "Tuple", "Replace", "StrPosition", "TimestampDiff",
)
_FRAME = (
    "Select", "From", "Join", "Where", "Group", "Having", "Order", "Ordered", "Limit", "Offset",
    "Table", "TableAlias", "Star", "Distinct", "Filter",
)
# fmt: on
_AGGREGATES = {
    "Count": "count",
    "Sum": "sum",
    "Avg": "avg",
    "Min": "min",
    "Max": "max",
    "Variance": "var_samp",
    "VariancePop": "var_pop",
    "Stddev": "stddev_samp",
    "StddevSamp": "stddev_samp",
    "StddevPop": "stddev_pop",
    "Median": "median",
}
REASONS = {
    "Window": "window functions are refused: they show rows beside each other.",
    "Subquery": "this subquery is refused: its rows would escape the grouping. A query in FROM may "
    "filter and compute; IN (SELECT ...) and single values may read tables of nobody's data.",
    "Exists": "EXISTS is refused: its rows would escape the grouping. Join the table instead.",
    "With": "WITH is refused: its rows would escape the grouping.",
    "Union": "set operations are refused: their rows could be subtracted from each other.",
    "Intersect": "set operations are refused: their rows could be subtracted from each other.",
    "Except": "set operations are refused: their rows could be subtracted from each other.",
    "Rand": "random numbers are refused: the answer must be repeatable.",
    "Cube": "CUBE is refused: totals of groups could be subtracted from each other.",
    "Rollup": "ROLLUP is refused: totals of groups could be subtracted from each other.",
    "GroupingSets": "GROUPING SETS are refused: totals could be subtracted from each other.",
    "Lateral": "LATERAL is refused: it multiplies a person's rows.",
    "Unnest": "UNNEST is refused: it multiplies a person's rows.",
    "Placeholder": "parameters are not filled in here: write the value.",
    "Parameter": "parameters are not filled in here: write the value.",
}


@cache
def allowed() -> tuple[type[exp.Expr], ...]:
    """The kinds of nodes that may stand in a query."""
    from sqlglot import exp

    names = [*_SCALARS, *_FRAME, *_AGGREGATES]
    return tuple(getattr(exp, name) for name in names if hasattr(exp, name))


@cache
def aggregates() -> dict[type[exp.Expr], str]:
    """The aggregates, with the names of this package."""
    from sqlglot import exp

    return {getattr(exp, name): kind for name, kind in _AGGREGATES.items() if hasattr(exp, name)}


def reason(node: exp.Expr) -> str:
    """Why a node is refused."""
    from sqlglot import exp

    name = type(node).__name__
    if name in REASONS:
        return REASONS[name]
    called = node.name if isinstance(node, exp.Anonymous) else node.key
    return f"{called.upper()} is not among what can be answered."


def fail(text: str, node: exp.Expr, message: str) -> NoReturn:
    """Refuse at the place of a node.

    Raises:
        UnsupportedQueryError: always.
    """
    places = [n.meta for n in node.walk() if "start" in n.meta]
    start = min((m["start"] for m in places), default=0)
    end = max((m["end"] for m in places), default=start)
    raise UnsupportedQueryError(message, text=text, start=start, length=end - start + 1)


def refuse_unlisted(text: str, select: exp.Select) -> None:
    """Refuse what is not on the list of what may stand in a query.

    Raises:
        UnsupportedQueryError: with the reason.
    """
    from sqlglot import exp

    if select.args.get("with_") or select.args.get("with"):
        fail(text, select, REASONS["With"])
    if select.args.get("distinct"):
        fail(text, select, "SELECT DISTINCT is refused: GROUP BY the columns instead.")
    for name in (
        "qualify",
        "windows",
        "laterals",
        "pivots",
        "sample",
        "match",
        "into",
        "locks",
        "connect",
        "cluster",
        "distribute",
        "sort",
        "kind",
        "hint",
        "settings",
    ):
        if select.args.get(name):
            fail(text, select, f"{name.upper()} is refused.")
    kinds = allowed()
    for node in select.walk():
        if node is not select and isinstance(node, exp.Select):
            fail(text, node, REASONS["Subquery"])
        if type(node) not in kinds:
            fail(
                text,
                node if node.meta or list(node.iter_expressions()) else (node.parent or node),
                reason(node),
            )
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            fail(text, node.parent or node, "name the columns: * shows whole rows.")
    group = select.args.get("group")
    if group is not None:
        for name in ("cube", "rollup", "grouping_sets", "totals", "all"):
            if group.args.get(name):
                fail(
                    text,
                    group,
                    f"GROUP BY {name.replace('_', ' ').upper()} is refused: "
                    "name the columns to group by.",
                )
    limit = select.args.get("limit")
    if limit is not None and not isinstance(limit, exp.Limit):
        fail(text, limit, "write LIMIT number.")
