"""The exact part of a question under differential privacy: counts and whole-number sums per group.

Rows are filtered, cut to a bound per person, and added up where they are; only totals come back,
and they go on to get noise. Which of a person's rows are kept when there are too many is drawn by
the engine; the promise needs the bound only, not the draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    Row = dict[tuple[str, str], Any]


@dataclass(frozen=True, slots=True)
class Part:
    """One expression that is counted (where it has a value), and perhaps summed and squared.

    Attributes:
        expression: a whole number within public bounds, or null; for a count anything.
        summed: whether its sum is wanted.
        squared: whether the sum of its squares is wanted.
        distinct: whether only distinct values are counted.
    """

    expression: exp.Expr
    summed: bool = False
    squared: bool = False
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Tally:
    """A grouped sum over bounded contributions.

    Attributes:
        source: SELECT ... FROM ... WHERE ..., without a select list.
        keys: what is grouped by.
        parts: what is added up.
        person: whose row it is; None where each row is another person.
        rows_per_person: how many rows of one person count.
    """

    source: exp.Select
    keys: tuple[exp.Expr, ...]
    parts: tuple[Part, ...] = ()
    person: exp.Expr | None = None
    rows_per_person: int = 1


def tally_query(request: Tally) -> exp.Select:
    """A tally as SQL: ``g0...``, ``rows``, per part ``n0``, ``s0``, ``q0``."""
    rows = request.source.copy()
    for i, key in enumerate(request.keys):
        rows = rows.select(_named(key.copy(), f"g{i}"), copy=False)
    for i, part in enumerate(request.parts):
        rows = rows.select(_named(part.expression.copy(), f"v{i}"), copy=False)
    if request.person is not None:
        rows = rows.select(_named(request.person.copy(), "person"), copy=False)
        rows = rows.select(_named(exp.Rand(), "drawn"), copy=False)
    if not rows.expressions:
        rows = rows.select(_named(exp.Literal.number(1), "one"), copy=False)
    totals = [exp.alias_(exp.Count(this=exp.Star()), "rows", quoted=True)]
    totals += [total for i, part in enumerate(request.parts) for total in _totals(i, part)]
    names = [f"g{i}" for i in range(len(request.keys))]
    if request.person is not None:
        rows = _placed(rows)
    query = exp.select(*map(_column, names), *totals, copy=False).from_(rows.subquery("a"))
    if request.person is not None:
        bound = exp.Literal.number(request.rows_per_person)
        query = query.where(exp.LTE(this=_column("place"), expression=bound))
    return query.group_by(*map(_column, names)) if names else query


def _placed(rows: exp.Select) -> exp.Select:
    """Each row with its place among those of its person, in an order that the engine draws."""
    place = exp.Window(
        this=exp.RowNumber(),
        partition_by=[_column("person")],
        order=exp.Order(expressions=[exp.Ordered(this=_column("drawn"), nulls_first=False)]),
    )
    return exp.select(exp.Star(), _named(place, "place"), copy=False).from_(rows.subquery("b"))


def reference_tally(
    request: Tally, rows: list[Row], value: Callable[[exp.Expr, Row], Any]
) -> pa.Table:
    """The same in plain Python, one row after the other; the oracle of the tests."""
    import pyarrow as pa

    seen: dict[Any, int] = {}
    groups: dict[tuple[Any, ...], list[Row]] = {} if request.keys else {(): []}
    for row in rows:
        if request.person is not None:
            who = value(request.person, row)
            seen[who] = seen.get(who, 0) + 1
            if seen[who] > request.rows_per_person:
                continue
        groups.setdefault(tuple(value(key, row) for key in request.keys), []).append(row)
    found: dict[str, list[Any]] = {f"g{i}": [] for i in range(len(request.keys))}
    found |= {"rows": []}
    for key, members in groups.items():
        for i, part in enumerate(key):
            found[f"g{i}"].append(part)
        found["rows"].append(len(members))
        for i, one in enumerate(request.parts):
            values = [v for row in members if (v := value(one.expression, row)) is not None]
            found.setdefault(f"n{i}", []).append(len(set(values) if one.distinct else values))
            if one.summed:
                found.setdefault(f"s{i}", []).append(sum(values))
            if one.squared:
                found.setdefault(f"q{i}", []).append(sum(v * v for v in values))
    return pa.table(found)


def _totals(i: int, part: Part) -> list[exp.Expr]:
    value = _column(f"v{i}")
    counted = exp.Distinct(expressions=[value]) if part.distinct else value
    found = [_named(exp.Count(this=counted), f"n{i}")]
    if part.summed:
        found.append(_named(_whole(exp.Sum(this=value.copy())), f"s{i}"))
    if part.squared:
        square = exp.Mul(this=value.copy(), expression=value.copy())
        found.append(_named(_whole(exp.Sum(this=square)), f"q{i}"))
    return found


def _whole(total: exp.Expr) -> exp.Expr:
    return exp.cast(exp.Coalesce(this=total, expressions=[exp.Literal.number(0)]), "bigint")


def _named(node: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(node, name, quoted=True)


def _column(name: str) -> exp.Column:
    return exp.column(name, quoted=True)
