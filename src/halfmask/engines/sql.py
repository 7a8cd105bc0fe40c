"""A request as SQL, the same for every engine that speaks it.

Rows are read once: the inner query groups by level, generalized keys and (where there is a single
one) the value whose distinct count is needed; the outer query counts these values. That is exact
and cheaper than COUNT(DISTINCT).

What engines that speak SQL share: every request is written for them once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from sqlglot import exp

from halfmask.engines.generalization import cast_to, rows_by_level
from halfmask.engines.request import Engine
from halfmask.engines.tallies import tally_query
from halfmask.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray
    from sqlglot.expressions import Expr, Select

    from halfmask.engines.request import AggregateState, GroupMeasure, Request
    from halfmask.engines.tallies import BoundedTally


def collect_by_sql(engine: SqlEngine, request: Request) -> pa.Table:
    """Answer ``Engine.collect`` with SQL."""
    if _is_fused(request):
        return engine.ask(_fused_query, engine, request)
    tables = [engine.ask(main_query, request)]
    tables += [engine.ask(count_query, engine, request, j) for j in range(len(request.tests))]
    return join_groups(tables, len(request.keys))


def collect_queries(engine: Engine, request: Request) -> list[exp.Select]:
    """The queries behind ``collect``: one, or one more per test where there are several."""
    if _is_fused(request):
        return [_fused_query(engine, request)]
    return [
        main_query(request),
        *(count_query(engine, request, j) for j in range(len(request.tests))),
    ]


def _is_fused(request: Request) -> bool:
    return len(request.tests) == 1 and all(s.kind != "moments" for s in request.states)


def main_query(request: Request, *more: exp.Expr) -> exp.Select:
    """Everything but the tests, and ``more``, in one pass."""
    names = key_names(request)
    return (
        _select(
            *map(column, names),
            alias(exp.Count(this=exp.Star()), "rows", quoted=True),
            *_demand_columns(request),
            *(_inside(part) for i, state in enumerate(request.states) for part in _state(i, state)),
            *more,
        )
        .from_(rows_by_level(request).subquery("b", copy=False), copy=False)
        .group_by(*map(column, names), copy=False)
    )


def measure_groups(
    engine: SqlEngine, request: Request, places: pa.Table, measures: Sequence[GroupMeasure]
) -> pa.Table:
    """Answer ``Engine.measure`` with SQL."""
    engine.add("hm_places", places)
    return engine.ask(measure_query, request, measures)


def measure_query(request: Request, measures: Sequence[GroupMeasure]) -> exp.Select:
    """The query behind ``measure``."""
    extra = {f"m{i}": m.expression for i, m in enumerate(measures)}
    rows = rows_by_level(request, extra).subquery("b", copy=False)
    everybody = alias(exp.Count(this=exp.Star()), "rows", quoted=True)
    columns: list[exp.Expr] = [column("place", "p"), everybody]
    for i, m in enumerate(measures):
        value = column(f"m{i}", "b")
        node: exp.Expr
        if m.kind == "median":
            node = exp.Median(this=bound_number(value))
        elif m.kind == "max":
            node = exp.Max(this=value)
        elif m.kind == "rows":
            node = exp.Count(this=value)
        else:
            node = exp.Count(this=exp.Distinct(expressions=[value]))
        columns.append(alias(node, f"m{i}"))
    query = rows_within(_select(*columns).from_(rows, copy=False), request)
    return query.group_by(column("place", "p"), copy=False)


def collect_parts(
    engine: SqlEngine,
    request: Request,
    places: pa.Table,
    splits: Sequence[exp.Expr],
    counted: Sequence[exp.Expr],
) -> pa.Table:
    """Answer ``Engine.parts`` with SQL."""
    engine.add("hm_places", places.select([*key_names(request), "place"]))
    return engine.ask(parts_query, request, splits, counted)


def parts_query(
    request: Request, splits: Sequence[exp.Expr], counted: Sequence[exp.Expr]
) -> exp.Select:
    """The query behind ``parts``: rows are counted per group first, where that is enough."""
    extra = {f"c{i}": split for i, split in enumerate(splits)}
    extra |= {f"d{i}": value for i, value in enumerate(counted)}
    rows = rows_by_level(request, extra)
    names = [f"c{i}" for i in range(len(splits))]
    number: exp.Expr = exp.Count(this=exp.Star())
    if not counted:
        keys = [*key_names(request), *names]
        grouped = _select(*map(column, keys), alias(number, "n"))
        grouped = grouped.from_(rows.subquery("a", copy=False), copy=False)
        rows = grouped.group_by(*map(column, keys), copy=False)
        # A sum of counts is wider than a count: HUGEINT in DuckDB, NUMERIC in PostgreSQL.
        number = cast_to(exp.Sum(this=column("n", "b")), "bigint")
    distinct = [
        alias(exp.Count(this=exp.Distinct(expressions=[column(f"d{i}", "b")])), f"d{i}")
        for i in range(len(counted))
    ]
    by = [column("place", "p"), *(column(n, "b") for n in names)]
    query = _select(*by, alias(number, "rows", quoted=True), *distinct)
    query = rows_within(query.from_(rows.subquery("b", copy=False), copy=False), request)
    return query.group_by(*(g.copy() for g in by), copy=False)


def shares(
    engine: SqlEngine, request: Request, places: pa.Table, amounts: Sequence[exp.Expr], most: int
) -> pa.Table:
    """Answer ``Engine.shares`` with SQL: one query per amount."""
    engine.add("hm_places", places)
    tables = [
        engine.ask(shares_query, request, amount, i, most) for i, amount in enumerate(amounts)
    ]
    found = tables[0].sort_by("place")
    for table in tables[1:]:
        table = table.sort_by("place")
        for name in table.column_names[1:]:
            found = found.append_column(name, table[name])
    return found


def shares_query(request: Request, amount: exp.Expr, i: int, most: int) -> exp.Select:
    """The query behind ``shares``: what each person brings, then the largest of it."""
    extra = {"x": amount} | ({"who": request.person} if request.person is not None else {})
    # Of a double that is not too large: the whole number with the most digits has no opposite.
    size = exp.Abs(this=bound_number(column("x", "b")))
    rows = _select(column("place", "p"), alias(size, "x"), alias(exp.convert(1), "c", quoted=True))
    rows = rows_within(
        rows.from_(rows_by_level(request, extra).subquery("b", copy=False), copy=False), request
    )
    if request.person is not None:
        rows = rows.select(column("who", "b"), copy=False)
        people = _select(
            column("place"),
            alias(exp.Sum(this=column("x")), "x"),
            alias(exp.Count(this=exp.Star()), "c", quoted=True),
        )
        people = people.from_(rows.subquery("e", copy=False), copy=False)
        rows = people.group_by(column("place"), column("who"), copy=False)
    rank = exp.Window(
        this=exp.RowNumber(),
        partition_by=[column("place")],
        order=exp.Order(expressions=[exp.Ordered(this=column("x"), desc=True, nulls_first=False)]),
    )
    ranked = _select(column("place"), column("x"), column("c"), alias(rank, "n"))
    ranked = ranked.from_(rows.subquery("f", copy=False), copy=False)
    largest = [
        alias(
            exp.Max(this=exp.Case().when(column("n").eq(exp.convert(j)), column("x"))), f"x{i}_{j}"
        )
        for j in range(1, most + 1)
    ]
    counted = alias(exp.cast(exp.Sum(this=column("c")), "bigint"), f"rows{i}")
    total = alias(exp.Sum(this=column("x")), f"t{i}")
    query = _select(column("place"), counted, total, *largest)
    query = query.from_(ranked.subquery("g", copy=False), copy=False)
    return query.group_by(column("place"), copy=False)


def trace_query(request: Request, columns: Mapping[str, exp.Expr]) -> exp.Select:
    """The query behind ``trace``."""
    rows = rows_by_level(request, dict(columns)).subquery("b", copy=False)
    found = _select(column("place", "p"), *(column(name, "b") for name in columns))
    return rows_within(found.from_(rows, copy=False), request)


def _fused_query(engine: Engine, request: Request) -> exp.Select:
    names = key_names(request)
    inner = _select(
        *map(column, names),
        column("v0"),
        alias(exp.Count(this=exp.Star()), "n"),
        *_demand_columns(request),
        *(part for i, state in enumerate(request.states) for part in _partial(i, state)),
    ).from_(rows_by_level(request).subquery("b", copy=False), copy=False)
    inner = inner.group_by(*map(column, names), column("v0"), copy=False)
    outer = _select(
        *map(column, names),
        alias(cast_to(exp.Sum(this=column("n")), "bigint"), "rows", quoted=True),
        *_demand_columns(request),
        alias(_count_values(request, 0), "t0_n"),
        _inside(alias(engine.capped(column("v0"), request.tests[0].cap), "t0_values")),
        *(_inside(part) for i, state in enumerate(request.states) for part in _total(i, state)),
    ).from_(inner.subquery("d", copy=False), copy=False)
    return outer.group_by(*map(column, names), copy=False)


def count_query(engine: Engine, request: Request, j: int, only: str | None = None) -> exp.Select:
    """Count one test's distinct values exactly; ``only`` in the groups that a table lists."""
    names = key_names(request)
    value = column(f"v{j}", "b")
    keys = [column(n, "b") for n in names]
    inner = _select(*keys, value)
    inner = inner.from_(rows_by_level(request).subquery("b", copy=False), copy=False)
    if only is not None:
        inner = rows_within(inner, request, only)
    inner = inner.where(value.is_(exp.null()).not_(), copy=False)
    if not request.tests[j].total:
        there = exp.GTE(this=column("level", "b"), expression=exp.convert(0))
        inner = inner.where(there, copy=False)
    inner = inner.group_by(*(k.copy() for k in keys), value.copy(), copy=False)
    found = column(f"v{j}")
    outer = _select(
        *map(column, names),
        alias(exp.Count(this=found), f"t{j}_n"),
        _inside(alias(engine.capped(found.copy(), request.tests[j].cap), f"t{j}_values")),
    ).from_(inner.subquery("d", copy=False), copy=False)
    return outer.group_by(*map(column, names), copy=False)


