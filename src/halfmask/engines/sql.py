"""A request as SQL, the same for every engine that speaks it.

Rows are read once: the inner query groups by level, generalized keys and (where there is a single
one) the value whose distinct count is needed; the outer query counts these values. That is exact
and cheaper than COUNT(DISTINCT).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from sqlglot import exp

from halfmask.engines.request import (
    REFUSED,
    WITHOUT_POLICY,
    Climb,
    Engine,
    Interval,
    Key,
    Measure,
    Request,
    Rule,
    State,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def collect(engine: Engine, request: Request) -> pa.Table:
    """Answer ``Engine.collect`` with SQL."""
    queries = collect_queries(engine, request)
    tables = [engine.run(query) for query in queries]
    return tables[0] if len(tables) == 1 else _joined(tables, len(request.keys))


def collect_queries(engine: Engine, request: Request) -> list[exp.Select]:
    """The queries behind ``collect``: one, or one more per test where there are several."""
    fused = len(request.tests) == 1 and all(s.kind != "moments" for s in request.states)
    if fused:
        return [_fused(engine, request)]
    main = _select(
        *_keys(request),
        exp.alias_(exp.Count(this=exp.Star()), "rows", quoted=True),
        *_demand_columns(request),
        *(part for i, state in enumerate(request.states) for part in _state(i, state)),
    ).from_(levelled(request).subquery("b"))
    return [
        _grouped(main, request),
        *(_test(engine, request, j) for j in range(len(request.tests))),
    ]


def measure(
    engine: Engine, request: Request, places: pa.Table, measures: Sequence[Measure]
) -> pa.Table:
    """Answer ``Engine.measure`` with SQL."""
    engine.add("hm_places", places)
    return engine.run(measure_query(request, measures))


def measure_query(request: Request, measures: Sequence[Measure]) -> exp.Select:
    """The query behind ``measure``."""
    extra = {f"m{i}": m.expression for i, m in enumerate(measures)}
    rows = levelled(request, extra).subquery("b")
    names = ["level", *(f"g{i}" for i in range(len(request.keys)))]
    match = exp.and_(
        *(exp.NullSafeEQ(this=_column(n, "b"), expression=_column(n, "p")) for n in names)
    )
    columns: list[exp.Expr] = [_column("place", "p")]
    for i, m in enumerate(measures):
        value = _column(f"m{i}", "b")
        node: exp.Expr
        if m.kind == "median":
            node = exp.Median(this=value)
        elif m.kind == "max":
            node = exp.Max(this=value)
        elif m.kind == "rows":
            node = exp.Count(this=value)
        else:
            node = exp.Count(this=exp.Distinct(expressions=[value]))
        columns.append(exp.alias_(node, f"m{i}"))
    query = _select(*columns).from_(rows)
    query = query.join(exp.to_table("hm_places", alias="p"), on=match, join_type="inner")
    return query.group_by(_column("place", "p"))


def levelled(request: Request, extra: dict[str, exp.Expr] | None = None) -> exp.Select:
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
        rows = rows.select(exp.alias_(expression.copy(), name, quoted=True), copy=False)
    if not columns:
        rows = rows.select(exp.alias_(exp.Literal.number(1), "one"), copy=False)
    kept = [n for n in columns if not n.startswith("r") and n != "person"]
    placed = _select(
        exp.alias_(level_of(request), "level"),
        *(_column(f"r{i}") for i in range(len(request.keys))),
        *(_column(n) for n in kept),
    ).from_(rows.subquery("a"))
    return _select(
        _column("level"),
        *(exp.alias_(generalized(key, i), f"g{i}") for i, key in enumerate(request.keys)),
        *(_column(n) for n in kept),
    ).from_(placed.subquery("c"))


def level_of(request: Request) -> exp.Expr:
    """The finest level whose guarantee covers a person's demands."""
    case = exp.Case()
    if request.person is not None:
        case = case.when(_column("person").is_(exp.null()), _number(WITHOUT_POLICY))
    if request.demands is None:
        first = _number(0)
        return case.else_(first) if request.person is not None else first
    k, l = _column("k"), _column("l")
    missing = exp.or_(k.is_(exp.null()), l.is_(exp.null()))
    case = case.when(missing, _number(request.missing))
    for level, (k_level, l_level) in enumerate(request.guarantees):
        covers = exp.and_(k <= _number(k_level), l <= _number(l_level))
        case = case.when(covers, _number(level))
    return case.else_(_number(REFUSED))


def generalized(key: Key, index: int) -> exp.Expr:
    """The key at the row's own level; null where it has been taken away."""
    value = _column(f"r{index}")
    case = exp.Case()
    case = case.when(exp.LT(this=_column("level"), expression=_number(0)), exp.null())
    current = 0
    result: exp.Expr = value
    for level, depth in enumerate(key.depths):
        if depth != current:
            if level:
                below = exp.LT(this=_column("level"), expression=_number(level))
                case = case.when(below, result.copy())
            current, result = depth, apply(key.rules[depth - 1], value, key)
    return case.else_(result)


