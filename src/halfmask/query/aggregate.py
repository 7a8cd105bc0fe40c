"""Merge the states of groups that are published together, and make the aggregates of them.

Counts and sums add (whole and decimal numbers exactly), extremes compare, moments merge by the
formula of Chan, Golub and LeVeque; medians and distinct counts are measured by the engine once it
is known which group goes where.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from halfmask.engines.request import Climb
from halfmask.errors import InternalError

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.engines.request import Engine
    from halfmask.query.groups import Groups
    from halfmask.query.planning.aggregates import PlannedAggregate
    from halfmask.query.planning.guarantee import GuaranteePlan
    from halfmask.query.semantics import PublishedRows

DIGITS = 12
MEASURED = "hm_measured"  # how many rows were measured for each published row, for the door


def aggregate(
    plan: GuaranteePlan, groups: Groups, published: PublishedRows, engine: Engine
) -> pa.Table:
    """The published rows: ``hm_row``, ``hm_order``, ``level``, ``k0...`` (keys), ``a0...``.

    Where medians or distinct values were measured, ``hm_measured`` says of how many rows.
    """
    import pyarrow as pa

    merged = merge_states(plan, groups, published)
    measured = _measure(plan, groups, published, engine)
    columns: dict[str, pa.Array] = {
        "hm_row": pa.array(np.arange(len(published))),
        "hm_order": pa.array(_order(plan, groups, published)),
        "level": pa.array(published.level + plan.chain.first),
    }
    for i, planned in enumerate(plan.keys):
        columns[f"k{i}"] = _labels(groups, published, i, generalized=planned.generalized)
    for i, planned_aggregate in enumerate(plan.aggregates):
        columns[f"a{i}"] = _value(planned_aggregate, merged, measured)
    if measured is not None and "rows" in measured.column_names:
        columns[MEASURED] = measured["rows"].combine_chunks()
    return pa.table(columns)


def places(plan: GuaranteePlan, groups: Groups, published: PublishedRows) -> pa.Table:
    """Which published row each group belongs to, in terms that the engine knows."""
    import pyarrow as pa

    inside = np.flatnonzero(published.ids >= 0)
    names = ["level", *(f"g{i}" for i in range(len(plan.keys)))]
    table = groups.states.select(names).take(pa.array(inside))
    return table.append_column("place", pa.array(published.ids[inside]))


def merge_states(
    plan: GuaranteePlan, groups: Groups, published: PublishedRows
) -> dict[str, pa.Array]:
    """Per published row, the merged states by name, and ``rows``."""
    import pyarrow as pa

    inside = np.flatnonzero(published.ids >= 0)
    ids = published.ids[inside]
    n = len(published)
    taken = groups.states.take(pa.array(inside))
    wanted = [("rows", "sum")]
    for i, state in enumerate(plan.request.states):
        if state.kind != "moments":
            wanted.append((f"s{i}", {"count": "sum"}.get(state.kind, state.kind)))
    names = [name for name, _ in wanted]
    table = taken.select(list(dict.fromkeys(names))).append_column("hm_id", pa.array(ids))
    done = table.group_by("hm_id", use_threads=False).aggregate(wanted)
    order = np.empty(n, dtype=np.int64)
    order[done["hm_id"].to_numpy()] = np.arange(n)
    out = {
        name: done[f"{name}_{how}"].take(pa.array(order)).combine_chunks() for name, how in wanted
    }
    for i, state in enumerate(plan.request.states):
        if state.kind == "moments":
            out |= _moments(taken, f"s{i}", ids, n)
        elif state.kind == "max" and pa.types.is_floating(taken[f"s{i}"].type):
            out[f"s{i}"] = _largest(out[f"s{i}"], taken[f"s{i}"], ids)
    return out


def _largest(merged: pa.Array, parts: pa.ChunkedArray, ids: NDArray[np.int64]) -> pa.Array:
    """NaN is the largest number, as it is for engines; merging would pass over it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    odd = np.zeros(len(merged), dtype=bool)
    odd[ids[np.isnan(parts.fill_null(0.0).to_numpy())]] = True
    return pc.if_else(pa.array(odd), float("nan"), merged)


def _moments(
    taken: pa.Table, name: str, ids: NDArray[np.int64], n: int
) -> dict[str, NDArray[np.float64]]:
    def numbers(part: str) -> NDArray[np.float64]:
        found: NDArray[np.float64] = taken[f"{name}_{part}"].fill_null(0).to_numpy()
        return found.astype(np.float64)

    count, mean, m2 = numbers("n"), numbers("mean"), numbers("m2")
    total = np.bincount(ids, weights=count, minlength=n)
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = np.bincount(ids, weights=count * mean, minlength=n) / total
    apart = np.where(count > 0, mean - middle[ids], 0.0)
    spread = np.bincount(ids, weights=m2 + count * apart * apart, minlength=n)
    return {f"{name}_n": total.astype(np.float64), f"{name}_m2": spread.astype(np.float64)}


