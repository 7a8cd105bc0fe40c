"""What one cell contributes: one record at the finest level its person accepts, or a dummy.

Definition: the first level i of the chain with k_i >= k and l_i >= l for the person's demands on
the queried columns; WHERE not met, no such level, no policy or an objection: a dummy.
Source: Michel 2019, Algorithm 3 (as printed it does not stop after making a dummy).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from halfmask.engines import evaluate
from halfmask.engines.reference import generalize
from halfmask.errors import EngineError, UnsupportedByEngineError
from halfmask.protocol.noise import categories, randomized, weight

if TYPE_CHECKING:
    from collections.abc import Mapping

    from halfmask.protocol.blueprint import Blueprint
    from halfmask.protocol.layout import Records
    from halfmask.protocol.policy import Policy


@dataclass(frozen=True, slots=True)
class Contribution:
    """A record to send, and what the person may read about it."""

    record: bytes
    level: int | None
    reason: str
    epsilon: float = 0.0


def contribution(
    made: Blueprint,
    tables: Mapping[str, pa.Table],
    policy: Policy | None,
    objection: str | None = None,
) -> Contribution:
    """Decide what a cell contributes; real and dummy take the same way and the same length.

    Raises:
        EngineError: an expression of the query cannot be evaluated on these rows.
    """
    demand = policy.demand(made.plan.queried) if policy is not None else None
    level = _level(made, demand)
    rows = _evaluated(made, tables)
    reason = "contributed"
    if demand is None:
        reason = "no policy"
    elif level < 0:
        reason = "no level satisfies the policy"
    elif len(rows) != 1:
        reason = "the condition is not met" if not rows else "several rows match"
    noisy = made.layout.noisy
    if noisy and reason == "contributed" and (policy is None or policy.epsilon is None):
        reason = "no epsilon"
    if objection is not None:
        reason = objection
    real = reason == "contributed"
    table = _row(made, rows[0] if len(rows) == 1 else None, demand or (0, 0), level if real else -1)
    epsilon = policy.epsilon if policy is not None and policy.epsilon is not None else 0.0
    if noisy and real and not _is_empty(made, made.layout.encode(table)):
        table = _with_noise(made, table, epsilon)
    record = made.layout.encode(table)
    if noisy and real and not _is_empty(made, record):
        record["w"] = weight(epsilon, categories(made.layout))
    if real and _is_empty(made, record):
        real, reason = False, "a value is too long or outside the common values"
    cost = epsilon if noisy and real else 0.0
    return Contribution(record.tobytes(), level if real else None, reason, cost)


def _with_noise(made: Blueprint, row: pa.Table, epsilon: float) -> pa.Table:
    names = [f"g{i}" for i in range(len(made.layout.keys))]
    reported = randomized([row[name][0].as_py() for name in names], made.layout, epsilon)
    for name, value, key in zip(names, reported, made.layout.keys, strict=True):
        at = row.column_names.index(name)
        row = row.set_column(at, name, pa.array([value], key.type))
    return row


def _is_empty(made: Blueprint, record: Records) -> bool:
    from halfmask.protocol.layout import EMPTY

    return bool(made.layout.tags(record)[0] == EMPTY)


def _level(made: Blueprint, demand: tuple[int, int] | None) -> int:
    if demand is None:
        return -1
    levels = made.plan.chain.guarantees
    return next((i for i, g in enumerate(levels) if g.covers(*demand)), -1)


def _expressions(made: Blueprint) -> dict[str, Any]:
    request = made.plan.request
    found = {f"r{i}": key.expression for i, key in enumerate(request.keys)}
    listed = [t.expression for t in request.tests] + [m.expression for m in made.plan.measures]
    found |= {f"v{j}": expression for j, expression in enumerate(listed)}
    return found | {f"a{i}": state.expression for i, state in enumerate(request.states)}


def _evaluated(made: Blueprint, tables: Mapping[str, pa.Table]) -> list[dict[str, Any]]:
    wanted = _expressions(made)
    source = made.plan.request.source
    try:
        rows = evaluate.joined_rows(tables, source)
        return [{n: evaluate.value(e, row) for n, e in wanted.items()} for row in rows]
    except UnsupportedByEngineError:
        return _in_duckdb(made, tables, wanted)
    except (ArithmeticError, ValueError, TypeError, AttributeError):
        raise EngineError(
            "An expression of the query cannot be evaluated on this cell's rows."
        ) from None


def _in_duckdb(
    made: Blueprint, tables: Mapping[str, pa.Table], wanted: Mapping[str, Any]
) -> list[dict[str, Any]]:
    from sqlglot import exp

    from halfmask.engines.duckdb import DuckDB

    query = made.plan.request.source.copy()
    for name, expression in (wanted or {"one": exp.Literal.number(1)}).items():
        query = query.select(exp.alias_(expression.copy(), name, quoted=True), copy=False)
    engine = DuckDB(tables)
    try:
        rows: list[dict[str, Any]] = engine.run(query).to_pylist()
    finally:
        engine.close()
    return rows


def _row(
    made: Blueprint, row: Mapping[str, Any] | None, demand: tuple[int, int], level: int
) -> pa.Table:
    """The row as the layout encodes it."""
    request, layout = made.plan.request, made.layout
    columns = {
        "level": pa.array([level], pa.int64()),
        "k": pa.array([demand[0]], pa.int64()),
        "l": pa.array([demand[1]], pa.int64()),
    }
    for i, (key, packed) in enumerate(zip(request.keys, layout.keys, strict=True)):
        value = None if row is None else generalize(key, level, row[f"r{i}"])
        columns[f"g{i}"] = _array(value, packed.type)
    for j in range(len(layout.caps)):
        columns[f"v{j}"] = pa.array([None if row is None else row[f"v{j}"]])
    for i, state in enumerate(layout.states):
        columns[f"a{i}"] = _array(None if row is None else row[f"a{i}"], state.type)
    return pa.table(columns)


def _array(value: Any, kind: pa.DataType) -> pa.Array:
    try:
        return pa.array([value], kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([value]).cast(kind)
