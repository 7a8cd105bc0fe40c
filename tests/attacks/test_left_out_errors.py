"""Errors and frontiers must not tell what somebody holds whose demand nothing can meet.

Attacker: sees what `anonymize`, a recoding of new rows and `frontier` say of a table, and knows
everybody in it but one, who asks for more than there are people.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import halfmask as hm

if TYPE_CHECKING:
    from collections.abc import Callable

SECRETS = [
    (33, "x", "flu"),
    (900, "w", "cholera"),
    (-5, "stranger", None),
    (None, None, "gout"),
]


def table(secret: tuple[Any, ...], k: int = 1_000_000) -> hm.Table:
    age, city, ill = secret
    rows = {
        "id": list(range(41)),
        "age": [*(20 + (7 * i) % 40 for i in range(40)), age],
        "city": [*(("x", "y", "z", "x")[i % 4] for i in range(40)), city],
        "ill": [*(("flu", "gout")[i % 2] for i in range(40)), ill],
        "k_i": [2] * 40 + [k],
    }
    columns = {
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 40]}},
        "city": {"role": "quasi", "hierarchy": {"tree": {"s": ["x", "y"], "n": ["z", "w"]}}},
        "ill": "sensitive",
    }
    schema = {"table": {"person": "id"}, "policy": {"k": "k_i"}, "columns": columns}
    return hm.read(pa.table(rows), schema)


def recoded(people: hm.Table, **settings: Any) -> object:
    found = hm.anonymize(table(SECRETS[0], k=2), hm.KAnonymity(2), method="optimal")
    assert found.recoding is not None
    return found.recoding.apply(people, hm.KAnonymity(2), **settings)


ASKED: dict[str, Callable[[hm.Table], object]] = {
    "auto": lambda t: hm.anonymize(t),
    "optimal": lambda t: hm.anonymize(t, hm.KAnonymity(3), method="optimal"),
    "local": lambda t: hm.anonymize(t, hm.KAnonymity(3), method="local"),
    "mondrian": lambda t: hm.anonymize(t, hm.KAnonymity(3), method="mondrian"),
    "mdav": lambda t: hm.anonymize(t, method="mdav"),
    "recoding": recoded,
}


@pytest.mark.parametrize("ask", ASKED)
def test_refusals_do_not_depend_on_what_the_unserved_hold(ask: str) -> None:
    """A value outside the hierarchy, a lonely value and a common one are refused alike."""
    said = set()
    for secret in SECRETS:
        with pytest.raises(hm.errors.InfeasibleDemandsError) as error:
            ASKED[ask](table(secret))
        said.add(str(error.value))
    assert len(said) == 1
    assert "1 of 41 people demand more" in said.pop()


def test_a_refusal_says_which_share_would_leave_them_out() -> None:
    with pytest.raises(hm.errors.InfeasibleDemandsError, match=r"suppression = 0\.0244 or more"):
        hm.anonymize(table(SECRETS[2]), hm.KAnonymity(3), method="optimal")
    found = hm.anonymize(table(SECRETS[2]), hm.KAnonymity(2), method="optimal", suppression=0.0244)
    assert found.suppressed == 1


@pytest.mark.parametrize("suppression", [[0.0], [0.1]])
def test_a_frontier_does_not_depend_on_what_the_unserved_hold(suppression: list[float]) -> None:
    told = set()
    for secret in SECRETS:
        models = [hm.KAnonymity(2), hm.KAnonymity(3), hm.LDiversity(3, "ill")]
        found = hm.frontier(table(secret), models, suppression=suppression).to_dict()
        found.pop("versions", None)
        told.add(json.dumps(found, default=str))
    assert len(told) == 1
    assert "1 rows demand more than all can give" in told.pop()
