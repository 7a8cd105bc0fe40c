"""An asker who states the weakest guarantee there is, where nobody stated a demand."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.attacks.conftest import AGE, SALARY, SCHEMA, Asker, make_rows

import halfmask as hm

QUESTIONS = {
    "one person": f"SELECT MAX(salary) AS x FROM people WHERE age = {AGE} GUARANTEE k = 1",
    "by age": f"SELECT age, MAX(salary) AS x FROM people GROUP BY age HAVING age = {AGE} "
    "GUARANTEE k = 1",
    "two people": f"SELECT SUM(salary) - 20000 AS x FROM people WHERE age = {AGE} OR kwh = 100 "
    "GUARANTEE k = 2",
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_asker_cannot_ask_for_less_than_the_floor(name: str) -> None:
    rows = make_rows()
    del rows["k_i"]
    schema = {n: part for n, part in SCHEMA.items() if n != "policy"}
    seen = Asker(hm.read(pa.table(rows), schema)).rows(QUESTIONS[name])
    assert not any(row["x"] == SALARY for row in seen or [])