def rows_within(query: exp.Select, request: Request, listed: str = "hm_places") -> exp.Select:
    """The rows ``b`` of a query that stand in groups which a table, ``p``, lists."""
    join = exp.Join(this=exp.to_table(listed, alias="p"), kind="INNER", on=same_group(request))
    return query.join(join, copy=False)


def same_group(request: Request) -> exp.Expr:
    """Rows ``b`` and listed groups ``p`` have the same level and keys, nulls included."""
    return exp.and_(
        *(
            exp.NullSafeEQ(this=column(n, "b"), expression=column(n, "p"))
            for n in key_names(request)
        ),
        copy=False,
    )


def _inside(part: exp.Expr) -> exp.Expr:
    """A column of groups that is null where their people are left out: only numbers are wanted.

    What these people hold would else travel back, and what cannot be read would tell of it.
    """
    there = exp.GTE(this=column("level"), expression=exp.convert(0))
    part.set("this", exp.Case().when(there, part.this, copy=False))
    return part


def seen_number(number: exp.Expr) -> exp.Expr:
    """A number of values, which is 0 where people are left out: what they hold does not matter."""
    outside = exp.LT(this=column("level"), expression=exp.convert(0))
    return exp.Case().when(outside, exp.convert(0), copy=False).else_(number, copy=False)


