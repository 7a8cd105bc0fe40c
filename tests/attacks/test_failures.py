"""An asker makes a query fail, or take long, for one person's row, and reads the salary off that.

Ada demands more people than there are: nothing of her may be seen in any answer, so whatever she
earns, every question must look the same, whether it is answered or refused.
"""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import HalfmaskError

AGE, SALARY, OTHER = 93, 48_517, 12_000
SCHEMA = {
    "table": {"person": "id"},
    "policy": {"k": "k_i"},
    "columns": {
        "id": "identifier",
        "age": "quasi",
        "city": "quasi",
        "note": "other",
        "salary": {"role": "sensitive", "domain": {"low": 0, "high": 200_000}},
    },
}
HERS = f"age = {AGE} AND salary > {{guess}}"
EXPRESSIONS = {
    "cast of a text": "CAST(CASE WHEN {hers} THEN 'x' ELSE '1' END AS INTEGER) = 1",
    "cast to a narrow number": "CAST(CASE WHEN {hers} THEN 70000 ELSE 1 END AS SMALLINT) = 1",
    "cast of the notes": "CAST(CASE WHEN {hers} THEN note ELSE '1' END AS DOUBLE) >= 0",
    "overflow of a sum": "CASE WHEN {hers} THEN 9223372036854775807 ELSE 0 END + age > 0",
    "overflow of a product": "CASE WHEN {hers} THEN 9223372036854775807 ELSE 0 END * age >= 0",
    "overflow of a double": "CASE WHEN {hers} THEN 1e30 ELSE 1 END * 1e300 > 0",
    "division by zero": "1 % (CASE WHEN {hers} THEN 0 ELSE 1 END) >= 0",
    "division by the salary": "1 // (salary - {guess}) >= 0",
    "logarithm": "LN(CASE WHEN {hers} THEN -1 ELSE 1 END) >= 0",
    "root": "SQRT(CASE WHEN {hers} THEN -1 ELSE 1 END) >= 0",
    "power": "EXP(CASE WHEN {hers} THEN 5000 ELSE 1 END) >= 0",
    "no such day": "CAST(CASE WHEN {hers} THEN '2023-02-30' ELSE '2023-02-28' END AS DATE) > "
    "DATE '2000-01-01'",
    "beyond the calendar": "CASE WHEN {hers} THEN DATE '9999-12-31' ELSE DATE '2000-01-01' END + "
    "INTERVAL '8000' YEAR > DATE '2000-01-01'",
    "two types": "CASE WHEN {hers} THEN 'x' ELSE '5' END = 5",
}
SHAPES = {
    "filter": "SELECT COUNT(*) AS n FROM people WHERE {e} GUARANTEE k = 3",
    "key": "SELECT {e} AS g, COUNT(*) AS n FROM people GROUP BY 1 GUARANTEE k = 3",
    "derived": "SELECT COUNT(*) AS n FROM (SELECT {e} AS e FROM people) d WHERE e GUARANTEE k = 3",
    "figure": "SELECT city, COUNT({e}) AS n FROM people GROUP BY city GUARANTEE k = 3",
}


def people(salary: int) -> hm.Table:
    """Sixty people, of whom only Ada is 93."""
    numbers = range(60)
    rows: dict[str, list[Any]] = {
        "id": list(numbers),
        "age": [AGE if i == 17 else 30 + i % 20 for i in numbers],
        "city": ["Bourges" if i % 2 else "Lille" for i in numbers],
        "note": ["see file" if i == 17 else str(i) for i in numbers],
        "salary": [salary if i == 17 else 20_000 + 1_000 * (i % 10) for i in numbers],
        "k_i": [1_000_000 if i == 17 else 2 for i in numbers],
    }
    return hm.read(pa.table(rows), SCHEMA)


TABLES = {salary: people(salary) for salary in (SALARY, OTHER)}


def seen(salary: int, sql: str, **options: Any) -> tuple[Any, ...]:
    """All that the asker sees: rows and notes, or the class and the text of an error."""
    try:
        answer = hm.query(TABLES[salary], sql, **options)
    except HalfmaskError as error:
        return type(error), str(error)
    return answer.to_arrow().to_pylist(), answer.notes


