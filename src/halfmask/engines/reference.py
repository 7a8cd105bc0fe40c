"""Plain Python over rows in lists: slow, short, and the oracle that all engines are held to."""

from __future__ import annotations

from decimal import Decimal
from math import isnan
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from halfmask.engines.expressions import evaluate_row, joined_rows, small_query, sort_key, type_of
from halfmask.engines.generalization import lower_edge
from halfmask.engines.request import (
    REFUSED,
    AggregateState,
    Climb,
    GroupMeasure,
    Interval,
    Key,
    Request,
    RowOrigin,
)
from halfmask.engines.tallies import reference_tally

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlglot import exp
    from sqlglot.expressions import Expr

    from halfmask.engines.expressions import Row
    from halfmask.engines.tallies import BoundedTally


class Reference:
    """Rows in lists."""

    name = "reference"
    dialect = "duckdb"

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._tables = {name: _plain(rows) for name, rows in tables.items()}
        self.given = tuple(tables)

    def columns(self, table: str) -> dict[str, pa.DataType] | None:
        """The columns of a table; None where there is no such table."""
        rows = self._tables.get(table)
        return None if rows is None else {f.name: f.type for f in rows.schema}

    def sql(self, query: Expr) -> str:
        """The text of a query."""
        return query.sql(dialect=self.dialect, pretty=True)

    def add(self, name: str, rows: pa.Table) -> None:
        """Bring a small table along."""
        self._tables[name] = _plain(rows)

    def fingerprint(self, table: str) -> str:
        """A text that changes where the table's rows change."""
        from hashlib import sha256

        rows = sorted(map(repr, self._tables[table].to_pylist()))
        return f"reference:{sha256(repr(rows).encode()).hexdigest()}"

    def close(self) -> None:
        """Nothing was opened."""

    def capped(self, value: Expr, count: int) -> Expr:  # noqa: ARG002
        """Lists are never cut here."""
        return value

    def run(self, query: Expr) -> pa.Table:
        """Evaluate the simple queries that planning asks: types, distinct values, counts."""
        return small_query(self._rows, self._tables, query)

    def collect(self, request: Request) -> pa.Table:
        """Aggregate the rows into groups, one row after the other."""
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in self._rows(request.source):
            groups.setdefault(self._group(request, row), []).append(row)
        return _table(request, groups, self._types(request))

    def queries(self, request: Request) -> list[exp.Select]:
        """What an engine that speaks SQL would be asked."""
        from halfmask.engines.sql import collect_queries

        return collect_queries(self, request)

    def measure(
        self, request: Request, places: pa.Table, measures: tuple[GroupMeasure, ...]
    ) -> pa.Table:
        """Measure the rows of each place."""
        inside = self._inside(request, places)
        out: dict[str, list[Any]] = {"place": list(inside)}
        out["rows"] = [len(rows) for rows in inside.values()]
        for i, m in enumerate(measures):
            out[f"m{i}"] = [_measure(m, rows) for rows in inside.values()]
        return pa.table(out)

    def parts(
        self,
        request: Request,
        places: pa.Table,
        splits: tuple[Expr, ...],
        counted: tuple[Expr, ...],
    ) -> pa.Table:
        """Count the rows of each place for which the splits are the same."""
        found: dict[tuple[Any, ...], list[Row]] = {}
        for place, rows in self._inside(request, places).items():
            for row in rows:
                key = (place, *(evaluate_row(s, row) for s in splits))
                found.setdefault(key, []).append(row)
        out: dict[str, list[Any]] = {"place": [key[0] for key in found]}
        for i in range(len(splits)):
            out[f"c{i}"] = [key[i + 1] for key in found]
        out["rows"] = [len(rows) for rows in found.values()]
        for i, value in enumerate(counted):
            out[f"d{i}"] = [len(set(_values(value, rows))) for rows in found.values()]
        return pa.table(out)

    def shares(
        self, request: Request, places: pa.Table, amounts: tuple[Expr, ...], most: int
    ) -> pa.Table:
        """Add up what each person brings to each place."""
        inside = self._inside(request, places)
        out: dict[str, list[Any]] = {"place": list(inside)}
        for i, amount in enumerate(amounts):
            brought = [_brought(request, amount, rows) for rows in inside.values()]
            out[f"rows{i}"] = [len(rows) for rows in inside.values()]
            out[f"t{i}"] = [sum(one) if one else None for one in brought]
            for j in range(1, most + 1):
                out[f"x{i}_{j}"] = [one[j - 1] if len(one) >= j else None for one in brought]
        return pa.table(out)

    def _group(self, request: Request, row: Row) -> tuple[Any, ...]:
        """The level that a row is shown at, and its keys there."""
        level = self._level(request, row)
        values = (evaluate_row(key.expression, row) for key in request.keys)
        shown = (generalize(k, level, v) for k, v in zip(request.keys, values, strict=True))
        return level, *shown

    def _inside(self, request: Request, places: pa.Table) -> dict[int, list[Row]]:
        """The rows of each place."""
        names = ["level", *(f"g{i}" for i in range(len(request.keys)))]
        at = {tuple(p[n] for n in names): p["place"] for p in places.to_pylist()}
        inside: dict[int, list[Row]] = {}
        for row in self._rows(request.source):
            key = self._group(request, row)
            if key in at:
                inside.setdefault(at[key], []).append(row)
        return inside

    def tally(self, request: BoundedTally) -> pa.Table:
        """Count and sum the bounded contributions of people; the first rows of each are kept."""
        everybody = request.source.copy()
        everybody.set("where", None)
        rows = self._rows(request.source)
        return reference_tally(request, rows, self._rows(everybody), evaluate_row)

    def trace(self, request: Request, places: pa.Table, columns: Mapping[str, Expr]) -> pa.Table:
        """The rows behind each place, one by one."""
        names = ["level", *(f"g{i}" for i in range(len(request.keys)))]
        at = {tuple(p[n] for n in names): p["place"] for p in places.to_pylist()}
        out: dict[str, list[Any]] = {name: [] for name in ("place", *columns)}
        for row in self._rows(request.source):
            level = self._level(request, row)
            keys = [generalize(k, level, evaluate_row(k.expression, row)) for k in request.keys]
            place = at.get((level, *keys))
            if place is not None:
                out["place"].append(place)
                for name, expression in columns.items():
                    out[name].append(evaluate_row(expression, row))
        return pa.table(out)

    def definition(self, table: str) -> str | None:  # noqa: ARG002
        """There are no views here."""
        return None

    def row_origin(self, table: str, schema: str = "") -> RowOrigin | None:  # noqa: ARG002
        """All tables are rows in memory."""
        return None

    def _level(self, request: Request, row: Row) -> int:
        if request.person is not None and evaluate_row(request.person, row) is None:
            return -2
        if request.demands is None:
            return 0
        k, l = (evaluate_row(d, row) for d in request.demands)
        if k is None or l is None:
            return request.missing
        for level, (k_level, l_level) in enumerate(request.guarantees):
            if k <= k_level and l <= l_level:
                return level
        return REFUSED

    def _rows(self, source: exp.Select) -> list[Row]:
        return joined_rows(self._tables, source)

    def _types(self, request: Request) -> dict[int, pa.DataType]:
        return {
            i: type_of(k.expression, request.source, self._tables, k.kind)
            for i, k in enumerate(request.keys)
        }


