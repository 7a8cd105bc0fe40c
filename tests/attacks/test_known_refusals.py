"""Refusals, series and tables of figures tell what somebody holds whom nobody can serve.

Attacker: knows everybody but one, who asks for more than the others give, and sees what every verb
says. Advice that a verb does not have sends a controller in a hurry to set demands aside.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from effort import turn

import halfmask as hm
from halfmask.errors import HalfmaskError, InfeasibleDemandsError, PrivacyError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ILLS = ("flu", "gout", "mumps", "cold")
HELD: tuple[Any, ...] = (*ILLS, "cholera", None, "", "Total", "aaaa", "z" * 300)
SERVED = 40


def town(ill: Any = "flu", *, age: Any = 33, **demand: Any) -> hm.Table:
    """Forty people of four illnesses and, last, one who states ``demand``."""
    rows: dict[str, Any] = {
        "id": [f"p{i}" for i in range(SERVED + 1)],
        "age": [*(20 + i % 10 for i in range(SERVED)), age],
        "ill": [*(ILLS[i % 4] for i in range(SERVED)), ill],
        "k_i": [2] * SERVED + [demand.get("k")],
        "l_i": [None] * SERVED + [demand.get("l")],
    }
    schema: dict[str, Any] = {
        "table": {"person": "id"},
        "policy": {"k": "k_i", "l": "l_i"},
        "columns": {
            "id": "identifier",
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 20]}},
            "ill": "sensitive",
        },
    }
    return hm.read(rows, schema)


def recoded(table: hm.Table) -> object:
    found = hm.anonymize(town(k=2), hm.KAnonymity(2), method="optimal")
    assert found.recoding is not None
    return found.recoding.apply(table, hm.KAnonymity(2))


VERBS: dict[str, tuple[Callable[[hm.Table], object], tuple[str, ...]]] = {
    "optimal": (lambda t: hm.anonymize(t, method="optimal"), ("suppression",)),
    "mondrian": (lambda t: hm.anonymize(t, method="mondrian"), ("on_infeasible",)),
    "auto": (lambda t: hm.anonymize(t), ("suppression", "on_infeasible")),
    "recode": (recoded, ("suppression",)),
    "mask": (lambda t: hm.mask(t, "round age base=10"), ()),
    "tabulate": (lambda t: hm.tabulate(t, ["age", "ill"]), ("leave_out",)),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_refusal_names_only_what_the_verb_has(verb: str) -> None:
    ask, has = VERBS[verb]
    with pytest.raises(PrivacyError) as refused:
        ask(town(k=1000))
    said = str(refused.value)
    for name in ("suppression", "on_infeasible", "leave_out"):
        assert (name in said) == (name in has), said
    assert "demands='ignore'" in said
    assert "--ignore-demands" in said


def seen(ask: Callable[[], Any]) -> str:
    """All that somebody sees: rows in any order and the document, or the refusal."""
    try:
        found = ask()
    except HalfmaskError as error:
        return f"{type(error).__name__} {error.code}: {error}"
    document = found.to_dict()
    document.pop("versions", None)
    rows = sorted(map(str, found.to_arrow().to_pylist()))
    return json.dumps([document, rows, str(found.to_arrow().schema)], default=str)


# Four illnesses: 5 is met only by somebody who brings one more; 1,000 by nobody.
DEMANDS = ({"k": 1000}, {"l": 1000}, {"l": 5})


@pytest.mark.parametrize("demand", DEMANDS, ids=str)
@pytest.mark.parametrize("suppress", [False, True])
def test_a_series_is_the_same_whatever_the_unserved_hold(
    tmp_path: Path, demand: dict[str, int], suppress: bool
) -> None:
    """Before, a missing value was refused and a unique one named the person's own demand."""
    case = 2 * DEMANDS.index(demand) + suppress
    for later in (False, True):
        told = set()
        for number, ill in enumerate((HELD[0], *turn(HELD[1:], case, 3))):
            ledger = tmp_path / f"{later}{number}"
            more = {"on_infeasible": "suppress"} if suppress else {}
            if later:  # the planted person was in the first release, with a demand that was met
                hm.anonymize(town("flu"), hm.MInvariance(2, "ill"), previous=ledger)
            told.add(
                seen(
                    lambda ill=ill, ledger=ledger, more=more: hm.anonymize(
                        town(ill, **demand), hm.MInvariance(2, "ill"), previous=ledger, **more
                    )
                )
            )
        assert len(told) == 1
        (said,) = told
        assert "1000" not in said
        if not suppress:
            assert said.startswith("InfeasibleDemandsError")
            assert "--on-infeasible suppress" in said
        elif not later:
            assert "1 people were left out" in said


