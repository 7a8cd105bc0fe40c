"""The exact part of a private answer is the same on every engine, and so is the answer."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.engines.reference import Reference
from halfmask.query.parse import parse
from halfmask.query.planning.noise import plan_noise
from halfmask.query.private.answer import NoiseTerms, collect_totals, prepare_noise
from halfmask.query.run import Session

SCHEMA = hm.Schema.from_dict(
    {
        "table": {"person": "id"},
        "columns": {
            "id": "identifier",
            "city": {"role": "quasi", "domain": ["Lille", "Arras", "Nice"]},
            "age": {"role": "quasi", "domain": {"low": 0, "high": 60, "bins": 6, "missing": True}},
            "height": {"role": "quasi", "domain": {"low": 1.5, "high": 2.0}},
            "pay": {"role": "sensitive", "domain": {"low": -100, "high": 900}},
            "job": "quasi",
        },
    }
)


def rows(n: int = 300, seed: int = 3) -> pa.Table:
    drawn = random.Random(seed)
    people = [i for i in range(n) for _ in range(drawn.choice([1, 1, 2, 5]))]
    made = {i: drawn.choice(["Lille", "Arras", "Pau", None]) for i in range(n)}
    pays = {i: drawn.choice([None, -500, -7, 0, 13, 500, 880, 4000]) for i in range(n)}
    # All rows of a person are alike, so that it makes no difference which of them are kept.
    return pa.table(
        {
            "id": pa.array(people, pa.int64()),
            "city": [made[i] for i in people],
            "age": pa.array([None if i % 11 == 0 else i % 71 - 5 for i in people], pa.int64()),
            "height": [1.4 + (i % 80) / 100 for i in people],
            "pay": pa.array([pays[i] for i in people], pa.int64()),
            "job": [f"job {i % 4}" for i in people],
        }
    )


LEVELS = hm.Schema.from_dict(
    {
        "table": {"person": "id"},
        "columns": {
            "id": "identifier",
            "pay": {"role": "sensitive", "domain": {"low": 0, "high": 100}},
        },
        "policy": {"epsilon": "own", "levels": {"epsilon": [0.05, 0.5, 1]}},
    }
)
OWN = pa.table(
    {
        "id": [1, 1, 2, 3, 4, 5, 6, 7, 8, 8],
        "pay": [50] * 9 + [3],
        # Person by person: at 0.05 (the least row), 1, silent, 0.5, below all, no number, infinite,
        # and at 0.05 by a row that WHERE leaves out.
        "own": pa.array([1.0, 0.06, 4.0, None, 0.5, 0.01, float("nan"), float("inf"), 1.0, 0.05]),
    }
)

TABLES = {"people": rows(), "own": OWN}
# fmt: off
# ruff: noqa: E501
QUERIES = {
    "counts of public groups": "SELECT city, COUNT(*) AS n FROM people GROUP BY city WITH EPSILON 1",
    "intervals": "SELECT age, COUNT(*) AS n FROM people GROUP BY age WITH EPSILON 1",
    "two keys": "SELECT city, age, COUNT(*) AS n, COUNT(pay) AS m FROM people GROUP BY city, age WITH EPSILON 1",
    "everybody": "SELECT COUNT(*) AS n, COUNT(DISTINCT id) AS p FROM people WITH EPSILON 1 AT MOST 2 ROWS PER PERSON",
    "sums and means": "SELECT city, SUM(pay) AS s, AVG(height) AS h FROM people GROUP BY city WITH EPSILON 1 AT MOST 2 ROWS PER PERSON",
    "spread": "SELECT city, VARIANCE(pay) AS v, STDDEV_POP(height) AS d FROM people GROUP BY city WITH EPSILON 1",
    "quantiles": "SELECT city, MEDIAN(pay) AS m, QUANTILE_CONT(height, 0.9) AS q FROM people GROUP BY city WITH EPSILON 1",
    "bounds in the query": "SELECT SUM(LEAST(GREATEST(pay * 2, -50), 70)) AS s FROM people WHERE age > 20 OR city IS NULL WITH EPSILON 1",
    "undeclared groups": "SELECT job, COUNT(*) AS n, AVG(pay) AS p FROM people GROUP BY job WITH EPSILON 1 DELTA 1e-6",
    "a condition on a figure": "SELECT city, COUNT(*) FILTER (WHERE pay > 10) AS n FROM people GROUP BY city WITH EPSILON 1",
    "an expression as a key": "SELECT CASE WHEN age < 30 THEN 'young' ELSE 'old' END AS band, COUNT(*) AS n FROM people GROUP BY band WITH EPSILON 1 DELTA 1e-6",
}
# fmt: on


def exact_part(engine: Any, sql: str) -> dict[str, Any]:
    statement = parse(sql, noisy=True)
    with Session("people", engine=engine, schema={"people": SCHEMA}) as session:
        plan = plan_noise(
            statement,
            session.catalog,
            session.engine,
            domains={},
            rows_per_person=statement.rows_per_person or 1,
        )
        found = collect_totals(plan, session.engine)
    (exact,) = found.exact
    return {
        "keys": [key.to_pylist() for key in found.keys],
        "counts": exact.counts.tolist(),
        **{
            f"{kind} {label}": vector.tolist()
            for kind in ("sums", "squares", "present", "histograms")
            for label, vector in getattr(exact, kind).items()
        },
    }


@cache
def expected(name: str) -> dict[str, Any]:
    return exact_part(Reference(TABLES), QUERIES[name])


def test_the_reference_counts_as_by_hand() -> None:
    """One row a person at most; Pau and the missing city fall to the first declared value."""
    people = {r["id"]: r["city"] for r in TABLES["people"].to_pylist()}
    arras = sum(city == "Arras" for city in people.values())
    found = exact_part(Reference(TABLES), QUERIES["counts of public groups"])
    assert found["keys"] == [["Lille", "Arras", "Nice"]]
    assert found["counts"] == [len(people) - arras, arras, 0]


@pytest.mark.parametrize("name", QUERIES)
def test_engines_agree(engine: Any, name: str) -> None:
    assert exact_part(engine, QUERIES[name]) == expected(name)
    answer = hm.query("people", QUERIES[name], engine=engine, schema={"people": SCHEMA})
    assert answer.parameters["engine"] == engine.name
    answer.receipt.verify()


def test_engines_put_people_at_the_same_levels(engine: Any) -> None:
    sql = "SELECT SUM(pay) AS s FROM own WHERE pay > 10 WITH "
    found = {}
    for promise in ("PERSONAL EPSILON", "EPSILON 0.5"):
        with Session("own", engine=engine, schema={"own": LEVELS}) as session:
            ready = prepare_noise(session, sql + promise, NoiseTerms())
            exact = collect_totals(ready.plan, session.engine, ready.audience).exact
        found[promise] = [(int(e.counts[0]), int(e.sums["pay"][0])) for e in exact]
    assert found == {
        "PERSONAL EPSILON": [(2, 1_000_000), (1, 500_000), (1, 500_000)],
        "EPSILON 0.5": [(3, 1_500_000)],
    }
