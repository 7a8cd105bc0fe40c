"""One pass decides most groups; the rest are counted exactly, and only below the cap."""

from __future__ import annotations

import math
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

import halfmask as hm
from halfmask.engines import request as asked
from halfmask.engines.duckdb import engine as database
from halfmask.engines.duckdb.engine import DuckDB
from halfmask.engines.duckdb.single_pass import OPEN
from halfmask.engines.reference import Reference
from halfmask.engines.request import Key, Request
from halfmask.engines.sql import places_among
from halfmask.errors import EngineError, QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CAP = 4


def _request(cap: int = CAP, *, total: bool = False) -> Request:
    city, value = exp.column("city", table="t"), exp.column("value", table="t")
    return Request(
        source=exp.Select().from_(exp.to_table("t", alias="t")),
        keys=(Key(city, "text", (0,)),),
        guarantees=((1, cap),),
        tests=(asked.DistinctTest(value, cap, total=total),),
    )


@pytest.fixture(params=["as it is", "as if it were large"], autouse=True)
def _each_size(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test twice: of large tables, columns with few values are looked for first."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "as it is":
            patch.setattr(database, "MANY", 0)
        yield


def _found(engine: DuckDB | Reference, request: Request) -> dict[str | None, tuple[int, object]]:
    rows = engine.collect(request).to_pylist()
    return {
        r["g0"]: (
            min(r["t0_n"], request.tests[0].cap),
            set(r["t0_values"] or []) if r["t0_n"] < request.tests[0].cap else None,
        )
        for r in rows
    }


@settings(max_examples=examples(60), deadline=None)
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


@pytest.mark.parametrize("values", [[0.0, -0.0], [math.nan] * 2])
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


VALUES = {
    "whole numbers": (pa.int64(), list(range(12))),
    "fractions": (pa.float64(), [0.0, -0.0, math.nan, -math.nan, 0.5, -0.5, math.inf, 1e300]),
    "texts": (pa.string(), ["", " ", "a", "A", "á", "a" * 40, "a" * 40 + "b", "\u0000", "0"]),
    "decimals": (pa.decimal128(9, 2), [Decimal(n) for n in ("0.00", "0.10", "1.00", "-1.00")]),
    "dates": (
        pa.date32(),
        [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)],
    ),
    "times": (
        pa.timestamp("us"),
        [datetime(2024, 1, 1, 0, 0, 0, n) for n in (0, 1, 999_999)] + [datetime(1900, 1, 1)],
    ),
    "yes and no": (pa.bool_(), [True, False]),
    "categories": (pa.dictionary(pa.int32(), pa.string()), ["x", "y", "z", "xx", "xy", "xz"]),
}


def _written_once(values: list[object]) -> set[str]:
    """Distinct values as SQL counts them: one zero, one NaN, no null."""
    return {str(v + 0) if isinstance(v, float) else str(v) for v in values if v is not None}


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_every_kind_of_value_is_counted_as_by_hand(kind: str, data: st.DataObject) -> None:
    of, known = VALUES[kind]
    cap = data.draw(st.integers(1, 6))
    size = data.draw(st.sampled_from([3, 14, 60]))
    some = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=6))
    rows = data.draw(
        st.lists(
            st.tuples(st.sampled_from([0.0, -0.0, 1.5, None]), st.sampled_from([*some, None])),
            min_size=1,
            max_size=size,
        )
    )
    table = pa.table(
        {
            "city": pa.array([r[0] for r in rows], pa.float64()),
            "value": pa.array([r[1] for r in rows], of),
        }
    )
    engine = DuckDB({"t": table})
    found = engine.collect(_request(cap)).to_pylist()
    engine.close()
    assert len(found) == len({r[0] for r in rows})
    for group in found:
        inside = [v for c, v in rows if c == group["g0"]]
        expected = _written_once(inside)
        assert group["rows"] == len(inside)
        assert min(group["t0_n"], cap) == min(len(expected), cap)
        assert group["t0_n"] <= len(expected)
        if group["t0_n"] < cap:
            listed = group["t0_values"] or []
            assert len(listed) == len(expected)
            assert _written_once(listed) == expected


