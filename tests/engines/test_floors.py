"""One pass decides most groups; the rest are counted exactly, and only below the cap."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from halfmask.engines import request as asked
from halfmask.engines.duckdb import DuckDB
from halfmask.engines.floors import OPEN
from halfmask.engines.reference import Reference
from halfmask.engines.request import Key, Request

CAP = 4


def _request(cap: int = CAP, *, total: bool = False) -> Request:
    city, value = exp.column("city", table="t"), exp.column("value", table="t")
    return Request(
        source=exp.Select().from_(exp.to_table("t", alias="t")),
        keys=(Key(city, "text", (0,)),),
        guarantees=((1, cap),),
        tests=(asked.Test(value, cap, total=total),),
    )


def _found(engine: DuckDB | Reference, request: Request) -> dict[str | None, tuple[int, object]]:
    rows = engine.collect(request).to_pylist()
    return {
        r["g0"]: (
            min(r["t0_n"], request.tests[0].cap),
            set(r["t0_values"] or []) if r["t0_n"] < request.tests[0].cap else None,
        )
        for r in rows
    }


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", None]), st.none() | st.integers(0, 5)),
        min_size=1,
        max_size=60,
    )
)
def test_below_the_cap_counts_are_those_of_the_reference(
    rows: list[tuple[str | None, int | None]],
) -> None:
    table = pa.table(
        {"city": pa.array([r[0] for r in rows], pa.string()), "value": [r[1] for r in rows]},
        schema=pa.schema([("city", pa.string()), ("value", pa.int64())]),
    )
    engine = DuckDB({"t": table})
    assert _found(engine, _request()) == _found(Reference({"t": table}), _request())
    engine.close()


def test_a_large_group_with_few_values_is_counted_exactly() -> None:
    table = pa.table({"city": ["a"] * 500 + ["b"] * 500, "value": [1, 2] * 250 + list(range(500))})
    engine = DuckDB({"t": table})
    assert _found(engine, _request()) == {"a": (2, {1, 2}), "b": (CAP, None)}
    assert engine.columns(OPEN) is not None  # Only "a" was left undecided.
    engine.close()


@pytest.mark.parametrize("values", [[0.0, -0.0], [float("nan")] * 2])
def test_equal_values_fill_one_bucket(values: list[float]) -> None:
    table = pa.table({"city": ["a"] * 200, "value": np.array(values * 100)})
    engine = DuckDB({"t": table})
    assert engine.collect(_request()).to_pylist()[0]["t0_n"] == 1
    engine.close()


def test_totals_and_large_caps_are_never_bounds() -> None:
    table = pa.table({"city": ["a"] * 500, "value": list(range(500))})
    engine = DuckDB({"t": table})
    for request in (_request(total=True), _request(cap=64)):
        assert engine.collect(request).to_pylist()[0]["t0_n"] == 500
    engine.close()
