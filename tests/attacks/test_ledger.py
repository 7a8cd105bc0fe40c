"""Askers who subtract answers from each other, each time by another way around the ledger.

Whoever gets both answers of a pair below knows one person's salary to the last digit.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

import halfmask as hm
from halfmask.errors import LedgerError
from halfmask.query.run import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SALARY = 987_654
N = 40
PEOPLE = pa.table(
    {
        "id": list(range(N)),
        "zip": [f"z{i}" for i in range(N)],
        "city": ["x"] * 20 + ["y"] * 20,
        "salary": [1000 + 7 * i for i in range(N - 1)] + [SALARY],
    }
)
HOMES = pa.table({"id": list(range(N)), "rooms": [1 + i % 3 for i in range(N)]})
ROLES: dict[str, Any] = {
    "people": {
        "table": {"person": "id"},
        "columns": {"id": "identifier", "zip": "quasi", "city": "quasi", "salary": "sensitive"},
    },
    "homes": {"table": {"person": "id"}, "columns": {"id": "identifier", "rooms": "quasi"}},
}
NOBODY: dict[str, Any] = {"columns": ROLES["people"]["columns"]}
ALL = "SELECT city, SUM(salary) AS s FROM {} GROUP BY city GUARANTEE k = 5"
BUT_ONE = "SELECT city, SUM(salary) AS s FROM {} WHERE zip <> 'z39' GROUP BY city GUARANTEE k = 5"


def _ask(source: object, sql: str, ledger: hm.Ledger, schema: object = None, **more: Any) -> Any:
    found = hm.query(source, sql, schema=schema, ledger=ledger, **more).to_arrow().to_pylist()
    return {row["city"]: row["s"] for row in found}


def _refused(first: Any, second: Any) -> None:
    """The first question is answered, the second is not: else the salary would be known."""
    ledger = hm.Ledger()
    before = first(ledger)
    try:
        after = second(ledger)
    except LedgerError:
        assert len(ledger.entries) == 1
        return
    pytest.fail(f"learned {before['y'] - after['y']}, which is {SALARY}")


BOTH = {"people": PEOPLE, "homes": HOMES}
JOINED = "people p {} homes h {}"
TURNED = "homes h {} people p {}"


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (JOINED.format("JOIN", "ON p.id = h.id"), TURNED.format("JOIN", "ON h.id = p.id")),
        (JOINED.format("JOIN", "USING (id)"), TURNED.format("LEFT JOIN", "ON p.id = h.id")),
        ("people", TURNED.format("JOIN", "USING (id)")),
        (TURNED.format("LEFT JOIN", "ON p.id = h.id"), "people q"),
        ("people", "(SELECT * FROM people) AS d"),
    ],
)
def test_a_join_is_turned_around(one: str, other: str, engine: str) -> None:
    _refused(
        lambda ledger: _ask(BOTH, ALL.format(one), ledger, ROLES, engine=engine),
        lambda ledger: _ask(BOTH, BUT_ONE.format(other), ledger, ROLES, engine=engine),
    )


@pytest.mark.parametrize("roles", [ROLES["people"], NOBODY], ids=["people", "rows"])
def test_the_same_table_has_another_name(roles: Any, tmp_path: Path) -> None:
    csv.write_csv(PEOPLE, tmp_path / "staff.csv")
    parquet.write_table(PEOPLE.select(["zip", "salary", "city", "id"]), tmp_path / "all.parquet")
    homes = {"homes": HOMES}
    first = hm.read(tmp_path / "staff.csv", roles)
    others = {
        "alone": (first, "t"),
        "with another": ({"staff": first, **homes}, "staff"),
        "renamed": ({"crew": first, **homes}, "crew"),
        "a copy": (hm.read(tmp_path / "all.parquet", roles), "t"),
    }
    for at in (("alone", "with another"), ("renamed", "alone"), ("with another", "a copy")):
        one, other = (others[name] for name in at)
        _refused(
            lambda ledger, one=one: _ask(one[0], ALL.format(one[1]), ledger),
            lambda ledger, other=other: _ask(other[0], BUT_ONE.format(other[1]), ledger),
        )


def test_another_table_option_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from halfmask.cli.main import run

    csv.write_csv(PEOPLE, tmp_path / "people.csv")
    csv.write_csv(HOMES, tmp_path / "homes.csv")
    file = tmp_path / "ledger.json"
    asked = ["query", str(tmp_path / "people.csv"), "--ledger", str(file)]
    more = ["--table", f"homes={tmp_path / 'homes.csv'}"]
    assert _exit_code(lambda: run([*asked, ALL.format("people")])) == 0
    assert _exit_code(lambda: run([*asked, *more, BUT_ONE.format("people")])) == 2
    assert "by subtraction" in capsys.readouterr().err
    assert oct(file.stat().st_mode & 0o777) == "0o600"


def _exit_code(call: Callable[[], object]) -> object:
    try:
        call()
    except SystemExit as ended:
        return ended.code or 0
    return 0


def _database(tmp_path: Path) -> str:
    import duckdb

    path = str(tmp_path / "staff.duckdb")
    with duckdb.connect(path) as connection:
        connection.register("arrow", PEOPLE)
        connection.execute("CREATE TABLE people AS SELECT * FROM arrow")
        connection.execute("CREATE VIEW everybody AS SELECT * FROM people")
        connection.execute("CREATE VIEW pay AS SELECT zip, city, salary FROM people")
        connection.execute(
            "CREATE VIEW north (city, zip, salary) AS SELECT city, zip, salary FROM pay"
        )
        connection.execute("CREATE VIEW opaque AS SELECT DISTINCT zip, city, salary FROM people")
    return path


@pytest.mark.parametrize("view", ["everybody", "pay", "north", "opaque"])
@pytest.mark.parametrize("known", [True, False])
def test_a_view_is_asked_instead(view: str, known: bool, tmp_path: Path) -> None:
    path = _database(tmp_path)
    person = known and view == "everybody"
    schema = {"people": ROLES["people"] if known else NOBODY}
    schema[view] = ROLES["people"] if person else NOBODY
    for one, other in (("people", view), (view, "people")):
        _refused(
            lambda ledger, one=one: _ask(path, ALL.format(one), ledger, schema),
            lambda ledger, other=other: _ask(path, BUT_ONE.format(other), ledger, schema),
        )


def test_a_view_whose_rows_cannot_be_followed_has_one_row_less(tmp_path: Path) -> None:
    """The people are the same and the rows cannot be matched: how many each has is compared."""
    import duckdb

    path = str(tmp_path / "months.duckdb")
    with duckdb.connect(path) as connection:
        connection.register("arrow", MONTHS)
        connection.execute("CREATE TABLE months AS SELECT * FROM arrow")
        connection.execute("CREATE VIEW pay AS SELECT DISTINCT *, 1 AS one FROM months")
        connection.execute(
            "CREATE VIEW total AS SELECT id, city, SUM(salary) AS s FROM months GROUP BY id, city"
        )
    schema = {"months": PANEL, "pay": PANEL, "total": PANEL}
    ledger = hm.Ledger()
    _ask(path, ALL.format("months"), ledger, schema)
    text = "SELECT city, SUM(s) AS s FROM total GROUP BY city GUARANTEE k = 5"
    _ask(path, text, ledger, schema)
    with pytest.raises(LedgerError):
        _ask(path, ALL.format("pay WHERE month < 3"), ledger, schema)


def test_disjoint_questions_on_a_table_and_its_view_are_answered(tmp_path: Path) -> None:
    path, schema, ledger = _database(tmp_path), {"people": NOBODY, "pay": NOBODY}, hm.Ledger()
    for table, city in (("people", "x"), ("pay", "y")):
        where = f"{table} WHERE city = '{city}'"
        answer = hm.query(path, ALL.format(where), schema=schema, ledger=ledger)
        assert len(answer) == 1
        assert not any("ledger" in note for note in answer.notes)


def test_the_person_column_is_not_declared_any_more() -> None:
    for one, other in ((ROLES["people"], NOBODY), (NOBODY, ROLES["people"])):
        _refused(
            lambda ledger, one=one: _ask(hm.read(PEOPLE, one), ALL.format("t"), ledger),
            lambda ledger, other=other: _ask(hm.read(PEOPLE, other), BUT_ONE.format("t"), ledger),
        )


def test_another_engine_is_asked() -> None:
    table = hm.read(PEOPLE, ROLES["people"])
    _refused(
        lambda ledger: _ask(table, ALL.format("t"), ledger, engine="duckdb"),
        lambda ledger: _ask(table, BUT_ONE.format("t"), ledger, engine="reference"),
    )


def test_other_policies_move_everybody_to_another_level() -> None:
    """Under new policies the earlier answer would look as if nobody had stood in it."""
    table = hm.read(PEOPLE, ROLES["people"])
    chain = " THEN city -> del GUARANTEE k = 8"
    low, high = {"k": 2}, {"k": 6}
    all_of, but_one = ALL.format("t") + chain, BUT_ONE.format("t")
    _refused(
        lambda ledger: _ask(table, all_of, ledger, policies=low),
        lambda ledger: _ask(table, but_one.replace("k = 5", "k = 6"), ledger, policies=high),
    )


MONTHS = pa.table(
    {
        "id": [i for i in range(20) for _ in range(2)] + [19],
        "month": [m for _ in range(20) for m in (1, 2)] + [3],
        "city": ["x"] * 41,
        "salary": [1000 + 7 * i for i in range(40)] + [SALARY],
    }
)
PANEL = {
    "table": {"person": "id"},
    "columns": {"id": "identifier", "month": "quasi", "city": "quasi", "salary": "sensitive"},
}


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_everybody_stays_but_one_row_of_one_person_goes(engine: str) -> None:
    """The same twenty people stand in both answers; one of them has a row more."""
    table, ledger = hm.read(MONTHS, PANEL), hm.Ledger()
    text = "SELECT city, SUM(salary) AS s FROM t WHERE month <= {} GROUP BY city GUARANTEE k = 5"
    _ask(table, text.format(3), ledger, engine=engine)
    with pytest.raises(LedgerError):
        _ask(table, text.format(2), ledger, engine=engine)
    # A month of everybody is nobody's secret.
    _ask(table, text.format(2).replace("<=", "="), hm.Ledger(), engine=engine)
    fresh = hm.Ledger()
    _ask(table, text.format(1), fresh, engine=engine)
    _ask(table, text.format(2), fresh, engine=engine)


def test_one_row_of_one_person_is_swapped() -> None:
    """As many rows of everybody in both answers, but one person's row is another one."""
    months = MONTHS.slice(0, 39)  # one of them has no second month, but a third
    rows = pa.concat_tables([months, MONTHS.slice(40)])
    table, ledger = hm.read(rows, PANEL), hm.Ledger()
    text = "SELECT city, SUM(salary) AS s FROM t WHERE {} GROUP BY city GUARANTEE k = 5"
    _ask(table, text.format("month <> 1 OR salary < 1266"), ledger)
    with pytest.raises(LedgerError):
        _ask(table, text.format("month <= 2 AND salary <> 1"), ledger)


