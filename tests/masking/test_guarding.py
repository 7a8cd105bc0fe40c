"""Each person's own generalization of the sensitive value: levels by hand, chances by counting."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import InternalError, PrivacyError, SchemaError, UnsatisfiableError
from halfmask.masking import run

M = hm.masks
# any > {lung > {flu, asthma}, gut > {ulcer, colic}}
LEAVES = ("flu", "asthma", "ulcer", "colic")
BELOW = {**{leaf: {leaf} for leaf in LEAVES}, "lung": {"flu", "asthma"}, "gut": {"ulcer", "colic"},
         "any": set(LEAVES)}  # fmt: skip


def patients(ill, guard, **more):
    data = {"age": list(range(len(ill))), "ill": ill, "guard": guard, **more}
    tree = {"any": {"lung": ["flu", "asthma"], "gut": ["ulcer", "colic"]}}
    columns = {
        "age": "quasi", "guard": "identifier",
        "ill": {"role": "sensitive", "hierarchy": {"tree": tree}},
    }  # fmt: skip
    return hm.read(data, schema={"columns": {**columns, **dict.fromkeys(more, "other")}})


def shown(release):
    rows = release.to_arrow()
    return dict(zip(rows["age"].to_pylist(), rows["ill"].to_pylist(), strict=True))


def test_levels_follow_the_node_and_not_the_value():
    ill = ["flu", "asthma", "ulcer", "colic", "flu", "ulcer", None, "asthma"]
    guard = ["flu", "lung", "flu", None, None, "gut", "flu", None]
    release = hm.mask(patients(ill, guard), M.Guard("ill", guard="guard", p=0.7))
    # flu is 1 of 2 values of lung, and 1 of 2 rows of lung that are shown as is: whoever guards it
    # is shown at the level of organs; lung is 2 of 4 values of any and 2 of 3 rows, gut 1 of 3.
    labels = ["lung", "any", "gut", "colic", "flu", "any", None, "asthma"]
    assert shown(release) == dict(enumerate(labels))
    guard = ["flu", None, "flu", None, None, None, "flu", None]
    tight = hm.mask(patients(ill, guard), M.Guard("ill", guard="guard", p=0.4))
    assert shown(tight)[0] == shown(tight)[2] == "any"
    assert "guard" not in tight.to_arrow().column_names
    assert any("what its person guards" in one for one in tight.statement["claimed"])


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from(LEAVES), st.sampled_from([None, *LEAVES, "lung", "gut"])),
        min_size=4, max_size=12,
    ),
    st.sampled_from([0.3, 0.5, 0.6]),
)  # fmt: skip
def test_no_label_tells_more_than_the_chance(given_rows, p):
    ill, guard = (list(one) for one in zip(*given_rows, strict=True))
    plain = Counter(v for v, g in given_rows if g is None)
    table = patients(ill, guard)
    hopeless = [
        g for g in guard if g is not None
        and (sum(plain[v] for v in BELOW[g]) > Fraction(str(p)) * plain.total()
             or len(BELOW[g]) > Fraction(str(p)) * len(LEAVES))
    ]  # fmt: skip
    if hopeless:
        with pytest.raises(UnsatisfiableError, match="guards more than"):
            hm.mask(table, M.Guard("ill", guard="guard", p=p))
        return
    for i, label in shown(hm.mask(table, M.Guard("ill", guard="guard", p=p))).items():
        assert ill[i] in BELOW[label]
        if guard[i] is None:
            assert label == ill[i]
            continue
        under, mine = BELOW[label], BELOW[label] & BELOW[guard[i]]
        assert len(mine) <= Fraction(str(p)) * len(under)
        part = sum(plain[v] for v in mine)
        assert part <= Fraction(str(p)) * sum(plain[v] for v in under)


ILLS = {"virus": ["hiv", "hep"], "lung": ["flu", "cold"], "skin": ["acne"]}


def observed(value, node, p, *, tree, promise=False):
    """All that a reader sees of 36 people who guard nothing, and one more who guards ``node``."""
    others = ["flu", "cold", "acne"] * 12
    ill = {"role": "sensitive"} | ({"hierarchy": {"tree": ILLS}} if tree else {})
    people = hm.read(
        {"age": [1] * 37, "ill": [*others, value], "guard": [None] * 36 + [node]},
        schema={"columns": {"age": "quasi", "ill": ill, "guard": "identifier"}},
    )
    try:
        if promise:
            rows = hm.anonymize(people, hm.GuardingNodes(p, "ill")).to_arrow()
        else:
            rows = hm.mask(people, M.Guard("ill", guard="guard", p=p)).to_arrow()
    except hm.errors.HalfmaskError as error:
        return str(error)
    left = Counter(rows["ill"].to_pylist())
    return tuple(sorted(left.items(), key=str))


@pytest.mark.parametrize("tree", [True, False])
@pytest.mark.parametrize("node", ["hiv", "hep", "flu", "acne", "virus", "lung", "*"])
@pytest.mark.parametrize("p", [0.2, 0.34, 0.5, 0.7])
def test_who_knows_the_node_and_the_release_does_not_learn_the_value(tree, node, p):
    """Every value planted: of those that leave the same, at most the share p is guarded."""
    values = [leaf for leaves in ILLS.values() for leaf in leaves]
    guarded = {"*": set(values), **{v: {v} for v in values}, **{k: set(v) for k, v in ILLS.items()}}
    seen = {value: observed(value, node, p, tree=tree) for value in values}
    refused = {one for one in seen.values() if isinstance(one, str)}
    if refused:  # whether there is a release does not follow from the value
        assert len(set(seen.values())) == 1
        return
    for one in set(seen.values()):
        alike = [value for value in values if seen[value] == one]
        if tree or node in values:
            assert sum(v in guarded[node] for v in alike) <= Fraction(str(p)) * len(alike)


@pytest.mark.parametrize("node", ["hiv", "virus"])
def test_the_promise_takes_a_node_that_no_row_holds(node):
    for value in ("hiv", "hep", "flu", "acne"):
        assert not isinstance(observed(value, node, 0.5, tree=True, promise=True), str)


def test_a_hierarchy_made_of_rules_has_no_list_of_nodes():
    pay = {"role": "sensitive", "hierarchy": {"intervals": [10]}}
    people = hm.read(
        {"age": [1, 2, 3], "pay": [1, 12, 25], "guard": ["[10, 20)", None, None]},
        schema={"columns": {"age": "quasi", "pay": pay, "guard": "identifier"}},
    )
    with pytest.raises(SchemaError, match="lists no values"):
        hm.mask(people, M.Guard("pay", guard="guard"))


def test_the_door_counts_again(monkeypatch):
    """A step that leaves one guarded value as it was, or a later one that puts it back."""
    table = patients(["flu", "asthma", "ulcer", "colic"], ["flu", None, None, None])
    honest = M.Guard.apply

    def careless(self, rows):
        outcome = honest(self, rows)
        return replace(outcome, columns={"ill": rows.table.arrow["ill"].combine_chunks()})

    monkeypatch.setattr(M.Guard, "apply", careless)
    with pytest.raises((PrivacyError, InternalError), match="its person guards"):
        run.mask(table, M.Guard("ill", guard="guard", p=0.5))


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (M.Guard("ill", guard="age"), "must not leave"),
        (M.Guard("age", guard="guard"), "quasi-identifier"),
        (M.Guard("ill", guard="none"), "is not in the table"),
    ],
)
def test_what_cannot_be_guarded_is_refused(step, words):
    table = patients(["flu", "ulcer"], ["flu", None])
    with pytest.raises(SchemaError, match=words):
        hm.mask(table, step)


def test_a_node_that_nobody_knows_is_refused_by_its_rows():
    table = patients(["flu", "ulcer"], ["heart", None])
    with pytest.raises(SchemaError, match="1 rows name a node that the hierarchy"):
        hm.mask(table, "guard ill guard=guard")
