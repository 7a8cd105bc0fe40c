"""A row's level, and its keys as generalized at that level: written once as SQL for all engines.

The exact part of a question under differential privacy: counts and whole-number sums per group.

Rows are filtered, cut to a bound per person, and added up where they are; only totals come back,
and they go on to get noise. Which of a person's rows are kept when there are too many is drawn by
the engine; the promise needs the bound only, not the draw.

The answers of several queries over the same groups, put side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import floor
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from halfmask.engines.request import REFUSED, WITHOUT_POLICY, Climb, Interval, Key, Request, Rule
from halfmask.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Row = dict[tuple[str, str], Any]


MOST_WHOLE = 1 << 62  # beyond these, numbers have no interval
MOST_REAL = float(1 << 53)


def rows_by_level(request: Request, extra: dict[str, exp.Expr] | None = None) -> exp.Select:
    """One row per row: its level, its keys as generalized at that level, and what is counted."""
    columns = {f"r{i}": key.expression for i, key in enumerate(request.keys)}
    if request.demands is not None:
        columns["k"], columns["l"] = request.demands
    if request.person is not None:
        columns["person"] = request.person
    columns |= {f"v{i}": test.expression for i, test in enumerate(request.tests)}
    columns |= {f"a{i}": state.expression for i, state in enumerate(request.states)}
    columns |= extra or {}
    rows = request.source.copy()
    for name, expression in columns.items():
        rows = rows.select(exp.alias_(expression, name, quoted=True), copy=False)
    if not columns:
        rows = rows.select(exp.alias_(exp.Literal.number(1), "one"), copy=False)
    kept = [n for n in columns if not n.startswith("r") and n != "person"]
    placed = _select(
        exp.alias_(level_of(request), "level", copy=False),
        *(_column(f"r{i}") for i in range(len(request.keys))),
        *(_column(n) for n in kept),
    ).from_(rows.subquery("a", copy=False), copy=False)
    return _select(
        _column("level"),
        *(
            exp.alias_(generalize_key(key, i), f"g{i}", copy=False)
            for i, key in enumerate(request.keys)
        ),
        *(_column(n) for n in kept),
    ).from_(placed.subquery("c", copy=False), copy=False)


def level_of(request: Request) -> exp.Expr:
    """The finest level whose guarantee covers a person's demands."""
    case = exp.Case()
    if request.person is not None:
        case = case.when(_column("person").is_(exp.null()), _number(WITHOUT_POLICY), copy=False)
    if request.demands is None:
        first = _number(0)
        return case.else_(first) if request.person is not None else first
    k, l = _column("k"), _column("l")
    missing = exp.or_(k.is_(exp.null()), l.is_(exp.null()), copy=False)
    case = case.when(missing, _number(request.missing), copy=False)
    for level, (k_level, l_level) in enumerate(request.guarantees):
        covers = exp.and_(k <= _number(k_level), l <= _number(l_level), copy=False)
        case = case.when(covers, _number(level), copy=False)
    return case.else_(_number(REFUSED), copy=False)


def generalize_key(key: Key, index: int) -> exp.Expr:
    """The key at the row's own level; null where it has been taken away."""
    value = _column(f"r{index}")
    case = exp.Case()
    outside = exp.LT(this=_column("level"), expression=_number(0))
    case = case.when(outside, exp.null(), copy=False)
    current = 0
    result: exp.Expr = value
    for level, depth in enumerate(key.depths):
        if depth != current:
            if level:
                below = exp.LT(this=_column("level"), expression=_number(level))
                case = case.when(below, result.copy(), copy=False)
            current, result = depth, apply_rule(key.rules[depth - 1], value, key)
    return case.else_(result.copy(), copy=False)


def apply_rule(rule: Rule, value: exp.Expr, key: Key) -> exp.Expr:
    """One generalization of a value as it stands in the rows."""
    if isinstance(rule, Interval):
        return _lower_edge(rule.width, value, whole=key.kind == "integer", real=key.kind == "float")
    if isinstance(rule, Climb):
        return _climbed(rule, value)
    return exp.null()


