"""Derived tables and WITH that only filter and compute per row are written out.

What comes out is one plain query with the same meaning, and that is what is judged: a derived
table can hide nothing from the checks that follow.

Joins stay inside one person's data: they may look something up, not multiply rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from halfmask.engines.sql import table_node as named
from halfmask.errors import PrivacyError, UnsupportedQueryError
from halfmask.query import vocabulary
from halfmask.query.vocabulary import fail
from halfmask.table.columns import quote_names

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.query.planning.scope import JoinedTable, QueryScope


_PER_ROW = {"expressions", "from", "from_", "joins", "where"}
_PER_ROW_ONLY = (
    "a query inside FROM may filter rows and compute from each row; sorting, cutting or repeating "
    "them there would escape the guarantee. Do it in the outer query."
)
_GROUPED = (
    "grouping inside FROM is refused, per person too: k and l are counted on the rows of the "
    "table, and a figure made before that hides whose rows and how many values are in it. Group "
    "in the outer query; to add up each person's rows first, make a table or view with one row "
    "per person, declare its columns and ask that."
)
_JOINED = (
    "a query can stand in FROM, not in JOIN: join the table itself and filter in WHERE. What is "
    "grouped first belongs in a table or view of its own, with declared columns."
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


@dataclass(frozen=True, slots=True)
class People:
    """Whether a person can stand in several rows of what is aggregated."""

    repeat: bool


def people_of(scope: QueryScope, engine: Engine, bound: int | None) -> People:
    """Look at the joins and at the person column; ask the engine where the schema cannot tell.

    Whose rows meet WHERE, and with what they are joined, must not show: tables are looked at whole,
    and those that hold people's rows by person alone.

    Raises:
        UnsupportedQueryError: a join multiplies rows and no bound is stated.
        PrivacyError: a person has more rows than the stated bound.
    """
    multiplied = [link for link in scope.links if not _is_lookup(scope, link, engine)]
    person = scope.person
    if multiplied and (bound is None or person is None):
        link = multiplied[0]
        raise UnsupportedQueryError(
            f"{link.alias} has several rows for one row before it, so that the join would "
            "multiply a person's rows. Declare the person column and state a bound: "
            "AT MOST n ROWS PER PERSON.",
            text=scope.text,
            start=link.place,
        )
    if person is None:
        return People(repeat=False)
    if bound is not None:
        _check_bound(scope, engine, bound)
    if multiplied:
        return People(repeat=True)
    known = scope.tables[scope.main].repeats
    return People(_repeats(scope, engine) if known is None else known)


def _is_lookup(scope: QueryScope, link: JoinedTable, engine: Engine) -> bool:
    """Whether the joined columns name at most one row of the joined table."""
    return _most_rows(scope, link, engine) <= 1


def _most_rows(scope: QueryScope, link: JoinedTable, engine: Engine) -> int:
    """The most rows of a joined table that one row before it can meet."""
    table = scope.tables[link.alias]
    if table.person is not None:
        return _most(engine, table.name, [table.person])
    return _most(engine, table.name, [right.name for _, right in link.pairs])


def _most(engine: Engine, table: str, names: list[str]) -> int:
    """The most rows of a table with the same values of some columns."""
    from sqlglot import exp

    columns = [exp.column(name, quoted=True) for name in names]
    present = exp.and_(*(c.copy().is_(exp.null()).not_() for c in columns))
    counted = (
        exp.select(exp.alias_(exp.Count(this=exp.Star()), "n"))
        .from_(named(table))
        .where(present)
        .group_by(*columns)
    )
    query = exp.select(exp.alias_(exp.Max(this=exp.column("n")), "n")).from_(counted.subquery("b"))
    return int(engine.run(query)["n"][0].as_py() or 0)


def _repeats(scope: QueryScope, engine: Engine) -> bool:
    from sqlglot import exp

    table = scope.tables[scope.main]
    person = exp.column(table.person or "", quoted=True)
    query = exp.select(
        exp.alias_(exp.Count(this=exp.Star()), "n"),
        exp.alias_(exp.Count(this=exp.Distinct(expressions=[person])), "d"),
    ).from_(named(table.name))
    row = engine.run(query).to_pylist()[0]
    return int(row["n"]) != int(row["d"])


def _check_bound(scope: QueryScope, engine: Engine, bound: int) -> None:
    """Refuse where a person could have more rows than the bound, whatever WHERE leaves of them."""
    main = scope.tables[scope.main]
    worst = _most(engine, main.name, [main.person or ""])
    for link in scope.links:
        worst *= max(1, _most_rows(scope, link, engine))
    if worst > bound:
        raise PrivacyError(
            f"Somebody could have more than {bound} rows in this query, whatever WHERE leaves of "
            "them: raise the bound (AT MOST n ROWS PER PERSON), or join less."
        )
