"""The harness finds faults that are planted: of each kind it must report some in a small run.

A harness that finds nothing proves nothing unless it would find something. TRY_CAST in the SQL that
runs stands for few types of moments only: what keeps a cast from failing is the guard around it, so
that the guard is what is taken away here.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any

import interference
import numpy as np
import pytest
from interference import (
    Count,
    Recorder,
    _is_slow,
    compare_parts,
    compare_planned,
    compare_world,
)
from planted import change_planted, make_world
from questions import Grammar

from halfmask.engines.duckdb.engine import DuckDB, _database
from halfmask.query import aggregate, answer_columns, run
from halfmask.query.groups import collect
from halfmask.query.planning import demands
from halfmask.query.total_form import conversions, rows
from halfmask.release.doors import answer
from halfmask.release.doors import answer as watched

# A world in which everybody has one row, and planted people state a k.
PLAIN = next(s for s in range(1000, 1100) if (w := make_world(s)).demand == "k" and not w.several)
SEVERAL = next(s for s in range(1000, 1100) if (w := make_world(s)).several and not _is_slow(w, s))

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def planted_faults(questions: int, changes: int, seeds: range) -> Count:
    """Ask in worlds until something is found."""
    count = Count()
    for seed in seeds:
        compare_world(seed, questions, changes=changes, count=count)
        if count.found:
            break
    return count


def test_a_demand_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the planner and by the door, which would else refuse."""

    def forget(plan: Any, *_: object) -> Any:
        return plan

    def look_away(request: Any, *_: object, **__: object) -> tuple[Any, None]:
        return request, None

    monkeypatch.setattr(demands, "join_demands", forget)
    monkeypatch.setattr(watched, "watch_demands", look_away)
    assert planted_faults(3, 1, range(4)).found


def test_a_demand_that_is_forgotten_is_found_under_one_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the engine gives the same in another world, the code behind it is not asked again."""

    def forget(plan: Any, *_: object) -> Any:
        return plan

    def look_away(request: Any, *_: object, **__: object) -> tuple[Any, None]:
        return request, None

    def ask(*_: object) -> str:
        return "SELECT COUNT(*) AS n, SUM(salary) AS x0 FROM people GUARANTEE k = 3"

    monkeypatch.setattr(demands, "join_demands", forget)
    monkeypatch.setattr(watched, "watch_demands", look_away)
    monkeypatch.setattr(Grammar, "_question", ask)
    count = Count()
    compare_planned(1000, 1, changes=6, count=count)
    assert count.found
    assert count.alike < count.asked


def ask_one(monkeypatch: pytest.MonkeyPatch, sql: str, whole: float) -> Count:
    """Ask one question in many worlds under one plan; one of ``whole`` goes the whole way."""

    def ask(*_: object) -> str:
        return sql

    monkeypatch.setattr(Grammar, "_question", ask)
    monkeypatch.setattr(interference, "WHOLE", whole)
    count = Count()
    compare_planned(PLAIN, 1, changes=24, count=count)
    return count


def test_a_note_is_found_under_one_plan_in_every_world_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the engine gives tells the worlds apart; one whole way stands for all that are alike."""
    made = run.candidate_of

    def tell(plan: Any, groups: Any, *rest: Any, **more: Any) -> Any:
        candidate = made(plan, groups, *rest, **more)
        return replace(candidate, notes=(*candidate.notes, f"Left out: {groups.refused}."))

    monkeypatch.setattr(run, "candidate_of", tell)
    sql = "SELECT flag, COUNT(*) AS x0 FROM people WHERE score > 4 GROUP BY flag GUARANTEE k = 3"
    count = ask_one(monkeypatch, sql, whole=1e9)
    assert count.asked == 24
    whole = count.asked - count.alike
    assert 1 <= whole < len(count.found)
    assert all("notes" in one.differs for one in count.found)


def test_a_statement_that_fails_for_some_value_is_found_under_one_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def bare(condition: Any, value: Any) -> Any:
        return value

    for module in (conversions, rows):
        monkeypatch.setattr(module, "guard", bare)
    sql = "SELECT SUM(CAST(code AS INT)) AS x0 FROM people GUARANTEE k = 3"
    count = ask_one(monkeypatch, sql, whole=1e9)
    assert count.alike
    assert any("refused" in one.differs for one in count.found)


