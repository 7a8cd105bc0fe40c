"""Collecting in one pass: most groups are diverse beyond any doubt, so few need to be counted.

A test only asks whether there are at least ``cap`` distinct values. Different hashes of values
cannot come from fewer values, so the number of hash buckets that a group fills is a lower bound
that one pass gives for the price of a sum; beside it, the smallest values of each group are kept,
which are all values of a small one. Where neither decides, the group is counted exactly, in a
second pass over the rows of these groups alone. What is counted below ``cap`` is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from sqlglot import exp

from halfmask.engines import levels, sql
from halfmask.engines.levels import join_groups, places_among, row_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.engines.request import DistinctTest, Engine, Request

BUCKETS = 64
LARGEST_CAP = BUCKETS // 2
OPEN = "hm_open"


def collect_bounded(engine: Engine, request: Request) -> pa.Table:
    """Answer ``Engine.collect``, counting exactly only where a bound does not decide."""
    bounded = [j for j, test in enumerate(request.tests) if _suits(test)]
    if not bounded:
        return sql.collect_by_sql(engine, request)
    found = join_groups([engine.run(q) for q in _first(engine, request)], len(request.keys))
    for j in bounded:
        undecided = found.filter(found[f"t{j}_n"].is_null())
        if undecided.num_rows:
            engine.add(OPEN, undecided.select(sql.key_names(request)))
            counted = engine.run(sql.count_query(engine, request, j, OPEN))
            found = _settled(found, counted, j, sql.key_names(request))
    return found


def parts_bounded(
    engine: Engine,
    request: Request,
    places: pa.Table,
    splits: Sequence[exp.Expr],
    counted: Sequence[exp.Expr],
) -> pa.Table:
    """Answer ``Engine.parts``, counting values exactly only where a bound does not decide."""
    if not counted or "needed" not in places.column_names:
        return sql.collect_parts(engine, request, places, splits, counted)
    engine.add("hm_places", places)
    found = engine.run(_bounded_parts(request, splits, counted))
    open_ = np.zeros(found.num_rows, dtype=bool)
    for i in range(len(counted)):
        values, needed = found[f"d{i}"].to_numpy(), found[f"need{i}"].to_numpy()
        open_ |= (values > 0) & (values < needed)
    open_ &= found["rows"].to_numpy() >= found["needed"].to_numpy()
    found = found.drop_columns(["needed", *(f"need{i}" for i in range(len(counted)))])
    again = np.unique(found["place"].to_numpy()[open_])
    if not len(again):
        return found
    inside = np.isin(places["place"].to_numpy(), again)
    exact = sql.collect_parts(engine, request, places.filter(pa.array(inside)), splits, counted)
    rest = found.filter(pa.array(~np.isin(found["place"].to_numpy(), again)))
    return pa.concat_tables([rest, exact.cast(rest.schema)])


def _bounded_parts(
    request: Request, splits: Sequence[exp.Expr], counted: Sequence[exp.Expr]
) -> exp.Select:
    """Rows and hash buckets per group and part first, then per place: no row is joined."""
    extra = {f"c{i}": split for i, split in enumerate(splits)}
    extra |= {f"d{i}": value for i, value in enumerate(counted)}
    parts_ = [f"c{i}" for i in range(len(splits))]
    keys = [*sql.key_names(request), *parts_]
    inner = exp.select(
        *map(sql.column, keys),
        sql.alias(exp.Count(this=exp.Star()), "n"),
        *(sql.alias(_filled(sql.column(f"d{i}")), f"b{i}") for i in range(len(counted))),
        copy=False,
    ).from_(levels.rows_by_level(request, extra).subquery("a", copy=False), copy=False)
    inner = inner.group_by(*map(sql.column, keys), copy=False)
    grouped = [sql.column("place", "p"), *(sql.column(name, "b") for name in parts_)]
    needed = ["needed", *(f"need{i}" for i in range(len(counted)))]
    query = exp.select(
        *grouped,
        sql.alias(
            levels.cast_to(exp.Sum(this=sql.column("n", "b")), "bigint"), "rows", quoted=True
        ),
        *(
            sql.alias(_bits(_united(sql.column(f"b{i}", "b"))), f"d{i}")
            for i in range(len(counted))
        ),
        *(sql.alias(exp.Max(this=sql.column(name, "p")), name) for name in needed),
        copy=False,
    ).from_(inner.subquery("b", copy=False), copy=False)
    query = sql.rows_within(query, request)
    return query.group_by(*(g.copy() for g in grouped), copy=False)


def bounded_queries(engine: Engine, request: Request) -> list[exp.Select]:
    """The queries behind ``collect_bounded``; the last run only where groups are undecided."""
    bounded = [j for j, test in enumerate(request.tests) if _suits(test)]
    if not bounded:
        return sql.collect_queries(engine, request)
    again = [sql.count_query(engine, request, j, OPEN) for j in bounded]
    return [*_first(engine, request), *again]


def _suits(test: DistinctTest) -> bool:
    return not test.total and test.cap <= LARGEST_CAP


def _first(engine: Engine, request: Request) -> list[exp.Select]:
    parts: list[exp.Expr] = []
    decided: list[exp.Expr] = []
    for j, test in enumerate(request.tests):
        if _suits(test):
            value = sql.column(f"v{j}")
            parts += [
                sql.alias(exp.Count(this=value), f"t{j}_rows"),
                sql.alias(_buckets(value), f"t{j}_least"),
                sql.alias(engine.capped(value, _window(test)), f"t{j}_some"),
            ]
            decided += _decided(j, test)
    inner = sql.main_query(request, *parts)
    kept = inner.expressions[: len(inner.expressions) - len(parts)]
    columns = [*(sql.column(e.alias_or_name) for e in kept), *decided]
    exact = [j for j, test in enumerate(request.tests) if not _suits(test)]
    return [
        exp.select(*columns, copy=False).from_(inner.subquery("e", copy=False), copy=False),
        *(sql.count_query(engine, request, j) for j in exact),
    ]


def _window(test: DistinctTest) -> int:
    return 2 * test.cap


def _buckets(value: exp.Expr) -> exp.Expr:
    """How many hash buckets the values fill: never more than there are distinct values."""
    return _bits(_filled(value))


def _filled(value: exp.Expr) -> exp.Expr:
    """The hash buckets that the values fill, as bits."""
    bucket = exp.BitwiseAnd(
        this=exp.Anonymous(this="HASH", expressions=[value.copy()]),
        expression=exp.convert(BUCKETS - 1),
    )
    bit = exp.BitwiseLeftShift(
        this=exp.cast(exp.convert(1), exp.DataType.Type.UBIGINT),
        expression=exp.paren(bucket, copy=False),
    )
    present = exp.Case().when(value.copy().is_(exp.null()).not_(), bit, copy=False)
    return _united(present)


def _united(bits: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="BIT_OR", expressions=[bits])


def _bits(filled: exp.Expr) -> exp.Expr:
    number = levels.cast_to(exp.Anonymous(this="BIT_COUNT", expressions=[filled]), "bigint")
    return exp.Coalesce(this=number, expressions=[exp.convert(0)])


def _decided(j: int, test: DistinctTest) -> list[exp.Expr]:
    """The number of distinct values (null: undecided) and, below ``cap``, the values."""
    least, some = sql.column(f"t{j}_least"), sql.column(f"t{j}_some")
    listed = exp.Anonymous(this="LIST_DISTINCT", expressions=[some])
    number = exp.Coalesce(
        this=exp.Anonymous(this="LEN", expressions=[listed.copy()]),
        expressions=[exp.convert(0)],
    )
    all_listed = exp.LTE(this=sql.column(f"t{j}_rows"), expression=exp.convert(_window(test)))
    enough = exp.GTE(this=number.copy(), expression=exp.convert(test.cap))
    count = (
        exp.Case()
        .when(
            exp.GTE(this=least.copy(), expression=exp.convert(test.cap)), least.copy(), copy=False
        )
        .when(exp.or_(all_listed, enough, copy=False), number, copy=False)
    )
    few = exp.LT(this=least.copy(), expression=exp.convert(test.cap))
    there = exp.GTE(this=sql.column("level"), expression=exp.convert(0))
    return [
        sql.alias(count, f"t{j}_n"),
        sql.alias(
            exp.Case().when(exp.and_(there, few, copy=False), listed, copy=False), f"t{j}_values"
        ),
    ]


def _settled(found: pa.Table, counted: pa.Table, j: int, names: list[str]) -> pa.Table:
    """Put the exact counts in the place of the undecided ones."""
    import pyarrow as pa

    ours, theirs = row_ids([found, counted], names)
    take = np.arange(found.num_rows)
    take[places_among(ours, theirs)] = found.num_rows + np.arange(counted.num_rows)
    for name in (f"t{j}_n", f"t{j}_values"):
        both = pa.chunked_array([*found[name].chunks, *counted[name].cast(found[name].type).chunks])
        position = found.column_names.index(name)
        found = found.set_column(position, name, both.take(pa.array(take)))
    return found