def _lower_edge(width: int, value: exp.Expr, *, whole: bool, real: bool) -> exp.Expr:
    """Where a number's interval begins; null for numbers that intervals do not reach."""
    if real:
        tiny, small = (
            exp.LT(this=exp.Abs(this=value.copy()), expression=_double(most))
            for most in (1, MOST_REAL)
        )
        # What is next to 0 is not divided: PostgreSQL fails where a quotient vanishes.
        below = exp.LT(this=value.copy(), expression=_double(0))
        near = exp.Case().when(below, _double(-width), copy=False).else_(_double(0), copy=False)
        steps = exp.Div(this=value.copy(), expression=_double(width), typed=True)
        start = cast_to(exp.Floor(this=steps), "double") * _double(width)
        return exp.Case().when(tiny, near, copy=False).when(small, start, copy=False)
    size = _number(width)
    number = cast_to(value.copy(), "bigint") if whole else value.copy()
    rest = exp.Mod(
        this=exp.paren(exp.Mod(this=number.copy(), expression=size) + size.copy()),
        expression=size.copy(),
    )
    edge = number - exp.paren(rest)
    if not whole:
        return edge
    inside = exp.Between(this=value.copy(), low=_number(-MOST_WHOLE), high=_number(MOST_WHOLE))
    return exp.Case().when(inside, edge, copy=False)


def lower_edge(value: Any, width: int) -> int | None:
    """Where a number's interval begins, as the engines have it."""
    if value is None:
        return None
    if isinstance(value, float):
        if abs(value) < 1:
            return -width if value < 0 else 0
        return floor(value / width) * width if abs(value) < MOST_REAL else None
    if isinstance(value, int) and abs(value) > MOST_WHOLE:
        return None
    return floor(Fraction(value) / width) * width


def cast_to(node: exp.Expr, kind: str) -> exp.Expr:
    """A cast of a new expression, which is not copied."""
    return exp.Cast(this=node, to=_data_type(kind).copy())


@cache
def _data_type(kind: str) -> exp.DataType:
    """A kind of values as SQL writes it, parsed once."""
    return exp.DataType.build(kind)


def _double(value: float) -> exp.Expr:
    return cast_to(exp.Literal.number(repr(float(value))), "double")


def _climbed(rule: Climb, value: exp.Expr) -> exp.Expr:
    under: dict[object, list[object]] = {}
    for leaf, stand_in in rule.stand_ins.items():
        if leaf is not None:
            under.setdefault(stand_in, []).append(leaf)
    if set(under) <= {None}:
        return exp.null()
    case = exp.Case()
    for stand_in, leaves in under.items():
        found = exp.In(this=value.copy(), expressions=[exp.convert(v) for v in leaves])
        case = case.when(found, exp.convert(stand_in), copy=False)
    return case


def _select(*columns: exp.Expr) -> exp.Select:
    return exp.select(*columns, copy=False)


def _column(name: str, table: str | None = None) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def _number(value: int) -> exp.Expr:
    return exp.convert(value)


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
        rows = _levelled(rows, request)
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
    if request.apart:
        names.append("level")
    if request.person is not None:
        rows = _placed(rows)
    query = exp.select(*map(_tally_column, names), *totals, copy=False).from_(rows.subquery("a"))
    if request.person is not None:
        bound = exp.Literal.number(request.rows_per_person)
        query = query.where(exp.LTE(this=_tally_column("place"), expression=bound))
    return query.group_by(*map(_tally_column, names)) if names else query


def _levelled(rows: exp.Select, request: BoundedTally) -> exp.Select:
    """The rows of the people whose level is kept, with the level beside them where it is told."""
    level = request.level
    assert level is not None  # noqa: S101 - asked before
    if request.person is not None:
        level = exp.Window(this=exp.Min(this=level.copy()), partition_by=[request.person.copy()])
    name = next(part for part in ("from_", "from") if rows.args.get(part) is not None)
    table = rows.args[name].this
    inner = exp.select(exp.Star(), _named(level.copy(), LEVEL), copy=False).from_(table.copy())
    rows = rows.from_(inner.subquery(table.alias_or_name), copy=False)
    at = exp.column(LEVEL, table=table.alias_or_name, quoted=True)
    rows = rows.where(
        exp.In(this=at, expressions=[exp.Literal.number(code) for code in request.kept]), copy=False
    )
    return rows.select(_named(at.copy(), "level"), copy=False) if request.apart else rows


