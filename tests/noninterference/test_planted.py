"""Whatever a person's values are whose demand cannot be met, every question looks the same.

Rows, order, types, notes, totals of people left out, verdicts, refusals in every word, and EXPLAIN
are compared, with and without a ledger of earlier questions.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from effort import THOROUGH
from interference import Count, compare_planned, compare_sequence, compare_world

from halfmask.engines.duckdb.engine import _database
from halfmask.engines.postgres import Postgres
from halfmask.engines.spark import Spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# More of them: HALFMASK_WORLDS=30 python -m pytest tests/noninterference -k "postgres or spark"
MORE = int(os.environ.get("HALFMASK_WORLDS", "0"))


@pytest.fixture(autouse=True, scope="module")
def several_threads() -> Iterator[None]:
    """Threads read the few rows of a batch side by side: no answer may depend on who was first."""
    _database().execute("SET threads = 4")
    yield
    _database().execute("RESET threads")


def found(count: Count) -> str:
    return "\n\n".join(map(str, count.found[:5]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_of_a_planted_person_shows_where_most_are_answered(count: Count) -> None:
    """Questions that are refused prove nothing: most have rows, and figures in them."""
    for seed in (*range(4), *range(200, 205)) if THOROUGH else (0, 3, 201):
        compare_world(seed, 8, changes=4, count=count)
    assert not count.found, found(count)
    assert count.failed == 0
    assert count.with_rows >= 0.6 * count.asked, count.to_dict()
    assert count.with_figures >= 0.4 * count.asked, count.to_dict()


@pytest.mark.parametrize("seed", range(1000, 1010 if THOROUGH else 1003))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_shows_of_many_values_under_one_plan(seed: int, count: Count) -> None:
    """Short questions are planned once: of the plan it is asserted that no row decides it."""
    compare_planned(seed, 10, changes=24, count=count)
    assert not count.found, found(count)
    assert count.failed == 0


@pytest.mark.parametrize("seed", range(1100, 1104 if THOROUGH else 1102))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_shows_in_five_questions_with_one_ledger(seed: int, count: Count) -> None:
    compare_sequence(seed, 5, changes=3, count=count)
    assert not count.found, found(count)
    assert count.failed == 0


@pytest.mark.parametrize("seed", range(100, 103 if THOROUGH else 102))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_shows_in_the_reference(seed: int, count: Count) -> None:
    compare_world(seed, 6, "reference", changes=3, count=count)
    assert not count.found, found(count)


def on(make: Callable[[], Any]) -> Callable[[dict[str, Any]], Any]:
    """An engine of its own for each world, with the tables in it."""

    @contextmanager
    def opened(tables: dict[str, Any]) -> Iterator[Any]:
        engine = make()
        for name, rows in tables.items():
            engine.add(name, rows)
        try:
            yield engine
        finally:
            engine.close()

    return opened


@pytest.mark.parametrize("seed", range(300, (303 if THOROUGH else 302) + MORE))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_shows_in_postgres(postgres: str, seed: int, count: Count) -> None:
    compare_world(seed, 4, on(lambda: Postgres(postgres)), changes=3, count=count)
    assert not count.found, found(count)


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(400, 401 + MORE // 10))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_shows_in_spark(spark: Any, seed: int, count: Count) -> None:
    """Views of both worlds have the same names, so that each has a session of its own."""
    size = 6 if THOROUGH else 4
    compare_world(seed, size, on(lambda: Spark(spark.newSession())), changes=1, count=count)
    assert not count.found, found(count)