def test_values_that_share_a_bucket_are_only_more_work() -> None:
    with duckdb.connect() as connection:
        same = [
            i
            for (i,) in connection.sql(
                "SELECT i FROM range(4000) t(i) WHERE HASH(i) & 63 = 7 LIMIT 40"
            ).fetchall()
        ]
    rows = [("wide", v) for v in same] + [("narrow", v) for v in same[: CAP - 1] * 10]
    table = pa.table({"city": [r[0] for r in rows], "value": [r[1] for r in rows]})
    engine = DuckDB({"t": table})
    assert _found(engine, _request()) == {
        "wide": (CAP, None),
        "narrow": (CAP - 1, set(same[: CAP - 1])),
    }
    engine.close()


def test_a_count_never_goes_to_another_group() -> None:
    ours = np.array([4, 1, 7])
    assert places_among(ours, np.array([7, 4])).tolist() == [2, 0]
    for theirs in ([2], [9], [0]):
        with pytest.raises(EngineError, match="named a group differently"):
            places_among(ours, np.array(theirs))


def test_zeros_with_and_without_a_sign_are_one_key_and_one_value(tmp_path: Path) -> None:
    path = tmp_path / "zeros.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT (i % 3) * (CASE WHEN i % 2 = 0 THEN -1.0 ELSE 1.0 END)"
            "::DOUBLE AS g, i % 2 AS v, (CASE WHEN i < 2000 THEN 0.0 ELSE -0.0 END)::DOUBLE AS z, "
            "i // 2000 AS half FROM range(4000) r(i)"
        )
    schema = {"g": "quasi", "half": "quasi", "v": "sensitive", "z": "sensitive"}
    schema = {"query": {"tables": ["t"]}, "columns": schema}
    text = "SELECT g, SUM(v) AS s, AVG(z) AS m FROM t GROUP BY g GUARANTEE k = 3, l = {l}"
    assert len(hm.query(path, text.format(l=2), schema=schema)) == 0  # z has one value: zero
    both = "SELECT g, SUM(v) AS s, MEDIAN(v) AS m FROM t GROUP BY g GUARANTEE k = 3, l = 2"
    answer = hm.query(path, both, schema=schema, recheck="rows").to_arrow().to_pylist()
    assert [r["g"] for r in answer] == [0.0]  # the others have one value each
    halves = (
        "SELECT half, SUM(z) AS s FROM t GROUP BY half GUARANTEE k = 3, l = 2 "
        "THEN half -> del GUARANTEE k = 3, l = 2"
    )
    assert len(hm.query(path, halves, schema=schema)) == 0


def test_a_month_is_thirty_days_so_intervals_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "spans.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 'a' AS g, CASE i % 3 WHEN 0 THEN INTERVAL 1 MONTH WHEN 1 "
            "THEN INTERVAL 30 DAY ELSE INTERVAL 720 HOUR END AS v, [i] AS many FROM range(9) r(i)"
        )
    schema = {"g": "quasi", "v": "sensitive", "many": "sensitive"}
    schema = {"query": {"tables": ["t"]}, "columns": schema}
    for column in ("v", "many"):
        with pytest.raises(QueryError, match="intervals, lists and types of the database"):
            hm.query(
                path,
                f"SELECT g, COUNT({column}) AS n FROM t GROUP BY g GUARANTEE k = 3, l = 3",  # noqa: S608
                schema=schema,
            )


@pytest.mark.parametrize("own", [True, False])
def test_long_queries_give_what_short_ones_give(own: bool) -> None:
    """They are prepared, so that they are planned once: values, types and nulls stay."""
    rows = pa.table({"a": [1, 2, 2, None], "t": ["x", "it's ?", None, "$1"]})
    connection = None if own else duckdb.connect()
    text = "SELECT a, COUNT(*) AS n, MIN(t, 2) AS some, MAX(NULL) AS none FROM t GROUP BY a"
    with closing(DuckDB({"t": rows}, connection=connection)) as engine:
        short = engine.run_text(f"{text} ORDER BY a")
        long = engine.run_text(f"{text} HAVING '?$1' <> '{'z' * 2000}' ORDER BY a")
        assert long.schema == short.schema
        assert long.to_pylist() == short.to_pylist()
        assert [row["n"] for row in long.to_pylist()] == [1, 2, 1]
        with pytest.raises(EngineError):
            engine.run_text(f"SELECT nope FROM t WHERE '{'z' * 2000}' <> ''")  # noqa: S608


