"""Answers side by side: how many people stand in the same rows of each, counted by the engine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from halfmask.engines import levels
from halfmask.engines.sql import table as named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

    from halfmask.engines.request import Request


def by_person(old: Request, new: Request) -> exp.Select:
    """Match people by who they are: ``p0``, ``p1`` and ``n`` people."""
    from sqlglot import exp

    joined = (
        exp.select(
            exp.alias_(
                exp.Coalesce(this=_column("who", "a"), expressions=[_column("who", "b")]), "who"
            ),
            exp.alias_(_column("place", "a"), "p0"),
            exp.alias_(_column("place", "b"), "p1"),
        )
        .from_(_placed(old, "hm_places_0").subquery("a"))
        .join(
            _placed(new, "hm_places_1").subquery("b"),
            on=exp.EQ(this=_column("who", "a"), expression=_column("who", "b")),
            join_type="full",
        )
    )
    counted = exp.Count(this=exp.Distinct(expressions=[_column("who")]))
    return _counted(joined, counted, ["p0", "p1"])


def together(requests: Sequence[Request]) -> exp.Select:
    """Match people over several answers: the first and last row of each, and ``n`` people."""
    from sqlglot import exp

    parts = [
        exp.select(_column("who"), exp.alias_(exp.convert(i), "answer"), _column("place")).from_(
            _placed(request, f"hm_places_{i}").subquery(f"s{i}")
        )
        for i, request in enumerate(requests)
    ]
    every: exp.Expr = parts[0]
    for part in parts[1:]:
        every = exp.union(every, part, distinct=False)
    columns, names = [], []
    for i in range(len(requests)):
        here = exp.EQ(this=_column("answer"), expression=exp.convert(i))
        place = exp.Case().when(here, _column("place"))
        columns += [
            exp.alias_(exp.Min(this=place), f"p{i}"),
            exp.alias_(exp.Max(this=place.copy()), f"q{i}"),
        ]
        names += [f"p{i}", f"q{i}"]
    people = exp.select(_column("who"), *columns).from_(
        exp.Subquery(this=every, alias=exp.TableAlias(this=exp.to_identifier("every")))
    )
    return _counted(people.group_by(_column("who")), exp.Count(this=exp.Star()), names)


def by_row(requests: Sequence[Request]) -> exp.Select:
    """Match rows of one table by reading it once: ``p0``, ``p1`` ... and ``n`` rows."""
    from sqlglot import exp

    rows = exp.select().from_(exp.alias_(_table(requests[-1]), "hm_both", table=True))
    for i, given in enumerate(requests):
        request = _renamed(given)
        where = request.source.args.get("where")
        columns = {f"r{j}": key.expression for j, key in enumerate(request.keys)}
        if request.demands is not None:
            columns["k"], columns["l"] = request.demands
        one = exp.Literal.number(1)
        columns["in"] = exp.Case().when(where.this, one) if where else one
        for name, expression in columns.items():
            rows = rows.select(exp.alias_(expression.copy(), f"s{i}_{name}", quoted=True))
    names = [f"p{i}" for i in range(len(requests))]
    joined = exp.select(
        *(exp.alias_(_column("place", f"t{i}"), name) for i, name in enumerate(names))
    ).from_(_levels(rows, requests).subquery("b"))
    for i, request in enumerate(requests):
        match = exp.and_(
            *(
                exp.NullSafeEQ(this=_column(f"s{i}_{n}", "b"), expression=_column(n, f"t{i}"))
                for n in ("level", *(f"g{j}" for j in range(len(request.keys))))
            )
        )
        places = exp.to_table(f"hm_places_{i}", alias=f"t{i}")
        joined = joined.join(places, on=match, join_type="left")
    return _counted(joined, exp.Count(this=exp.Star()), names)


def _levels(rows: exp.Select, requests: Sequence[Request]) -> exp.Select:
    """The level and the keys of every row under each request."""
    from sqlglot import exp

    for i, request in enumerate(requests):
        level = _prefixed(levels.level_of(request), f"s{i}")
        outside = exp.Case().when(_column(f"s{i}_in").is_(exp.null()), exp.convert(-3))
        rows = exp.select("*", exp.alias_(outside.else_(level), f"s{i}_level")).from_(
            rows.subquery(f"l{i}")
        )
    for i, request in enumerate(requests):
        keys = [
            exp.alias_(_prefixed(levels.generalized(key, j), f"s{i}"), f"s{i}_g{j}")
            for j, key in enumerate(request.keys)
        ]
        rows = exp.select("*", *keys).from_(rows.subquery(f"k{i}"))
    return rows


def _placed(request: Request, table: str) -> exp.Select:
    from sqlglot import exp

    assert request.person is not None  # noqa: S101 - the caller looked
    rows = levels.levelled(request, {"who": request.person}).subquery("r")
    names = ["level", *(f"g{i}" for i in range(len(request.keys)))]
    match = exp.and_(
        *(exp.NullSafeEQ(this=_column(n, "r"), expression=_column(n, "p")) for n in names)
    )
    return (
        exp.select(_column("who", "r"), _column("place", "p"))
        .distinct()
        .from_(rows)
        .join(exp.to_table(table, alias="p"), on=match, join_type="inner")
        .where(_column("who", "r").is_(exp.null()).not_())
    )


def _counted(joined: exp.Select, count: exp.Expr, names: list[str]) -> exp.Select:
    from sqlglot import exp

    return (
        exp.select(*map(_column, names), exp.alias_(count, "n"))
        .from_(joined.subquery("pairs"))
        .group_by(*map(_column, names))
    )


def _table(request: Request) -> exp.Expr:

    source = request.source.args.get("from_") or request.source.args["from"]
    return named(source.this.name)


def _renamed(request: Request) -> Request:
    """The same request with every column named after the one table that both read."""
    from sqlglot import exp

    def renamed(node: exp.Expr) -> exp.Expr:
        node = node.copy()
        for column in node.find_all(exp.Column):
            column.set("table", exp.to_identifier("hm_both", quoted=True))
        return node

    keys = tuple(replace(key, expression=renamed(key.expression)) for key in request.keys)
    demands = request.demands
    if demands is not None:
        demands = (renamed(demands[0]), renamed(demands[1]))
    source = request.source.copy()
    where = source.args.get("where")
    if where is not None:
        source.set("where", exp.Where(this=renamed(where.this)))
    return replace(request, keys=keys, demands=demands, source=source)


def _prefixed(node: exp.Expr, side: str) -> exp.Expr:
    from sqlglot import exp

    node = node.copy()
    if isinstance(node, exp.Column):
        return _column(f"{side}_{node.name}")
    for column in list(node.find_all(exp.Column)):
        column.replace(_column(f"{side}_{column.name}"))
    return node


def _column(name: str, table: str | None = None) -> exp.Column:
    from sqlglot import exp

    return exp.column(name, table=table, quoted=True)
