"""An expression that fails on one person's row only answers a yes-or-no question about it.

Ada's demand cannot be met, so that no row may tell of her; but an engine computes before it drops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.attacks.conftest import AGE, SALARY, SCHEMA, Asker, make_rows

import halfmask as hm
from halfmask.engines.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

HERS = f"age = {AGE} AND salary > {{}}"
EXPRESSIONS = {
    "a cast": "CAST(CASE WHEN {} THEN 'x' ELSE '1' END AS INTEGER) = 1",
    "a cast to a narrow type": "CAST(CASE WHEN {} THEN 70000 ELSE 1 END AS SMALLINT) = 1",
    "overflow": "CASE WHEN {} THEN 9223372036854775807 ELSE 0 END + age > 0",
    "overflow by multiplication": "CASE WHEN {} THEN 9223372036854775807 ELSE 0 END * age >= 0",
    "division": "1 / (CASE WHEN {} THEN 0 ELSE 1 END) >= 0",
    "a logarithm": "LN(CASE WHEN {} THEN -1 ELSE 1 END) >= 0",
    "a root": "SQRT(CASE WHEN {} THEN -1 ELSE 1 END) >= 0",
    "a power": "EXP(CASE WHEN {} THEN 5000 ELSE 1 END) >= 0",
    "a date": "CAST(CASE WHEN {} THEN '2023-02-30' ELSE '2023-02-28' END AS DATE) IS NOT NULL",
    "a date that is moved": "DATE '9999-12-31' + INTERVAL '1' DAY * "
    "(CASE WHEN {} THEN 999999999 ELSE 0 END) IS NOT NULL",
}
SHAPES = {
    "filter": "SELECT COUNT(*) AS n FROM people WHERE {e} GUARANTEE k = 3",
    "key": "SELECT {e} AS g, COUNT(*) AS n FROM people GROUP BY 1 GUARANTEE k = 3",
    "derived": "SELECT COUNT(*) AS n FROM (SELECT {e} AS e FROM people) d WHERE e GUARANTEE k = 3",
}


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def asker(request: pytest.FixtureRequest) -> Iterator[Asker]:
    rows = pa.table(make_rows())
    if request.param == "duckdb":
        yield Asker(hm.read(rows, SCHEMA))
        return
    engine = Postgres(request.getfixturevalue("postgres"))
    engine.add("people", rows)
    yield Asker("people", {"engine": engine, "schema": {"people": SCHEMA}})
    engine.close()


def question(name: str, shape: str, guess: int) -> str:
    return SHAPES[shape].format(e=EXPRESSIONS[name].format(HERS.format(guess)))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_cast_finds_no_salary_in_17_questions(asker: Asker, shape: str) -> None:
    asker.asked = 0
    assert asker.search(lambda guess: question("a cast", shape, guess)) != SALARY
    assert asker.asked == 17


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_failure_tells_nothing(asker: Asker, name: str) -> None:
    assert not asker.tells(lambda guess: question(name, "filter", guess))


def test_division_by_the_difference_tells_nothing(asker: Asker) -> None:
    """Fails only for the right guess."""
    ask = "SELECT AVG(1 / (salary - {})) AS a FROM people GUARANTEE k = 3"
    wrong, right = (asker.rows(ask.format(guess)) for guess in (SALARY + 1, SALARY))
    assert (wrong is None) == (right is None)
