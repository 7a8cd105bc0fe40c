"""Queries inside a query: written out, looked up, or refused.

Derived tables and WITH that only filter and compute per row are written out. What comes out is one
plain query with the same meaning, and that is what is judged: a derived table can hide nothing from
the checks that follow.

``column IN (SELECT ...)`` and ``(SELECT one value)`` are looked up before the query runs and become
constants, so that they mean no more than constants written by the asker. Only tables all of whose
columns are declared as ``other`` may be looked up: anything else could be about people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halfmask.engines.sql import table_node as named
from halfmask.query import vocabulary
from halfmask.query.vocabulary import fail, refuse_unlisted
from halfmask.table.columns import quote_names

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.query.catalog import AskedTable, Catalog


MOST_VALUES = 1_000
_PER_ROW = {"expressions", "from", "from_", "joins", "where"}
_PER_ROW_ONLY = (
    "a query inside FROM may filter rows and compute from each row; sorting, cutting or repeating "
    "them there would escape the guarantee. Do it in the outer query."
)
_GROUPED = (
    "grouping inside FROM is refused, per person too: k and l are counted on the rows of the "
    "table, and a figure made before that hides whose rows and how many values are in it. Group "
    "in the outer query; to add up each person's rows first, make a table with one row "
    "per person, declare its columns and ask that."
)
_JOINED = (
    "a query can stand in FROM, not in JOIN: join the table itself and filter in WHERE. What is "
    "grouped first belongs in a table of its own, with declared columns."
)


def inline_derived_tables(text: str, select: exp.Select) -> exp.Select:
    """The query without derived tables in FROM.

    Raises:
        UnsupportedQueryError: one of them groups, sorts, cuts or repeats rows.
    """
    from sqlglot import exp

    select = select.copy()
    _expand_with(text, select)
    for join in select.args.get("joins") or []:
        if not isinstance(join.this, exp.Table):
            fail(text, join.this, _JOINED)
    source = _source(select)
    if source is None or not _is_derived(source.this):
        return select
    derived = source.this
    named = derived.args.get("alias")
    if any(v for n, v in derived.args.items() if n not in ("this", "alias")) or (
        named is not None and named.args.get("columns")
    ):
        fail(text, derived, "a query inside FROM takes (SELECT ...) AS name.")
    inner = inline_derived_tables(text, derived.this)
    _check(text, inner)
    _Merge(text, select, inner, derived.alias).run()
    return select


def _expand_with(text: str, select: exp.Select) -> None:
    """Put each named query in the one place where FROM names it."""
    from sqlglot import exp

    clause = select.args.get("with_") or select.args.get("with")
    if clause is None:
        return
    if clause.args.get("recursive"):
        fail(text, clause, "WITH RECURSIVE is refused: its rows would escape the grouping.")
    named: dict[str, exp.Expr] = {}
    used: set[str] = set()
    for part in clause.expressions:
        if part.args["alias"].args.get("columns") or not isinstance(part.this, exp.Select):
            fail(text, part, "WITH takes name AS (SELECT ...): name the columns inside.")
        query = part.this.copy()
        used |= _put(text, query, named)
        named[part.alias.lower()] = query
    select.set("with_", None)
    select.set("with", None)
    used |= _put(text, select, named)
    for part in clause.expressions:
        if part.alias.lower() not in used:
            fail(text, part, f"{part.alias} is not used in FROM: leave it away (or ask it alone).")


def _put(text: str, select: exp.Select, named: dict[str, exp.Expr]) -> set[str]:
    from sqlglot import exp

    for join in select.args.get("joins") or []:
        if isinstance(join.this, exp.Table) and join.this.name.lower() in named:
            fail(text, join.this, _JOINED)
    source = _source(select)
    table = source.this if source is not None else None
    if not isinstance(table, exp.Table) or table.name.lower() not in named:
        return set()
    alias = exp.TableAlias(this=exp.to_identifier(table.alias or table.name))
    table.replace(exp.Subquery(this=named[table.name.lower()].copy(), alias=alias))
    return {table.name.lower()}


def _source(select: exp.Select) -> exp.Expr | None:
    found: exp.Expr | None = select.args.get("from_") or select.args.get("from")
    return found


def _is_derived(node: exp.Expr) -> bool:
    from sqlglot import exp

    return isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select)


def _check(text: str, inner: exp.Select) -> None:
    from sqlglot import exp

    for name, value in inner.args.items():
        if value and name not in _PER_ROW:
            placed = isinstance(value, exp.Expr) and any("start" in n.meta for n in value.walk())
            fail(text, value if placed else inner, _GROUPED if name == "group" else _PER_ROW_ONLY)
    for item in inner.expressions:
        star = item.find(exp.Star) if item.is_star else None
        if star is not None and any(star.args.values()):
            fail(text, item, "name the columns: * with exceptions is refused.")
        called = item.find(*vocabulary.aggregates())
        if called is not None:
            fail(text, called, _GROUPED)


class _Merge:
    """An outer query and the per-row query it reads, made one."""

    def __init__(self, text: str, outer: exp.Select, inner: exp.Select, alias: str) -> None:

        self.text, self.outer, self.inner, self.alias = text, outer, inner, alias.lower()
        self.star = any(e.is_star for e in inner.expressions)
        self.columns = {
            e.alias_or_name.lower(): e.unalias() for e in inner.expressions if not e.is_star
        }
        table = _source(inner)
        self.table = table.this.alias_or_name if table and not inner.args.get("joins") else None

    def run(self) -> None:
        from sqlglot import exp

        if self.table is not None:
            for column in self.inner.find_all(exp.Column):
                if not column.table and not isinstance(column.this, exp.Star):
                    column.set("table", exp.to_identifier(self.table))
        for column in list(self.outer.find_all(exp.Column)):
            if column.find_ancestor(exp.Select) is self.outer and self._is_mine(column):
                self._replace(column)
        source = _source(self.outer)
        ours = _source(self.inner)
        if source is None or ours is None:
            fail(self.text, self.inner, "the query names no table: add FROM.")
        source.set("this", ours.this)
        self.outer.set("joins", [*self._joins(self.inner), *self._joins(self.outer)])
        wheres = [w.this for q in (self.inner, self.outer) if (w := q.args.get("where"))]
        if wheres:
            self.outer.set("where", exp.Where(this=exp.and_(*wheres)))

    @staticmethod
    def _joins(select: exp.Select) -> list[exp.Expr]:
        return list(select.args.get("joins") or [])

    def _is_mine(self, column: exp.Column) -> bool:
        from sqlglot import exp

        if isinstance(column.this, exp.Star):
            return False
        if column.table:
            return bool(column.table.lower() == self.alias)
        if column.find_ancestor(exp.Order) and any(
            e.alias_or_name.lower() == column.name.lower() for e in self.outer.expressions
        ):
            return False
        return column.name.lower() in self.columns or not self._joins(self.outer)

    def _replace(self, column: exp.Column) -> None:
        from sqlglot import exp

        found = self.columns.get(column.name.lower())
        if found is None:
            aliases = (exp.Order, exp.Group, exp.Having)
            output = any(
                isinstance(e, exp.Alias) and e.alias.lower() == column.name.lower()
                for e in self.outer.expressions
            )
            if output and not column.table and column.find_ancestor(*aliases):
                return
            if not self.star:
                known = quote_names(self.columns)
                fail(self.text, column, f"there is no column {column.name}; there are {known}.")
            column.set("table", exp.to_identifier(self.table) if self.table else None)
            return
        new = found.copy()
        if not isinstance(new, exp.Column | exp.Paren):
            new = exp.paren(new)
        shown = column.parent is self.outer and column.arg_key == "expressions"
        column.replace(exp.alias_(new, column.name, quoted=True) if shown else new)


def look_up_constants(
    text: str, select: exp.Select, catalog: Catalog, engine: Engine
) -> exp.Select:
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
    refuse_unlisted(text, query)
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
    # In an order that no engine's threads decide: EXPLAIN shows it.
    found = sorted(dict.fromkeys(engine.run(query)["v"].to_pylist()), key=repr)
    if len(found) > MOST_VALUES:
        fail(text, inner, f"this subquery finds more than {MOST_VALUES} values: join the table.")
    return [exp.null() if value is None else exp.convert(value) for value in found]


def _reference(text: str, node: exp.Table, catalog: Catalog) -> AskedTable:
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


def refuse_other_rows(text: str, select: exp.Select) -> None:
    """Refuse joins and subqueries under noise: the budget counts the rows of one table.

    Raises:
        UnsupportedQueryError: pointing at the first of them.
    """
    from sqlglot import exp

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


def write_quantiles(text: str, select: exp.Select) -> exp.Select:
    """The query in which every quantile is a median with a share beside it.

    Raises:
        UnsupportedQueryError: the share is no number from 0 to 1.
    """
    from sqlglot import exp

    select = select.copy()
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
        whole.replace(median)
    return select