def generalize(key: Key, level: int, value: Any) -> Any:
    """The key at a level."""
    if level < 0:
        return None
    depth = key.depths[level]
    if depth == 0:
        return value
    rule = key.rules[depth - 1]
    if isinstance(rule, Interval):
        edge = lower_edge(value, rule.width)
        return None if edge is None else type(value)(edge)
    if isinstance(rule, Climb):
        return rule.stand_ins.get(value)
    return None


def _table(
    request: Request, groups: dict[tuple[Any, ...], list[Row]], types: dict[int, pa.DataType]
) -> pa.Table:
    keys, members = list(groups), list(groups.values())
    out: dict[str, pa.Array] = {"level": pa.array([k[0] for k in keys], pa.int64())}
    for i in range(len(request.keys)):
        out[f"g{i}"] = pa.array([k[i + 1] for k in keys], types[i])
    out["rows"] = pa.array([len(m) for m in members], pa.int64())
    if request.demands is not None:
        for name, demand in zip(("k", "l"), request.demands, strict=True):
            out[name] = pa.array([_most(_values(demand, m)) for m in members], pa.float64())
    # What people hold who are left out does not come back.
    inside = [m if k[0] >= 0 else [] for k, m in zip(keys, members, strict=True)]
    for j, test in enumerate(request.tests):
        counted = members if test.total else inside
        found = [list(dict.fromkeys(_values(test.expression, m))) for m in counted]
        out[f"t{j}_n"] = pa.array([len(f) for f in found], pa.int64())
        out[f"t{j}_values"] = _lists([f if m else [] for f, m in zip(found, inside, strict=True)])
    for i, state in enumerate(request.states):
        out |= _state(i, state, inside)
    return pa.table(out)


