"""FROM and JOIN: which tables a query reads, what its names mean, whose rows they are.

Joins stay inside one person's data: they may look something up, not multiply rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from halfmask.engines.request import kind_of
from halfmask.engines.sql import table_node as named
from halfmask.errors import PrivacyError, QueryError, UnsupportedQueryError
from halfmask.query import vocabulary
from halfmask.query.clauses import fold_name
from halfmask.query.vocabulary import fail, refuse_unlisted
from halfmask.table.columns import quote_names
from halfmask.table.demands import sources

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.query.catalog import AskedTable, Catalog
    from halfmask.table.schema import Schema


@dataclass(frozen=True, eq=False)
class JoinedTable:
    """One joined table and the pairs of columns that must be equal (left, right)."""

    alias: str
    pairs: tuple[tuple[exp.Column, exp.Column], ...]
    place: int


@dataclass(frozen=True, eq=False)
class QueryScope:
    """The tables of a query by alias; the first is the one in FROM.

    Attributes:
        text: the query, to point into.
        tables: alias to table.
        links: the joins.
    """

    text: str
    tables: dict[str, AskedTable]
    links: list[JoinedTable] = field(default_factory=list)

    @property
    def main(self) -> str:
        """The alias of the table in FROM."""
        return next(iter(self.tables))

    @property
    def person(self) -> exp.Column | None:
        """Whose row it is."""
        name = self.tables[self.main].person
        return _column(self.main, name) if name is not None else None

    def resolve(self, column: exp.Column) -> tuple[str, str]:
        """The alias and the name of a column.

        Raises:
            QueryError: where there is no such column, or several.
        """
        if column.table:
            alias = next((a for a in self.tables if a.lower() == column.table.lower()), None)
            if alias is None:
                known = ", ".join(self.tables)
                fail(self.text, column, f"there is no table {column.table} here; there is {known}.")
            name = self.tables[alias].find(column.name)
            if name is None:
                self._unknown(column)
            return alias, name
        found = [
            (alias, name)
            for alias, source in self.tables.items()
            if (name := source.find(column.name)) is not None
        ]
        if not found:
            self._unknown(column)
        if len(found) > 1:
            where = " and ".join(f"{alias}.{name}" for alias, name in found)
            fail(self.text, column, f"{column.name} may be {where}: name the table.")
        return found[0]

    def _unknown(self, column: exp.Column) -> NoReturn:
        known = quote_names(c for s in self.tables.values() for c in s.columns if c not in s.hidden)
        fail(self.text, column, f"there is no column {column.name}; there are {known}.")

    def role(self, column: exp.Column) -> str:
        """The role of a resolved column."""
        return self.tables[column.table].role(column.name)

    def is_hidden(self, column: exp.Column) -> bool:
        """Whether a resolved column may not be asked for."""
        return column.name in self.tables[column.table].hidden


def scope_of(text: str, select: exp.Select, catalog: Catalog) -> tuple[QueryScope, exp.Select]:
    """Resolve every name of a query; the returned SELECT speaks of known columns only.

    Raises:
        UnsupportedQueryError: for parts of SQL that are refused, with the reason.
        QueryError: for names that mean nothing.
    """
    from sqlglot import exp

    refuse_unlisted(text, select)
    select = select.copy()
    source = select.args.get("from_") or select.args.get("from")
    if source is None or not isinstance(source.this, exp.Table):
        raise QueryError("the query names no table: add FROM.", text=text, start=len(text.rstrip()))
    scope = QueryScope(text, {})
    _add_table(scope, source.this, catalog)
    joins = list(select.args.get("joins") or [])
    for join in joins:
        if not isinstance(join.this, exp.Table):
            fail(text, join, "only tables can be joined.")
        _add_table(scope, join.this, catalog)
    for join in joins:
        _using_to_on(scope, join)
    for column in list(select.find_all(exp.Column)):
        if isinstance(column.this, exp.Star):
            fail(text, column, "name the columns: * shows whole rows.")
        if _is_output_name(column, select):
            continue
        alias, name = scope.resolve(column)
        resolved = _column(alias, name)
        resolved.this.meta.update(column.this.meta)
        column.replace(resolved)
    for join in joins:
        scope.links.append(_link(scope, join))
    _require_demands(scope, source.this, catalog)
    return scope, select


def _require_demands(scope: QueryScope, main: exp.Expr, catalog: Catalog) -> None:
    """Refuse people's rows without every table in which these people state their demands."""
    read = list(scope.tables.values())
    names = {fold_name(one.name) for one in read}
    for name, schema in catalog.declared.items():
        person = schema.person
        if person is None or not _states(schema) or fold_name(name) in names:
            continue
        if any(one.person is not None for one in read):
            fail(
                scope.text,
                main,
                f"what these people demand for themselves stands in {name}: join it on the "
                "person (for noise beforehand, into one table), so that it is kept.",
            )
        if any(one.find(person) is not None for one in read):
            fail(
                scope.text,
                main,
                f"{name} says who is meant by {person}, and what these people demand: declare "
                f'person = "{person}" under [table] of this table too.',
            )