def _measure(
    plan: GuaranteePlan, groups: Groups, published: PublishedRows, engine: Engine
) -> pa.Table | None:
    import pyarrow as pa

    if not plan.measures or not len(published):
        return None
    found = engine.measure(plan.request, places(plan, groups, published), plan.measures)
    if found.num_rows != len(published):
        raise InternalError("The engine measured other groups than it counted.")
    order = np.empty(len(published), dtype=np.int64)
    order[found["place"].to_numpy()] = np.arange(found.num_rows)
    return found.take(pa.array(order))


def _labels(groups: Groups, published: PublishedRows, i: int, *, generalized: bool) -> pa.Array:
    import pyarrow as pa

    key = groups.keys[i]
    if not generalized:
        return key.values.take(pa.array(key.codes[published.first]))
    texts: list[object] = []
    index = np.zeros(len(published), dtype=np.int64)
    for level in range(groups.top + 1):
        inside = np.flatnonzero(published.level == level)
        index[inside] = key.at(level, published.first[inside]) + len(texts)
        texts += key.labels[key.depths[level]]
    shown = pa.array([None if t is None else str(t) for t in texts], pa.string())
    return shown.take(pa.array(index))


def _order(plan: GuaranteePlan, groups: Groups, published: PublishedRows) -> NDArray[np.int64]:
    """The rank of each row by level and keys as they are shown: nothing else decides the order."""
    ranks = [published.level]
    for key, asked in zip(groups.keys, plan.request.keys, strict=True):
        rank = np.zeros(len(published), dtype=np.int64)
        for level in range(groups.top + 1):
            inside = np.flatnonzero(published.level == level)
            depth = key.depths[level]
            rank[inside] = key.at(level, published.first[inside])
            if depth and isinstance(asked.rules[depth - 1], Climb):
                # Labels are numbered by the values under them, also by those that do not leave.
                texts = [(label is None, str(label)) for label in key.labels[depth]]
                sequence = sorted(range(len(texts)), key=texts.__getitem__)
                rank[inside] = np.argsort(sequence)[rank[inside]]
        ranks.append(rank)
    order = np.empty(len(published), dtype=np.int64)
    order[np.lexsort(ranks[::-1])] = np.arange(len(published))
    return order


def _value(
    planned: PlannedAggregate, merged: dict[str, pa.Array], measured: pa.Table | None
) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if planned.measure is not None:
        if measured is None:
            return pa.array([], pa.int64() if planned.kind == "distinct" else pa.float64())
        column = measured[f"m{planned.measure}"].combine_chunks()
        return column if planned.kind == "distinct" else column.cast(pa.float64())
    if planned.states == (-1,):
        return merged["rows"]
    name = f"s{planned.states[0]}"
    if planned.kind == "avg":
        total = merged[name].cast(pa.float64())
        count = merged[f"s{planned.states[1]}"].cast(pa.float64())
        mean = pc.if_else(
            pc.equal(count, 0.0), None, pc.divide(total, pc.max_element_wise(count, 1.0))
        )
        return _round_fractions(mean) if planned.of == "float" else mean
    if planned.kind.startswith(("var", "stddev")):
        return _round_fractions(_spread(planned.kind, merged[f"{name}_n"], merged[f"{name}_m2"]))
    if planned.kind == "sum" and planned.of in ("integer", "boolean"):
        return _whole(merged[name])
    if planned.kind == "sum" and planned.of == "float":
        return _round_fractions(merged[name])
    return merged[name]


def _spread(kind: str, count: NDArray[np.float64], m2: NDArray[np.float64]) -> pa.Array:
    import pyarrow as pa

    m2 = m2.astype(np.float64)  # of no rows at all, sums are whole numbers
    below = count if kind.endswith("pop") else count - 1
    defined = below > 0
    value = np.divide(m2, below, out=np.zeros_like(m2), where=defined)
    if kind.startswith("stddev"):
        value = np.sqrt(value)
    return pa.array(value, mask=~defined)


def _round_fractions(column: pa.Array) -> pa.Array:
    """Sums of fractions to 12 digits: the last ones follow from the order of adding up."""
    import pyarrow as pa

    shown = [None if v is None else float(f"{v:.{DIGITS}g}") for v in column.to_pylist()]
    return pa.array(shown, pa.float64())


def _whole(column: pa.Array) -> pa.Array:
    """Whole sums as 64-bit numbers; empty beyond, since another type would show in every row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_decimal(column.type):
        return column
    least, most = (pa.scalar(Decimal(end), column.type) for end in (-(1 << 63), (1 << 63) - 1))
    fits = pc.and_(pc.greater_equal(column, least), pc.less_equal(column, most))
    return pc.if_else(fits, column, pa.scalar(None, column.type)).cast(pa.int64())
