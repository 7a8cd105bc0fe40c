"""SQL in which every person keeps an own epsilon."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from noise import least_epsilon, repeatable

import halfmask as hm
from halfmask.engines.duckdb import DuckDB
from halfmask.engines.postgres import Postgres
from halfmask.engines.reference import Reference
from halfmask.query.private.clause import parse_private
from halfmask.query.private.personal import Personal, personal
from halfmask.query.private.plan import plan_private
from halfmask.query.run import Session

if TYPE_CHECKING:
    from halfmask.engines.request import Engine

SCHEMA = hm.Schema.from_dict(
    {
        "columns": {
            "city": {"role": "quasi", "domain": ["Arras", "Lille"]},
            "pay": {"role": "sensitive", "domain": {"low": 0, "high": 100}},
        },
        "policy": {"epsilon": "own"},
    }
)
SQL = "SELECT city, COUNT(*) AS n, SUM(pay) AS s, AVG(pay) AS m FROM people GROUP BY city"


def people(rows: int = 6000, own=(0.05, 0.5, 1.0)) -> pa.Table:
    random = np.random.default_rng(4)
    return pa.table(
        {
            "city": np.array(["Arras", "Lille"])[random.integers(0, 2, rows)],
            "pay": pa.array(random.integers(20, 60, rows), mask=random.random(rows) < 0.1),
            "own": pa.array([own[i % len(own)] for i in range(rows)], pa.float64()),
        }
    )


def demands_of(engine: Engine, sql: str = SQL):
    with Session("people", engine=engine, schema={"people": SCHEMA}) as session:
        statement = parse_private(sql)
        plan = plan_private(
            statement, session.catalog, session.engine, domains={}, rows_per_person=1
        )
        return plan, personal(plan, session.engine, statement)


def test_figures_are_near_and_intervals_cover() -> None:
    table = people()
    frame = table.to_pandas()
    truth = frame.groupby("city").agg(n=("city", "size"), s=("pay", "sum"), m=("pay", "mean"))
    hits = []
    for _ in range(12):
        answer = hm.query(hm.read(table, SCHEMA), f"{SQL} WITH PERSONAL EPSILON")
        for row in answer.to_arrow().to_pylist():
            exact = truth.loc[row["city"]]
            hits += [row[f"{f}_low"] <= exact[f] <= row[f"{f}_high"] for f in "nsm"]
    assert np.mean(hits) >= 0.9
    assert row["n"] == pytest.approx(3000, abs=600)
    assert answer.parameters["personal"]["smallest"] == 0.05
    assert answer.receipt.promise.epsilon == Fraction(
        str(answer.parameters["personal"]["threshold"])
    )


def test_better_than_the_smallest_epsilon_for_all() -> None:
    table = hm.read(people(own=(0.005, 1.0, 1.0)), SCHEMA)
    sql = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
    exact = np.array([table.arrow["city"].to_pylist().count(c) for c in ("Arras", "Lille")])

    def error(epsilon) -> float:
        answers = [hm.query(table, sql, epsilon=epsilon).to_arrow()["n"] for _ in range(15)]
        return float(np.mean([(a.to_numpy() - exact) ** 2 for a in answers]))

    assert error("personal") < error(0.005) / 4


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_engines_count_the_same_cells(kind: str, request) -> None:
    """With a threshold that everybody reaches, the sample is everybody on every engine."""
    rows = people(300)
    oracle, demanded = demands_of(Reference({"people": rows}))
    if kind == "duckdb":
        engine: Engine = DuckDB({"people": rows})
    else:
        engine = Postgres(request.getfixturevalue("postgres"))
        engine.add("people", rows)
    plan, own = demands_of(engine)
    assert own.demands.histogram()[0] == demanded.demands.histogram()[0]
    everybody = Personal(own.column, Fraction(1, 1000), own.demands)
    for one, place in ((engine, plan), (Reference({"people": rows}), oracle)):
        totals = everybody.totals(place.tally, one, repeatable(1))
        assert sum(totals["rows"].to_pylist()) == 300
        assert sum(totals["n0"].to_pylist()) == 300 - rows["pay"].null_count
    engine.close()


def test_audit_of_a_cautious_person_and_of_a_sample_that_keeps_everybody() -> None:
    """One person who allows 0.5 joins others; the noise is drawn at 2."""
    from halfmask.dp.mechanisms.discrete_laplace import DiscreteLaplace
    from halfmask.query.private.personal import _thinned

    def run_with(*, broken: bool):
        def run(with_person: bool, times: int) -> np.ndarray:
            sampler = repeatable(8 + with_person)
            rows = np.ones(times, np.int64) * with_person
            if not broken:
                rows = _thinned(np.full(times, 500), rows, Fraction(2), sampler)
            return DiscreteLaplace(Fraction(2)).apply(rows + 5, sampler).astype(float)

        return run

    assert least_epsilon(run_with(broken=False), 200_000) <= 0.5
    assert least_epsilon(run_with(broken=True), 200_000) > 0.5


def test_people_without_a_demand_are_left_out() -> None:
    table = hm.read(people(900, own=(1.0, None, 1.0)), SCHEMA)
    answer = hm.query(table, "SELECT COUNT(*) AS n FROM people", epsilon="personal")
    assert answer.to_arrow()["n"][0].as_py() == pytest.approx(600, abs=15)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT MEDIAN(pay) FROM p WITH PERSONAL EPSILON", "COUNT, SUM or AVG"),
        (
            "SELECT COUNT(*) FROM p WITH PERSONAL EPSILON AT MOST 2 ROWS PER PERSON",
            "one row of a person",
        ),
    ],
    ids=["a quantile", "several rows"],
)
def test_what_a_sample_cannot_tell_is_refused(sql: str, words: str) -> None:
    with pytest.raises(hm.errors.QueryError, match=words) as caught:
        hm.query(hm.read(people(30), SCHEMA), sql)
    assert caught.value.column == sql.index("WITH") + 1


def test_without_a_policy_it_says_how() -> None:
    with pytest.raises(hm.errors.QueryError, match=r"\[policy\] epsilon"):
        hm.query(pa.table({"a": [1]}), "SELECT COUNT(*) FROM p WITH PERSONAL EPSILON")


def test_rows_of_one_person_that_demand_differently_are_refused_in_a_database() -> None:
    schema = hm.Schema.from_dict(
        {
            "table": {"person": "id"},
            "columns": {"id": "identifier"},
            "policy": {"epsilon": "own"},
        }
    )
    engine = DuckDB({"people": pa.table({"id": [1, 1, 2], "own": [0.1, 1.0, 1.0]})})
    with pytest.raises(hm.errors.PrivacyError, match="different epsilons"):
        hm.query(
            "people",
            "SELECT COUNT(*) FROM people WITH PERSONAL EPSILON",
            engine=engine,
            schema={"people": schema},
        )
    engine.close()