def test_what_comes_past_the_engine_is_found_on_whole_ways_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Why one of ``WHOLE`` goes the whole way whatever the engine gives."""
    made = run.candidate_of

    def tell(plan: Any, *rest: Any, **more: Any) -> Any:
        rows = rest[4]._slots["people"].rows
        most = str(max(str(code) for code in rows["code"].to_pylist()))
        candidate = made(plan, *rest, **more)
        return replace(candidate, notes=(*candidate.notes, f"Last: {most[:40]}."))

    monkeypatch.setattr(run, "candidate_of", tell)
    sql = "SELECT flag, COUNT(*) AS x0 FROM people GROUP BY flag GUARANTEE k = 3"
    count = ask_one(monkeypatch, sql, whole=1e9)
    assert count.alike == count.asked
    assert not count.found
    count = ask_one(monkeypatch, sql, whole=1)
    assert not count.alike
    assert all("notes" in one.differs for one in count.found)
    assert count.found


def test_what_is_planned_once_gives_what_is_planned_for_these_rows_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan is kept while rows take the place of others: nothing of the first ones stays in it."""
    repeat, compared = Recorder.repeat, []

    def both(self: Recorder, step: Any, given: dict[str, str]) -> str:
        found = repeat(self, step, {})
        if not step[0]:
            tables = {name: slot.rows for name, slot in self._slots.items()}
            with closing(DuckDB(tables)) as fresh:
                rows = fresh._connection.execute(step[1]).fetchall()
            compared.append(found == repr(sorted(map(repr, rows))))
        return found

    monkeypatch.setattr(Recorder, "repeat", both)
    database = _database()
    database.execute("SET threads = 1")  # sums of floats depend on who comes first
    try:
        for seed in (PLAIN, SEVERAL):
            compare_planned(seed, 2, changes=10, count=Count())
    finally:
        database.execute("RESET threads")
    assert len(compared) > 40
    assert all(compared)


def test_what_is_refused_before_rows_are_read_is_one_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = ask_one(monkeypatch, "SELECT nope FROM people GUARANTEE k = 3", whole=1e9)
    assert (count.asked, count.refused, count.alike) == (1, 1, 0)


def test_nothing_that_left_out_people_hold_comes_from_the_engine() -> None:
    """Not even how many values they hold: it told 21 from 19 before, and nobody needs it."""
    seed = next(s for s in range(1000, 1100) if make_world(s).demand == "k")
    world = make_world(seed)
    sql = "SELECT city, AVG(salary) AS x FROM people GROUP BY city GUARANTEE k = 3, l = 2 OF salary"
    seen = set()
    for one in (world, *(change_planted(world, n) for n in range(4))):
        with run.Session(one.read(), engine="duckdb") as session:
            given = session.engine.collect(session.prepare(sql).plan.request)
            seen.add(repr(sorted(map(repr, given.to_pylist()))))
    assert len(seen) == 1


