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


@pytest.mark.parametrize(("a", "b"), [(2, 2), (4, 6), (9, 9), (10, 40)])
@pytest.mark.parametrize("policies", [None, {"k": "k"}])
def test_nothing_is_proposed_below_what_was_asked(a: int, b: int, policies: object) -> None:
    found = hm.suggest(ROWS, ASK.format(a=a, b=b), policies)
    asked = found.asked.guarantees
    assert asked == ((a, 2), (b, 2))
    for chain in (found.proposed, *found.tried):
        for (k, l), (k_asked, l_asked) in zip(chain.guarantees, asked, strict=True):
            assert k >= k_asked
            assert l >= l_asked


def test_names_are_quoted_and_the_rest_of_the_clause_is_kept() -> None:
    odd = 'Odd"Name then'
    rows = ROWS.rename_columns(["city", odd, "salary", "k"])
    name = '"Odd""Name then"'
    asked = (
        f"SELECT city, {name}, AVG(salary) FROM t GROUP BY city, {name} "
        f"GUARANTEE k = 2, l = 2 OF salary THEN {name} -> del GUARANTEE k = 2, l = 2 "
        "SEMANTICS complete"
    )
    found = hm.suggest(rows, asked, {"k": "k"})
    assert f'OF ("salary") THEN {name} -> del GUARANTEE' in found.clause
    assert found.clause.endswith("SEMANTICS complete")
    again = hm.query(rows, asked[: asked.index("GUARANTEE")] + found.clause, {"k": "k"})
    assert again.people == 40


def test_it_says_for_whom_it_is() -> None:
    assert "for the controller alone" in hm.suggest(ROWS, ASK.format(a=4, b=6)).to_dict()["note"]
