"""The estimator tells what a chain keeps, and proposes a better one."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import QueryError

ROWS = pa.table(
    {
        "city": ["x"] * 20 + ["y"] * 20,
        "street": [f"s{i // 4}" for i in range(40)],
        "salary": list(range(40)),
        "k": [4] * 30 + [8] * 10,
    }
)
ASK = (
    "SELECT city, street, AVG(salary) FROM t GROUP BY city, street GUARANTEE k = {a}, l = 2 "
    "THEN street -> del GUARANTEE k = {b}, l = 2"
)


def test_shares_are_those_of_the_answer() -> None:
    found = hm.suggest(ROWS, ASK.format(a=4, b=6), {"k": "k"})
    answer = hm.query(ROWS, ASK.format(a=4, b=6), {"k": "k"})
    assert found.asked.people == pytest.approx(answer.people / 40, abs=0.025)
    assert found.asked.contributing == 0.75


def test_the_proposal_keeps_everybody_where_that_is_possible() -> None:
    found = hm.suggest(ROWS, ASK.format(a=2, b=2), {"k": "k"})
    assert found.asked.people == 0.0  # nobody is content with 2
    assert found.proposed.people == 1.0
    text = ASK[: ASK.index("GUARANTEE")] + found.clause
    assert hm.query(ROWS, text, {"k": "k"}).people == 40


def test_without_policies_the_asked_chain_is_not_made_worse() -> None:
    found = hm.suggest(ROWS, ASK.format(a=4, b=6))
    assert found.proposed.people >= found.asked.people
    assert found.to_dict()["clause"] == found.clause


def test_nobody_to_estimate() -> None:
    with pytest.raises(QueryError):
        hm.suggest(ROWS, ASK.format(a=2, b=2).replace("GROUP", "WHERE salary < 0 GROUP", 1))