def _count_values(request: Request, j: int) -> exp.Expr:
    """How many values a test counts; of those who are left out, only whom it counts."""
    number = exp.Count(this=column(f"v{j}"))
    return number if request.tests[j].total else seen_number(number)


def _state(i: int, state: AggregateState) -> list[exp.Expr]:
    value = column(f"a{i}")
    if state.kind != "moments":
        return [alias(_exact(state, _aggregate(state.kind, value)), f"s{i}")]
    number = bound_number(value)
    count = exp.Count(this=value.copy())
    # Count, mean and squared deviations can be merged; sums of squares would cancel each other.
    m2 = exp.VariancePop(this=number.copy()) * count.copy()
    return [
        alias(count, f"s{i}_n"),
        alias(exp.Avg(this=number), f"s{i}_mean"),
        alias(m2, f"s{i}_m2"),
    ]


def _partial(i: int, state: AggregateState) -> list[exp.Expr]:
    return [alias(_exact(state, _aggregate(state.kind, column(f"a{i}"))), f"p{i}")]


def _total(i: int, state: AggregateState) -> list[exp.Expr]:
    part = column(f"p{i}")
    if state.kind == "count":
        return [alias(cast_to(exp.Sum(this=part), "bigint"), f"s{i}")]
    return [alias(_exact(state, _aggregate(state.kind, part)), f"s{i}")]