def test_those_left_have_no_value_but_one() -> None:
    """Six people are left, of whom five have no salary: the difference is the sixth one's."""
    salaries = [*range(1000, 1000 + N - 6), None, None, None, None, None, SALARY]
    rows = PEOPLE.set_column(3, "salary", pa.array(salaries))
    table, ledger = hm.read(rows, ROLES["people"]), hm.Ledger()
    zips = ", ".join(f"'z{i}'" for i in range(N - 6, N))
    without = ALL.replace("{}", f"t WHERE NOT zip IN ({zips})")
    _ask(table, ALL.format("t"), ledger)
    with pytest.raises(LedgerError):
        _ask(table, without, ledger)
    again = hm.Ledger()
    _ask(table, ALL.format("t"), again)
    _ask(table, ALL.format("t"), again)  # the same once more tells nothing new
    _ask(table, without.replace("SUM(salary)", "COUNT(*)"), again)


def test_a_value_of_a_person_is_joined_to_one_visit_less() -> None:
    """Salaries come once per visit: who has two visits is left after subtracting twice."""
    visits = pa.table(
        {"id": [i for i in range(20) for _ in range(3)][:-1], "day": [1, 2, 3] * 19 + [1, 2]}
    )
    tables = {"people": PEOPLE.slice(0, 20), "visits": visits}
    roles = {
        "people": ROLES["people"],
        "visits": {"table": {"person": "id"}, "columns": {"id": "identifier", "day": "quasi"}},
    }
    sql = (
        "SELECT p.city, SUM(p.salary) AS s FROM people p {} GROUP BY p.city GUARANTEE k = 5 "
        "AT MOST 3 ROWS PER PERSON"
    )
    ledger = hm.Ledger()
    _ask(tables, sql.format(""), ledger, roles)
    with pytest.raises(LedgerError):
        _ask(tables, sql.format("JOIN visits v ON p.id = v.id"), ledger, roles)


