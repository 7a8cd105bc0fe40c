"""Random expressions over random rows of the oddest values: never a failure, and one meaning."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

import halfmask as hm
from halfmask.engines.duckdb.engine import DuckDB
from halfmask.engines.expressions import evaluate_row
from halfmask.engines.reference import Reference
from halfmask.query.parse import parse
from halfmask.query.planning.guarantee import plan_guarantee
from halfmask.query.run import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from halfmask.engines.request import Engine

BIG = 2**63 - 1
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "small": (pa.int16(), [0, 1, -1, 7, 2**15 - 1, -(2**15)]),
    "whole": (pa.int64(), [0, 1, -1, 3, BIG, -BIG - 1, 2**53 + 1, 2**62, -(2**62)]),
    "natural": (pa.uint64(), [0, 1, 5, 2**64 - 1, 2**63]),
    "real": (
        pa.float64(),
        [0.0, -0.0, 1.5, -2.5, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, 1e30, 1e-31],
    ),
    "price": (pa.decimal128(18, 2), [*map(Decimal, ("0", "1.10", "-0.01", "9999999999999999.99"))]),
    "huge": (pa.decimal128(38, 0), [Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(0)]),
    "day": (
        pa.date32(),
        [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2000, 2, 29), dt.date(1999, 12, 31)],
    ),
    "moment": (
        pa.timestamp("us"),
        [
            dt.datetime(1, 1, 1),
            dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
            dt.datetime(2000, 2, 29, 23, 59, 59, 500000),
        ],
    ),
    "name": (
        pa.string(),
        ["", " ", "null", "NaN", "a" * 3000, "%_", "é", "\U0001f600", "1e400", "a'b", "x\n", "007"],
    ),
    "code": (
        pa.string(),
        ["5", " -5 ", "+1.5e3", "9" * 40, "2000-02-29", "2001-02-29", "t", "no", "5\n", "0x1F"],
    ),
    "flag": (pa.bool_(), [True, False]),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(1, 5))
    return pa.table(
        {
            name: pa.array(
                draw(st.lists(st.sampled_from([None, *values]), min_size=rows, max_size=rows)), kind
            )
            for name, (kind, values) in VALUES.items()
        }
    )


def one_of(*options: str) -> Callable[[st.DrawFn], str]:
    return lambda draw: draw(st.sampled_from(options))


LEAVES = {
    "number": one_of(
        "small", "whole", "natural", "real", "price", "huge", "0", "1", "7", "0.001", "1000000"
    ),
    "integer": one_of("small", "whole", "natural", "3", "12"),
    "text": one_of("name", "code", "'a'", "'5'", "''"),
    "date": one_of("day", "moment", "DATE '2000-01-31'"),
    "boolean": one_of("flag", "TRUE"),
}
SHAPES = {
    "number": (
        "({number} + {number})", "({number} - {number})", "({number} * {number})",
        "({number} / {number})", "-{number}", "ABS({number})", "ROUND({number})",
        "ROUND({number}, 2)", "ROUND({number}, -1)", "FLOOR({number})", "CEIL({number})",
        "LN({number})", "EXP({number})", "SQRT({number})", "POW({number}, 2)",
        "POW({number}, {number})", "COALESCE({number}, {number})", "NULLIF({number}, {number})",
        "GREATEST({number}, {number})", "LEAST({number}, {number})", "CAST({number} AS DOUBLE)",
        "CAST({text} AS DOUBLE)", "CASE WHEN {boolean} THEN {number} ELSE {number} END",
        "IF({boolean}, {number}, 0)", "{integer}",
    ),
    "integer": (
        "({integer} + {integer})", "({integer} % {integer})", "({integer} // {integer})",
        "SIGN({number})", "CAST({number} AS BIGINT)", "CAST({number} AS SMALLINT)",
        "CAST({text} AS INT)", "LENGTH({text})", "STRPOS({text}, 'a')", "YEAR({date})",
        "EXTRACT(dow FROM {date})", "WEEK({date})", "DATE_DIFF('month', {date}, {date})",
        "DATE_DIFF('day', {date}, {date})", "CAST({boolean} AS INT)",
    ),
    "text": (
        "UPPER({text})", "LOWER({text})", "TRIM({text})", "LEFT({text}, 2)", "RIGHT({text}, 3)",
        "SUBSTRING({text}, 2, 4)", "REPLACE({text}, 'a', 'aaaaaaaaaaaaaaaaaaaa')",
        "REPLACE({text}, 'aa', 'b')", "({text} || {text})", "CONCAT({text}, {text}, {text})",
        "CAST({integer} AS TEXT)", "CAST({boolean} AS TEXT)", "COALESCE({text}, {text})",
        "CASE WHEN {boolean} THEN {text} END",
    ),
    "date": (
        "DATE_TRUNC('month', {date})", "DATE_TRUNC('week', {date})", "CAST({text} AS DATE)",
        "CAST({date} AS DATE)", "({date} + INTERVAL '1' MONTH)", "({date} - INTERVAL '3' YEAR)",
        "({date} + INTERVAL 90 DAY)", "CAST({text} AS TIMESTAMP)",
    ),
    "boolean": (
        "({number} > {number})", "({number} = {number})", "({text} = {text})",
        "({text} = {number})", "({date} < {date})", "({text} = {date})", "({boolean} = {text})",
        "({boolean} AND {boolean})", "({boolean} OR {boolean})", "(NOT {boolean})",
        "({number} IS NULL)", "({text} LIKE '%a%')", "({text} LIKE 'a%_a')",
        "({text} NOT ILIKE 'A_')", "({number} BETWEEN {number} AND {number})",
        "({integer} IN (1, 5, 2.5))", "CAST({text} AS BOOLEAN)", "CAST({integer} AS BOOLEAN)",
    ),
}  # fmt: skip


def expression(draw: st.DrawFn, kind: str, depth: int) -> str:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return LEAVES[kind](draw)
    shape, made = draw(st.sampled_from(SHAPES[kind])), ""
    while "{" in shape:
        before, rest = shape.split("{", 1)
        inside, shape = rest.split("}", 1)
        made += before + expression(draw, inside, depth - 1)
    return made + shape


@st.composite
def expressions(draw: st.DrawFn) -> str:
    return expression(draw, draw(st.sampled_from(sorted(SHAPES))), 3)


def planned(engine: Engine, text: str) -> tuple[exp.Select, exp.Expr] | None:
    """The rows and the expression in its total form; None where it is refused."""
    with Session(engine) as session:
        try:
            asked = f"SELECT COUNT(*) FROM t GROUP BY {text} GUARANTEE k = 1"
            request = plan_guarantee(parse(asked), session.catalog, session.engine).request
        except hm.errors.QueryError:
            return None
    return request.source, request.keys[0].expression


def alike(left: Any, right: Any) -> bool:
    if left is None or right is None or isinstance(left, bool):
        return left is right
    if isinstance(left, float | Decimal):
        one, other = float(left), float(right)
        both = math.isnan(one) and math.isnan(other)
        return both or one == other or abs(one - other) <= 1e-9 * max(abs(one), abs(other))
    return bool(left == right)


@settings(max_examples=examples(60))
@given(tables(), st.lists(expressions(), min_size=1, max_size=8))
def test_no_expression_fails_and_all_mean_the_same(table: pa.Table, texts: list[str]) -> None:
    engine, reference = DuckDB({"t": table}), Reference({"t": table})
    try:
        for text in texts:
            made = planned(engine, text)
            if made is None:
                continue
            source, node = made
            found = engine.run(source.copy().select(exp.alias_(node.copy(), "x")))["x"].to_pylist()
            expected = [evaluate_row(node, row) for row in reference._rows(source)]
            assert len(found) == len(expected)
            assert all(map(alike, expected, found)), (text, expected, found)
    finally:
        engine.close()


FIGURES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "VARIANCE", "STDDEV_POP", "MEDIAN")


@settings(max_examples=examples(25))
@given(tables(), st.data())
def test_no_figure_fails(table: pa.Table, data: st.DataObject) -> None:
    draw = data.draw
    value, where, key = (expression(draw, kind, 2) for kind in ("number", "boolean", "integer"))
    asked = ", ".join(
        f"{name}({value}) FILTER (WHERE {where}) AS f{i}" for i, name in enumerate(FIGURES)
    )
    text = (
        f"SELECT {key} AS g, {asked}, COUNT(DISTINCT {value}) AS d FROM t WHERE NOT {where} OR "
        f"{where} GROUP BY {key} GUARANTEE k = 1 THEN g -> 10 GUARANTEE k = 1 "
        "THEN g -> del GUARANTEE k = 1"
    )
    answers = []
    for engine in (DuckDB({"t": table}), Reference({"t": table})):
        try:
            rows = hm.query(engine, text).to_arrow().to_pylist()
        except hm.errors.QueryError:
            rows = None
        finally:
            engine.close()
        answers.append(rows)
    assert (answers[0] is None) == (answers[1] is None)
    if answers[0] is not None and answers[1] is not None:
        ours, theirs = (sorted(rows, key=lambda row: str(row["g"])) for rows in answers)
        assert [(r["g"], r["f0"], r["d"]) for r in ours] == [
            (r["g"], r["f0"], r["d"]) for r in theirs
        ]


def test_one_bound_decides_where_the_other_is_missing() -> None:
    table = pa.table({"x": [1.5, -1.5, None], "low": pa.array([None] * 3, pa.int16())})
    engine, reference = DuckDB({"t": table}), Reference({"t": table})
    try:
        node = exp.maybe_parse("x BETWEEN low AND 0")
        source = exp.select().from_("t")
        found = engine.run(source.copy().select(exp.alias_(node.copy(), "x")))["x"].to_pylist()
        assert found == [False, None, None]
        assert [evaluate_row(node, row) for row in reference._rows(source)] == found
    finally:
        engine.close()