def apply(rule: Rule, value: exp.Expr, key: Key) -> exp.Expr:
    """One generalization of a value as it stands in the rows."""
    if isinstance(rule, Interval):
        if key.kind in ("integer", "decimal"):
            width = _number(rule.width)
            rest = exp.Mod(
                this=exp.paren(exp.Mod(this=value.copy(), expression=width) + width.copy()),
                expression=width.copy(),
            )
            return value.copy() - exp.paren(rest)
        width = exp.cast(_number(rule.width), "double")
        return (
            exp.Floor(this=exp.Div(this=value.copy(), expression=width, typed=True)) * width.copy()
        )
    if isinstance(rule, Climb):
        return _climbed(rule, value)
    return exp.null()


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
        case = case.when(found, exp.convert(stand_in))
    return case


def _fused(engine: Engine, request: Request) -> exp.Select:
    names = _key_names(request)
    inner = _select(
        *map(_column, names),
        _column("v0"),
        exp.alias_(exp.Count(this=exp.Star()), "n"),
        *_demand_columns(request),
        *(part for i, state in enumerate(request.states) for part in _partial(i, state)),
    ).from_(levelled(request).subquery("b"))
    inner = inner.group_by(*map(_column, names), _column("v0"))
    outer = _select(
        *map(_column, names),
        exp.alias_(exp.cast(exp.Sum(this=_column("n")), "bigint"), "rows", quoted=True),
        *_demand_columns(request),
        exp.alias_(exp.Count(this=_column("v0")), "t0_n"),
        exp.alias_(engine.capped(_column("v0"), request.tests[0].cap), "t0_values"),
        *(part for i, state in enumerate(request.states) for part in _total(i, state)),
    ).from_(inner.subquery("d"))
    return outer.group_by(*map(_column, names))


def _test(engine: Engine, request: Request, j: int) -> exp.Select:
    names = _key_names(request)
    value = _column(f"v{j}")
    inner = _select(*map(_column, names), value).from_(levelled(request).subquery("b"))
    inner = inner.where(value.is_(exp.null()).not_()).group_by(*map(_column, names), value)
    outer = _select(
        *map(_column, names),
        exp.alias_(exp.Count(this=value.copy()), f"t{j}_n"),
        exp.alias_(engine.capped(value.copy(), request.tests[j].cap), f"t{j}_values"),
    ).from_(inner.subquery("d"))
    return outer.group_by(*map(_column, names))


def _state(i: int, state: State) -> list[exp.Expr]:
    value = _column(f"a{i}")
    if state.kind != "moments":
        return [exp.alias_(_exact(state, _aggregate(state.kind, value)), f"s{i}")]
    number = exp.cast(value, "double")
    count = exp.Count(this=value.copy())
    m2 = exp.VariancePop(this=number.copy()) * count.copy()
    return [
        exp.alias_(count, f"s{i}_n"),
        exp.alias_(exp.Avg(this=number), f"s{i}_mean"),
        exp.alias_(m2, f"s{i}_m2"),
    ]


def _partial(i: int, state: State) -> list[exp.Expr]:
    return [exp.alias_(_aggregate(state.kind, _column(f"a{i}")), f"p{i}")]


def _total(i: int, state: State) -> list[exp.Expr]:
    part = _column(f"p{i}")
    if state.kind == "count":
        return [exp.alias_(exp.cast(exp.Sum(this=part), "bigint"), f"s{i}")]
    return [exp.alias_(_exact(state, _aggregate(state.kind, part)), f"s{i}")]


def _aggregate(kind: str, value: exp.Expr) -> exp.Expr:
    nodes = {"count": exp.Count, "sum": exp.Sum, "min": exp.Min, "max": exp.Max}
    return nodes[kind](this=value)


def _exact(state: State, total: exp.Expr) -> exp.Expr:
    """Sums of whole and decimal numbers leave as decimals, so that merging them stays exact."""
    if state.kind != "sum":
        return total
    if state.of in ("integer", "boolean"):
        return exp.cast(total, "decimal(38, 0)")
    return total if state.of == "decimal" else exp.cast(total, "double")


def _demand_columns(request: Request) -> list[exp.Expr]:
    if request.demands is None:
        return []
    return [exp.alias_(exp.Max(this=_column(n)), n) for n in ("k", "l")]


def _key_names(request: Request) -> list[str]:
    return ["level", *(f"g{i}" for i in range(len(request.keys)))]


def _keys(request: Request) -> list[exp.Expr]:
    return [_column(n) for n in _key_names(request)]


def _grouped(query: exp.Select, request: Request) -> exp.Select:
    return query.group_by(*_keys(request))


def _select(*columns: exp.Expr) -> exp.Select:
    return exp.select(*columns, copy=False)


def _column(name: str, table: str | None = None) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def _number(value: int) -> exp.Expr:
    return exp.convert(value)


def _joined(tables: list[pa.Table], keys: int) -> pa.Table:
    """Put the queries' columns side by side; null is a key like any other."""
    names = ["level", *(f"g{i}" for i in range(keys))]
    ids = row_ids(tables, names)
    main = tables[0]
    order = {int(v): i for i, v in enumerate(ids[0])}
    for table, own in zip(tables[1:], ids[1:], strict=True):
        at = np.array([order[int(v)] for v in own], dtype=np.int64)
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
        chunks = [c for t in tables for c in _plain(t[name]).chunks]
        whole = pa.concat_arrays(chunks) if chunks else pa.array([], _plain(tables[0][name]).type)
        codes = whole.dictionary_encode(null_encoding="encode").indices
        flat = codes.to_numpy(zero_copy_only=False).astype(np.int64)
        _, total = np.unique(total * (int(flat.max(initial=0)) + 1) + flat, return_inverse=True)
    return np.split(total, np.cumsum(sizes)[:-1])


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column
