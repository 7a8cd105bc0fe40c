"""A demand that stands in a table which the asker joins so that its row is not there."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.attacks.conftest import SALARY, SCHEMA, UNMEETABLE, WHO, make_rows

import halfmask as hm
from halfmask.errors import HalfmaskError

G = "GUARANTEE k = 3"
COST = 777
VISITS: dict[str, Any] = {
    "table": {"person": "id"},
    "columns": {"id": "identifier", "ward": "quasi", "code": "sensitive", "cost": "sensitive"},
}
MEMBERS: dict[str, Any] = {"table": {"person": "id"}, "columns": {"id": "identifier"}}


def visits(demand: str | None = None, **extra: Any) -> pa.Table:
    """One visit of everybody; Ada's cost 777."""
    people = range(60)
    rows: dict[str, list[Any]] = {
        "id": list(people),
        "ward": ["AB"[i % 2] for i in people],
        "code": ["xyz"[i % 3] for i in people],
        "cost": [10 + i % 40 for i in people],
    }
    rows["cost"][WHO] = COST
    if demand is not None:
        rows[demand] = [UNMEETABLE if i == WHO else 1 for i in people]
    for name, value in extra.items():
        rows[name][WHO] = value
    return pa.table(rows)


def in_people(**planted: Any) -> dict[str, hm.Table]:
    """The demand stands with the people, the secret in their visits."""
    rows = make_rows()
    for name, value in planted.items():
        rows[name][WHO] = value
    members = pa.table({"id": [i for i in range(60) if i != WHO]})
    return {
        "people": hm.read(pa.table(rows), SCHEMA),
        "visits": hm.read(visits(), VISITS),
        "members": hm.read(members, MEMBERS),
    }


def in_visits(**planted: Any) -> dict[str, hm.Table]:
    """The demand stands in the visits, the secret with the people."""
    rows = make_rows(k=2)
    del rows["k_i"]
    for name, value in planted.items():
        rows[name][WHO] = value
    plain = {name: part for name, part in SCHEMA.items() if name != "policy"}
    stated = {**VISITS, "policy": {"k": "k_v"}}
    return {
        "people": hm.read(pa.table(rows), plain),
        "visits": hm.read(visits("k_v"), stated),
    }


# What is asked for, and the join that leaves Ada's demand behind.
STRIPPED = {
    "another condition": "visits LEFT JOIN people ON people.id = visits.id "
    "AND people.city = visits.code",
    "a middle table": "visits LEFT JOIN members ON members.id = visits.id "
    "LEFT JOIN people ON people.id = members.id",
    "an equality to be guessed": "visits LEFT JOIN people ON people.id = visits.id "
    "AND people.age = visits.cost",
    "a derived table": "(SELECT id AS i, code AS c, cost FROM visits) v "
    "LEFT JOIN people ON people.id = v.i AND people.city = v.c",
    "a query in JOIN": "visits LEFT JOIN (SELECT * FROM people WHERE age < 50) people "
    "ON people.id = visits.id",
    "the other side": "visits LEFT JOIN people ON people.id = visits.id WHERE people.id IS NULL",
}


@pytest.mark.parametrize("name", STRIPPED)
@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize("recheck", ["groups", "rows"])
def test_a_demand_holds_where_its_row_is_not_joined(name: str, engine: str, recheck: Any) -> None:
    sql = f"SELECT MAX(cost) AS m, COUNT(*) AS n FROM {STRIPPED[name]} {G}"
    try:
        found = hm.query(in_people(), sql, engine=engine, recheck=recheck).to_arrow().to_pylist()
    except HalfmaskError:
        assert name in ("a query in JOIN", "the other side")
        return
    assert [(row["m"], row["n"]) for row in found] == [(49, 59)]


def test_no_equality_with_a_hidden_value_can_be_guessed() -> None:
    sql = (
        "SELECT COUNT(*) AS n, MAX(cost) AS m FROM visits LEFT JOIN people "
        f"ON people.id = visits.id AND people.age = visits.cost {G}"
    )
    answers = [hm.query(in_people(age=age), sql).to_arrow().to_pylist() for age in (93, COST)]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_a_demand_in_the_joined_table_holds_for_the_first_one(engine: str) -> None:
    sql = (
        "SELECT MAX(salary) AS m, COUNT(*) AS n FROM people LEFT JOIN visits "
        f"ON people.id = visits.id AND people.disease = visits.code {G}"
    )
    found = hm.query(in_visits(salary=SALARY), sql, engine=engine).to_arrow().to_pylist()
    assert [(row["m"], row["n"]) for row in found] == [(29_000, 59)]


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_the_strictest_of_several_rows_holds_whichever_matches(join: str, engine: str) -> None:
    """Ada states her demand in a row with another code; the row that matches states 1."""
    both = pa.concat_tables([visits("k_v", code="far"), visits("k_v", code="flu", k_v=1)])
    rows = make_rows()
    rows["disease"] = ["xyz"[i % 3] for i in range(60)]
    rows["disease"][WHO] = "flu"
    del rows["k_i"]
    plain = {name: part for name, part in SCHEMA.items() if name != "policy"}
    tables = {
        "people": hm.read(pa.table(rows), plain),
        "visits": hm.read(both, {**VISITS, "policy": {"k": "k_v"}}),
    }
    sql = (
        f"SELECT MAX(salary) AS m FROM people {join} visits ON people.id = visits.id "
        f"AND people.disease = visits.code {G} AT MOST 4 ROWS PER PERSON"
    )
    found = hm.query(tables, sql, engine=engine).to_arrow().to_pylist()
    assert [row["m"] for row in found] == [29_000]


def test_person_columns_of_two_types_are_not_joined() -> None:
    tables = in_people()
    other = visits().set_column(0, "id", pa.array([f" {i}" for i in range(60)]))
    tables["visits"] = hm.read(other, VISITS)
    sql = f"SELECT MAX(cost) AS m FROM visits LEFT JOIN people ON people.id = visits.id {G}"
    with pytest.raises(HalfmaskError, match="different types"):
        hm.query(tables, sql)


def test_the_door_looks_demands_up_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that reads demands off the joined row is stopped."""
    from halfmask.errors import InternalError
    from halfmask.query.planning import demands

    monkeypatch.setattr(demands, "_by_person", lambda plan, source, said: source)
    sql = f"SELECT MAX(cost) AS m, COUNT(*) AS n FROM {STRIPPED['another condition']} {G}"
    with pytest.raises(InternalError):
        hm.query(in_people(), sql)