def asked(name: str, shape: str, guess: int) -> str:
    return SHAPES[shape].format(
        e=EXPRESSIONS[name].format(hers=HERS.format(guess=guess), guess=guess)
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_no_expression_tells_what_she_earns(name: str, shape: str) -> None:
    # One guess makes the two worlds differ; a division differs at the salaries themselves.
    for guess in (SALARY, OTHER) if "{guess}" in EXPRESSIONS[name] else (SALARY - 1,):
        sql = asked(name, shape, guess)
        assert seen(SALARY, sql) == seen(OTHER, sql)


@pytest.mark.parametrize("figure", ["SUM", "AVG", "VARIANCE", "MEDIAN", "MIN", "MAX"])
def test_no_figure_of_hers_overflows(figure: str) -> None:
    argument = f"CASE WHEN {HERS.format(guess=SALARY - 1)} THEN 1e30 ELSE 1 END"
    sql = f"SELECT {figure}({argument} * {argument} * {argument}) AS x FROM people GUARANTEE k = 3"
    assert seen(SALARY, sql) == seen(OTHER, sql)


def grown(start: str) -> str:
    for _ in range(12):
        start = f"REPLACE({start}, 'a', '{'a' * 32}')"
    return start


@pytest.mark.parametrize("clause", ["GUARANTEE k = 3", "WITH EPSILON 1"])
def test_a_text_that_grows_takes_neither_memory_nor_time(clause: str) -> None:
    """Twelve times 32-fold is more than all memory there is."""
    text = grown(f"CASE WHEN {HERS.format(guess=SALARY - 1)} THEN 'a' ELSE '' END")
    sql = f"SELECT COUNT(*) AS n FROM people WHERE LENGTH({text}) <= 1000 {clause}"
    started = time.process_time()
    shown = [seen(salary, sql)[0] for salary in (SALARY, OTHER)]
    assert all(isinstance(rows, list) for rows in shown)
    assert time.process_time() - started < 10


def test_a_pattern_takes_few_steps_on_any_text() -> None:
    """Each % before the end of a pattern multiplies the steps by the length of the text."""
    long = hm.read(pa.table({"t": ["a" * 100_000, "b", "c"]}), {"columns": {"t": "other"}})
    started = time.process_time()
    for pattern in ("%a%_b", "%a_%a_b%", "%a%b"):
        hm.query(long, f"SELECT COUNT(*) AS n FROM t WHERE t LIKE '{pattern}' GUARANTEE k = 1")
    assert time.process_time() - started < 10
    with pytest.raises(hm.errors.QueryError, match="at most 2 %"):
        hm.query(long, "SELECT COUNT(*) FROM t WHERE t LIKE '%a%a%a%_b' GUARANTEE k = 1")


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_whether_noise_is_refused_depends_on_no_row(name: str) -> None:
    sql = asked(name, "filter", SALARY - 1).replace("GUARANTEE k = 3", "WITH EPSILON 1")
    ours, theirs = (seen(salary, sql) for salary in (SALARY, OTHER))
    if isinstance(ours[0], list):
        assert isinstance(theirs[0], list)
    else:
        assert ours == theirs


def test_a_select_list_that_fails_tells_no_count_that_the_ledger_forbids() -> None:
    """Figures are computed before earlier answers are looked at."""
    ledger = hm.Ledger()
    first = "SELECT COUNT(*) AS n FROM people WHERE age < 93 GUARANTEE k = 3"
    assert seen(OTHER, first, ledger=ledger)[0][0]["n"] == 59
    shown = set()
    for guess in (57, 58, 59):
        figure = f"CAST(CASE WHEN COUNT(*) = {guess} THEN 'x' ELSE '1' END AS INT)"
        where = "age < 93 AND note <> '5'"
        sql = f"SELECT {figure} AS n FROM people WHERE {where} GUARANTEE k = 3"
        shown.add(seen(OTHER, sql, ledger=ledger)[0])
    assert shown == {hm.errors.LedgerError}