def _states(schema: Schema | None) -> bool:
    return schema is not None and bool(sources(schema))


def _add_table(scope: QueryScope, table: exp.Table, catalog: Catalog) -> None:
    from sqlglot import exp

    if (
        table.args.get("db")
        or table.args.get("catalog")
        or not isinstance(table.this, exp.Identifier)
    ):
        fail(scope.text, table, "name one of the given tables.")
    for name in ("joins", "pivots", "sample", "when", "version", "laterals", "only", "hints"):
        if table.args.get(name):
            fail(scope.text, table, f"{name.upper()} is refused here.")
    source = catalog.find(table.name)
    if source is None:
        known = ", ".join(s.name for s in catalog.sources.values())
        others = f"; there are: {known}" if known else ""
        fail(scope.text, table, f"there is no table {table.name}{others}.")
    alias = table.alias or table.name
    if alias.lower() in (a.lower() for a in scope.tables):
        fail(scope.text, table, f"{alias} stands twice: give one of them another name.")
    if any(s is source for s in scope.tables.values()):
        fail(scope.text, table, "a table joined with itself brings different people together.")
    scope.tables[alias] = source
    table.set("this", exp.to_identifier(source.name, quoted=True))
    table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))


def _using_to_on(scope: QueryScope, join: exp.Join) -> None:
    from sqlglot import exp

    using = join.args.get("using")
    if not using:
        return
    alias = join.this.alias
    conditions = []
    for name in using:
        left = next((a for a, s in scope.tables.items() if a != alias and s.find(name.name)), None)
        if left is None or not scope.tables[alias].find(name.name):
            fail(scope.text, join, f"{name.name} is not a column of both tables.")
        conditions.append(
            exp.EQ(
                this=exp.column(name.name, table=left),
                expression=exp.column(name.name, table=alias),
            )
        )
    join.set("using", None)
    join.set("on", exp.and_(*conditions))


def _link(scope: QueryScope, join: exp.Join) -> JoinedTable:
    from sqlglot import exp

    side, kind = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
    if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER") or join.args.get("method"):
        fail(scope.text, join, "only JOIN and LEFT JOIN on equal columns can be answered.")
    on = join.args.get("on")
    if on is None:
        fail(scope.text, join, "a join without ON brings different people together.")
    alias = join.this.alias
    pairs: list[tuple[exp.Column, exp.Column]] = []
    for part in on.flatten() if isinstance(on, exp.And) else [on]:
        part = part.unnest()
        sides = [part.this, part.expression] if isinstance(part, exp.EQ) else []
        if len(sides) != 2 or not all(isinstance(s, exp.Column) for s in sides):
            fail(scope.text, join, "a join must be on equal columns (a.x = b.x AND ...).")
        left, right = sides if sides[1].table == alias else sides[::-1]
        if right.table != alias or left.table == alias:
            fail(scope.text, join, f"the condition must tie {alias} to a table before it.")
        pairs.append((left, right))
    _same_person(scope, join, alias, pairs)
    return JoinedTable(
        alias,
        tuple(pairs),
        min((n.meta["start"] for n in join.walk() if "start" in n.meta), default=0),
    )


def _same_person(
    scope: QueryScope, join: exp.Join, alias: str, pairs: list[tuple[exp.Column, exp.Column]]
) -> None:
    person = scope.tables[alias].person
    if person is None:
        return
    for left, right in pairs:
        if right.name == person and left.name == scope.tables[left.table].person:
            if not _same_type(scope, left, right):
                fail(
                    scope.text,
                    join,
                    f"{left.table}.{left.name} and {alias}.{person} are of different types: one "
                    "person could be written in several ways. Give the person columns one type.",
                )
            return
    fail(
        scope.text,
        join,
        f"{alias} holds rows about people: join it on the person "
        f"({person}), else one person's data would enter under another's policy.",
    )


