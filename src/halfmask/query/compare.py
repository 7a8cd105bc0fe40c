"""Two answers side by side: how many people each pair of rows shares, counted by the engine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from halfmask.engines import levels

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.engines.request import Request


def by_person(old: Request, new: Request) -> exp.Select:
    """Match people by who they are: ``old``, ``new`` and ``n`` people."""
    from sqlglot import exp

    joined = (
        exp.select(
            exp.alias_(
                exp.Coalesce(this=_column("who", "a"), expressions=[_column("who", "b")]), "who"
            ),
            exp.alias_(_column("place", "a"), "old"),
            exp.alias_(_column("place", "b"), "new"),
        )
        .from_(_placed(old, "hm_places_old").subquery("a"))
        .join(
            _placed(new, "hm_places_new").subquery("b"),
            on=exp.EQ(this=_column("who", "a"), expression=_column("who", "b")),
            join_type="full",
        )
    )
    counted = exp.Count(this=exp.Distinct(expressions=[_column("who")]))
    return _counted(joined, counted)


def by_row(old: Request, new: Request) -> exp.Select:
    """Match rows of one table by reading it once: ``old``, ``new`` and ``n`` rows."""
    from sqlglot import exp

    rows = exp.select().from_(exp.alias_(_table(new), "hm_both", table=True))
    names: dict[str, list[str]] = {}
    for side, request in (("o", old), ("n", new)):
        request = _renamed(request)
        where = request.source.args.get("where")
        columns = {f"r{i}": key.expression for i, key in enumerate(request.keys)}
        if request.demands is not None:
            columns["k"], columns["l"] = request.demands
        columns["in"] = (
            exp.Case().when(where.this, exp.Literal.number(1)) if where else (exp.Literal.number(1))
        )
        names[side] = list(columns)
        for name, expression in columns.items():
            rows = rows.select(exp.alias_(expression.copy(), f"{side}_{name}", quoted=True))
    joined = exp.select(
        exp.alias_(_column("place", "p"), "old"), exp.alias_(_column("place", "q"), "new")
    ).from_(_levels(rows, old, new).subquery("b"))
    for side, request, alias, table in (
        ("o", old, "p", "hm_places_old"),
        ("n", new, "q", "hm_places_new"),
    ):
        match = exp.and_(
            *(
                exp.NullSafeEQ(this=_column(f"{side}_{n}", "b"), expression=_column(n, alias))
                for n in ("level", *(f"g{i}" for i in range(len(request.keys))))
            )
        )
        joined = joined.join(exp.to_table(table, alias=alias), on=match, join_type="left")
    return _counted(joined, exp.Count(this=exp.Star()))


def _levels(rows: exp.Select, old: Request, new: Request) -> exp.Select:
    """Both levels and both sets of keys of every row."""
    from sqlglot import exp

    for side, request in (("o", old), ("n", new)):
        level = _prefixed(levels.level_of(request), side)
        outside = exp.Case().when(_column(f"{side}_in").is_(exp.null()), exp.convert(-3))
        rows = exp.select("*", exp.alias_(outside.else_(level), f"{side}_level")).from_(
            rows.subquery(f"l{side}")
        )
    for side, request in (("o", old), ("n", new)):
        keys = [
            exp.alias_(_prefixed(levels.generalized(key, i), side), f"{side}_g{i}")
            for i, key in enumerate(request.keys)
        ]
        rows = exp.select("*", *keys).from_(rows.subquery(f"g{side}"))
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
    )


def _counted(joined: exp.Select, count: exp.Expr) -> exp.Select:
    from sqlglot import exp

    return (
        exp.select(_column("old"), _column("new"), exp.alias_(count, "n"))
        .from_(joined.subquery("pairs"))
        .group_by(_column("old"), _column("new"))
    )


def _table(request: Request) -> exp.Expr:
    from sqlglot import exp

    source = request.source.args.get("from_") or request.source.args["from"]
    return exp.to_table(source.this.name)


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
