"""What parameters of masks mean where people ask or stand out for more."""

from __future__ import annotations

from collections import Counter

import pytest

import halfmask as hm

M = hm.masks


def test_record_swap_says_that_its_share_is_the_least():
    # Nobody shares an age with another person of the area: all 40 stand out, and all move.
    rows = {"area": ["n", "s"] * 20, "age": list(range(40)), "ill": ["x", "y"] * 20}
    people = hm.read(rows, schema={"area": "quasi", "age": "quasi", "ill": "sensitive"})
    release = hm.mask(people, M.RecordSwap("area", share=0.1, k=3, risk="age"))
    facts = release.steps[0]["facts"]
    assert (facts["standing_out_share"], facts["swapped_share"]) == (1.0, 1.0)
    assert any("share is the least that moves" in note for note in release.notes)
    alike = hm.read({**rows, "age": [30] * 40}, schema=people.schema)
    calm = hm.mask(alike, M.RecordSwap("area", share=0.1, k=3, risk="age")).steps[0]["facts"]
    assert calm["standing_out_share"] == 0
    assert 0.1 <= calm["swapped_share"] <= 0.2


def test_local_suppression_takes_the_highest_k_that_anybody_demands():
    # Three of a town and six of another; somebody of the three demands six.
    rows = {"town": ["a"] * 3 + ["b"] * 6, "own": [6] + [2] * 8}
    people = hm.read(
        rows,
        schema={"columns": {"town": "quasi"}, "policy": {"k": "own"}},
    )
    with pytest.raises(hm.errors.UnsatisfiableError) as refused:
        hm.mask(people, M.LocalSuppression(k=3))
    assert "the highest k that anybody demands" in str(refused.value.advice)
    release = hm.mask(people, M.LocalSuppression(k=6))
    assert "not used" in release.steps[0]["facts"]["own_k"]


def test_rows_that_are_nobodys_count_as_one_person_as_in_every_release():
    rows = {"id": ["a", "b", None, None, None], "v": [1, 1, 2, 2, 2]}
    schema = {"table": {"person": "id"}, "columns": {"v": "quasi"}}
    people = hm.read(rows, schema=schema)
    (checked,) = hm.check(people, hm.KAnonymity(2))
    assert (checked.smallest, checked.failing_rows) == (1, 3)
    release = hm.mask(people, hm.masks.Suppress("v", rare=2), models=[])
    assert Counter(release.to_arrow()["v"].to_pylist()) == {1: 2, None: 3}
    assert (release.risk.smallest, release.risk.prosecutor) == (1, 1.0)
    # Nobody's rows cannot be a group of two people without the others.
    release = hm.mask(people, hm.masks.Microaggregate("v", k=2))
    assert release.steps[0]["facts"]["groups"] == 1
    with pytest.raises(hm.HalfmaskError, match="microaggregate: no group of 4 people"):
        hm.mask(people, hm.masks.Microaggregate("v", k=4))


def test_who_stands_out_is_counted_in_people():
    # "x" has three rows alike and is alone all the same.
    rows = {"id": ["x"] * 3 + [f"p{i}" for i in range(20)], "job": ["z"] * 3 + ["a"] * 20}
    rows["town"] = ["t", "t", "t"] + ["t", "u"] * 10
    quasi = dict.fromkeys(("job", "town"), "quasi")
    people = hm.read(rows, schema={"table": {"person": "id"}, "columns": quasi})
    swapped = hm.mask(people, M.RecordSwap("town", share=0, k=2, risk="job")).steps[0]["facts"]
    assert swapped["standing_out_share"] == pytest.approx(1 / 21)
    assert hm.mask(people, M.Massc(k=2, columns="job")).steps[0]["facts"]["strata"] == [20, 0, 1]


def test_nobodys_rows_are_swapped_each_for_itself():
    # As one household of eight they would find no partner, and stay where they stand out.
    rows = {"id": [None] * 8 + [f"p{i}" for i in range(8)], "town": ["t", "u"] * 8}
    rows["job"] = [f"j{i}" for i in range(16)]
    quasi = dict.fromkeys(("job", "town"), "quasi")
    people = hm.read(rows, schema={"table": {"person": "id"}, "columns": quasi})
    facts = hm.mask(people, M.RecordSwap("town", k=2, risk="job")).steps[0]["facts"]
    assert (facts["swapped_share"], facts["left_standing_out"]) == (1.0, 0)


@pytest.mark.parametrize("mask", [M.Anatomy, M.Bucketize])
def test_groups_say_that_they_count_rows_whatever_the_rows(mask):
    for ids in (list("abcd"), list("aacd")):
        rows = {"id": ids, "q": [1, 2, 3, 4], "ill": ["x", "y", "x", "y"]}
        columns = {"q": "quasi", "ill": "sensitive"}
        people = hm.read(rows, schema={"table": {"person": "id"}, "columns": columns})
        (note,) = [one for one in hm.mask(people, mask("ill", l=2)).notes if "counts rows" in one]
        assert note.startswith(mask.name)
