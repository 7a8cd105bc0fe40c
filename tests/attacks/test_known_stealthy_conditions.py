"""Figures that look plain and are empty, cut off or counted for some rows only."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from effort import turn
from sqlglot import exp

import halfmask as hm
from halfmask.query.planning.conditions import NATURES
from halfmask.query.run import Session
from halfmask.query.total_form.rows import _RULES

G = "GUARANTEE k = 5"
SCHEMA: dict[str, Any] = {
    "table": {"person": "id"},
    "policy": {"k": "k_i"},
    "columns": {
        "id": "identifier",
        "city": "quasi",
        "born": "sensitive",
        "phone": "sensitive",
        "rate": "sensitive",
        "name": "sensitive",
        "small": "sensitive",
    },
}
LAST = dt.date(9999, 12, 31)


def people(**planted: Any) -> hm.Table:
    """Forty people, of whom the last, with an own k of 5, has other values."""
    n = range(40)
    rows: dict[str, Any] = {
        "id": list(n),
        "city": ["Graz" if i % 2 else "Linz" for i in n],
        "born": [dt.date(1980 + i % 20, 1, 1) for i in n],
        "phone": [1_000 + i for i in n],
        "rate": [1.5 + i for i in n],
        "name": ["abc"[i % 3] for i in n],
        "small": pa.array([i % 7 for i in n], pa.int16()),
        "k_i": [2] * 39 + [5],
    }
    for column, value in planted.items():
        rows[column] = [*list(rows[column])[:39], value]
    return hm.read(pa.table(rows), SCHEMA)


def seen(table: hm.Table, figure: str, tail: str = "", **how: Any) -> list[Any]:
    sql = f"SELECT {figure} AS x FROM people {tail} {G}"
    return [row["x"] for row in hm.query(table, sql, **how).to_arrow().to_pylist()]


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_the_only_known_value_is_not_counted(engine: str) -> None:
    born = pa.array([None] * 39 + [dt.date(1987, 3, 14)], pa.date32())
    arrow = people().arrow
    arrow = arrow.set_column(arrow.column_names.index("born"), "born", born)
    table = hm.read(arrow, SCHEMA)
    assert seen(table, "COUNT(DISTINCT born)", engine=engine) in ([], [None])
    assert seen(table, "COUNT(*)", "HAVING COUNT(DISTINCT born) = 1", engine=engine) == []
    assert seen(table, "COUNT(*)", engine=engine) == [40]


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize("figure", ["COUNT(DISTINCT {})", "MAX({})", "MIN({})", "COUNT({})"])
def test_no_date_is_found_by_moving_it_beyond_the_calendar(figure: str, engine: str) -> None:
    """Ada alone is born after 2001: with a certain shift hers is the only date that is none."""
    days = (LAST - dt.date(2001, 1, 1)).days
    shifts = [
        f"born + INTERVAL '{days}' DAY",
        f"INTERVAL '{days}' DAY + born",
        f"born + {days}",
        f"born + INTERVAL '{days - 60}' DAY + INTERVAL '60' DAY",
        f"DATE_ADD(born, INTERVAL '{days}' DAY)",
    ]
    table = people(born=dt.date(2015, 6, 1))
    for shift in shifts:
        assert seen(table, figure.format(shift), engine=engine) in ([], [None]), shift
    assert seen(table, figure.format("born + INTERVAL '1' DAY"), engine=engine) != [None]


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize(
    ("column", "value", "expression"),
    [
        ("phone", 6_000_000_000_000, "phone * 1000000"),
        ("phone", 2**62 + 5, "phone + 1"),
        ("phone", -(2**62) - 5, "5 - phone"),
        ("phone", 2**62 + 5, "-phone"),
        ("phone", 2**62 + 5, "phone * phone"),
        ("phone", 2**62 + 5, "phone / 7"),
        ("phone", 2**62 + 5, "POW(phone, 2)"),
        ("phone", 2**62 + 5, "(phone) - 3"),
        ("rate", 1e31, "rate + 1"),
        ("rate", -1e31, "rate * 2"),
        ("rate", float("inf"), "rate / 2"),
    ],
)
def test_a_limit_that_one_person_meets_is_a_condition(
    column: str, value: Any, expression: str, engine: str
) -> None:
    figures = ("SUM({})", "MAX({})", "COUNT(DISTINCT {})")
    for figure in turn(figures, len(expression) + (engine == "duckdb")):
        asked = figure.format(expression)
        assert seen(people(**{column: value}), asked, engine=engine) in ([], [None])
        turned = figure == "MAX({})" and expression in ("phone * phone", "POW(phone, 2)")
        assert turned or seen(people(), asked, engine=engine) not in ([], [None])


SAMPLES: dict[str, str] = {
    "Column": "phone",
    "Paren": "(phone)",
    "Cast": "CAST(rate AS INT)",
    "TryCast": "TRY_CAST(name AS INT)",
    "Add": "phone + 1",
    "Sub": "born - INTERVAL '1' DAY",
    "Mul": "phone * 3",
    "Neg": "-phone",
    "Div": "rate / 3",
    "IntDiv": "phone // 3",
    "Mod": "phone % 3",
    "Abs": "ABS(phone)",
    "Sign": "SIGN(phone)",
    "Floor": "FLOOR(rate)",
    "Ceil": "CEIL(rate)",
    "Round": "ROUND(rate)",
    "Ln": "LN(rate)",
    "Exp": "EXP(rate)",
    "Sqrt": "SQRT(rate)",
    "Pow": "POW(rate, 2)",
    "EQ": "phone = 3",
    "NEQ": "phone <> 3",
    "GT": "phone > 3",
    "GTE": "phone >= 3",
    "LT": "phone < 3",
    "LTE": "phone <= 3",
    "NullSafeEQ": "phone IS NOT DISTINCT FROM 3",
    "NullSafeNEQ": "phone IS DISTINCT FROM 3",
    "Between": "phone BETWEEN 1 AND 3",
    "In": "phone IN (1, 3)",
    "Coalesce": "COALESCE(phone, 3)",
    "Nullif": "NULLIF(phone, 3)",
    "Greatest": "GREATEST(phone, 3)",
    "Least": "LEAST(phone, 3)",
    "Case": "CASE WHEN phone > 3 THEN 1 ELSE 2 END",
    "If": "IF(phone > 3, 1, 2)",
    "And": "phone > 3 AND phone < 9",
    "Or": "phone > 3 OR phone < 1",
    "Not": "NOT phone > 3",
    "Is": "phone IS NULL",
    "Like": "name LIKE 'a%'",
    "ILike": "name ILIKE 'a%'",
    "Upper": "UPPER(name)",
    "Lower": "LOWER(name)",
    "Trim": "TRIM(name)",
    "Length": "LENGTH(name)",
    "Left": "LEFT(name, 1)",
    "Right": "RIGHT(name, 1)",
    "Substring": "SUBSTRING(name, 1, 1)",
    "Replace": "REPLACE(name, 'a', 'b')",
    "StrPosition": "STRPOS(name, 'a')",
    "Concat": "CONCAT(name, 'x')",
    "DPipe": "name || 'x'",
    "DateTrunc": "DATE_TRUNC('month', born)",
    "Extract": "EXTRACT(MONTH FROM born)",
    "Year": "YEAR(born)",
    "Month": "MONTH(born)",
    "Day": "DAY(born)",
    "Quarter": "QUARTER(born)",
    "Week": "WEEK(born)",
    "DayOfWeek": "DAYOFWEEK(born)",
    "DayOfYear": "DAYOFYEAR(born)",
    "DayOfMonth": "DAYOFMONTH(born)",
    "DateDiff": "DATE_DIFF('day', born, DATE '2000-01-01')",
    "DateAdd": "DATE_ADD(born, INTERVAL '1' DAY)",
}
# Written otherwise by the parser, or no value of a row at all.
ELSEWHERE = {
    *("Literal", "Boolean", "Null", "TimestampTrunc", "WeekOfYear", "Date", "TsOrDsToDate"),
    *("TimestampDiff", "DateSub"),
}


def test_every_expression_that_rows_may_be_put_into_is_listed() -> None:
    """Whatever has a value for every row is plain by nature, or its aggregate is conditional."""
    assert {kind.__name__ for kind in _RULES} <= {*SAMPLES, *ELSEWHERE}
    listed = {kind for kinds in NATURES.values() for kind in kinds}
    assert listed <= set(_RULES)
    assert exp.DateAdd not in listed
    assert exp.Floor not in listed
    with Session(people()) as session:
        for name, expression in SAMPLES.items():
            plan = session.prepare(f"SELECT MAX({expression}) AS x FROM people {G}").plan
            plain = name in ("Column", "Paren")
            assert plan.aggregates[0].conditional != plain, name
            counted = session.prepare(f"SELECT COUNT(DISTINCT {expression}) FROM people {G}").plan
            assert counted.aggregates[0].conditional, name


def test_numbers_of_few_bits_meet_no_limit() -> None:
    with Session(people()) as session:
        for expression in ("small * 1000000", "small + 1", "small * small", "-small"):
            plan = session.prepare(f"SELECT SUM({expression}) FROM people {G}").plan
            assert not plan.aggregates[0].conditional, expression


def test_people_are_counted_as_before() -> None:
    with Session(people()) as session:
        plan = session.prepare(f"SELECT COUNT(DISTINCT id) FROM people {G}").plan
        assert not plan.aggregates[0].conditional
    assert seen(people(), "COUNT(DISTINCT id)") == [40]
