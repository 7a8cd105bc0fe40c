"""Nothing that is computed from rows can fail: a failure would tell about a row."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from effort import turn

import halfmask as hm
from halfmask.dp import BudgetLedger, Pure
from halfmask.engines.duckdb.engine import DuckDB
from halfmask.engines.reference import Reference
from halfmask.query.parse import parse
from halfmask.query.planning.guarantee import plan_guarantee
from halfmask.query.planning.noise import plan_noise
from halfmask.query.private.answer import collect_totals
from halfmask.query.run import Session

BIG = 2**63 - 1
ODD = pa.table(
    {
        "tiny": pa.array([3, 127, -128, None], pa.int8()),
        "n": pa.array([3, BIG, -BIG - 1, None]),
        "w": [1.5, 1e308, float("-inf"), 5e-324],
        "money": pa.array([Decimal("1.10"), Decimal(10) ** 15, None, None], pa.decimal128(18, 2)),
        "born": pa.array([0, 2**31 - 1, 1 - 2**31, None], pa.int32()).cast(pa.date32()),
        "seen": pa.array([0, BIG, 1 - BIG, None]).cast(pa.timestamp("us")),
        "city": ["Lille", "", "12", None],
        "flag": [True, False, None, None],
    }
)


def ask(sql: str, **options):
    """Ask a database: files with such dates are refused when they are read."""
    return hm.query("t", sql, engine=DuckDB({"t": ODD}), **options)


def totals(sql: str, **options) -> list[int]:
    """The exact counts behind a question; noise is not what these tests are about."""
    with Session("t", engine=DuckDB({"t": ODD})) as session:
        plan = plan_noise(
            parse(sql, noisy=True),
            session.catalog,
            session.engine,
            domains=options,
            rows_per_person=1,
        )
        return collect_totals(plan, session.engine).exact[0].counts.tolist()


@pytest.mark.parametrize(
    "condition",
    [
        "city + 1 > 2",
        "city",
        "NOT city",
        "city IS TRUE",
        "city AND n > 1",
        "seen - seen > 1",
        "COALESCE(city, 0) = 1",
        "NULLIF(city, 5) = '5'",
        "CASE WHEN n > 1 THEN city ELSE 3 END = 12",
        "CASE n WHEN 'a' THEN 1 END = 1",
        "IF(city, 1, 2) = 1",
        "GREATEST(n, city) > 5",
        "UPPER(n) = 'A'",
        "city LIKE city",
        "LEFT(city, n) = 'L'",
        "SUBSTRING(city, n) = 'L'",
        "YEAR(city) = 2000",
        "DATE_TRUNC(city, born) > DATE '2000-01-01'",
        "DATE_DIFF('microsecond', seen, seen) > 1",
        "w // 3 > 1",
        "w * w * w * w * w * w * w > 1",
        "w * 1e300 > 1",
        "(n, city) = (1, 'a')",
        "n = 'a'",
        "flag = 'maybe'",
        "born > '2000-02-30'",
        "CAST('x' AS INT) = n",
        "CAST(w AS TEXT) = '1'",
        "CAST(w AS DECIMAL(10, 2)) = 1",
        "CAST(n AS UUID) = city",
        "city LIKE '%a%b%c%d'",
        "city LIKE 'a\\'",
        "LEFT(city, -1) = 'L'",
        "SUBSTRING(city, 0, 1) = 'L'",
        "REPLACE(city, '', 'a') = 'L'",
        f"REPLACE(city, 'l', '{'l' * 101}') = 'L'",
        "born + INTERVAL '1' DAY * n > born",
        "born + INTERVAL '99999' YEAR > born",
        "EXTRACT(hour FROM born) = 1",
        "ROUND(w, n) = 1",
        "ROUND(w, 99) = 1",
    ],
)
def test_what_could_fail_on_a_row_is_refused_and_costs_nothing(condition: str, tmp_path) -> None:
    ledger = BudgetLedger.create(tmp_path / "budget", Pure(1))
    with pytest.raises(hm.errors.QueryError):
        ask(f"SELECT COUNT(*) FROM t WHERE {condition}", epsilon=1, ledger=ledger)
    with pytest.raises(hm.errors.QueryError):
        ask(f"SELECT COUNT(*) FILTER (WHERE {condition}) FROM t", epsilon=1, ledger=ledger)
    with pytest.raises(hm.errors.QueryError):
        ask(f"SELECT COUNT(*) FROM t WHERE {condition} GUARANTEE k = 1")
    assert ledger.spent() == Pure(0)


NUMBERS = ("tiny", "n", "w", "money", "7", "0.001")


@pytest.mark.parametrize(
    ("left", "right"),
    [(left, right) for i, left in enumerate(NUMBERS[:4]) for right in turn(NUMBERS, i, 3)],
)
def test_arithmetic_never_leaves_its_type(left: str, right: str) -> None:
    """Rows with the largest and smallest numbers are added up like any others."""
    shapes = ["{a} + {b}", "{a} - {b}", "-{a} * {b}", "ABS({a}) * {b} - {a}", "({a} + {b}) / 3"]
    shapes += ["COALESCE({a}, {b}) + {a}", "GREATEST({a}, {b}) - 1", "FLOOR({a} * {b}) + 1"]
    shapes += ["CASE WHEN {a} > {b} THEN {a} ELSE {b} END + {b}", "ROUND({a} * {b})", "SIGN({a})"]
    conditions = [shape.format(a=left, b=right) + " > 0" for shape in shapes]
    columns = ", ".join(f"COUNT(*) FILTER (WHERE {c}) AS c{i}" for i, c in enumerate(conditions))
    assert totals(f"SELECT {columns} FROM t") == [4]


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("n + 1 = 4", 1),
        ("n % 2 = 1", 2),  # what is beyond counts as 2 ** 62 - 1
        ("n // 2 = 1", 1),
        ("tiny * 2 > 200", 1),
        ("tiny * 2 = -256", 1),
        ("n / 2 = 1.5", 1),
        ("money = 1.1", 1),
        ("money * 10 = 11", 1),
        ("w > 1e30", 1),
        ("w * 2 = 3", 1),
        ("n > 2.5", 2),
        ("n < 0.1234567890123456789012345", 1),
        ("tiny IN (3, 1000)", 1),
        ("tiny BETWEEN -1000 AND 3", 2),
        ("born = '1970-01-01'", 1),
        ("born > DATE '2000-01-01'", 1),
        ("seen = DATE '1970-01-01'", 1),
        ("YEAR(born) = 1970", 1),
        ("EXTRACT(YEAR FROM seen) >= 9999", 1),
        ("DATE_TRUNC('month', born) = TIMESTAMP '1970-01-01'", 1),
        ("DATE_DIFF('day', born, DATE '1970-01-03') = 2", 1),
        ("DATE(seen) = DATE '1970-01-01'", 1),
        ("city LIKE 'L%' AND LENGTH(city) = 5", 1),
        ("UPPER(city) || 'x' = 'LILLEx'", 1),
        ("city IS NULL OR NOT flag", 2),
        ("flag IS TRUE", 1),
        ("COALESCE(city, '?') = '?'", 1),
        ("CASE city WHEN 'Lille' THEN 1 WHEN '12' THEN 2 END > 0", 2),
        ("city = 12", 1),
        ("city IN (12, 6)", 1),
        ("city BETWEEN 1 AND 20", 1),
        ("flag = 1", 1),
        ("flag = 'yes'", 1),
        ("born < TIMESTAMP '2000-01-01 12:00:00'", 2),
        ("born + INTERVAL '1' YEAR > DATE '1970-12-31'", 1),
        ("born + INTERVAL '1' YEAR IS NULL", 2),
        ("born + 1 = DATE '1970-01-02'", 1),
        ("DATE(city) IS NULL", 4),
        ("CAST(city AS INT) = 12", 1),
        ("TRY_CAST(city AS INT) IS NULL", 3),
        ("CAST(n AS SMALLINT) = 3", 1),
        ("n / n = 1", 3),
        ("1 / (n - 3) IS NULL", 2),
        ("n % n = 0", 3),
        ("n / 0 IS NULL", 4),
        ("LN(w) > 0", 2),
        ("SQRT(w) IS NULL", 1),
        ("EXP(w) IS NULL", 2),
        ("POW(w, 2) = 2.25", 1),
        ("LENGTH(REPLACE(city, 'l', 'llllllllll')) = 23", 1),
        ("n * 12 = 36", 1),
        ("n * n = 9", 1),
    ],
)
def test_what_is_answered_means_what_sql_means(condition: str, rows: int) -> None:
    assert totals(f"SELECT COUNT(*) FROM t WHERE {condition}") == [rows]
    answer = ask(f"SELECT COUNT(*) AS n FROM t WHERE {condition} GUARANTEE k = 1").to_arrow()
    assert answer["n"].to_pylist() == [rows], "the same under a guarantee"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_of_every_unit_are_grouped_and_compared(unit: str) -> None:
    """The largest of seconds lies beyond all years that microseconds reach."""
    moments = pa.array([0, 2**59, -(2**59), None]).cast(pa.timestamp(unit), safe=False)
    engine = DuckDB({"t": pa.table({"x": moments})})
    rows = hm.query(engine, "SELECT x, COUNT(*) AS n FROM t GROUP BY x GUARANTEE k = 1")
    assert sum(row["n"] for row in rows.to_arrow().to_pylist()) == 4
    late = hm.query(engine, "SELECT COUNT(*) AS n FROM t WHERE YEAR(x) > 1969 GUARANTEE k = 1")
    assert late.to_arrow()["n"].to_pylist() == [{"s": 1, "ms": 1, "us": 2, "ns": 2}[unit]]
    engine.close()


@pytest.mark.parametrize("kind", [DuckDB, Reference])
def test_infinities_and_no_numbers_are_grouped_and_merged(kind) -> None:
    """At an interval they count as missing, as does what is too large for one."""
    w = [1.0, math.inf, -math.inf, math.nan, math.nan, None, 3.0, 1e308, -0.0, 0.0]
    v = [1.0, math.nan, 3.0, 2.0, 5.0, 6.0, 7.0, 1.0, 1.0, 1.0]
    sql = (
        "SELECT w, COUNT(*) AS n, MAX(v) AS high, MIN(v) AS low FROM t GROUP BY w "
        "GUARANTEE k = 2 THEN w -> 10 GUARANTEE k = 2"
    )
    engine = kind({"t": pa.table({"w": w, "v": v})})
    rows = hm.query(engine, sql).to_arrow().to_pylist()
    engine.close()
    assert sorted([str(row["w"]), row["n"], str(row["high"]), row["low"]] for row in rows) == [
        ["0.0", 2, "1.0", 1.0],
        ["None", 4, "nan", 1.0],
        ["[0, 10)", 2, "7.0", 1.0],
        ["nan", 2, "5.0", 2.0],
    ]


PAGE = Path(__file__).parents[2] / "docs" / "query.md"
TABLE = PAGE.read_text().split("| you write | where x holds | you get |\n|---|---|---|\n")[1]
PROMISED = [re.findall("`([^`]*)`", row) for row in TABLE.split("\n\n")[0].splitlines()]


@pytest.mark.parametrize(("text", "holds", "gives"), PROMISED)
def test_the_page_says_what_is_answered(text: str, holds: str, gives: str) -> None:
    value, expected = (eval(one, {"date": dt.date}) for one in (holds, gives))  # noqa: S307
    engine = DuckDB({"t": pa.table({"x": [value]})})
    asked = f"SELECT COUNT(*) FROM t GROUP BY {text} GUARANTEE k = 1"
    with Session("t", engine=engine) as session:
        request = plan_guarantee(parse(asked), session.catalog, engine).request
        found = engine.run(request.source.select(request.keys[0].expression.as_("v")))
    engine.close()
    (shown,) = found["v"].to_pylist()
    assert (shown, type(shown)) == (expected, type(expected))


def test_a_group_that_only_a_quantile_drew_stays_hidden() -> None:
    """Each total draws a person's rows anew; the name of such a group stood in an error once."""
    people = 300
    table = pa.table(
        {
            "id": [i for i in range(people) for _ in (0, 1)],
            "ward": [
                f"common{j}" if i < 200 else f"rare{i}-{j}" for i in range(people) for j in (0, 1)
            ],
            "x": [50.0] * (2 * people),
        }
    )
    schema = {
        "table": {"person": "id"},
        "columns": {
            "id": "identifier",
            "ward": "quasi",
            "x": {"role": "sensitive", "domain": {"low": 0, "high": 100}},
        },
    }
    sql = "SELECT ward, MEDIAN(x) AS m FROM t GROUP BY ward WITH EPSILON 20 DELTA 1e-6"
    found = hm.query(hm.read(table, schema), sql).to_arrow()
    assert found["ward"].to_pylist() == ["common0", "common1"]
    assert found["m"].to_pylist() == pytest.approx([50, 50], abs=2)


@pytest.mark.parametrize(
    "domain",
    [
        {"low": float("-inf"), "high": float("inf")},
        {"low": 0, "high": 1e308},
        {"low": float("nan"), "high": 1},
        {"low": "a", "high": "b"},
        [dt.date(2000, 1, 1), 3],
    ],
)
def test_bounds_that_cannot_be_computed_with_are_refused(domain) -> None:
    with pytest.raises(hm.errors.QueryError, match="public bounds"):
        ask("SELECT AVG(w) FROM t", epsilon=1, domains={"w": domain})


def test_labels_tell_conditions_apart() -> None:
    """Two conditions that differ in blanks only, and a column named like the count of people."""
    table = pa.table({"a": ["x y"] * 60 + ["x  y"] * 30, "people": [1] * 80 + [None] * 10})
    (row,) = (
        hm.query(
            table,
            "SELECT COUNT(*) FILTER (WHERE a = 'x y') AS one, COUNT(*) FILTER (WHERE a = 'x  y') "
            "AS two, COUNT(people) AS some FROM t WITH EPSILON 1000",
            insist=True,
        )
        .to_arrow()
        .to_pylist()
    )
    assert [row["one"], row["two"], row["some"]] == pytest.approx([60, 30, 80], abs=1)
