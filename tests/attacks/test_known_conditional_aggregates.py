"""A figure over a whole group in which the asker's condition leaves one person only.

Ada demands no more than the others: the group is large enough, the part that counts is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.attacks.conftest import AGE, KWH, SALARY, SCHEMA, Asker, make_rows

import halfmask as hm

if TYPE_CHECKING:
    from collections.abc import Callable

ASK = "SELECT {} AS x FROM people GUARANTEE k = 5"
FIGURES: dict[str, tuple[str, Callable[[float], float]]] = {
    "CASE with zeros": (f"SUM(CASE WHEN kwh = {KWH} THEN salary ELSE 0 END)", float),
    "FILTER": (f"SUM(salary) FILTER (WHERE kwh = {KWH})", float),
    "COALESCE of FILTER": (f"SUM(COALESCE(CASE WHEN kwh = {KWH} THEN salary END, 0))", float),
    "IF": (f"SUM(IF(kwh = {KWH}, salary, 0))", float),
    "a product with a comparison": (f"SUM(salary * CAST(kwh = {KWH} AS INTEGER))", float),
    "mean of zeros": (f"AVG(CASE WHEN kwh = {KWH} THEN salary ELSE 0 END)", lambda x: x * 60),
    "the largest": (f"MAX(CASE WHEN kwh = {KWH} THEN salary ELSE 0 END)", float),
    "NULLIF and COALESCE": (
        f"SUM(CASE WHEN COALESCE(NULLIF(kwh, {KWH}), -1) = -1 THEN salary ELSE 0 END)",
        float,
    ),
    "a step of a number": ("SUM(salary * FLOOR(kwh / 8000))", float),
    "a sign": ("SUM(salary * (SIGN(kwh - 8000) + 1) / 2)", float),
    "the larger of two": ("SUM(GREATEST(kwh - 8000, 0) / 123 * salary)", float),
    "a value that drowns the others": ("SUM(salary * POW(kwh / 8123, 400))", float),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_condition_leaves_nobody_alone(liberal: hm.Table, name: str) -> None:
    figure, read = FIGURES[name]
    rows = Asker(liberal).rows(ASK.format(figure))
    seen = rows[0]["x"] if rows else None
    assert seen is None or round(read(float(seen))) != SALARY


def test_the_complement_of_a_condition_leaves_nobody_alone(liberal: hm.Table) -> None:
    """All but Ada, and all: their difference is she."""
    ask = "SELECT SUM(salary) AS a, SUM(CASE WHEN kwh = {} THEN 0 ELSE salary END) AS b FROM people"
    rows = Asker(liberal).rows(f"{ask.format(KWH)} GUARANTEE k = 5")
    seen = rows[0] if rows else {"a": None, "b": None}
    assert None in (seen["a"], seen["b"]) or round(seen["a"] - seen["b"]) != SALARY


def crowd(k: int) -> hm.Table:
    """A table in which five others earn what Ada does."""
    rows = make_rows(k=k)
    for i in range(5):
        rows["salary"][20 + i] = SALARY
    return hm.read(pa.table(rows), SCHEMA)


def count_by(asker: Asker, key: str) -> list[object]:
    rows = asker.rows(
        f"SELECT {key}, COUNT(*) FILTER (WHERE age = {AGE}) AS n FROM people GROUP BY {key} "
        "GUARANTEE k = 3"
    )
    return [row[key] for row in rows or [] if row["n"] == 1]


def test_a_count_of_one_per_disease_tells_no_disease(liberal: hm.Table) -> None:
    assert count_by(Asker(liberal), "disease") != ["none"]


def test_a_count_of_one_per_salary_tells_no_salary() -> None:
    assert count_by(Asker(crowd(k=2)), "salary") != [SALARY]


@pytest.mark.parametrize(
    "figure",
    [
        f"SUM(CASE WHEN age = {AGE} THEN 1 ELSE 0 END)",
        f"MAX(CAST(age = {AGE} AS INTEGER))",
        f"COUNT(NULLIF(age = {AGE}, FALSE))",
        "MAX(age // 90)",
        f"COUNT(CASE WHEN age = {AGE} THEN 1 END)",
    ],
)
def test_another_way_to_count_one_tells_no_salary(figure: str) -> None:
    rows = Asker(crowd(k=2)).rows(
        f"SELECT salary, {figure} AS n FROM people GROUP BY salary GUARANTEE k = 3"
    )
    assert [r["salary"] for r in rows or [] if r["n"] == 1] != [SALARY]
