"""A demand that holds where salary is asked, evaded by asking for it under another name."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.attacks.conftest import AGE, SALARY, SCHEMA, UNMEETABLE, Asker, make_rows

import halfmask as hm

POLICIES = {"k": "k_i", "columns": {"salary": {"k": UNMEETABLE}}}
BANDS = pa.table({"amount": [20_000 + 1_000 * i for i in range(10)] + [SALARY]})
CHAIN = "GUARANTEE k = 3"
QUESTIONS = {
    "plain": f"SELECT salary AS s, MAX(age) AS a FROM people GROUP BY salary {CHAIN}",
    "alias": f"SELECT salary AS s, MAX(age) AS a FROM people GROUP BY s {CHAIN}",
    "position": f"SELECT salary AS s, MAX(age) AS a FROM people GROUP BY 1 {CHAIN}",
    "derived table": "SELECT s, MAX(age) AS a FROM (SELECT salary AS s, age FROM people) d "
    f"GROUP BY s {CHAIN}",
    "WITH": "WITH d AS (SELECT salary AS s, age FROM people) SELECT s, MAX(age) AS a FROM d "
    f"GROUP BY 1 {CHAIN}",
    "expression": f"SELECT salary + 0 AS s, MAX(age) AS a FROM people GROUP BY 1 {CHAIN}",
    "join key": "SELECT amount AS s, MAX(age) AS a FROM people JOIN bands ON salary = amount "
    f"GROUP BY amount {CHAIN}",
    "another case": f'SELECT "SALARY" AS s, MAX(age) AS a FROM people GROUP BY 1 {CHAIN}',
}


@pytest.fixture
def asker() -> Asker:
    """Five others earn what Ada does; each of them would stand in groups of two."""
    rows = make_rows(k=2)
    for i in range(5):
        rows["salary"][20 + i] = SALARY
    table = {
        "people": hm.read(pa.table(rows), SCHEMA),
        "bands": hm.read(BANDS, {"columns": {"amount": "other"}}),
    }
    return Asker(table, {"policies": POLICIES})


@pytest.mark.parametrize("name", QUESTIONS)
def test_salary_is_asked_whatever_it_is_called(asker: Asker, name: str) -> None:
    rows = asker.rows(QUESTIONS[name])
    assert [float(r["s"]) for r in rows or [] if r["a"] == AGE] != [SALARY]


FILTERS = {
    "WHERE": "people WHERE salary > {}",
    "a negation": "people WHERE NOT (salary <= {})",
    "a choice": "people WHERE CASE WHEN salary > {} THEN TRUE ELSE FALSE END",
    "a derived table": "(SELECT * FROM people WHERE salary > {}) p",
    "a derived column": "(SELECT age, salary AS s FROM people) p WHERE s > {}",
    "the other side of a join": "people JOIN bands ON amount = salary WHERE amount > {}",
}


@pytest.mark.parametrize("name", FILTERS)
def test_filtering_by_salary_asks_for_it(asker: Asker, name: str) -> None:
    """The oldest of those above a guess: Ada, or somebody younger."""
    ask = f"SELECT MAX(age) AS a FROM {FILTERS[name]} {CHAIN}"
    assert not asker.tells(ask.format)


@pytest.mark.parametrize(
    "tail", ["HAVING MAX(salary) > {}", "ORDER BY MAX(salary) > {}, city DESC LIMIT 1"]
)
def test_choosing_rows_by_salary_asks_for_it(asker: Asker, tail: str) -> None:
    """The row of the city where Ada lives is there, or comes first, or not."""
    ask = f"SELECT city, COUNT(*) AS n FROM people GROUP BY city {tail} {CHAIN}"
    assert not asker.tells(ask.format)
