"""What a question under EPSILON will cost, and how far off it will be, before anything is spent."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.dp import BudgetLedger, Pure
from halfmask.query.private import answer as private_answer

SCHEMA = {
    "table": {"person": "id"},
    "columns": {
        "id": "identifier",
        "city": {"role": "quasi", "domain": ["Arras", "Lille"]},
        "job": "quasi",
        "pay": {"role": "sensitive", "domain": {"low": 0, "high": 5000}},
    },
}
ROWS = 800
PEOPLE = pa.table(
    {
        "id": np.arange(ROWS),
        "city": ["Arras", "Lille"] * (ROWS // 2),
        "job": ["nurse"] * ROWS,
        "pay": np.arange(ROWS) * 5.0,
    }
)
SQL = (
    "SELECT city, COUNT(*) AS n, SUM(pay) AS s, AVG(pay) AS m, VARIANCE(pay) AS v, "
    "MEDIAN(pay) AS q FROM p WHERE pay > 3 GROUP BY city WITH EPSILON 2"
)


def test_views_are_those_of_the_receipt_and_errors_those_of_the_answer() -> None:
    plan = hm.explain(hm.read(PEOPLE, SCHEMA), SQL)
    answer = hm.query(hm.read(PEOPLE, SCHEMA), SQL)
    stated = [(v["view"], v["mechanism"], v["cost"], v["deviation"]) for v in plan.views]
    used = [
        (e.view, e.mechanism, str(e.cost), pytest.approx(sqrt(e.variance), rel=1e-6))
        for e in answer.receipt.entries
    ]
    assert stated == used
    row = answer.to_arrow().to_pylist()[0]
    errors = {f["figure"]: f["error"] for f in plan.figures}
    assert errors["count of rows"] == f"+- {row['n_high'] - row['n']:,.4g}"
    assert errors["sum of pay"] == f"+- {row['s_high'] - row['s']:,.4g}"
    assert plan.groups == "2 public ones, empty ones too"
    assert len(plan.sql) == 2  # the sums, and the tree of the median


def test_nothing_is_read_or_spent(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(private_answer, "collect_totals", None)
    text = str(hm.explain(hm.read(PEOPLE, SCHEMA), f"EXPLAIN {SQL}"))
    assert "Promise: epsilon = 2; nothing is spent yet" in text
    with pytest.raises(hm.errors.QueryError, match="EXPLAIN asks for the plan only"):
        hm.query(hm.read(PEOPLE, SCHEMA), f"EXPLAIN {SQL}")


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-16"])
def test_what_noise_cannot_serve_costs_nothing(epsilon: str, tmp_path) -> None:
    ledger = BudgetLedger.create(tmp_path / "budget", Pure(1))
    sql = f"SELECT VARIANCE(pay) AS v FROM p WITH EPSILON {epsilon}"
    with pytest.raises(hm.errors.ParameterError):
        hm.query(hm.read(PEOPLE, SCHEMA), sql, ledger=ledger)
    assert ledger.spent() == Pure(0)


def test_groups_that_show_themselves_tell_their_threshold() -> None:
    sql = "SELECT job, COUNT(*) AS n FROM p GROUP BY job"
    plan = hm.explain(hm.read(PEOPLE, SCHEMA), sql, epsilon=1, delta=1e-6)
    assert plan.groups == "those whose noisy count reaches 15"
    assert plan.to_dict()["views"][0]["mechanism"] == "StableGroups"


def test_the_plan_does_not_tell_whether_somebody_has_two_rows() -> None:
    twice = pa.concat_tables([PEOPLE, PEOPLE.slice(0, 1)])
    plans = [str(hm.explain(hm.read(table, SCHEMA), SQL)) for table in (PEOPLE, twice)]
    assert plans[0] == plans[1]
    assert '"person"' in plans[0]


def test_personal_epsilons_are_explained_level_by_level() -> None:
    table = PEOPLE.append_column("own", pa.array([1.0] * ROWS))
    schema = {**SCHEMA, "policy": {"epsilon": "own", "levels": {"epsilon": [0.5, 2]}}}
    plan = hm.explain(hm.read(table, schema), "SELECT COUNT(*) FROM p WITH PERSONAL EPSILON")
    assert [view["cost"] for view in plan.views] == ["epsilon = 0.5", "epsilon = 2"]
    # Both levels are added up: the noise of 0.5 and of 2 together.
    assert plan.figures[0]["error"] == "+- 6"
    assert "People who state none are left out" in str(plan)