def test_a_demand_of_one_column_that_is_forgotten_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only those of planted people who state it for salaries alone."""
    whole = demands.join_demands

    def forget(plan: Any, stated: Any, engine: Any) -> Any:
        return whole(plan, replace(stated, columns={}) if stated else stated, engine)

    def look_away(request: Any, *_: object, **__: object) -> tuple[Any, None]:
        return request, None

    monkeypatch.setattr(demands, "join_demands", forget)
    monkeypatch.setattr(watched, "watch_demands", look_away)
    seeds = [s for s in range(100) if make_world(s).demand == "column"][:4]
    count = Count()
    for seed in seeds:
        compare_world(seed, 8, changes=1, count=count)
        if count.found:
            break
    assert count.found


def test_an_expression_that_fails_for_some_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def bare(condition: Any, value: Any) -> Any:
        return value

    def cast(*_: object) -> str:
        return "CAST(code AS INT)"

    for module in (conversions, rows):
        monkeypatch.setattr(module, "guard", bare)
    monkeypatch.setattr(Grammar, "_number", cast)  # of all that may fail, so that a few are enough
    count = planted_faults(2, 1, range(12, 20))
    assert any("refused" in one.differs for one in count.found)


def test_a_note_that_tells_how_many_are_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made = run.candidate_of

    def tell(plan: Any, groups: Any, *rest: Any, **more: Any) -> Any:
        candidate = made(plan, groups, *rest, **more)
        return replace(candidate, notes=(*candidate.notes, f"Left out: {groups.refused}."))

    monkeypatch.setattr(run, "candidate_of", tell)
    count = planted_faults(3, 3, range(20, 30))
    assert any("notes" in one.differs for one in count.found)


def test_an_order_that_follows_who_is_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are compared as they stand: the same ones in another order are a difference.

    Others are left out as well: the fault follows how many, which a planted person changes by one.
    """
    ordered = aggregate._order

    def follow(plan: Any, groups: Any, published: Any) -> Any:
        found = ordered(plan, groups, published)
        return len(found) - 1 - found if groups.refused % 2 else found

    def ask(*_: object) -> str:
        return (
            "SELECT flag, COUNT(*) AS x0 FROM people WHERE score > 4 GROUP BY flag GUARANTEE k = 3"
        )

    monkeypatch.setattr(aggregate, "_order", follow)
    # Two large groups: of an answer that has no rows, or one, no order shows.
    monkeypatch.setattr(Grammar, "_question", ask)
    count = planted_faults(1, 6, range(40, 60))
    assert any("rows" in one.differs for one in count.found)
    ours, theirs = next(one.differs["rows"] for one in count.found if "rows" in one.differs)
    assert ours != theirs
    assert sorted(ours) == sorted(theirs)


def test_what_order_is_computed_from_holds_nothing_of_planted_people() -> None:
    """Without WHERE they are only counted as left out: no fault of order alone can show them.

    This is why a fault in the ranks of keys is not found: planted people are out of the groups
    before anything is ranked. Their rows may stand anywhere, so that groups come in any order.
    """
    world = make_world(next(s for s in range(50) if make_world(s).demand == "k"))
    seen = []
    for one in (world, *(change_planted(world, n) for n in range(4))):
        with run.Session(one.read(), engine="duckdb") as session:
            for keys in ("city", "city, age", "score", "zip"):
                sql = f"SELECT {keys}, SUM(score) AS x FROM people GROUP BY {keys} GUARANTEE k = 3"  # noqa: S608
                groups = collect(session.prepare(sql).plan, session.engine)
                rows = [repr(row) for row in groups.states.to_pylist()]
                seen.append((keys, sorted(rows), groups.refused))
    first = {keys: (rows, refused) for keys, rows, refused in seen[:4]}
    assert all(len(rows) >= 3 and refused for rows, refused in first.values())
    assert all(first[keys] == (rows, refused) for keys, rows, refused in seen)


def test_a_conditional_figure_of_few_people_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_show(plan: Any, published: Any, parts: Any) -> Any:
        return np.ones(len(published), dtype=bool)

    def look_away(*_: object) -> None:
        return None

    monkeypatch.setattr(answer_columns, "_large_enough", all_show)
    monkeypatch.setattr(answer, "_check_conditions", look_away)
    count = Count()
    compare_parts(800, 12, count=count)
    assert count.found


def test_no_part_of_a_row_that_is_shown_is_of_few(count: Count) -> None:
    compare_parts(800, 12, count=count)
    assert not count.found, "\n\n".join(map(str, count.found[:5]))
    assert count.failed == 0


def test_what_is_shown_of_few_is_told_by_hand() -> None:
    from interference import _shows_few

    row: dict[str, Any] = {"n": 9, "guarantee": "k>=3, l>=1"}
    shown = [x for x in (None, 0, 1, 2, 3, 6, 7, 8, 9) if _shows_few(row | {"x0": x})]
    assert shown == [1, 2, 7, 8]


def test_without_a_fault_the_same_small_run_finds_nothing(count: Count) -> None:
    compare_world(20, 3, changes=3, count=count)
    assert not count.found
