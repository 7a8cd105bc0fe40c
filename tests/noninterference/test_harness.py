"""The harness finds faults that are planted: of each kind it must report some in a small run.

A harness that finds nothing proves nothing unless it would find something. TRY_CAST in the SQL that
runs stands for few types of moments only: what keeps a cast from failing is the guard around it, so
that the guard is what is taken away here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from interference import Count, compare_parts, compare_world
from planted import make_world
from questions import Grammar

from halfmask.query import final, run
from halfmask.query.planning import demands
from halfmask.query.total import conversions, rows
from halfmask.release import answer
from halfmask.release import demands as watched

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
    assert planted_faults(3, 3, range(4)).found


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
        compare_world(seed, 8, changes=4, count=count)
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
    count = planted_faults(2, 4, range(10, 20))
    assert any("refused" in one.differs for one in count.found)


def test_a_note_that_tells_how_many_are_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made = run.candidate_of

    def tell(plan: Any, groups: Any, *rest: Any, **more: Any) -> Any:
        candidate = made(plan, groups, *rest, **more)
        return replace(candidate, notes=(*candidate.notes, f"Left out: {groups.refused}."))

    monkeypatch.setattr(run, "candidate_of", tell)
    count = planted_faults(3, 3, range(20, 30))
    assert any("notes" in one.differs for one in count.found)


def test_a_conditional_figure_of_few_people_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_show(plan: Any, published: Any, parts: Any) -> Any:
        return np.ones(len(published), dtype=bool)

    def look_away(*_: object) -> None:
        return None

    monkeypatch.setattr(final, "_large_enough", all_show)
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