def _aggregate(kind: str, value: exp.Expr) -> exp.Expr:
    nodes = {"count": exp.Count, "sum": exp.Sum, "min": exp.Min, "max": exp.Max}
    return nodes[kind](this=value)


def _exact(state: AggregateState, total: exp.Expr) -> exp.Expr:
    """Sums of whole and decimal numbers leave as decimals, so that merging them stays exact."""
    if state.kind != "sum":
        return total
    if state.of in ("integer", "boolean"):
        return cast_to(total, "decimal(38, 0)")
    return total if state.of == "decimal" else cast_to(total, "double")


def bound_number(value: exp.Expr) -> exp.Expr:
    """A number whose square can be added up; what lies beyond, and NaN, count as the limit."""
    number = cast_to(value.copy(), "double")
    high, low = (cast_to(exp.Literal.number(end), "double") for end in ("1e100", "-1e100"))
    above = exp.GT(this=number, expression=high)
    below = exp.LT(this=number.copy(), expression=low)
    case = exp.Case().when(above, high.copy(), copy=False)
    return case.when(below, low.copy(), copy=False).else_(number.copy(), copy=False)


def _demand_columns(request: Request) -> list[exp.Expr]:
    if request.demands is None:
        return []
    return [alias(exp.Max(this=column(n)), n) for n in ("k", "l")]


def key_names(request: Request) -> list[str]:
    """The columns that name a group."""
    return ["level", *(f"g{i}" for i in range(len(request.keys)))]


def _select(*columns: exp.Expr) -> exp.Select:
    return exp.select(*columns, copy=False)


def alias(node: exp.Expr, name: str, *, quoted: bool = False) -> exp.Expr:
    """A new expression under a name; it is not copied."""
    return exp.alias_(node, name, quoted=quoted, copy=False)


def table_node(name: str, alias: str | None = None) -> exp.Table:
    """A table by its name, whatever characters stand in it."""
    named = exp.Table(this=exp.to_identifier(name, quoted=True))
    if alias is not None:
        named.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return named


def column(name: str, table: str | None = None) -> exp.Column:
    """A quoted column."""
    return exp.column(name, table=table, quoted=True)


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


class SqlEngine(Engine, Protocol):
    """An engine that answers requests by running queries."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def sql(self, query: Expr) -> str:
        """The text of a query in this engine's dialect."""
        return query.sql(dialect=self.dialect, pretty=True)

    def begin(self) -> None:
        """See one state of the rows from now on, where the engine can."""
        return

    def settle(self) -> None:
        """End what ``begin`` began; what was written aside stays."""
        return

    def ask(self, make: Callable[..., Expr], *parts: Any) -> pa.Table:
        """Run the query that is made of the parts."""
        return self.run(make(*parts))

    def collect(self, request: Request) -> pa.Table:
        """Aggregate the rows into groups."""
        return collect_by_sql(self, request)

    def queries(self, request: Request) -> list[Select]:
        """The queries behind ``collect``."""
        return collect_queries(self, request)

    def measure(
        self, request: Request, places: pa.Table, measures: tuple[GroupMeasure, ...]
    ) -> pa.Table:
        """Measure the rows of each place."""
        return measure_groups(self, request, places, measures)

    def parts(
        self,
        request: Request,
        places: pa.Table,
        splits: tuple[Expr, ...],
        counted: tuple[Expr, ...],
    ) -> pa.Table:
        """Count the rows of each place for which the splits are the same."""
        return collect_parts(self, request, places, splits, counted)

    def shares(
        self, request: Request, places: pa.Table, amounts: tuple[Expr, ...], most: int
    ) -> pa.Table:
        """Add up what each person brings to each place."""
        return shares(self, request, places, amounts, most)

    def tally(self, request: BoundedTally) -> pa.Table:
        """Count and sum the bounded contributions of people."""
        return self.run(tally_query(request))

    def trace(self, request: Request, places: pa.Table, columns: Mapping[str, Expr]) -> pa.Table:
        """The rows behind each place."""
        self.add("hm_places", places)
        return self.ask(trace_query, request, columns)