def _placed(rows: exp.Select) -> exp.Select:
    """Each row with its place among those of its person, in an order that the engine draws."""
    place = exp.Window(
        this=exp.RowNumber(),
        partition_by=[_tally_column("person")],
        order=exp.Order(expressions=[exp.Ordered(this=_tally_column("drawn"), nulls_first=False)]),
    )
    return exp.select(exp.Star(), _named(place, "place"), copy=False).from_(rows.subquery("b"))


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
    import pyarrow as pa

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
    for key, members in groups.items():
        for name, part in zip(names, key, strict=True):
            found[name].append(part)
        found["rows"].append(len(members))
        for i, one in enumerate(request.parts):
            values = [v for row in members if (v := value(one.expression, row)) is not None]
            found.setdefault(f"n{i}", []).append(len(set(values) if one.distinct else values))
            if one.summed:
                found.setdefault(f"s{i}", []).append(sum(values))
            if one.squared:
                unit = one.squared
                squares = sum((2 * v * v + unit) // (2 * unit) for v in values)
                found.setdefault(f"q{i}", []).append(squares)
    return pa.table(found)


def _totals(i: int, part: BoundedTerm) -> list[exp.Expr]:
    value = _tally_column(f"v{i}")
    counted = exp.Distinct(expressions=[value]) if part.distinct else value
    found = [_named(exp.Count(this=counted), f"n{i}")]
    if part.summed:
        found.append(_named(_whole(exp.Sum(this=value.copy())), f"s{i}"))
    if part.squared:
        real = cast_to(value.copy(), "double")
        square = exp.Div(this=real * real.copy(), expression=_double(part.squared), typed=True)
        rounded = cast_to(exp.Floor(this=square + _double(0.5)), "bigint")
        found.append(_named(_whole(exp.Sum(this=rounded)), f"q{i}"))
    return found


def _whole(total: exp.Expr) -> exp.Expr:
    return cast_to(exp.Coalesce(this=total, expressions=[exp.Literal.number(0)]), "bigint")


def _named(node: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(node, name, quoted=True)


def _tally_column(name: str) -> exp.Column:
    return exp.column(name, quoted=True)


def join_groups(tables: Sequence[pa.Table], keys: int) -> pa.Table:
    """Put the queries' columns side by side; null is a key like any other."""
    if len(tables) == 1:
        return tables[0]
    names = ["level", *(f"g{i}" for i in range(keys))]
    ids = row_ids(tables, names)
    main = tables[0]
    for table, own in zip(tables[1:], ids[1:], strict=True):
        at = places_among(ids[0], own)
        take = np.full(main.num_rows, -1, dtype=np.int64)
        take[at] = np.arange(table.num_rows)
        picked = table.take(pa.array(take, mask=take < 0))
        for name in table.column_names:
            if name in names:
                continue
            column = picked[name]
            main = main.append_column(name, column.fill_null(0) if name.endswith("_n") else column)
    return main


def row_ids(tables: Sequence[pa.Table], names: Sequence[str]) -> list[NDArray[np.int64]]:
    """Number the distinct keys over several tables with the same key columns."""
    sizes = [t.num_rows for t in tables]
    total = np.zeros(sum(sizes), dtype=np.int64)
    for name in names:
        chunks = [comparable(c) for t in tables for c in t[name].chunks]
        whole = pa.concat_arrays(chunks) if chunks else pa.array([], tables[0][name].type)
        codes = whole.dictionary_encode(null_encoding="encode").indices
        flat = codes.to_numpy(zero_copy_only=False).astype(np.int64)
        _, total = np.unique(total * (int(flat.max(initial=0)) + 1) + flat, return_inverse=True)
    return np.split(total, np.cumsum(sizes)[:-1])


def places_among(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of ``theirs`` stands among ``ours``, which are all different.

    Raises:
        EngineError: one of them is not there; a count must never go to another group.
    """
    order = np.argsort(ours, kind="stable")
    at: NDArray[np.int64] = order[np.minimum(np.searchsorted(ours[order], theirs), len(ours) - 1)]
    if not np.array_equal(ours[at], theirs):
        raise EngineError(
            "Two queries over the same rows named a group differently, so nothing is answered: "
            "group by an expression with one spelling per value, such as CAST or LOWER."
        )
    return at


def comparable(values: pa.Array) -> pa.Array:
    """Plain values in which what SQL holds equal is the same: one zero, one NaN."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not pa.types.is_floating(values.type):
        return values
    numbers = values.to_numpy(zero_copy_only=False) + 0  # -0.0 + 0 is 0.0
    numbers[np.isnan(numbers)] = np.nan
    return pa.array(numbers, values.type, mask=values.is_null().to_numpy(zero_copy_only=False))
