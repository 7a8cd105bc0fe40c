"""What docs/query.md says the ledger protects, and what it says it does not: both are true."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import LedgerError
from halfmask.query.history import ledger as ledger_module

COLUMNS = {
    "id": "identifier",
    "city": "quasi",
    "zip": "quasi",
    "age": "quasi",
    "salary": "sensitive",
}


def _people(size: int = 60, *, k: list[int] | None = None, **columns: list[object]) -> hm.Table:
    rows: dict[str, list[object]] = {
        "id": list(range(size)),
        "city": ["x"] * (size // 2) + ["y"] * (size - size // 2),
        "zip": [f"z{i}" for i in range(size)],
        "age": [20 + i % 10 for i in range(size)],
        "salary": [1000 + i for i in range(size)],
    }
    schema: dict[str, object] = {"table": {"person": "id"}, "columns": COLUMNS}
    if k is not None:
        rows["k"] = list(k)
        schema["policy"] = {"k": "k"}
    return hm.read(pa.table(rows | columns), schema)


def _ask(table: hm.Table, ledger: hm.Ledger, where: str = "", clause: str = "k = 5") -> hm.Answer:
    return hm.query(
        table,
        f"SELECT city, SUM(salary) AS s FROM t {where} GROUP BY city GUARANTEE {clause}",
        ledger=ledger,
    )


def test_protected_any_earlier_answer_is_compared_not_only_the_latest() -> None:
    table, ledger = _people(), hm.Ledger()
    _ask(table, ledger)
    for width in range(7):  # seven later answers on other people
        _ask(table, ledger, f"WHERE age >= {20 + width} AND age < {22 + width}", "k = 1")
    with pytest.raises(LedgerError, match="answer 1 of"):
        _ask(table, ledger, "WHERE zip <> 'z3'")


THREE = ("", "WHERE age < 25", "WHERE age >= 25 AND zip <> 'z29'")


def test_protected_combinations_behind_many_other_answers() -> None:
    """Three answers leave one person: repeating one of them in between hides nothing."""
    table, ledger = _people(), hm.Ledger()
    for where in (*THREE[:2], *[""] * 6):
        _ask(table, ledger, where)
    with pytest.raises(LedgerError):
        _ask(table, ledger, THREE[2])


def test_not_protected_combinations_with_answers_older_than_the_latest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger_module, "MOST_TRIED", 2)
    monkeypatch.setattr(ledger_module, "MOST_TOGETHER", 2)
    for others, refused in ((0, True), (2, False)):
        table, ledger = _people(), hm.Ledger()
        for where in (*THREE[:2], "WHERE city = 'x'", "WHERE city = 'y'")[: 2 + others]:
            _ask(table, ledger, where)
        if refused:
            with pytest.raises(LedgerError):
                _ask(table, ledger, THREE[2])
        else:
            _ask(table, ledger, THREE[2])


def test_protected_the_demand_of_those_who_asked_for_more() -> None:
    """Six people are enough for k = 5, not for somebody among them who demands 10."""
    clause = "k = 5 THEN city -> del GUARANTEE k = 10"
    without_six = "WHERE NOT zip IN ('z0', 'z1', 'z2', 'z3', 'z4', 'z5')"
    for demand, refused in ((1, False), (10, True)):
        table, ledger = _people(k=[demand] * 60), hm.Ledger()
        assert len(_ask(table, ledger, clause=clause)) > 0
        if refused:
            with pytest.raises(LedgerError, match="fewer than 10"):
                _ask(table, ledger, without_six, clause)
        else:
            _ask(table, ledger, without_six, clause)


def test_protected_totals_of_people_left_out() -> None:
    """Nobody of y is in a row, but totals with and without one of them differ by one."""
    demands = [1] * 30 + [9] * 30
    for where, refused in (("", False), ("WHERE zip <> 'z40'", True), ("WHERE age <> 20", True)):
        table, ledger = _people(k=demands), hm.Ledger()
        first = _ask(table, ledger)
        assert first.withheld["no level satisfies their demands"] == 30
        if refused:
            with pytest.raises(LedgerError):
                _ask(table, ledger, where)
        else:
            _ask(table, ledger, where)


def test_protected_totals_of_people_below_the_guarantee() -> None:
    cities: list[object] = ["x"] * 30 + [f"y{i % 15}" for i in range(30)]
    table, ledger = _people(city=cities), hm.Ledger()
    assert _ask(table, ledger).withheld["below the guarantee"] == 30
    with pytest.raises(LedgerError):
        _ask(table, ledger, "WHERE zip <> 'z40'")


def test_a_total_that_was_not_said_refuses_nothing() -> None:
    cities: list[object] = ["x"] * 56 + ["y"] * 4
    table, ledger = _people(city=cities), hm.Ledger()
    assert _ask(table, ledger).withheld["below the guarantee"] is None
    _ask(table, ledger, "WHERE zip <> 'z58'")


def test_not_protected_the_l_of_a_difference() -> None:
    """Six people with one salary among them can be learned: k is kept, l is not."""
    salaries: list[object] = [7] * 6 + [1000 + i for i in range(54)]
    ages: list[object] = [99] * 6 + [30] * 54
    table, ledger = _people(salary=salaries, age=ages), hm.Ledger()
    text = "SELECT SUM(salary) AS s FROM t {} GUARANTEE k = 5, l = 3"
    both = [
        hm.query(table, text.format(where), ledger=ledger).to_arrow()["s"][0].as_py()
        for where in ("", "WHERE age < 99")
    ]
    assert both[0] - both[1] == 6 * 7


def test_protected_what_changed_for_few_and_said_where_it_changed_for_many() -> None:
    salaries = [1000 + i for i in range(60)]
    for changed, refused in ((1, True), (4, True), (5, False)):
        ledger = hm.Ledger()
        _ask(_people(), ledger)
        after = _people(salary=[1] * changed + salaries[changed:])
        if refused:
            with pytest.raises(LedgerError):
                _ask(after, ledger)
        else:
            assert any("has changed" in note for note in _ask(after, ledger).notes)


def test_protected_who_came_and_who_left_between_answers() -> None:
    for size in (59, 61):
        ledger = hm.Ledger()
        _ask(_people(city=["x"] * 60), ledger)
        with pytest.raises(LedgerError):
            _ask(_people(size, city=["x"] * size), ledger)
