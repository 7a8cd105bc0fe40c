"""FROM and JOIN: which tables a query reads, what its names mean, whose rows they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from halfmask.errors import QueryError
from halfmask.query.planning.refusals import fail, refuse
from halfmask.table.demands import sources
from halfmask.table.names import told

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.query.catalog import Catalog, Source
    from halfmask.table.schema import Schema


@dataclass(frozen=True, eq=False)
class Link:
    """One joined table and the pairs of columns that must be equal (left, right)."""

    alias: str
    pairs: tuple[tuple[exp.Column, exp.Column], ...]
    place: int


@dataclass(frozen=True, eq=False)
class Scope:
    """The tables of a query by alias; the first is the one in FROM.

    Attributes:
        text: the query, to point into.
        tables: alias to table.
        links: the joins.
    """

    text: str
    tables: dict[str, Source]
    links: list[Link] = field(default_factory=list)

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
        known = told(c for s in self.tables.values() for c in s.columns if c not in s.hidden)
        fail(self.text, column, f"there is no column {column.name}; there are {known}.")

    def role(self, column: exp.Column) -> str:
        """The role of a resolved column."""
        return self.tables[column.table].role(column.name)

    def is_hidden(self, column: exp.Column) -> bool:
        """Whether a resolved column may not be asked for."""
        return column.name in self.tables[column.table].hidden


def scope_of(text: str, select: exp.Select, catalog: Catalog) -> tuple[Scope, exp.Select]:
    """Resolve every name of a query; the returned SELECT speaks of known columns only.

    Raises:
        UnsupportedQueryError: for parts of SQL that are refused, with the reason.
        QueryError: for names that mean nothing.
    """
    from sqlglot import exp

    refuse(text, select)
    select = select.copy()
    source = select.args.get("from_") or select.args.get("from")
    if source is None or not isinstance(source.this, exp.Table):
        raise QueryError("the query names no table: add FROM.", text=text, start=len(text.rstrip()))
    scope = Scope(text, {})
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


def _require_demands(scope: Scope, main: exp.Expr, catalog: Catalog) -> None:
    """Refuse people's rows without the table in which these people state their demands."""
    read = list(scope.tables.values())
    if all(one.person is None for one in read) or any(_states(one.schema) for one in read):
        return
    for name, schema in catalog.declared.items():
        if schema.person is not None and _states(schema):
            fail(
                scope.text,
                main,
                f"what these people demand for themselves stands in {name}: join it on the "
                "person, so that it is kept.",
            )


def _states(schema: Schema | None) -> bool:
    return schema is not None and bool(sources(schema))


def _add_table(scope: Scope, table: exp.Table, catalog: Catalog) -> None:
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


def _using_to_on(scope: Scope, join: exp.Join) -> None:
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


def _link(scope: Scope, join: exp.Join) -> Link:
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
    return Link(
        alias,
        tuple(pairs),
        min((n.meta["start"] for n in join.walk() if "start" in n.meta), default=0),
    )


def _same_person(
    scope: Scope, join: exp.Join, alias: str, pairs: list[tuple[exp.Column, exp.Column]]
) -> None:
    person = scope.tables[alias].person
    if person is None:
        return
    for left, right in pairs:
        if right.name == person and left.name == scope.tables[left.table].person:
            return
    fail(
        scope.text,
        join,
        f"{alias} holds rows about people: join it on the person "
        f"({person}), else one person's data would enter under another's policy.",
    )


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