def test_totals_of_those_who_demand_more_differ_by_fewer_than_they_demand() -> None:
    """Ten people whom no level satisfies demand ten; six of them are no crowd for the others."""
    rows = PEOPLE.append_column("k", pa.array([1] * 20 + [10] * 20))
    table = hm.read(rows, ROLES["people"] | {"policy": {"k": "k"}})
    zips = ", ".join(f"'z{i}'" for i in range(20, 26))
    sql = "SELECT city, COUNT(*) AS s FROM t {} GROUP BY city GUARANTEE k = 5"
    ledger = hm.Ledger()
    _ask(table, sql.format(""), ledger)
    with pytest.raises(LedgerError, match="fewer people than they demand"):
        _ask(table, sql.format(f"WHERE NOT zip IN ({zips})"), ledger)


def test_somebody_whose_demand_cannot_be_met_changes_nothing() -> None:
    """Whatever the values of such a person, the ledger says the same."""
    text = "SELECT city, SUM(salary) AS s FROM t {} GROUP BY city GUARANTEE k = 5"
    asked = ("", "WHERE salary > 1100", "WHERE zip <> 'z3'", "WHERE salary < 900000", "")
    seen = []
    for city, salary, zip_code in (("x", 1, "z3"), ("y", SALARY, "z39"), ("w", 1150, "other")):
        rows = PEOPLE.slice(0, N - 1).append_column("k", pa.array([1] * (N - 1)))
        last = pa.table(
            {"id": [99], "zip": [zip_code], "city": [city], "salary": [salary], "k": [1000]}
        )
        table = hm.read(pa.concat_tables([rows, last]), ROLES["people"] | {"policy": {"k": "k"}})
        ledger, said = hm.Ledger(), []
        for where in asked:
            try:
                answer = hm.query(table, text.format(where), ledger=ledger)
                said.append((answer.to_arrow().sort_by("city").to_pylist(), answer.notes))
            except LedgerError as error:
                said.append((str(error), error.entry))
        seen.append((said, ledger.warnings))
    assert seen[0] == seen[1] == seen[2]
    assert any(isinstance(rows, str) for rows, _ in seen[0][0])


