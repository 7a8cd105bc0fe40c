"""What a query may not hold, refused at its place in the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from halfmask.errors import UnsupportedQueryError
from halfmask.query.planning import vocabulary

if TYPE_CHECKING:
    from sqlglot import exp


def fail(text: str, node: exp.Expr, message: str) -> NoReturn:
    """Refuse at the place of a node.

    Raises:
        UnsupportedQueryError: always.
    """
    places = [n.meta for n in node.walk() if "start" in n.meta]
    start = min((m["start"] for m in places), default=0)
    end = max((m["end"] for m in places), default=start)
    raise UnsupportedQueryError(message, text=text, start=start, length=end - start + 1)


def refuse(text: str, select: exp.Select) -> None:
    """Refuse what is not on the list of what may stand in a query.

    Raises:
        UnsupportedQueryError: with the reason.
    """
    from sqlglot import exp

    if select.args.get("with_") or select.args.get("with"):
        fail(text, select, vocabulary.REASONS["With"])
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
    kinds = vocabulary.allowed()
    for node in select.walk():
        if node is not select and isinstance(node, exp.Select):
            fail(text, node, vocabulary.REASONS["Subquery"])
        if type(node) not in kinds:
            fail(
                text,
                node if node.meta or list(node.iter_expressions()) else (node.parent or node),
                vocabulary.reason(node),
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
