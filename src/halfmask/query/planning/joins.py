"""Joins stay inside one person's data: they may look something up, not multiply rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from halfmask.engines.sql import table as named
from halfmask.errors import PrivacyError, UnsupportedQueryError

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.query.planning.scope import Link, Scope


@dataclass(frozen=True, slots=True)
class People:
    """Whether a person can stand in several rows of what is aggregated."""

    repeat: bool


def people_of(scope: Scope, source: exp.Select, engine: Engine, bound: int | None) -> People:
    """Look at the joins and at the person column; ask the engine where the schema cannot tell.

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
        _check_bound(source, person, engine, bound)
    if multiplied:
        return People(repeat=True)
    known = scope.tables[scope.main].repeats
    return People(_repeats(scope, engine) if known is None else known)


def _is_lookup(scope: Scope, link: Link, engine: Engine) -> bool:
    """Whether the joined columns name at most one row of the joined table."""
    from sqlglot import exp

    columns = [exp.column(right.name, quoted=True) for _, right in link.pairs]
    table = scope.tables[link.alias]
    query = exp.select(exp.alias_(exp.Count(this=exp.Star()), "n")).from_(
        exp.select(*columns)
        .from_(named(table.name))
        .group_by(*[c.copy() for c in columns])
        .having("COUNT(*) > 1")
        .subquery("d")
    )
    return int(engine.run(query)["n"][0].as_py()) == 0


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


def _check_bound(source: exp.Select, person: exp.Expr, engine: Engine, bound: int) -> None:
    from sqlglot import exp

    inner = source.copy().select(exp.alias_(person.copy(), "p"))
    counted = (
        exp.select(exp.alias_(exp.Count(this=exp.Star()), "n"))
        .from_(inner.subquery("a"))
        .group_by("p")
    )
    query = exp.select(exp.alias_(exp.Max(this=exp.column("n")), "n")).from_(counted.subquery("b"))
    worst = engine.run(query)["n"][0].as_py()
    if worst is not None and int(worst) > bound:
        raise PrivacyError(
            f"Somebody has more than {bound} rows in this query: raise the bound "
            "(AT MOST n ROWS PER PERSON), or join less."
        )