@pytest.mark.parametrize("l_", [5, 6, 1000])
@pytest.mark.parametrize("settings", [{}, {"margins": False}, {"method": "round"}], ids=str)
def test_a_table_of_figures_refuses_an_l_whatever_its_person_holds(
    l_: int, settings: dict[str, Any]
) -> None:
    """Before, l = 5 was met by a fifth illness, and the advice counted the illnesses."""
    told = {
        seen(lambda ill=ill: hm.tabulate(town(ill, l=l_), ["age", "ill"], **settings))
        for ill in HELD
    }
    assert len(told) == 1
    assert "leave them out (leave_out={'l': 4}, --leave-out l=4)" in told.pop()


@pytest.mark.parametrize("demand", [{"k": 1000}, {"l": 5}, {"l": 1000}], ids=str)
def test_who_is_left_out_of_a_table_of_figures_is_in_none(demand: dict[str, int]) -> None:
    ((name, _),) = demand.items()
    told = {
        seen(
            lambda ill=ill, age=age: hm.tabulate(
                town(ill, age=age, **demand), ["age", "ill"], leave_out={name: 4}, threshold=2
            )
        )
        for place, ill in enumerate(HELD)
        for age in turn((33, 20, None, 900), place)
    }
    assert len(told) == 1


def test_a_value_outside_the_hierarchy_is_refused_like_any_other() -> None:
    """The axes were made before anybody looked whose demand cannot be met."""
    rows = {"city": ["x", "y"] * 10 + ["x"], "k_i": [1] * 20 + [1000]}
    tree = {"role": "quasi", "hierarchy": {"tree": {"all": ["x", "y"]}}}
    told = set()
    for city in ("x", "z", None, "Total"):
        people = {**rows, "city": [*rows["city"][:-1], city]}
        table = hm.read(people, {"policy": {"k": "k_i"}, "columns": {"city": tree}})
        told.add(seen(lambda table=table: hm.tabulate(table, "city")))
    assert len(told) == 1
    assert "1 people ask for a k above" in told.pop()


@pytest.mark.parametrize("city", ["x", "z", None, "Total"])
def test_whether_noisy_figures_leave_depends_on_no_row(city: Any) -> None:
    tree = {"role": "quasi", "hierarchy": {"tree": {"all": ["x", "y"]}}, "domain": ["x", "y"]}
    table = hm.read({"city": [*["x", "y"] * 10, city]}, {"columns": {"city": tree}})
    assert len(hm.tabulate(table, "city", method="dp", epsilon=1).to_arrow()) == 3


METHODS: dict[str, dict[str, Any]] = {
    "optimal": {"suppression": 0.05},
    "local": {"suppression": 0.05},
    "mondrian": {"on_infeasible": "suppress"},
    "mdav": {"on_infeasible": "suppress"},
    "auto": {"on_infeasible": "suppress"},
}


@pytest.mark.parametrize("method", METHODS)
def test_an_l_that_only_the_own_value_meets_is_not_met(method: str) -> None:
    """Before, somebody with a fifth illness and l = 5 pulled all rows into one class."""
    told = set()
    for ill in ("flu", "cholera", None, "aaaa"):
        people = town(ill, l=5)
        settings = METHODS[method]
        told.add(seen(partial(hm.anonymize, people, method=method, seed=1, **settings)))
    assert len(told) == 1
    assert '"suppressed": 1' in told.pop()


def test_an_l_that_only_the_own_value_meets_is_refused() -> None:
    for ask in (
        lambda t: hm.anonymize(t),
        lambda t: hm.mask(t, "round age base=10"),
        recoded,
    ):
        said = set()
        for ill in ("flu", "cholera", None):
            with pytest.raises(InfeasibleDemandsError) as refused:
                ask(town(ill, l=5))
            said.add(str(refused.value))
        assert len(said) == 1


def test_an_l_that_others_meet_is_met() -> None:
    release = hm.anonymize(town("cholera", l=4), hm.KAnonymity(2), method="mondrian")
    assert release.rows == SERVED + 1
    held: dict[Any, set[Any]] = {}
    for row in release.to_arrow().to_pylist():
        held.setdefault(row["age"], set()).add(row["ill"])
    assert len(next(ills for ills in held.values() if "cholera" in ills)) >= 4


@pytest.mark.parametrize("everybody", [12, 3])
def test_where_nobody_can_be_served_the_refusal_tells_no_value(everybody: int) -> None:
    told = set()
    for age in (1, 30, None, 900):
        rows = {"age": [*(20 + i for i in range(everybody - 1)), age], "k_i": [100] * everybody}
        table = hm.read(rows, {"policy": {"k": "k_i"}, "columns": {"age": "quasi"}})
        for ask in (
            lambda table=table: hm.anonymize(table, method="optimal"),
            lambda table=table: hm.anonymize(table, method="optimal", suppression=0.5),
            lambda table=table: hm.anonymize(table),
            lambda table=table: hm.mask(table, "round age base=10"),
        ):
            told.add(seen(ask).split("\n")[0])
    assert len(told) == 1
    assert f"{everybody} of {everybody} people demand more" in told.pop()
