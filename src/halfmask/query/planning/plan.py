"""A query resolved: what its names mean, what it groups by, which columns it touches.

Every query passes here, whatever it promises. What its guard needs beside that is planned in
``guarantee`` (groups that are large enough) or in ``noise`` (figures under differential privacy).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from halfmask.query.planning.scope import grouping_of, refuse_hidden, scope_of, source_of
from halfmask.query.planning.subqueries import (
    inline_derived_tables,
    look_up_constants,
    refuse_other_rows,
    write_quantiles,
)
from halfmask.query.total_form.rows import TotalRows

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.query.catalog import Catalog
    from halfmask.query.parse import Statement
    from halfmask.query.planning.scope import QueryScope
    from halfmask.table.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class PlannedKey:
    """A grouping column as the asker sees it.

    Attributes:
        name: its name in the answer.
        generalized: whether its values are changed; they leave as text then.
        hierarchy: the one that it climbs, if it does.
    """

    name: str
    generalized: bool
    hierarchy: Hierarchy | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """What is decided of every query before rows are read.

    Attributes:
        statement: the query as written, with what it promises.
        scope: its tables and their names.
        keys: what is grouped by.
        queried: every column that influences what is seen, in any clause.
        final: the select list, HAVING, ORDER BY and LIMIT over the rows of the answer.
        names: the columns of the answer.
        notes: what the asker should know.
    """

    statement: Statement
    scope: QueryScope
    keys: tuple[PlannedKey, ...]
    queried: tuple[str, ...]
    final: exp.Select
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ResolvedQuery:
    """A query that speaks of known columns, none of them hidden; what plans are made from.

    Attributes:
        statement: the query as written.
        scope: its tables and their names.
        select: the SQL, derived tables and subqueries written out.
        total: puts what is computed from rows into a form that cannot fail.
    """

    statement: Statement
    scope: QueryScope
    select: exp.Select
    total: TotalRows

    @property
    def text(self) -> str:
        """The query, to point into."""
        return self.statement.text

    @cached_property
    def keys(self) -> list[tuple[str, exp.Expr]]:
        """What is grouped by, each with its name in the answer."""
        return grouping_of(self.text, self.select)

    @property
    def rows(self) -> exp.Select:
        """FROM, JOIN and WHERE; no row makes them fail."""
        return self.total.source(source_of(self.select))

    @property
    def columns(self) -> list[exp.Column]:
        """Every column that is read, wherever it stands.

        Derived tables are written out and names are resolved before, so that an alias, a position
        or a join hides none of them.
        """
        from sqlglot import exp

        return [column for column in self.select.find_all(exp.Column) if column.table]


def resolve_query(statement: Statement, catalog: Catalog, engine: Engine) -> ResolvedQuery:
    """Find out what a query speaks of; reads column types and tables of nobody's data.

    Raises:
        QueryError: with line, column and a caret.
    """
    text, select = statement.text, statement.select
    if statement.noisy:
        refuse_other_rows(text, select)
        select = write_quantiles(text, select)
    else:
        select = look_up_constants(text, inline_derived_tables(text, select), catalog, engine)
    scope, select = scope_of(text, select, catalog)
    refuse_hidden(scope, select)
    return ResolvedQuery(statement, scope, select, TotalRows(scope))
