"""A database holds more tables than the controller opened for questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest
from tests.attacks.conftest import SALARY, SCHEMA, Asker, make_rows

if TYPE_CHECKING:
    from pathlib import Path

QUESTIONS = {
    "as it stands": "SELECT amount AS s FROM payroll WHERE who = 'Ada' GROUP BY amount "
    "GUARANTEE k = {}",
    "by a figure": "SELECT MAX(amount) AS s FROM payroll WHERE who = 'Ada' GUARANTEE k = {}",
    "joined": "SELECT MAX(amount) AS s FROM people JOIN payroll ON people.id = payroll.person "
    "GUARANTEE k = {}",
    "in a subquery": "SELECT COUNT(*) AS s FROM people WHERE salary < "
    "(SELECT MAX(amount) FROM payroll) GUARANTEE k = {}",
}


@pytest.fixture
def database(tmp_path: Path) -> str:
    rows = pa.table(make_rows())
    payroll = pa.table({"person": list(range(60)), "who": ["Ada"] * 60, "amount": [SALARY] * 60})
    path = str(tmp_path / "office.duckdb")
    with duckdb.connect(path) as connection:
        connection.register("a", rows)
        connection.register("b", payroll)
        connection.execute("CREATE TABLE people AS SELECT * FROM a")
        connection.execute("CREATE TABLE payroll AS SELECT * FROM b")
    return path


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", QUESTIONS)
def test_an_unlisted_table_is_not_there(database: str, name: str, k: int) -> None:
    rows = Asker(database, {"schema": {"people": SCHEMA}}).rows(QUESTIONS[name].format(k))
    assert not any(row["s"] == SALARY for row in rows or [])
    if name == "in a subquery":
        assert rows is None
