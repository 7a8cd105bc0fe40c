"""A database holds more tables than the controller opened for questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest
from tests.attacks.conftest import SALARY, SCHEMA, make_rows

import halfmask as hm
from halfmask.errors import QueryError

if TYPE_CHECKING:
    from pathlib import Path

# Sixty people have the same amount: no guarantee hides it, only the list of tables does.
QUESTIONS = {
    "as it stands": "SELECT amount AS s FROM payroll GROUP BY amount GUARANTEE k = {}",
    "by a figure": "SELECT MAX(amount) AS s FROM payroll GUARANTEE k = {}",
    "in another case": "SELECT MAX(amount) AS s FROM PayRoll GUARANTEE k = {}",
    "in a derived table": "SELECT MAX(amount) AS s FROM (SELECT * FROM payroll) d GUARANTEE k = {}",
    "joined": "SELECT MAX(amount) AS s FROM people JOIN payroll ON people.id = payroll.person "
    "GUARANTEE k = {}",
    "in a subquery": "SELECT MAX(salary) AS s FROM people WHERE salary IN "
    "(SELECT amount FROM payroll) GUARANTEE k = {}",
}


@pytest.fixture
def database(tmp_path: Path) -> str:
    rows = make_rows(k=2)
    rows["salary"][:10] = [SALARY] * 10
    payroll = pa.table({"person": rows["id"], "amount": [SALARY] * 60})
    path = str(tmp_path / "office.duckdb")
    with duckdb.connect(path) as connection:
        connection.register("a", pa.table(rows))
        connection.register("b", payroll)
        connection.execute("CREATE TABLE people AS SELECT * FROM a")
        connection.execute("CREATE TABLE payroll AS SELECT * FROM b")
    return path


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", QUESTIONS)
def test_an_unlisted_table_is_not_there(database: str, name: str, k: int) -> None:
    with pytest.raises(QueryError, match=r"(?i)there is no table payroll"):
        hm.query(database, QUESTIONS[name].format(k), schema={"people": SCHEMA})


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_same_questions_tell_the_salary_of_a_table_that_is_listed(
    database: str, name: str
) -> None:
    """Else the refusals above would prove nothing: each question is one that finds the amount."""
    listed = {"people": SCHEMA, "payroll": {"columns": {"person": "other", "amount": "other"}}}
    found = hm.query(database, QUESTIONS[name].format(3), schema=listed).to_arrow()
    assert found["s"].to_pylist() == [SALARY]
