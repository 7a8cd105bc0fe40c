"""What a question with noise may speak of: one table, and nothing that identifies people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.query.planning import vocabulary
from halfmask.query.planning.refusals import fail
from halfmask.query.planning.scope import Scope, scope_of

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.query.catalog import Catalog
    from halfmask.query.private.clause import PrivateStatement


def private_scope(statement: PrivateStatement, catalog: Catalog) -> tuple[Scope, exp.Select]:
    """Resolve the names of a question.

    Raises:
        QueryError: with line, column and a caret.
    """
    from sqlglot import exp

    text, select = statement.text, statement.select.copy()
    for join in select.args.get("joins") or []:
        fail(
            text,
            join,
            "a join is refused under EPSILON: one person's row could reach many others. Join "
            "beforehand, into one table with a person column.",
        )
    for node in select.find_all(exp.Select, exp.Subquery, exp.CTE):
        if node is not select:
            fail(text, node, "subqueries are refused under EPSILON: ask one table.")
    _quantiles(text, select)
    scope, select = scope_of(text, select, catalog)
    _refuse_hidden(scope, select)
    return scope, select


def grouping(text: str, select: exp.Select) -> list[tuple[str, exp.Expr]]:
    """What is grouped by, each with its name in the answer."""
    from sqlglot import exp

    group = select.args.get("group")
    items = select.expressions
    keys: list[tuple[str, exp.Expr]] = []
    for node in group.expressions if group else []:
        item = None
        if isinstance(node, exp.Literal) and node.name.isdigit():
            if not 1 <= int(node.name) <= len(items):
                fail(text, node, "there is no such column in the select list.")
            item = items[int(node.name) - 1]
        elif isinstance(node, exp.Column) and not node.table:
            item = next(e for e in items if e.alias.lower() == node.name.lower())
        expression = (node if item is None else item.unalias()).copy()
        if expression.find(*vocabulary.aggregates()):
            fail(text, node, "an aggregate cannot be grouped by.")
        if not expression.find(exp.Column):
            fail(text, node, "a constant groups nothing: leave it away.")
        if all(expression != known for _, known in keys):
            keys.append((_name(expression, items, len(keys)), expression))
    return keys


def _name(expression: exp.Expr, items: list[exp.Expr], index: int) -> str:
    from sqlglot import exp

    alias = next((i.alias for i in items if i.alias and i.unalias() == expression), "")
    column = expression.name if isinstance(expression, exp.Column) else ""
    return alias or column or f"key_{index + 1}"


def _quantiles(text: str, select: exp.Select) -> None:
    """Write every way to ask for a quantile as a median with a share beside it."""
    from sqlglot import exp

    names = ("PercentileCont", "PercentileDisc", "Quantile", "ApproxQuantile")
    kinds = tuple(getattr(exp, name) for name in names if hasattr(exp, name))
    for node in list(select.find_all(*kinds)):
        within = node.parent if isinstance(node.parent, exp.WithinGroup) else None
        if within is not None:
            ordered = within.expression.expressions[0]
            value, share, falls = ordered.this, node.this, bool(ordered.args.get("desc"))
        else:
            share = node.args.get("quantile") or node.args.get("expression")
            value, falls = node.this, False
        if not isinstance(share, exp.Literal) or share.is_string or not float(share.name) <= 1:
            fail(text, node, "a quantile needs one share from 0 to 1, such as 0.9.")
        at = 1 - float(share.name) if falls else float(share.name)
        whole = within or node
        median = exp.Median(this=value.copy(), share=exp.Literal.number(str(at)))
        if whole is select:
            return
        whole.replace(median)


def _refuse_hidden(scope: Scope, select: exp.Select) -> None:
    from sqlglot import exp

    for column in select.find_all(exp.Column):
        if not column.table or not scope.is_hidden(column):
            continue
        counted = isinstance(column.parent, exp.Distinct)
        if counted and scope.person is not None and column == scope.person:
            continue
        fail(
            scope.text,
            column,
            f"{column.name} identifies people or holds their demands: it may only be counted "
            "(COUNT(DISTINCT person)).",
        )
