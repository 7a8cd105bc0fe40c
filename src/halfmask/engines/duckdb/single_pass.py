"""Collecting in one pass: most groups are diverse beyond any doubt, so few need to be counted.

A test only asks whether there are at least ``cap`` distinct values. Different hashes of values
cannot come from fewer values, so the number of hash buckets that a group fills is a lower bound
that one pass gives for the price of a sum; beside it, the smallest values of each group are kept,
which are all values of a small one. Where neither decides, the group is counted exactly, in a
second pass over the rows of these groups alone. What is counted below ``cap`` is exact.

A column with fewer values than ``cap`` would leave every group undecided. So of large tables a few
rows are looked at first: where a column has few values in all, bits of their hashes are taken that
tell all of them apart. Then the buckets are the values, and one pass is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from sqlglot import exp

from halfmask.engines import sql
from halfmask.engines.generalization import cast_to, rows_by_level
from halfmask.engines.sql import join_groups, places_among, row_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.engines.request import DistinctTest, Engine, Request
    from halfmask.engines.sql import SqlEngine

    Shifts = tuple[tuple[int, int], ...]

BUCKETS = 64
LARGEST_CAP = BUCKETS // 2
FEW = 24  # values that can be told apart by one bucket each, as a rule
SAMPLED = 2000  # rows that say whether it is worth to look for all values
OPEN, NEEDED = "hm_open", "hm_needed"


@dataclass(frozen=True, slots=True, eq=False)
class FewValues:
    """All values of a column that has few.

    Attributes:
        values: each once; none is null.
        shift: how far hashes are shifted, so that each value has a bucket of its own.
        buckets: per value.
    """

    values: pa.Array
    shift: int
    buckets: NDArray[np.uint64]


def collect_bounded(engine: SqlEngine, request: Request, *, large: bool = False) -> pa.Table:
    """Answer ``Engine.collect``, counting exactly only where a bound does not decide.

    ``large``: there are so many rows that it pays to look for columns with few values first.
    """
    bounded = [j for j, test in enumerate(request.tests) if _suits(test)]
    if not bounded:
        return sql.collect_by_sql(engine, request)
    few: dict[int, FewValues] = {}
    for j in bounded if large else ():
        known = few_values(engine, request, request.tests[j].expression)
        few |= {} if known is None else {j: known}
    shifts = tuple((j, known.shift) for j, known in few.items())
    exact = [j for j in range(len(request.tests)) if j not in bounded]
    tables = [engine.ask(_first, engine, request, shifts)]
    tables += [engine.ask(sql.count_query, engine, request, j) for j in exact]
    found = join_groups(tables, len(request.keys))
    for j, known in few.items():
        found = _list_values(found, j, known, request.tests[j].cap)
    for j in bounded:
        undecided = found.filter(found[f"t{j}_n"].is_null())
        if undecided.num_rows:
            engine.add(OPEN, undecided.select(sql.key_names(request)))
            counted = engine.ask(sql.count_query, engine, request, j, OPEN)
            found = _replace_undecided(found, counted, j, sql.key_names(request))
    return found


def parts_bounded(
    engine: SqlEngine,
    request: Request,
    places: pa.Table,
    splits: Sequence[exp.Expr],
    counted: Sequence[exp.Expr],
    *,
    large: bool = False,
) -> pa.Table:
    """Answer ``Engine.parts``, counting values exactly only where a bound does not decide."""
    if not counted or "needed" not in places.column_names:
        return sql.collect_parts(engine, request, places, splits, counted)
    engine.add(NEEDED, places)
    few = [few_values(engine, request, value) if large else None for value in counted]
    shifts = tuple(known.shift if known is not None else 0 for known in few)
    found = engine.ask(_bounded_parts, request, splits, counted, shifts)
    open_ = np.zeros(found.num_rows, dtype=bool)
    for i in (i for i, known in enumerate(few) if known is None):
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


def few_values(engine: SqlEngine, request: Request, value: exp.Expr) -> FewValues | None:
    """All values of a column that has few, each with a bucket of its own; else None.

    Rows that are left out are not looked at. A value that comes later shares a bucket at worst:
    then there are fewer buckets than values, never more.
    """
    if engine.ask(_different_values, request, value, SAMPLED).num_rows > FEW:
        return None
    found = engine.ask(_different_values, request, value)
    if found.num_rows > FEW:
        return None
    hashes = found["h"].to_numpy().astype(np.uint64)
    # Any stretch of a hash's bits that names a bucket may tell the values apart.
    for shift in range(64 - BUCKETS.bit_length() + 2):
        buckets = (hashes >> np.uint64(shift)) & np.uint64(BUCKETS - 1)
        if len(np.unique(buckets)) == len(hashes):
            values = found["v"].combine_chunks()
            if isinstance(values, pa.ChunkedArray):
                values = pa.concat_arrays(values.chunks) if values.num_chunks else None
            return None if values is None else FewValues(values, shift, buckets)
    return None


def _different_values(request: Request, value: exp.Expr, most: int | None = None) -> exp.Select:
    """Different values with their hashes, one more than are few at most.

    ``most``: of so many rows only; those that are left out are never looked at.
    """
    rows = rows_by_level(request, {"hm_v": value}).subquery("b", copy=False)
    there = exp.GTE(this=sql.column("level"), expression=exp.convert(0))
    known = sql.column("hm_v").is_(exp.null()).not_()
    seen = exp.select(sql.alias(sql.column("hm_v"), "v"), copy=False).from_(rows, copy=False)
    seen = seen.where(there, known, copy=False)
    if most is not None:
        seen = seen.limit(most, copy=False)
    values = exp.select(sql.column("v"), copy=False).from_(seen.subquery("c", copy=False))
    values = values.distinct(copy=False).limit(FEW + 1, copy=False)
    number = sql.alias(exp.Anonymous(this="HASH", expressions=[sql.column("v")]), "h")
    hashed = exp.select(sql.column("v"), number, copy=False)
    return hashed.from_(values.subquery("d", copy=False), copy=False)


def _list_values(found: pa.Table, j: int, known: FewValues, cap: int) -> pa.Table:
    """Put the values, and how many there are, in the place of the buckets that they fill."""
    filled = found[f"t{j}_filled"].fill_null(0).to_numpy().astype(np.uint64)
    there = ((filled[:, None] >> known.buckets[None, :]) & np.uint64(1)).astype(bool)
    count = there.sum(axis=1, dtype=np.int64)
    there[(count >= cap) | (found["level"].to_numpy() < 0)] = False
    starts = np.concatenate(([0], np.cumsum(there.sum(axis=1)))).astype(np.int32)
    values = known.values.take(pa.array(np.nonzero(there)[1]))
    found = found.drop_columns([f"t{j}_filled"]).append_column(f"t{j}_n", pa.array(count))
    return found.append_column(f"t{j}_values", pa.ListArray.from_arrays(pa.array(starts), values))


def _bounded_parts(
    request: Request,
    splits: Sequence[exp.Expr],
    counted: Sequence[exp.Expr],
    shifts: Sequence[int],
) -> exp.Select:
    """Rows and hash buckets per group and part first, then per place: no row is joined."""
    extra = {f"c{i}": split for i, split in enumerate(splits)}
    extra |= {f"d{i}": value for i, value in enumerate(counted)}
    parts_ = [f"c{i}" for i in range(len(splits))]
    keys = [*sql.key_names(request), *parts_]
    inner = exp.select(
        *map(sql.column, keys),
        sql.alias(exp.Count(this=exp.Star()), "n"),
        *(sql.alias(_bucket_bits(sql.column(f"d{i}"), s), f"b{i}") for i, s in enumerate(shifts)),
        copy=False,
    ).from_(rows_by_level(request, extra).subquery("a", copy=False), copy=False)
    inner = inner.group_by(*map(sql.column, keys), copy=False)
    grouped = [sql.column("place", "p"), *(sql.column(name, "b") for name in parts_)]
    needed = ["needed", *(f"need{i}" for i in range(len(counted)))]
    query = exp.select(
        *grouped,
        sql.alias(cast_to(exp.Sum(this=sql.column("n", "b")), "bigint"), "rows", quoted=True),
        *(sql.alias(_bits(_unite(sql.column(f"b{i}", "b"))), f"d{i}") for i in range(len(counted))),
        *(sql.alias(exp.Max(this=sql.column(name, "p")), name) for name in needed),
        copy=False,
    ).from_(inner.subquery("b", copy=False), copy=False)
    query = sql.rows_within(query, request, NEEDED)
    return query.group_by(*(g.copy() for g in grouped), copy=False)


def bounded_queries(engine: SqlEngine, request: Request) -> list[exp.Select]:
    """The queries behind ``collect_bounded``; the last run only where groups are undecided.

    Of a column with few values it is known before which buckets they fill, and none is undecided.
    """
    bounded = [j for j, test in enumerate(request.tests) if _suits(test)]
    if not bounded:
        return sql.collect_queries(engine, request)
    exact = [j for j in range(len(request.tests)) if j not in bounded]
    again = [sql.count_query(engine, request, j, OPEN) for j in bounded]
    return [
        _first(engine, request),
        *(sql.count_query(engine, request, j) for j in exact),
        *again,
    ]


def _suits(test: DistinctTest) -> bool:
    return not test.total and test.cap <= LARGEST_CAP


def _first(engine: Engine, request: Request, shifts: Shifts = ()) -> exp.Select:
    """Everything in one pass but what is always counted exactly; ``shifts``: of few values."""
    few = dict(shifts)
    parts: list[exp.Expr] = []
    decided: list[exp.Expr] = []
    for j, test in enumerate(request.tests):
        value = sql.column(f"v{j}")
        if j in few:
            parts.append(sql.alias(_bucket_bits(value, few[j]), f"t{j}_filled"))
            decided.append(sql.column(f"t{j}_filled"))
        elif _suits(test):
            parts += [
                sql.alias(exp.Count(this=value), f"t{j}_rows"),
                sql.alias(_buckets(value), f"t{j}_least"),
                sql.alias(engine.capped(value, _window(test)), f"t{j}_some"),
            ]
            decided += _distinct_values(j, test)
    inner = sql.main_query(request, *parts)
    kept = inner.expressions[: len(inner.expressions) - len(parts)]
    columns = [*(sql.column(e.alias_or_name) for e in kept), *decided]
    return exp.select(*columns, copy=False).from_(inner.subquery("e", copy=False), copy=False)


def _window(test: DistinctTest) -> int:
    # The smallest values come with their repetitions: twice as many decide more of the groups.
    return 2 * test.cap


def _buckets(value: exp.Expr) -> exp.Expr:
    """How many hash buckets the values fill: never more than there are distinct values."""
    return _bits(_bucket_bits(value))


def _bucket_bits(value: exp.Expr, shift: int = 0) -> exp.Expr:
    """The hash buckets that the values fill, as bits."""
    number: exp.Expr = exp.Anonymous(this="HASH", expressions=[value.copy()])
    if shift:
        moved = exp.BitwiseRightShift(this=number, expression=exp.convert(shift))
        number = exp.paren(moved, copy=False)
    bucket = exp.BitwiseAnd(this=number, expression=exp.convert(BUCKETS - 1))
    # Of a number without a sign: the last of the 64 buckets has the bit that would be the sign.
    bit = exp.BitwiseLeftShift(
        this=exp.cast(exp.convert(1), exp.DataType.Type.UBIGINT),
        expression=exp.paren(bucket, copy=False),
    )
    present = exp.Case().when(value.copy().is_(exp.null()).not_(), bit, copy=False)
    return _unite(present)


def _unite(bits: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="BIT_OR", expressions=[bits])


def _bits(filled: exp.Expr) -> exp.Expr:
    number = cast_to(exp.Anonymous(this="BIT_COUNT", expressions=[filled]), "bigint")
    return exp.Coalesce(this=number, expressions=[exp.convert(0)])


def _distinct_values(j: int, test: DistinctTest) -> list[exp.Expr]:
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
        sql.alias(sql.seen_number(count), f"t{j}_n"),
        sql.alias(
            exp.Case().when(exp.and_(there, few, copy=False), listed, copy=False), f"t{j}_values"
        ),
    ]


def _replace_undecided(found: pa.Table, counted: pa.Table, j: int, names: list[str]) -> pa.Table:
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