def test_parts_of_a_column_with_few_values_are_counted_in_one_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More values are needed than there are: no bound decides, but each value has its bucket."""
    monkeypatch.setattr(database, "MANY", 0)
    cities, values = ["a"] * 60 + ["b"] * 40, [1, 2, 3, None] * 15 + [1, 3] * 20
    table = pa.table({"city": cities, "value": values})
    request = _request(cap=8)
    value = exp.column("value", table="t")
    split = exp.Case().when(value > exp.convert(2), exp.convert(1)).else_(exp.convert(0))
    places = pa.table(
        {"level": pa.array([0, 0], pa.int32()), "g0": ["a", "b"], "place": [0, 1]}
        | {"needed": [3, 3], "need0": [8, 8]}
    )
    with closing(DuckDB({"t": table})) as engine:
        asked_for: list[str] = []
        run_text = engine.run_text
        monkeypatch.setattr(engine, "run_text", lambda t: asked_for.append(t) or run_text(t))
        found = engine.parts(request, places, (split,), (value,)).to_pylist()
    assert sorted((r["place"], r["c0"], r["rows"], r["d0"]) for r in found) == [
        (0, 0, 45, 2),
        (0, 1, 15, 1),
        (1, 0, 20, 1),
        (1, 1, 20, 1),
    ]
    # A few rows, all values, and the parts: nothing is counted once more.
    assert len(asked_for) == 3


def test_a_plan_reads_the_rows_that_are_there_now() -> None:
    """Of other rows under the same name, whether they fit into the place of the first or not."""
    rows = [
        pa.table({"city": ["a", "a", "b"], "value": [1, 2, 3]}),
        pa.table({"city": ["b", "c"], "value": [5, None]}),
        pa.table({"city": ["d"], "value": ["x"]}),
        pa.table({"city": ["a"] * (database.SMALL + 1), "value": [7] * (database.SMALL + 1)}),
        pa.table({"city": ["e"], "value": [9]}),
    ]
    request = _request(cap=2)
    with closing(DuckDB({"t": rows[0]})) as engine:
        seen = []
        for one in (*rows, rows[0]):
            engine.add("t", one)
            seen.append(_found(engine, request))
    fresh = []
    for one in (*rows, rows[0]):
        with closing(DuckDB({"t": one})) as engine:
            fresh.append(_found(engine, request))
    assert seen == fresh
    assert [sum(n for n, _ in one.values()) for one in seen] == [3, 1, 1, 1, 1, 3]


def test_files_are_read_anew_by_each_question(tmp_path: Path) -> None:
    """No plan outlasts a question: a plan holds what it read of the file."""
    import pyarrow.parquet as pq

    place = str(tmp_path / "rows.parquet")
    found = []
    with closing(DuckDB()) as engine:
        for i, cities in enumerate((["a", "a", "b"], ["c"])):
            pq.write_table(pa.table({"city": cities}), place)
            if not i:
                engine._bring("t", place)
            found.append(engine.run_text("SELECT COUNT(*) AS n FROM t")["n"][0].as_py())
    assert found == [3, 1]


def test_what_is_computed_aside_is_let_go() -> None:
    rows = pa.table({"x": [1, 2, 3]})
    for more in (0, 1):  # once planned, then again
        query = exp.select("SUM(x) AS s").from_("published")
        found = database.compute_apart("published", rows.slice(more), lambda q: q.copy(), query)
        assert int(found["s"][0].as_py()) == (6, 5)[more]
    held = database._finisher.engine._slots["published"].rows
    assert held.num_rows == 0
    assert held.get_total_buffer_size() == 0  # nor what was cut off
