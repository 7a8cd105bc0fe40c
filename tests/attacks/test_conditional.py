"""The asker makes a figure of one person's value by a condition inside an aggregate."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm

SALARY, OTHERS = 93_417, 20
DISEASES = ["flu", "cancer", "asthma", "none"]
# Alice is the only one with the mark 9, and the only one whose bonus is missing.
PEOPLE = hm.read(
    pa.table(
        {
            "disease": ["cancer", *(DISEASES[i % 4] for i in range(OTHERS))],
            "age": [93, *(20 + i % 10 for i in range(OTHERS))],
            "mark": [9, *(i % 2 for i in range(OTHERS))],
            "flag": [True, *(False for _ in range(OTHERS))],
            "bonus": pa.array([None, *(5 for _ in range(OTHERS))], pa.int64()),
            "weight": [2, *(1 for _ in range(OTHERS))],
            "salary": [SALARY, *(1000 + 10 * i for i in range(OTHERS))],
        }
    ),
    {
        "disease": "sensitive",
        "age": "quasi",
        **dict.fromkeys(("mark", "flag", "bonus", "weight", "salary"), "sensitive"),
    },
)
TOTAL = SALARY + sum(1000 + 10 * i for i in range(OTHERS))

RECOVERING = {
    "FILTER": "SUM(salary) FILTER (WHERE mark = 9)",
    "CASE": "SUM(CASE WHEN mark = 9 THEN salary ELSE 0 END)",
    "CASE with a subject": "SUM(CASE mark WHEN 9 THEN salary END)",
    "IF": "SUM(IF(mark = 9, salary, 0))",
    "a condition on the value itself": "SUM(CASE WHEN salary > 50000 THEN salary ELSE 0 END)",
    "multiplied by a comparison": "SUM(salary * CAST(mark = 9 AS INT))",
    "multiplied by a flag": "SUM(salary * CAST(flag AS INT))",
    "multiplied by a column": "SUM(salary * weight) - SUM(salary)",
    "the complement": "SUM(salary) - SUM(CASE WHEN mark <> 9 THEN salary ELSE 0 END)",
    "a missing value": "SUM(salary) - SUM(salary + 0 * bonus)",
    "COALESCE": "SUM(salary) - SUM(COALESCE(bonus * 0 + salary, 0))",
    "MIN over CASE": "MIN(CASE WHEN mark = 9 THEN salary END)",
    "MEDIAN over CASE": "MEDIAN(CASE WHEN mark = 9 THEN salary END)",
    "AVG over NULLIF": "AVG(CASE WHEN NULLIF(mark, 9) IS NULL THEN salary END)",
    "a cut by a remainder": "SUM(salary * (mark // 9))",
    "a polynomial": "SUM(salary * mark * (mark - 1)) / 72",
    "GREATEST": "SUM(GREATEST(salary, 50000)) - 50000 * COUNT(*) + 50000",
    "LEAST": "SUM(salary) - SUM(LEAST(salary, 2000)) + 2000",
    "ABS": "(SUM(ABS(salary - 50000)) + SUM(salary - 50000)) / 2 + 50000",
    "SIGN": "SUM(salary * (SIGN(salary - 50000) + 1)) / 2",
}


def asked(figure: str, more: str = "") -> list[object]:
    sql = f"SELECT {figure} AS m{more} FROM people GUARANTEE k = 3"
    rows: list[object] = hm.query(PEOPLE, sql, {"k": 3}).to_arrow()["m"].to_pylist()
    return rows


@pytest.mark.parametrize("figure", RECOVERING.values(), ids=RECOVERING.keys())
def test_a_salary_cannot_be_cut_out_of_a_sum(figure: str) -> None:
    assert asked(figure) == [None]


def test_other_figures_of_the_row_stay() -> None:
    sql = (
        "SELECT COUNT(*) AS n, SUM(salary) AS t, SUM(salary) FILTER (WHERE mark = 9) AS m, "
        "SUM(salary) FILTER (WHERE mark < 2) AS r FROM people GUARANTEE k = 3"
    )
    answer = hm.query(PEOPLE, sql)
    row = answer.to_arrow().to_pylist()[0]
    assert (row["n"], row["t"], row["m"], row["r"]) == (OTHERS + 1, TOTAL, None, None)
    assert any("depends on a condition" in note for note in answer.notes)


def test_a_condition_that_splits_into_large_parts_is_answered() -> None:
    sql = "SELECT SUM(salary) FILTER (WHERE age < 25) AS m FROM people GUARANTEE k = 3"
    with pytest.raises(hm.errors.QueryError):  # a column that others know beside another one
        hm.query(PEOPLE, sql)
    assert asked("COUNT(*) FILTER (WHERE age < 25)") == [10]
    assert asked("SUM(CASE WHEN mark = 1 THEN 1 ELSE 0 END)") == [OTHERS // 2]


def test_two_conditions_cannot_be_subtracted() -> None:
    """Each side of each condition is large; the difference of both is one person."""
    first, second = (
        "COUNT(*) FILTER (WHERE age >= 25)",
        "COUNT(*) FILTER (WHERE age IN (25,26,27,28,29))",
    )
    assert asked(first) == [11]
    assert asked(second) == [10]
    assert asked(first, f", {second} AS o") == [None]


@pytest.mark.parametrize(
    "figure",
    [
        "COUNT(*) FILTER (WHERE age = 93)",
        "SUM(CASE WHEN age = 93 THEN 1 ELSE 0 END)",
        "COUNT(NULLIF(age, 93))",
        "COUNT(DISTINCT CASE WHEN age = 93 THEN age END)",
        "MAX(CASE WHEN age = 93 THEN 1 ELSE 0 END)",
        "SUM(age // 93)",
        "SUM(FLOOR(age / 93))",
        "MAX(LENGTH(CAST(age * 11 AS TEXT)))",
    ],
)
def test_no_row_tells_where_the_only_one_of_an_age_stands(figure: str) -> None:
    """Neither a count nor the place of an empty figure shows the disease of the one aged 93."""
    sql = (
        f"SELECT disease, COUNT(*) AS n, {figure} AS m FROM people GROUP BY disease GUARANTEE k = 3"
    )
    rows = hm.query(PEOPLE, sql).to_arrow().to_pylist()
    assert [r["disease"] for r in rows] == sorted(DISEASES)
    assert {r["m"] for r in rows} == {None}


def test_having_and_order_do_not_tell_it_either() -> None:
    for clause in ("HAVING {} >= 1", "HAVING {} = 0", "HAVING NOT {} = 0"):
        having = clause.format("COUNT(*) FILTER (WHERE age = 93)")
        sql = f"SELECT disease FROM people GROUP BY disease {having} GUARANTEE k = 3"
        assert len(hm.query(PEOPLE, sql)) == 0
    order = "ORDER BY COUNT(*) FILTER (WHERE age = 93) DESC"
    sql = f"SELECT disease FROM people GROUP BY disease {order} GUARANTEE k = 3"
    assert hm.query(PEOPLE, sql).to_arrow()["disease"].to_pylist() == sorted(DISEASES)
