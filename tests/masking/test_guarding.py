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
    ill = ["flu", "asthma", "ulcer", "colic", "flu", "ulcer", None]
    guard = ["flu", "lung", "flu", None, None, "gut", "flu"]
    release = hm.mask(patients(ill, guard), M.Guard("ill", guard="guard", p=0.7))
    # flu is 2 of 3 rows of lung, so whoever guards it is shown at the level of organs; lung is 3
    # of 6 rows of any, and so is gut.
    labels = ["lung", "any", "gut", "colic", "flu", "any", None]
    assert shown(release) == dict(enumerate(labels))
    tight = hm.mask(patients(ill, guard), M.Guard("ill", guard="guard", p=0.5))
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
    held = Counter(ill)
    guard = [g if g is None or BELOW[g] & set(ill) else None for g in guard]
    table = patients(ill, guard)
    hopeless = [
        g for g in guard if g is not None
        and (sum(held[v] for v in BELOW[g]) > Fraction(str(p)) * len(ill)
             or len(BELOW[g] & set(held)) > Fraction(str(p)) * len(held))
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
        under = BELOW[label]
        part = sum(held[v] for v in under & BELOW[guard[i]])
        assert part <= Fraction(str(p)) * sum(held[v] for v in under)


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
    with pytest.raises(SchemaError, match="1 rows name a node above no value"):
        hm.mask(table, "guard ill guard=guard")
