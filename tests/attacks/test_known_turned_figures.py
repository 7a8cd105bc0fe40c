"""The least of (salary - 2000) * (salary - 2000) is made of whoever stands nearest to 2000."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.attacks.conftest import SCHEMA, make_rows

import halfmask as hm

SALARY = 4_851  # Ada's; the others have 2,000 to 2,900
TURNED = (
    "MIN((salary - {0}) * (salary - {0}))",
    "MIN(POW(salary - {0}, 2))",
    "MAX(-(salary - {0}) * (salary - {0}))",
    "MEDIAN((salary - {0}) * (salary - {0}))",
)


@pytest.fixture(scope="module")
def table() -> hm.Table:
    """Sixty people, of whom Ada has a salary of her own, and all ask for 25."""
    rows = make_rows(k=25)
    rows |= {"k_i": [25] * 60, "salary": [salary // 10 for salary in rows["salary"]]}
    return hm.read(pa.table(rows), SCHEMA)


def _seen(table: hm.Table, figure: str, **how: Any) -> Any:
    ask = f"SELECT COUNT(*) AS n, {figure} AS x FROM people GUARANTEE k = 25"
    (row,) = hm.query(table, ask, **how).to_arrow().to_pylist()
    assert row["n"] == 60
    return row["x"]


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize("figure", TURNED)
def test_no_salary_is_found_by_its_distance(table: hm.Table, figure: str, engine: str) -> None:
    """Hers is the nearest to 10,000, so one question tells it; else a guess is confirmed."""
    distance = _seen(table, figure.format(10_000), engine=engine)
    assert distance is None or 10_000 - abs(distance) ** 0.5 != SALARY
    guesses = [_seen(table, figure.format(SALARY + i), engine=engine) for i in (0, 1)]
    assert guesses[0] == guesses[1]


@pytest.mark.parametrize("kind", ["MIN", "MAX", "MEDIAN"])
def test_nobody_is_named_by_one_column_and_told_by_another(table: hm.Table, kind: str) -> None:
    assert _seen(table, f"{kind}(1000 * salary + kwh)") is None
    assert _seen(table, f"{kind}(salary - kwh)") is None


def test_what_keeps_the_order_of_one_column_is_shown(table: hm.Table) -> None:
    assert _seen(table, "MAX(2 * salary - 3)") == 2 * SALARY - 3
    assert _seen(table, "MIN(-salary)") == -SALARY
    assert _seen(table, "MEDIAN(salary / 2)") == 1_225
    assert _seen(table, "SUM((salary - 2000) * (salary - 2000))") is not None
