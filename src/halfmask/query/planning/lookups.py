"""Subqueries on tables that hold nobody's data: looked up before the query runs.

``column IN (SELECT ...)`` and ``(SELECT one value)`` become constants, so that they mean no more
than constants written by the asker. Only tables all of whose columns are declared as ``other``
may be looked up: anything else could be about people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halfmask.engines.sql import table as named
from halfmask.query.planning import vocabulary
from halfmask.query.planning.refusals import fail, refuse

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.query.catalog import Catalog, Source

MOST_VALUES = 1_000


def looked_up(text: str, select: exp.Select, catalog: Catalog, engine: Engine) -> exp.Select:
    """The query with its subqueries replaced by what they find.

    Raises:
        UnsupportedQueryError: a subquery reads people's rows, or depends on the outer query.
    """
    from sqlglot import exp

    select = select.copy()
    for node in list(select.find_all(exp.In)):
        query = node.args.get("query")
        if query is not None:
            inner = query.this if isinstance(query, exp.Subquery) else query
            values = _values(text, inner, catalog, engine)
            listed = exp.In(this=node.this.copy(), expressions=values)
            node.replace(listed if values else exp.false())
    for one in list(select.find_all(exp.Subquery)):
        if isinstance(one.parent, exp.From | exp.Join | exp.Exists):
            continue
        values = _values(text, one.this, catalog, engine)
        if len(values) > 1:
            fail(text, one, "this subquery finds several values: use IN, or an aggregate.")
        one.replace(values[0] if values else exp.null())
    return select


def _values(text: str, inner: Any, catalog: Catalog, engine: Engine) -> list[exp.Expr]:
    from sqlglot import exp

    if not isinstance(inner, exp.Select):
        fail(text, inner, vocabulary.REASONS["Subquery"])
    query = inner.copy()
    query.set("distinct", None)
    refuse(text, query)
    source = query.args.get("from_") or query.args.get("from")
    if query.args.get("joins") or source is None or not isinstance(source.this, exp.Table):
        fail(text, inner, "a subquery may read one table that holds nobody's data.")
    if any(query.args.get(name) for name in ("order", "limit", "offset")):
        fail(text, inner, "a subquery is a set of values: ORDER BY and LIMIT do not belong there.")
    if len(query.expressions) != 1:
        fail(text, inner, "a subquery must select one column.")
    table = _reference(text, source.this, catalog)
    alias = source.this.alias_or_name
    for column in query.find_all(exp.Column):
        name = table.find(column.name)
        if name is None or column.table.lower() not in ("", alias.lower()):
            fail(text, column, "a subquery may speak of its own table only.")
        column.set("this", exp.to_identifier(name, quoted=True))
        column.set("table", None)
    source.set("this", named(table.name))
    selected = query.expressions[0].unalias()
    query.set("expressions", [exp.alias_(selected, "v")])
    if not query.args.get("group") and not selected.find(*vocabulary.aggregates()):
        query.set("distinct", exp.Distinct())
    found = list(dict.fromkeys(engine.run(query)["v"].to_pylist()))
    if len(found) > MOST_VALUES:
        fail(text, inner, f"this subquery finds more than {MOST_VALUES} values: join the table.")
    return [exp.null() if value is None else exp.convert(value) for value in found]


def _reference(text: str, node: exp.Table, catalog: Catalog) -> Source:
    table = None if node.args.get("db") else catalog.find(node.name)
    if table is None:
        fail(text, node, f"there is no table {node.name}.")
    if table.schema is None or table.hidden or any(table.role(c) != "other" for c in table.columns):
        fail(
            text,
            node,
            "a subquery on rows about people would escape the grouping. If this table holds "
            "nobody's data, declare all its columns as other in its schema.",
        )
    return table
