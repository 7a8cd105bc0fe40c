"""What an answer says beside its figures must not depend on somebody who cannot be in it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import HalfmaskError
from halfmask.table.hierarchies import Mask, Tree

ASKS_FOR_ALL = 1_000


def observed(table: object, sql: str, **given: Any) -> object:
    """All that an asker sees."""
    try:
        answer = hm.query(table, sql, **given)
    except HalfmaskError as error:
        return type(error), str(error)
    plan = hm.explain(table, sql, **given)
    seen = {k: v for k, v in answer.to_dict().items() if k != "versions"}
    return answer.to_arrow().to_pylist(), seen, str(plan)


def people(salary: int, **more: Any) -> hm.Table:
    """Twelve people, the last of whom demands that everybody hides them."""
    columns = {
        "id": list(range(12)),
        "city": ["Bourges", "Blois"] * 6,
        "salary": [*range(100, 111), salary],
        "k": [3] * 4 + [8] * 7 + [ASKS_FOR_ALL],
    }
    for name, value in more.items():
        columns[name] = [*(["a", "b"] * 6)[:11], value]
    roles: dict[str, Any] = {"city": "quasi", "salary": "sensitive"}
    roles |= {name: {"role": "quasi", "hierarchy": {"mask": 3}} for name in more}
    schema = {"table": {"person": "id"}, "policy": {"k": "k"}, "columns": roles}
    return hm.read(pa.table(columns), schema)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM t WHERE salary > 104 GUARANTEE k = 4",
        "SELECT city, COUNT(*) AS n FROM t WHERE salary > 104 GROUP BY city GUARANTEE k = 3",
        "SELECT SUM(salary) AS n FROM t WHERE salary < 50000 GUARANTEE k = 4",
        "SELECT city, COUNT(*) FILTER (WHERE salary > 200) AS n FROM t GROUP BY city "
        "GUARANTEE k = 3 THEN city -> del GUARANTEE k = 8",
        "SELECT salary, COUNT(*) AS n FROM t GROUP BY salary GUARANTEE k = 3 "
        "THEN salary -> 1000 GUARANTEE k = 8 SEMANTICS complete",
    ],
)
@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_the_salary_of_somebody_who_cannot_be_in_it_changes_nothing(sql: str, engine: str) -> None:
    first = observed(people(5), sql, engine=engine)
    assert observed(people(105), sql, engine=engine) == first
    assert observed(people(99_999), sql, engine=engine) == first


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize(
    "demand", [{"k": ASKS_FOR_ALL, "l": 1}, {"k": 1, "l": ASKS_FOR_ALL}], ids=str
)
def test_how_many_are_left_out_does_not_tell_who(demand: dict[str, int], engine: str) -> None:
    """Twenty others are refused as well: their number is said with the one, or without."""

    def asked(salary: int, join: str = "") -> object:
        rows = pa.table(
            {
                "salary": [100] * 20 + [salary],
                "k": [9] * 20 + [demand["k"]],
                "l": [1] * 20 + [demand["l"]],
            }
        )
        policy = {"policy": {"k": "k", "l": "l"}, "columns": {"salary": "sensitive"}}
        tables = {
            "people": hm.read(rows, policy),
            "bands": hm.read(pa.table({"b": [5, 100]}), {"b": "other"}),
        }
        where = join or "WHERE salary > 50"
        sql = f"SELECT COUNT(*) AS n FROM people {where} GUARANTEE k = 4, l = 2 OF salary"
        return observed(tables, sql, engine=engine)

    assert asked(5) == asked(99_999)
    join = "JOIN bands ON salary = b"
    assert asked(5, join) == asked(99_999, join)


VISITS = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def visits(cost: int) -> dict[str, hm.Table]:
    """Everybody once, and two visits each; those of the first person cost what is given."""
    rows = pa.table({"id": VISITS, "cost": [cost, cost, *(7 for _ in VISITS[2:])]})
    persons = pa.table({"id": list(range(6)), "city": ["Blois"] * 6})
    schema = {"table": {"person": "id"}}
    return {
        "people": hm.read(persons, {**schema, "columns": {"city": "quasi"}}),
        "visits": hm.read(rows, {**schema, "columns": {"cost": "sensitive"}}),
    }


@pytest.mark.parametrize("bound", [1, 2])
def test_the_bound_on_rows_is_no_oracle(bound: int) -> None:
    """Whose visits meet WHERE must not decide whether the bound holds."""
    sql = (
        "SELECT COUNT(*) AS n FROM people p JOIN visits v ON p.id = v.id WHERE v.cost > 50 "
        f"GUARANTEE k = 3 AT MOST {bound} ROWS PER PERSON"
    )
    assert observed(visits(100), sql) == observed(visits(10), sql)


def test_a_join_by_person_is_judged_by_person_alone() -> None:
    """Whether somebody's rows differ in a second column of the condition must not show."""

    def joined(second: str) -> object:
        rows = pa.table({"id": [0, 0, 1, 2, 3], "city": ["Blois", second, *["Blois"] * 3]})
        persons = pa.table({"id": list(range(4)), "city": ["Blois"] * 4})
        schema = {"table": {"person": "id"}, "columns": {"city": "quasi"}}
        tables = {"people": hm.read(persons, schema), "stays": hm.read(rows, schema)}
        return observed(
            tables,
            "SELECT COUNT(*) AS n FROM people p JOIN stays s ON p.id = s.id AND p.city = s.city "
            "GUARANTEE k = 3",
        )

    assert joined("Blois") == joined("Bourges")


