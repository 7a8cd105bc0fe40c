"""An l that somebody states for a column, evaded by grouping or filtering by that column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from effort import turn
from tests.attacks.conftest import SCHEMA, WHO, make_rows

import halfmask as hm
from halfmask.errors import InternalError

G = "GUARANTEE k = 3, l = 3"
PAY = 70_000
POLICIES: dict[str, Any] = {
    "of the column": {"people": {str(WHO): {"columns": {"disease": {"l": 3}}}}},
    "in general": {"people": {str(WHO): {"l": 3}}},
    "in a column of the table": {"l": "l_i"},
    "of the column in the table": {"columns": {"disease": {"l": "l_i"}}},
}
QUESTIONS = {
    "a key": f"SELECT disease AS d, MAX(salary) AS m FROM people GROUP BY disease {G}",
    "a key among others": "SELECT city, disease AS d, MAX(salary) AS m FROM people "
    f"GROUP BY city, disease {G}",
    "a computed key": f"SELECT LEFT(disease, 1) AS d, MAX(salary) AS m FROM people GROUP BY 1 {G}",
    "a condition": f"SELECT MAX(salary) AS m FROM people WHERE disease = 'asthma' {G}",
    "a condition with another column": "SELECT MAX(salary) AS m FROM people "
    f"WHERE disease = 'asthma' {G} OF salary",
    "a filter": f"SELECT MAX(salary) FILTER (WHERE disease = 'asthma') AS m FROM people {G}",
    "a choice": "SELECT MAX(CASE WHEN disease = 'asthma' THEN salary END) AS m, "
    f"MAX(disease) AS x FROM people {G}",
    "a derived table": "SELECT MAX(salary) AS m FROM (SELECT * FROM people "
    f"WHERE disease = 'asthma') p {G}",
}


def people() -> hm.Table:
    """Ada, whose disease is asthma, earns more than anybody else."""
    rows = make_rows(salary=PAY, k=2)
    assert rows["disease"][WHO] == "none"
    rows["disease"][WHO] = "asthma"
    rows["l_i"] = [3 if i == WHO else 1 for i in range(60)]
    return hm.read(pa.table(rows), SCHEMA)


def figures(sql: str, policies: Any, **how: Any) -> list[Any]:
    return [r["m"] for r in hm.query(people(), sql, policies, **how).to_arrow().to_pylist()]


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_row_of_one_disease_has_her_in_it(name: str, engine: str) -> None:
    number = 2 * [*QUESTIONS].index(name) + (engine == "duckdb")
    for stated in turn([*POLICIES], number, 2):
        found = figures(QUESTIONS[name], POLICIES[stated], engine=engine)
        assert found
        assert PAY not in found


@pytest.mark.parametrize("stated", POLICIES)
def test_she_stands_where_the_values_of_the_column_are_counted(stated: str) -> None:
    for sql in (
        f"SELECT MAX(salary) AS m, COUNT(DISTINCT disease) AS d FROM people {G}",
        f"SELECT MAX(salary) AS m FROM people WHERE disease <> 'gout' {G} OF disease",
        "SELECT disease, MAX(salary) AS m FROM people GROUP BY disease "
        "GUARANTEE k = 3, l = 1 THEN disease -> del GUARANTEE k = 3, l = 3 OF disease "
        "SEMANTICS complete",
        f"SELECT MAX(salary) AS m FROM people {G}",
    ):
        assert PAY in figures(sql, POLICIES[stated]), sql


def test_others_are_grouped_by_it_as_before() -> None:
    sql = QUESTIONS["a key"].replace("MAX(salary)", "COUNT(*)").replace(G, f"{G} OF salary")
    plain, kept = figures(sql, None), figures(sql, POLICIES["in general"])
    assert sum(plain) == 60
    assert sum(kept) == 59


def test_the_door_knows_which_columns_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from halfmask.query.planning import demands

    monkeypatch.setattr(demands, "_owes_general", lambda plan: False)
    for stated in ("in general", "in a column of the table"):
        with pytest.raises(InternalError):
            figures(QUESTIONS["a key"], POLICIES[stated])
