"""Guarding nodes: the example of the paper's kind by hand, brute force, and what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import ParameterError, SchemaError, UnsatisfiableError

TREE = {
    "stomach": {"ulcer": None, "gastritis": None},
    "respiratory": {"flu": None, "pneumonia": None, "bronchitis": None},
}
GROUP = {leaf: group for group, leaves in TREE.items() for leaf in leaves}
CSV = "".join(f"{leaf};{group};*\n" for leaf, group in GROUP.items())


def read(tmp_path, age, ill, guard, roles=()):
    file = tmp_path / "ill.csv"
    file.write_text(CSV, encoding="utf-8")
    schema = {
        "age": "quasi",
        "ill": {"role": "sensitive", "hierarchy": {"csv": str(file)}},
        "guard": "identifier",
    }
    return hm.read(
        {"age": age, "ill": ill, "guard": guard}, schema={"columns": schema | dict(roles)}
    )


def test_links_by_hand(tmp_path):
    """One class of four: 3 of 4 respiratory, 1 of 4 flu; who guards nothing asks for nothing."""
    ill = ["flu", "pneumonia", "bronchitis", "ulcer"]

    def achieved(*guards):
        people = read(tmp_path, [1] * 4, ill, list(guards))
        (verdict,) = hm.check(people, hm.GuardingNodes(0.5, "ill"))
        return verdict.achieved, verdict.holds

    assert achieved("respiratory", None, None, None) == (0.75, False)
    assert achieved("flu", None, None, None) == (0.25, True)
    assert achieved(None, None, None, "stomach") == (0.25, True)
    assert achieved("flu", None, None, "respiratory") == (0.75, False)
    assert achieved("*", None, None, None) == (1, False)


def test_nobody_who_guards_is_at_risk_by_nothing(tmp_path):
    people = read(tmp_path, [1, 2], ["flu", "ulcer"], ["ulcer", None])
    (verdict,) = hm.check(people, hm.GuardingNodes(0, "ill"))
    assert (verdict.achieved, verdict.holds) == (0, True)


VALUES = st.sampled_from([*GROUP, None])
NODES = st.sampled_from([*GROUP, *TREE, None])


@given(rows=st.lists(st.tuples(st.integers(0, 1), VALUES, NODES), min_size=2, max_size=12),
       p=st.sampled_from([0, 0.25, 0.5, 1]))  # fmt: skip
def test_it_agrees_with_trying_everybody(tmp_path_factory, rows, p):
    everything = [(9, leaf, None) for leaf in GROUP]  # people who guard nothing
    age, ill, guard = (list(one) for one in zip(*rows, *everything, strict=True))
    guard = pa.array(guard, pa.string())
    people = read(tmp_path_factory.mktemp("tree"), age, ill, guard)
    worst = 0.0
    for mine, _, node in rows:
        if node is None:
            continue
        held = [s for a, s, _ in rows if a == mine and s is not None]
        below = [s for s in held if node in (s, GROUP[s])]
        worst = max(worst, len(below) / len(held) if held else 1.0)
    (verdict,) = hm.check(people, hm.GuardingNodes(p, "ill"))
    assert verdict.achieved == pytest.approx(worst)
    assert verdict.holds == (worst <= p)


def test_a_release_keeps_it_and_the_nodes_stay(tmp_path):
    """Ages 1 to 4, all of age 1 with flu, which they guard: ages must be put together."""
    age = [1, 1, 2, 2, 3, 3, 4, 4]
    ill = ["flu", "flu", "ulcer", "gastritis", "flu", "ulcer", "ulcer", "pneumonia"]
    guard = ["respiratory", None, None, None, None, "stomach", None, None]
    ages = {"role": "quasi", "hierarchy": {"intervals": [2, 4]}}
    people = read(tmp_path, age, ill, guard, {"age": ages})
    release = hm.anonymize(people, hm.GuardingNodes(0.5, "ill"), method="optimal")
    assert release.verdicts[0].holds
    assert "guard" not in release.to_arrow().column_names
    told = release.to_dict()["verdicts"][0]
    assert told["holds"]
    assert told["achieved"] is None  # it could tell what the one who guards something guards
    for canary in ("respiratory", "stomach"):
        assert canary not in str(release.to_arrow().to_pylist())
    with pytest.raises(UnsatisfiableError):
        hm.mask(people, hm.masks.TopCode("age", value=4), models=[hm.GuardingNodes(0.5, "ill")])
    masked = hm.mask(
        people, hm.masks.TopCode("age", value=1), models=[hm.GuardingNodes(0.5, "ill")]
    )
    assert masked.verdicts[0].holds


def test_what_is_refused(tmp_path):
    people = read(tmp_path, [1, 1], ["flu", "ulcer"], ["canary", None])
    with pytest.raises(SchemaError, match="1 rows name a node") as caught:
        hm.check(people, hm.GuardingNodes(0.5, "ill"))
    assert "canary" not in str(caught.value)
    people = read(tmp_path, [1, 1], ["flu", "ulcer"], ["flu", None], {"guard": "other"})
    with pytest.raises(SchemaError, match="must not leave"):
        hm.check(people, hm.GuardingNodes(0.5, "ill"))
    with pytest.raises(SchemaError, match="'nodes' is not in the table"):
        hm.check(people, hm.GuardingNodes(0.5, "ill", "nodes"))
    with pytest.raises(ParameterError):
        hm.GuardingNodes(1.5, "ill")
    with pytest.raises(ParameterError):
        hm.GuardingNodes(0.5, "ill", guard="")


def test_text_states_it():
    from halfmask.models.options import read_models

    assert read_models({"guard": ["ill=0.5"]}) == [hm.GuardingNodes(0.5, "ill")]