CLIMB = (
    "SELECT code, COUNT(*) AS n FROM t GROUP BY code GUARANTEE k = 3 "
    "THEN code -> up GUARANTEE k = 3 THEN code -> up GUARANTEE k = 8"
)


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_a_value_outside_a_hierarchy_is_no_error_and_changes_no_label(engine: str) -> None:
    first = observed(people(5, code="a"), CLIMB, engine=engine)
    assert isinstance(first[0], list)  # type: ignore[index]
    assert observed(people(5, code="far too long"), CLIMB, engine=engine) == first
    assert observed(people(5, code=None), CLIMB, engine=engine) == first


def test_somebody_outside_the_hierarchy_stands_under_the_top() -> None:
    rows = pa.table({"code": ["a"] * 4 + ["b"] * 4 + ["elsewhere"] * 4})
    tree = hm.Column("quasi", hierarchy=Tree({"one": ["a"], "two": ["b"]}))
    sql = "SELECT code, COUNT(*) AS n FROM t GROUP BY code {} GUARANTEE k = 3"
    table = hm.read(rows, hm.Schema({"code": tree}))
    up = hm.query(table, sql.format("THEN code -> up")).to_arrow().to_pylist()
    assert [(r["code"], r["n"]) for r in up] == [("*", 4), ("one", 4), ("two", 4)]


def test_hierarchies_that_follow_from_the_rows_are_refused() -> None:
    rows = pa.table({"code": ["123"] * 4})
    table = hm.read(rows, hm.Schema({"code": hm.Column("quasi", hierarchy=Mask())}))
    sql = "SELECT code, COUNT(*) AS n FROM t GROUP BY code THEN code -> up GUARANTEE k = 3"
    with pytest.raises(hm.errors.QueryError, match="give the mask a length"):
        hm.query(table, sql)


def test_the_plan_does_not_list_the_values_of_the_rows() -> None:
    text = str(hm.explain(people(5, code="xyz"), CLIMB))
    assert "xyz" not in text
    assert "(label)" in text


def test_rows_without_an_order_stand_in_that_of_their_keys() -> None:
    """Labels are ordered by themselves, not by the values under them that may be withheld."""
    tree = hm.Column("quasi", hierarchy=Tree({"z": ["a", "c"], "y": ["b", "d"]}))
    for lone in ("a", "b"):
        rows = pa.table({"code": [lone] + ["c"] * 4 + ["d"] * 4})
        sql = "SELECT code, COUNT(*) AS n FROM t GROUP BY code THEN code -> up GUARANTEE k = 3"
        answer = hm.query(hm.read(rows, hm.Schema({"code": tree})), sql)
        assert answer.to_arrow()["code"].to_pylist() == ["y", "z"]
