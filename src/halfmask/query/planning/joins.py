"""Joins stay inside one person's data: they may look something up, not multiply rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from halfmask.engines.sql import table as named
from halfmask.errors import PrivacyError, UnsupportedQueryError

if TYPE_CHECKING:
    from halfmask.engines.request import Engine
    from halfmask.query.planning.scope import Link, Scope


@dataclass(frozen=True, slots=True)
class People:
    """Whether a person can stand in several rows of what is aggregated."""

    repeat: bool


def people_of(scope: Scope, engine: Engine, bound: int | None) -> People:
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


def _is_lookup(scope: Scope, link: Link, engine: Engine) -> bool:
    """Whether the joined columns name at most one row of the joined table."""
    return _most_rows(scope, link, engine) <= 1


def _most_rows(scope: Scope, link: Link, engine: Engine) -> int:
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


def _repeats(scope: Scope, engine: Engine) -> bool:
    from sqlglot import exp

    table = scope.tables[scope.main]
    person = exp.column(table.person or "", quoted=True)
    query = exp.select(
        exp.alias_(exp.Count(this=exp.Star()), "n"),
        exp.alias_(exp.Count(this=exp.Distinct(expressions=[person])), "d"),
    ).from_(named(table.name))
    row = engine.run(query).to_pylist()[0]
    return int(row["n"]) != int(row["d"])


def _check_bound(scope: Scope, engine: Engine, bound: int) -> None:
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