def _same_type(scope: QueryScope, left: exp.Column, right: exp.Column) -> bool:
    """Whether values of two person columns are equal exactly where they name one person."""
    import pyarrow as pa

    types = []
    for column in (left, right):
        found = scope.tables[column.table].columns[column.name]
        types.append(found.value_type if pa.types.is_dictionary(found) else found)
    return types[0] == types[1] or kind_of(types[0]) == kind_of(types[1]) in ("integer", "text")


def _is_output_name(column: exp.Column, select: exp.Select) -> bool:
    """An alias of the select list, as ORDER BY, GROUP BY and HAVING may use it."""
    from sqlglot import exp

    if column.table:
        return False
    clause = column.find_ancestor(exp.Order, exp.Group, exp.Having)
    if clause is None:
        return False
    return any(
        isinstance(e, exp.Alias) and e.alias.lower() == column.name.lower()
        for e in select.expressions
    )


def _column(alias: str, name: str) -> exp.Column:
    from sqlglot import exp

    return exp.column(name, table=alias, quoted=True)


def refuse_hidden(scope: QueryScope, select: exp.Select) -> None:
    """Refuse columns that identify people or hold their demands, but to join and to count by.

    Raises:
        QueryError: pointing at the column.
    """
    from sqlglot import exp

    for column in select.find_all(exp.Column):
        if column.find_ancestor(exp.Join) or not column.table or not scope.is_hidden(column):
            continue
        distinct = column.parent
        counted = isinstance(distinct, exp.Distinct) and isinstance(distinct.parent, exp.Count)
        if counted and scope.person is not None and column == scope.person:
            continue
        fail(
            scope.text,
            column,
            f"{column.name} identifies people or holds their demands: it may only tie tables "
            "together (or be counted: COUNT(DISTINCT person)).",
        )


def grouping_of(text: str, select: exp.Select) -> list[tuple[str, exp.Expr]]:
    """What is grouped by, each with its name in the answer; by expression, alias or position."""
    from sqlglot import exp

    group = select.args.get("group")
    keys: list[tuple[str, exp.Expr]] = []
    for node in group.expressions if group else []:
        expression, alias = _key_of(text, node, select.expressions)
        if any(known == expression for _, known in keys):
            continue
        if expression.find(*vocabulary.aggregates()):
            fail(text, node, "an aggregate cannot be grouped by.")
        if not expression.find(exp.Column):
            fail(text, node, "a constant groups nothing: leave it away.")
        column = expression.name if isinstance(expression, exp.Column) else ""
        keys.append((alias or column or f"key_{len(keys) + 1}", expression))
    return keys


def _key_of(text: str, node: exp.Expr, items: list[exp.Expr]) -> tuple[exp.Expr, str]:
    from sqlglot import exp

    item = None
    if isinstance(node, exp.Literal) and not node.is_string:
        if not node.name.isdigit() or not 1 <= int(node.name) <= len(items):
            fail(text, node, "there is no such column in the select list.")
        item = items[int(node.name) - 1]
    elif isinstance(node, exp.Column) and not node.table:
        item = next(e for e in items if e.alias.lower() == node.name.lower())
    if item is not None:
        return item.unalias().copy(), item.alias
    named = [e for e in items if isinstance(e, exp.Alias) and e.this == node]
    return node.copy(), named[0].alias if named else ""


def source_of(select: exp.Select) -> exp.Select:
    """FROM, JOIN and WHERE of a query, without a select list."""
    from sqlglot import exp

    source = exp.Select()
    for part in ("from_", "from", "joins", "where"):
        value = select.args.get(part)
        if value is not None:
            copies = [v.copy() for v in value] if isinstance(value, list) else value.copy()
            source.set(part, copies)
    return source


def people_repeat(scope: QueryScope, engine: Engine, bound: int | None) -> bool:
    """Whether a person can stand in several rows of what is aggregated.

    Looks at the joins and at the person column, and asks the engine where the schema cannot tell.

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
        return False
    if bound is not None:
        _check_bound(scope, engine, bound)
    if multiplied:
        return True
    known = scope.tables[scope.main].repeats
    return _repeats(scope, engine) if known is None else known


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
