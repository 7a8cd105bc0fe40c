"""The exact part of a question under differential privacy: counts and whole-number sums per group.

Rows are filtered, cut to a bound per person, and added up where they are; only totals come back,
and they go on to get noise. Which of a person's rows are kept when there are too many is drawn by
the engine; the promise needs the bound only, not the draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from halfmask.engines.generalization import as_double, cast_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from halfmask.engines.expressions import Row

LEVEL = "halfmask level"  # among the columns of a table


@dataclass(frozen=True, slots=True)
class BoundedTerm:
    """One expression that is counted (where it has a value), and perhaps summed and squared.

    Attributes:
        expression: a whole number within public bounds, or null; for a count anything.
        summed: whether its sum is wanted.
        squared: the unit to which squares are rounded before they are summed; 0: none are wanted.
        distinct: whether only distinct values are counted.
    """

    expression: exp.Expr
    summed: bool = False
    squared: int = 0
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class BoundedTally:
    """A grouped sum over bounded contributions.

    Attributes:
        source: SELECT ... FROM ... WHERE ..., without a select list.
        keys: what is grouped by.
        parts: what is added up.
        person: whose row it is; None where each row is another person.
        rows_per_person: how many rows of one person count.
        level: a whole number per row; a person stands at the least of all own rows, also of those
            that WHERE leaves out; None: nobody is told apart.
        kept: the levels whose people are read.
        apart: whether totals are told per level, as ``level``.
    """

    source: exp.Select
    keys: tuple[exp.Expr, ...]
    parts: tuple[BoundedTerm, ...] = ()
    person: exp.Expr | None = None
    rows_per_person: int = 1
    level: exp.Expr | None = None
    kept: tuple[int, ...] = ()
    apart: bool = False


def tally_query(request: BoundedTally) -> exp.Select:
    """A tally as SQL: ``g0...``, ``rows``, per part ``n0``, ``s0``, ``q0``."""
    rows = request.source.copy()
    if request.level is not None:
        rows = _keep_level(rows, request)
    for i, key in enumerate(request.keys):
        rows = rows.select(_alias(key.copy(), f"g{i}"), copy=False)
    for i, part in enumerate(request.parts):
        rows = rows.select(_alias(part.expression.copy(), f"v{i}"), copy=False)
    if request.person is not None:
        rows = rows.select(_alias(request.person.copy(), "person"), copy=False)
        rows = rows.select(_alias(exp.Rand(), "drawn"), copy=False)
    if not rows.expressions:
        rows = rows.select(_alias(exp.Literal.number(1), "one"), copy=False)
    totals = [exp.alias_(exp.Count(this=exp.Star()), "rows", quoted=True)]
    totals += [total for i, part in enumerate(request.parts) for total in _totals(i, part)]
    names = [f"g{i}" for i in range(len(request.keys))]
    if request.apart:
        names.append("level")
    if request.person is not None:
        rows = _number_rows(rows)
    query = exp.select(*map(_column, names), *totals, copy=False).from_(rows.subquery("a"))
    if request.person is not None:
        bound = exp.Literal.number(request.rows_per_person)
        query = query.where(exp.LTE(this=_column("place"), expression=bound))
    return query.group_by(*map(_column, names)) if names else query


def _keep_level(rows: exp.Select, request: BoundedTally) -> exp.Select:
    """The rows of the people whose level is kept, with the level beside them where it is told."""
    level = request.level
    assert level is not None  # noqa: S101 - asked before
    if request.person is not None:
        level = exp.Window(this=exp.Min(this=level.copy()), partition_by=[request.person.copy()])
    name = next(part for part in ("from_", "from") if rows.args.get(part) is not None)
    table = rows.args[name].this
    # Inside FROM, where the rows that WHERE leaves out still count for a person's level.
    inner = exp.select(exp.Star(), _alias(level.copy(), LEVEL), copy=False).from_(table.copy())
    rows = rows.from_(inner.subquery(table.alias_or_name), copy=False)
    at = exp.column(LEVEL, table=table.alias_or_name, quoted=True)
    rows = rows.where(
        exp.In(this=at, expressions=[exp.Literal.number(code) for code in request.kept]), copy=False
    )
    return rows.select(_alias(at.copy(), "level"), copy=False) if request.apart else rows


def _number_rows(rows: exp.Select) -> exp.Select:
    """Each row with its place among those of its person, in an order that the engine draws."""
    place = exp.Window(
        this=exp.RowNumber(),
        partition_by=[_column("person")],
        order=exp.Order(expressions=[exp.Ordered(this=_column("drawn"), nulls_first=False)]),
    )
    return exp.select(exp.Star(), _alias(place, "place"), copy=False).from_(rows.subquery("b"))


def reference_tally(
    request: BoundedTally,
    rows: list[Row],
    everybody: list[Row],
    value: Callable[[exp.Expr, Row], Any],
) -> pa.Table:
    """The same in plain Python, one row after the other; the oracle of the tests.

    Args:
        request: what to add up.
        rows: the rows that WHERE keeps.
        everybody: all rows; only people's levels are read off them.
        value: evaluates an expression in a row.
    """
    keys = request.keys
    least: dict[Any, int] = {}
    for row in everybody if request.level is not None and request.person is not None else ():
        who, level = value(request.person, row), value(request.level, row)  # type: ignore[arg-type]
        least[who] = min(least.get(who, level), level)

    def at(row: Row) -> int:
        if request.person is not None:
            return least[value(request.person, row)]
        return int(value(request.level, row))  # type: ignore[arg-type]

    if request.level is not None:
        rows = [row for row in rows if at(row) in request.kept]
    seen: dict[Any, int] = {}
    alone = not keys and not request.apart
    groups: dict[tuple[Any, ...], list[Row]] = {(): []} if alone else {}
    for row in rows:
        if request.person is not None:
            who = value(request.person, row)
            seen[who] = seen.get(who, 0) + 1
            if seen[who] > request.rows_per_person:
                continue
        key = tuple(value(key, row) for key in keys)
        groups.setdefault((*key, at(row)) if request.apart else key, []).append(row)
    names = [f"g{i}" for i in range(len(keys))] + ["level"] * request.apart
    found: dict[str, list[Any]] = {name: [] for name in names}
    found |= {"rows": []}
    for i, one in enumerate(request.parts):  # there with no row, too
        wanted = {"n": True, "s": one.summed, "q": bool(one.squared)}
        found |= {f"{kind}{i}": [] for kind, asked in wanted.items() if asked}
    for key, members in groups.items():
        for name, part in zip(names, key, strict=True):
            found[name].append(part)
        found["rows"].append(len(members))
        for i, one in enumerate(request.parts):
            values = [v for row in members if (v := value(one.expression, row)) is not None]
            found[f"n{i}"].append(len(set(values) if one.distinct else values))
            if one.summed:
                found[f"s{i}"].append(sum(values))
            if one.squared:
                unit = one.squared
                squares = sum((2 * v * v + unit) // (2 * unit) for v in values)
                found[f"q{i}"].append(squares)
    return pa.table(found)


def _totals(i: int, part: BoundedTerm) -> list[exp.Expr]:
    value = _column(f"v{i}")
    counted = exp.Distinct(expressions=[value]) if part.distinct else value
    found = [_alias(exp.Count(this=counted), f"n{i}")]
    if part.summed:
        found.append(_alias(_whole(exp.Sum(this=value.copy())), f"s{i}"))
    if part.squared:
        real = cast_to(value.copy(), "double")
        square = exp.Div(this=real * real.copy(), expression=as_double(part.squared), typed=True)
        # Not ROUND: engines differ in where a half goes.
        rounded = cast_to(exp.Floor(this=square + as_double(0.5)), "bigint")
        found.append(_alias(_whole(exp.Sum(this=rounded)), f"q{i}"))
    return found


def _whole(total: exp.Expr) -> exp.Expr:
    return cast_to(exp.Coalesce(this=total, expressions=[exp.Literal.number(0)]), "bigint")


def _alias(node: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(node, name, quoted=True)


def _column(name: str) -> exp.Column:
    return exp.column(name, quoted=True)
