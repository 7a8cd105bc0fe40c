"""Which aggregates are conditional, and whether their figures are shown: against plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import InternalError
from halfmask.query import answer_columns as figures
from halfmask.query.run import Session

COLUMNS = {"g": "quasi", "a": "sensitive", "b": "sensitive", "f": "sensitive", "w": "sensitive"}
TABLE = hm.read(
    pa.table({"g": ["x", "x"], "a": [1, 2], "b": [1.5, None], "f": [True, False], "w": ["p", "q"]}),
    COLUMNS,
)


def plan_of(figure: str) -> Any:
    with Session(TABLE) as session:
        return session.prepare(f"SELECT g, {figure} AS m FROM t GROUP BY g GUARANTEE k = 3").plan


@pytest.mark.parametrize(
    "figure",
    [
        "COUNT(*)", "SUM(a)", "AVG(2 * a + 1)", "SUM(a * a)", "SUM(-a / 4)", "SUM(POW(a, 2))",
        "VARIANCE(a)", "STDDEV(3 * b)", "MIN(a)", "MAX(w)", "MEDIAN(b)",
        "SUM(CAST(a AS DOUBLE))", "MIN(CAST(a AS TEXT))", "SUM((a - 1) * (a - 2))",
        "SUM(a / 1000 * 1000)", "MAX(a + -2)",
    ],
)  # fmt: skip
def test_sums_and_products_of_one_column_are_not_conditional(figure: str) -> None:
    plan = plan_of(figure)
    assert set(plan.splits) == set(plan.limits)
    assert plan.missing == ()
    plain = figure in ("COUNT(*)", "SUM(a)", "VARIANCE(a)", "MIN(a)", "MAX(w)", "MEDIAN(b)")
    assert not plain or plan.conditional == ()


@pytest.mark.parametrize(
    "figure",
    [
        "COUNT(*) FILTER (WHERE a = 1)", "SUM(a) FILTER (WHERE a > 1)", "COUNT(a)",
        "COUNT(DISTINCT w)",
        "SUM(CASE WHEN a > 1 THEN a ELSE 0 END)", "SUM(CASE a WHEN 1 THEN 1 END)",
        "SUM(IF(a > 1, a, 0))", "SUM(a * (a = 1)::INT)", "SUM((a = 1)::INT)", "SUM(f::INT)",
        "SUM(COALESCE(b, 0))", "COUNT(NULLIF(a, 1))", "SUM(GREATEST(a, 1))", "SUM(LEAST(a, b))",
        "SUM(ABS(a - 1))", "SUM(SIGN(a - 1))", "SUM(FLOOR(b))", "SUM(ROUND(b))", "SUM(a % 2)",
        "SUM(a // 2)", "SUM(b::INT)", "MAX(LENGTH(w))", "MIN(SUBSTRING(w, 1, 1))", "MAX(UPPER(w))",
        "SUM(1 / (a - 1))", "SUM(LN(a))", "SUM(EXP(a))", "SUM(SQRT(a))", "SUM(POW(a, 3))",
        "SUM(a * a * a)", "VARIANCE(a * a)", "SUM(a * b)", "SUM(a + b)", "VARIANCE(a + b)",
        "SUM((b + 100000000000000000000) - 100000000000000000000)", "SUM(b * 0.0000000001 + 1)",
        "SUM((b + POW(10, 20)) - POW(10, 20))", "SUM((b + '1e20'::DOUBLE) - '1e20'::DOUBLE)",
        "MEDIAN(CASE WHEN a > 1 THEN a END)", "COUNT(DISTINCT CASE WHEN a > 1 THEN w END)",
        "MIN(CASE WHEN f THEN a END)", "COUNT(a > 1)", "MAX(a IS NULL)",
    ],
)  # fmt: skip
def test_whatever_can_pick_people_is_conditional(figure: str) -> None:
    assert plan_of(figure).conditional == ("a0",)


ROWS = st.lists(
    st.tuples(
        st.sampled_from("xyz"),
        st.integers(0, 3),
        st.one_of(st.none(), st.integers(0, 2)),
        st.integers(1, 4),
    ),
    min_size=1,
    max_size=40,
)
FIGURES = {
    "COUNT(*) FILTER (WHERE a > 1)": lambda a, b: (a > 1,),
    "SUM(CASE WHEN a = 0 THEN 7 WHEN a < 2 THEN a ELSE 0 END)": lambda a, b: (
        0 if a == 0 else 1 if a < 2 else 2,
    ),
    "COUNT(b)": lambda a, b: (),
    "SUM(a % 2)": lambda a, b: (a % 2,),
    "SUM(ABS(a - 1))": lambda a, b: (a >= 1,),
}
MISSING = {"COUNT(b)": lambda a, b: (b is None,)}


@given(ROWS, st.lists(st.sampled_from(list(FIGURES)), min_size=1, max_size=3, unique=True),
       st.integers(3, 5), st.sampled_from(["duckdb", "reference"]))  # fmt: skip
@settings(max_examples=examples(80))
def test_figures_are_shown_where_every_part_is_large_enough(
    rows: list[Any], asked: list[str], k: int, engine: str
) -> None:
    table = pa.table(
        {
            "g": pa.array([r[0] for r in rows]),
            "a": pa.array([r[1] for r in rows]),
            "b": pa.array([r[2] for r in rows], pa.int64()),
        }
    )
    names = ", ".join(f"{figure} AS m{i}" for i, figure in enumerate(asked))
    sql = f"SELECT g, COUNT(*) AS n, {names} FROM t GROUP BY g GUARANTEE k = {k}"
    schema = {"g": "quasi", "a": "sensitive", "b": "sensitive"}
    found = hm.query(hm.read(table, schema), sql, engine=engine).to_arrow().to_pylist()
    sizes = Counter(r[0] for r in rows)
    assert [r["g"] for r in found] == sorted(g for g, n in sizes.items() if n >= k)
    shown = expected(rows, asked, k, {r["g"] for r in found})
    for row in found:
        assert row["n"] == sizes[row["g"]]
        for i in range(len(asked)):
            assert (row[f"m{i}"] is not None) == (row["g"] in shown)


def expected(rows: list[Any], asked: list[str], k: int, published: set[str]) -> set[str]:
    """The rows that show their conditional figures, by the definition."""
    people: Counter[Any] = Counter()
    conditions = defaultdict(set)
    for g, a, b, _ in rows:
        if g in published:
            met = tuple(FIGURES[figure](a, b) for figure in asked)
            lacks = tuple(MISSING[f](a, b) for f in asked if f in MISSING)
            people[g, met, lacks] += 1
            conditions[g].add(met)
    small = [(g, met) for (g, met, _), n in people.items() if n < k]
    scarce = {met for _, met in small}
    return {g for g in published if g not in {g for g, _ in small} and scarce <= conditions[g]}


def test_people_with_several_rows_count_once_in_a_part() -> None:
    rows = pa.table(
        {
            "id": [1, 1, 1, 2, 3, 4, 5, 6, 7],
            "g": ["x"] * 9,
            "a": [9, 9, 9, 1, 1, 1, 1, 1, 1],
        }
    )
    schema = {"table": {"person": "id"}, "columns": {"g": "quasi", "a": "sensitive"}}
    sql = "SELECT g, COUNT(*) FILTER (WHERE a = {}) AS m FROM t GROUP BY g GUARANTEE k = 3"
    for value in (9, 1):  # three rows of one person
        answer = hm.query(hm.read(rows, schema), sql.format(value))
        assert answer.to_arrow()["m"].to_pylist() == [None]
    answer = hm.query(hm.read(rows, schema), sql.format("5"))
    assert answer.to_arrow()["m"].to_pylist() == [0]


def test_each_part_must_be_diverse_in_what_is_shown() -> None:
    rows = pa.table({"g": ["x"] * 8, "a": [5] * 4 + [1, 2, 3, 4], "f": [True] * 4 + [False] * 4})
    table = hm.read(rows, {"g": "quasi", "a": "sensitive", "f": "sensitive"})
    figures = "SUM(a) AS t, SUM(a) FILTER (WHERE f) AS m"
    sql = f"SELECT g, {figures} FROM t GROUP BY g GUARANTEE k = 3, l = {{}}"
    assert hm.query(table, sql.format(1)).to_arrow()["m"].to_pylist() == [20]
    answer = hm.query(table, sql.format(2)).to_arrow()
    assert (answer["t"].to_pylist(), answer["m"].to_pylist()) == ([30], [None])


def test_numbers_in_a_condition_may_be_large() -> None:
    rows = pa.table({"g": ["x"] * 8, "a": [60_000 + i for i in range(4)] + [1, 2, 3, 4]})
    table = hm.read(rows, {"g": "quasi", "a": "sensitive"})
    figure = "SUM(CASE WHEN a BETWEEN 50000 AND 100000 THEN a ELSE 0 END)"
    answer = hm.query(table, f"SELECT g, {figure} AS m FROM t GROUP BY g GUARANTEE k = 3")
    assert answer.to_arrow()["m"].to_pylist() == [240_006]


def test_having_and_order_see_an_empty_figure() -> None:
    rows = pa.table({"g": ["x"] * 8 + ["y"] * 8, "a": [9] + [1] * 7 + [9] * 4 + [1] * 4})
    table = hm.read(rows, {"g": "quasi", "a": "sensitive"})
    sql = "SELECT g FROM t GROUP BY g HAVING COUNT(*) FILTER (WHERE a = 9) {} GUARANTEE k = 3"
    assert hm.query(table, sql.format("= 1")).to_arrow()["g"].to_pylist() == []
    assert hm.query(table, sql.format("= 4")).to_arrow()["g"].to_pylist() == ["y"]
    assert hm.query(table, sql.format("IS NULL")).to_arrow()["g"].to_pylist() == ["x"]


def test_the_door_finds_a_figure_of_too_few_people(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"g": ["x"] * 8, "a": [9] + [1] * 7})
    sql = "SELECT g, COUNT(*) FILTER (WHERE a = 9) AS m FROM t GROUP BY g GUARANTEE k = 3"
    monkeypatch.setattr(figures, "_without", lambda rows, *_: rows)
    with pytest.raises(InternalError, match="conditional figure"):
        hm.query(rows, sql)


def test_the_door_finds_parts_that_lack_people(monkeypatch: pytest.MonkeyPatch) -> None:
    found = figures._parts
    monkeypatch.setattr(figures, "_parts", lambda *given: found(*given).slice(0, 1))
    rows = pa.table({"g": ["x"] * 8, "a": [9] * 4 + [1] * 4})
    sql = "SELECT g, COUNT(*) FILTER (WHERE a = 9) AS m FROM t GROUP BY g GUARANTEE k = 3"
    with pytest.raises(InternalError, match="not all its people"):
        hm.query(rows, sql)
