"""Numbers on which PostgreSQL fails where other engines go on: nobody's may make a query fail.

PostgreSQL calls it an error where a product or quotient of doubles vanishes. An asker who can make
that happen for one person alone reads this person's salary from refusals.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from effort import turn
from tests.attacks.conftest import AGE, SALARY, SCHEMA, WHO, Asker, make_rows

import halfmask as hm
from halfmask.engines.duckdb.engine import DuckDB
from halfmask.engines.generalization import lower_edge
from halfmask.engines.postgres import Postgres
from halfmask.errors import HalfmaskError

if TYPE_CHECKING:
    from collections.abc import Iterator

BIG = "CASE WHEN age = {age} AND salary > {guess} THEN 1e30 ELSE 1 END"
VANISHING = {
    "quotients": "1e-30 / ({y} * {y} * {y} * {y} * {y} * {y}) / ({y} * {y} * {y} * {y} * {y})",
    "powers": "1 / POWER({y}, 6) / POWER({y}, 6)",
    "a product": "(1 / POWER({y}, 6)) * (1 / POWER({y}, 6))",
    "a power": "POWER(1 / POWER({y}, 6), 2)",
    "rounding": "ROUND(1 / POWER({y}, 6) / POWER({y}, 5), -15)",
    "differences": (
        "POWER((1e-30 / {y} - 1.0000000000000002e-30 / {y}) * "
        "(1e-30 / {y} - 1.0000000000000002e-30 / {y}), 3)"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def engine(postgres: str) -> Iterator[Postgres]:
    with closing(Postgres(postgres)) as found:
        found.add("people", pa.table(make_rows()))
        yield found


@pytest.mark.parametrize("way", VANISHING)
def test_no_salary_is_found_by_numbers_that_vanish(engine: Postgres, way: str) -> None:
    """Before, 17 questions found the salary of somebody whose demand nothing can meet."""

    def question(guess: int) -> str:
        number = VANISHING[way].format(y=BIG.format(age=AGE, guess=guess))
        return f"SELECT COUNT(*) AS n FROM people WHERE {number} < 5 GUARANTEE k = 3"

    asker = Asker(engine, {"schema": {"people": SCHEMA}, "tables": ["people"]})
    assert not asker.tells(question)
    assert asker.search(question) != SALARY


NUMBERS = (
    "POWER(kwh, 6)", "kwh * kwh * kwh * kwh * kwh * kwh", "kwh / kwh / kwh / kwh / kwh / kwh",
    "SQRT(kwh) / EXP(kwh) / kwh", "ROUND(kwh, 15) * ROUND(kwh / 3, 2)", "LN(kwh) / kwh / kwh",
    "POWER(kwh, -2) * kwh", "kwh + kwh + kwh - kwh - 0.5 - kwh * kwh + kwh / 7",
)  # fmt: skip
ODD = (1e308, 5e-324, -1e-30, 1e-30, float("nan"), float("inf"), None)


@pytest.mark.parametrize("number", NUMBERS)
def test_what_is_answered_depends_on_nobodys_number(postgres: str, number: str) -> None:
    """As many factors as ever are taken, and none of them makes a number vanish."""
    sql = (
        f"SELECT SUM({number}) AS s, VARIANCE({number}) AS v FROM people "
        f"WHERE {number} IS NOT NULL GUARANTEE k = 3"
    )
    told = set()
    for kwh in (100.0, *turn(ODD, NUMBERS.index(number), 2)):
        rows = make_rows()
        rows["kwh"][WHO] = kwh
        with closing(Postgres(postgres)) as engine:
            engine.add("people", pa.table(rows))
            told.add(repr(hm.query(engine, sql, schema=SCHEMA, tables=["people"]).to_dict()))
    assert len(told) == 1


EDGES = {5e-324: 0, -5e-324: -10, -0.0: 0, -0.3: -10, 9.99: 0, -10.0: -10, 10.0: 10}


@pytest.mark.parametrize("number", EDGES)
def test_an_interval_takes_numbers_next_to_nothing(postgres: str, number: float) -> None:
    """Nobody is left out here: all stand in an interval, also whose number cannot be divided."""
    rows: dict[str, list[Any]] = {"id": list(range(6)), "kwh": [number] * 3 + [55.0, 56.0, 57.0]}
    schema = {"table": {"person": "id"}, "columns": {"id": "identifier", "kwh": "sensitive"}}
    sql = (
        "SELECT kwh, COUNT(*) AS n FROM people GROUP BY kwh "
        "GUARANTEE k = 3 THEN kwh -> 10 GUARANTEE k = 3"
    )
    low = EDGES[number]
    assert lower_edge(number, 10) == low
    rows["kwh"][1:3] = [low + 1.5, low + 2.5]
    shown = []
    for engine in (Postgres(postgres), DuckDB({"people": pa.table(rows)})):
        with closing(engine):
            if isinstance(engine, Postgres):
                engine.add("people", pa.table(rows))
            try:
                answer = hm.query(engine, sql, schema=schema, tables=["people"])
            except HalfmaskError as error:
                pytest.fail(str(error))
            shown.append({r["kwh"]: r["n"] for r in answer.to_arrow().to_pylist()})
    expected = {f"[{low}, {low + 10})": 3, "[50, 60)": 3}
    assert shown == [expected, expected]