rows_of_people = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 1), st.integers(0, 3)), min_size=6, max_size=16
)
conditions = st.lists(
    st.sampled_from(
        ["", "h < 3", "h < 2", "h > 0", "h <> 1", "h <> 2", "g = 0", "g = 0 OR h > 0", "x < 8"]
    ),
    min_size=2,
    max_size=4,
)


def _holds(condition: str, g: int, h: int, x: int) -> bool:
    text = condition.replace("<>", "!=").replace(" = ", " == ").replace("OR", "or")
    return not condition or bool(eval(text, {"g": g, "h": h, "x": x}))  # noqa: S307


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@settings(max_examples=examples(15), deadline=None)
@given(rows=rows_of_people, wheres=conditions)
def test_no_combination_of_answers_is_about_fewer_than_k_people(
    rows: list[tuple[int, int, int]], wheres: list[str], engine: str
) -> None:
    """Add and subtract all rows of all answers in all ways, row by row of the table."""
    k = 3
    who = np.array([r[0] for r in rows])
    table = hm.read(
        pa.table(
            {
                "id": who,
                "g": [r[1] for r in rows],
                "h": [r[2] for r in rows],
                "x": list(range(len(rows))),
            }
        ),
        {
            "table": {"person": "id"},
            "columns": {"id": "identifier", "g": "quasi", "h": "quasi", "x": "sensitive"},
        },
    )
    ledger = hm.Ledger()
    told: list[np.ndarray] = []
    for where in wheres:
        new = []
        for g in (0, 1):
            inside = [r[1] == g and _holds(where, g, r[2], i) for i, r in enumerate(rows)]
            if len(set(who[inside])) >= k:
                new.append(np.array(inside, dtype=int))
        if not any(_holds(where, r[1], r[2], i) for i, r in enumerate(rows)):
            continue
        isolating = _isolates(told, new, who, k)
        clause = f"WHERE {where}" if where else ""
        sql = f"SELECT g, SUM(x) AS s FROM t {clause} GROUP BY g GUARANTEE k = {k}"
        try:
            answer = hm.query(table, sql, ledger=ledger, engine=engine)
        except LedgerError:
            continue
        assert len(answer) == len(new)
        assert not isolating, (where, wheres)
        told += new


def _isolates(told: list[np.ndarray], new: list[np.ndarray], who: np.ndarray, k: int) -> bool:
    if not told or not new:
        return False
    vectors = np.array([*told, *new])
    signs = np.array(list(product((-1, 0, 1), repeat=len(vectors))))
    signs = signs[np.abs(signs[:, len(told) :]).any(axis=1)]
    support = (signs @ vectors) != 0
    people = np.array([support[:, who == p].any(axis=1) for p in np.unique(who)]).sum(axis=0)
    return bool(((people > 0) & (people < k)).any())


def test_a_ledger_tells_a_table_from_a_session() -> None:
    """One session for two answers is no other than two sessions."""
    ledger = hm.Ledger()
    with Session(hm.read(PEOPLE, ROLES["people"])) as session:
        session.answer(session.prepare(ALL.format("t")), ledger=ledger)
        with pytest.raises(LedgerError):
            session.answer(session.prepare(BUT_ONE.format("t")), ledger=ledger)