def _values(expression: Expr, rows: list[Row]) -> list[Any]:
    return [v for row in rows if (v := evaluate_row(expression, row)) is not None]


def _most(values: list[Any]) -> float | None:
    return float(max(values)) if values else None


def _state(i: int, state: AggregateState, members: list[list[Row]]) -> dict[str, pa.Array]:
    found = [_values(state.expression, m) for m in members]
    if state.kind == "moments":
        numbers = [[_bound(v) for v in f] for f in found]
        means = [fmean(f) if f else None for f in numbers]
        return {
            f"s{i}_n": pa.array([len(f) for f in numbers], pa.int64()),
            f"s{i}_mean": pa.array(means, pa.float64()),
            f"s{i}_m2": pa.array(
                [
                    sum((v - m) ** 2 for v in f) if m is not None else None
                    for f, m in zip(numbers, means, strict=True)
                ],
                pa.float64(),
            ),
        }
    if state.kind == "count":
        return {f"s{i}": pa.array([len(f) for f in found], pa.int64())}
    if state.kind == "sum":
        if state.of in ("integer", "boolean"):
            sums = [Decimal(sum(int(v) for v in f)) if f else None for f in found]
            return {f"s{i}": pa.array(sums, pa.decimal128(38, 0))}
        if state.of == "decimal":
            return {
                f"s{i}": pa.array(
                    [sum(f, Decimal(0)) if f else None for f in found],
                    pa.decimal128(38, state.scale),
                )
            }
        return {f"s{i}": pa.array([sum(map(float, f)) if f else None for f in found], pa.float64())}
    pick: Callable[..., Any] = min if state.kind == "min" else max
    extremes = [pick(f, key=sort_key, default=None) for f in found]
    if all(one is None for one in extremes):  # the type must not tell whether anybody has a value
        return {f"s{i}": pa.nulls(len(extremes), _EMPTY.get(state.of, pa.string()))}
    return {f"s{i}": _array(extremes)}


_EMPTY = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "boolean": pa.bool_(),
    "temporal": pa.timestamp("us"),
}


def _measure(measure: GroupMeasure, rows: list[Row]) -> Any:
    found = _values(measure.expression, rows)
    if measure.kind == "median":
        return float(median(map(_bound, found))) if found else None
    if measure.kind == "distinct":
        return len(set(found))
    if measure.kind == "rows":
        return len(found)
    return max(found, key=sort_key, default=None)


def _array(values: list[Any]) -> pa.Array:
    """Values in one type; whole numbers beyond 64 bits as decimals."""
    try:
        return pa.array(values)
    except (OverflowError, pa.ArrowInvalid):
        return pa.array([None if v is None else Decimal(v) for v in values], pa.decimal128(38, 0))


def _lists(values: list[list[Any]]) -> pa.Array:
    flat = _array([v for found in values for v in found])
    return pa.array(values, pa.list_(flat.type))


def _bound(value: Any) -> float:
    number = float(value)
    return 1e100 if isnan(number) else min(max(number, -1e100), 1e100)


def _brought(request: Request, amount: Expr, rows: list[Row]) -> list[Any]:
    """What each person brings to a place, largest first."""
    found: dict[Any, Any] = {}
    for i, row in enumerate(rows):
        value = evaluate_row(amount, row)
        who = i if request.person is None else evaluate_row(request.person, row)
        if value is not None:
            found[who] = found.get(who, 0.0) + abs(_bound(value))
    return sorted(found.values(), reverse=True)


def _plain(rows: pa.Table) -> pa.Table:
    columns = [
        c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in rows.columns
    ]
    return pa.table(columns, names=rows.column_names)
