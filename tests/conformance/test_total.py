"""Every expression has a value for every row, and the same one on every engine."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from sqlglot import exp

import halfmask as hm
from halfmask.engines.expressions import evaluate_row
from halfmask.engines.reference import Reference
from halfmask.query.parse import parse
from halfmask.query.planning.guarantee import plan_guarantee
from halfmask.query.run import Session

if TYPE_CHECKING:
    from halfmask.engines.request import Engine

BIG = 2**63 - 1
NAN, INF = math.nan, math.inf
MONEY = [*map(Decimal, ("1.10", "9999999999999999.99", "-0.01", "0", "2.5", "-7.77")), None, None]
WIDE = [*map(Decimal, ("9" * 38, "-" + "9" * 38, "1", "0", "5")), None, None, None]
BORN = [
    dt.date(1, 1, 1), dt.date(9999, 12, 31), None, dt.date(2000, 2, 29), dt.date(1970, 1, 1),
    dt.date(2024, 12, 30), dt.date(1999, 1, 31), None,
]  # fmt: skip
SEEN = [
    dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), None,
    dt.datetime(2000, 2, 29, 12, 30, 59, 700000), dt.datetime(1970, 1, 1), None,
    dt.datetime(2024, 12, 30, 23, 0), None,
]  # fmt: skip
NASTY = pa.table(
    {
        "row": list(range(8)),
        "tiny": pa.array([3, 127, -128, None, 0, 1, 2, 3], pa.int8()),
        "mid": pa.array([3, 2**31 - 1, -(2**31), None, 0, 1, 2, 3], pa.int32()),
        "n": pa.array([3, BIG, -BIG - 1, None, 0, 1, 2**53 + 1, -7]),
        "w": pa.array([1.5, 1e308, -INF, 5e-324, NAN, None, -0.0, 2.5]),
        "money": pa.array(MONEY, pa.decimal128(18, 2)),
        "wide": pa.array(WIDE, pa.decimal128(38, 0)),
        "born": BORN,
        "seen": pa.array(SEEN, pa.timestamp("us")),
        "city": ["Lille", "", "12", "null", "1e5", "2000-02-30", "x\ny", " +7 "],
        "code": ["5", "9" * 20, "-3.5", "nan", "1e-05", "2000-02-29", "5\n", "true"],
        "flag": [True, False, None, True, False, True, None, False],
    }
)
TABLES = {"nasty": NASTY}
NUMBERS = ("tiny", "mid", "n", "w", "money", "wide", "flag")
OF_ONE = (
    "-{a}", "ABS({a})", "SIGN({a})", "FLOOR({a})", "CEIL({a})", "ROUND({a})", "ROUND({a}, 2)",
    "ROUND({a}, -2)", "LN({a})", "EXP({a})", "SQRT({a})", "POW({a}, 2)", "POW({a}, 0.5)",
    "POW(2, {a})", "{a} * 12", "{a} / 7", "1 / ({a} - 3)", "CAST({a} AS INT)",
    "CAST({a} AS BIGINT)", "CAST({a} AS SMALLINT)", "CAST({a} AS DOUBLE)", "COALESCE({a}, 0)",
    "NULLIF({a}, 3)", "CASE WHEN {a} > 1 THEN {a} ELSE 0 END", "GREATEST({a}, 2)",
    "LEAST({a}, 2.5)", "{a} BETWEEN 0 AND 2.5", "{a} IN (1, 2.5)", "{a} IS NOT DISTINCT FROM 3",
)  # fmt: skip
OF_WHOLE = (
    "{a} % 3", "{a} // 3", "7 % {a}", "7 // {a}", "CAST({a} AS TEXT)", "CAST({a} AS BOOLEAN)",
)  # fmt: skip
OF_TWO = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "{a} > {b}", "{a} = {b}")
OF_TEXT = (
    "CAST({a} AS INT)", "CAST({a} AS BIGINT)", "CAST({a} AS DOUBLE)", "CAST({a} AS DATE)",
    "CAST({a} AS TIMESTAMP)", "CAST({a} AS BOOLEAN)", "TRY_CAST({a} AS DECIMAL(10, 2))",
    "UPPER({a})", "LOWER({a})", "LENGTH({a})", "TRIM({a})", "LEFT({a}, 2)", "RIGHT({a}, 2)",
    "SUBSTRING({a}, 2, 3)", "REPLACE({a}, 'l', 'llll')", "STRPOS({a}, 'l')", "{a} || {a}",
    "CONCAT({a}, n)", "{a} = 5", "{a} > n", "{a} LIKE '%l%e'", "{a} NOT LIKE 'L%'",
    "{a} ILIKE '%LL%'", "{a} IN ('12', 5)", "{a} = born", "{a} = flag", "DATE({a})",
)  # fmt: skip
OF_DATE = (
    *(f"{name}({{a}})" for name in ("YEAR", "MONTH", "DAY", "QUARTER", "WEEK", "DAYOFWEEK")),
    "DAYOFYEAR({a})", "DATE({a})", "EXTRACT(isodow FROM {a})", "{a} + INTERVAL '1' YEAR",
    "{a} - INTERVAL '1' MONTH", "{a} + INTERVAL 10 DAY", "{a} + 1", "{a} + INTERVAL '5' HOUR",
    "DATE_ADD({a}, INTERVAL 1 WEEK)", "{a} > DATE '2000-01-01'", "{a} = '2000-02-29'",
    "CAST({a} AS TIMESTAMP)", "CAST(CAST({a} AS DATE) AS TEXT)",
    *(f"DATE_TRUNC('{u}', {{a}})" for u in ("year", "quarter", "month", "week", "day")),
    *(f"DATE_DIFF('{u}', {{a}}, born)" for u in ("year", "quarter", "month", "week", "day")),
    *(f"DATE_DIFF('{u}', seen, {{a}})" for u in ("year", "quarter", "month", "week", "day")),
)  # fmt: skip
OF_MOMENT = (
    "born - born", "born < seen", "EXTRACT(hour FROM seen)", "EXTRACT(second FROM seen)",
    "DATE_DIFF('hour', seen, TIMESTAMP '2000-01-01 00:00:00')", "DATE_TRUNC('second', seen)",
    "DATE_DIFF('second', seen, TIMESTAMP '2000-01-01 00:00:00')", "DATE_TRUNC('hour', seen)",
)  # fmt: skip
GROUPS = {
    **{f"of {a}": [shape.format(a=a) for shape in OF_ONE] for a in NUMBERS},
    **{f"whole {a}": [shape.format(a=a) for shape in OF_WHOLE] for a in ("tiny", "mid", "n")},
    **{
        f"{a} and others": [shape.format(a=a, b=b) for shape in OF_TWO for b in NUMBERS]
        for a in NUMBERS
    },
    **{f"text {a}": [shape.format(a=a) for shape in OF_TEXT] for a in ("city", "code")},
    **{f"date {a}": [shape.format(a=a) for shape in OF_DATE] for a in ("born", "seen")},
    "moments": list(OF_MOMENT),
}


def total(engine: Engine, expressions: tuple[str, ...]) -> list[tuple[exp.Select, exp.Expr]]:
    """The rows of the table and each expression over them, as planned for an engine."""
    found = []
    with Session(engine, tables=["nasty"]) as session:
        for one in expressions:
            text = f"SELECT COUNT(*) FROM nasty GROUP BY {one} GUARANTEE k = 1"
            request = plan_guarantee(parse(text), session.catalog, session.engine).request
            found.append((request.source, request.keys[0].expression))
    return found


def by_engine(engine: Engine, expressions: tuple[str, ...]) -> list[list[Any]]:
    """The values of expressions in the order of the rows."""
    planned = total(engine, expressions)
    query = planned[0][0].copy()
    for i, (_, node) in enumerate(planned):
        query.select(exp.alias_(node, f"x{i}", copy=False), copy=False)
    found = engine.run(query.select(exp.column("row"))).sort_by("row")
    return [found[f"x{i}"].to_pylist() for i in range(len(expressions))]


@cache
def by_reference(expressions: tuple[str, ...]) -> list[list[Any]]:
    """The same by the plain engine, for all others once."""
    reference = Reference(TABLES)
    rows = list(reference._rows(total(reference, expressions[:1])[0][0]))
    return [[evaluate_row(node, row) for row in rows] for _, node in total(reference, expressions)]


def same(left: Any, right: Any) -> bool:
    if left is None or right is None or isinstance(left, bool):
        return left is right
    if isinstance(left, float | Decimal) or isinstance(right, float | Decimal):
        one, other = float(left), float(right)
        both = math.isnan(one) and math.isnan(other)
        return both or one == other or abs(one - other) <= 1e-12 * max(abs(one), abs(other))
    if isinstance(right, dt.datetime):  # Spark says in which zone
        right = right.replace(tzinfo=None)
    return bool(left == right)


@pytest.mark.parametrize("group", GROUPS)
def test_engines_agree_on_rows_of_any_values(engine: Engine, group: str) -> None:
    expressions = tuple(GROUPS[group])
    expected, found = by_reference(expressions), by_engine(engine, expressions)
    for one, theirs, ours in zip(expressions, expected, found, strict=True):
        assert all(map(same, theirs, ours)), (one, theirs, ours)


FIGURES = ("SUM", "AVG", "MIN", "MAX", "VARIANCE", "STDDEV", "MEDIAN", "COUNT")


@pytest.mark.parametrize("column", ["tiny", "mid", "n", "w", "money", "wide"])
def test_figures_of_any_values_have_a_value(engine: Engine, column: str) -> None:
    figures = ", ".join(f"{name}({column}) AS {name.lower()}" for name in FIGURES)
    text = f"SELECT {figures} FROM nasty GUARANTEE k = 1"
    (found,) = hm.query(engine, text, tables=["nasty"]).to_arrow().to_pylist()
    (expected,) = hm.query(Reference(TABLES), text).to_arrow().to_pylist()
    for name, value in expected.items():
        assert same(value, found[name]), (name, value, found[name])
