"""A token ties a person's rows together: who knows two of them must not find the person."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import PrivacyError, SchemaError
from halfmask.release.pseudonyms import tied_classes

KEY = b"sixteen bytes or more"
SCHEMA = {"table": {"person": "id"}, "columns": {"place": "quasi", "ill": "sensitive"}}


def panel(places):
    """One row per person and place; ``places``: per person where, wave by wave."""
    rows = [(who, place) for who, those in enumerate(places) for place in those]
    ids, where = zip(*rows, strict=True)
    ill = [("flu", "gout", "none")[i % 3] for i in range(len(rows))]
    return hm.read({"id": ids, "place": where, "ill": ill}, schema=SCHEMA)


TWO_ALIKE = [["a", "b"], ["a", "b"], ["b", "b"], ["b", "b"]]
# Every place is shared by three people, but the two places of a person are nobody else's.
ALONE_TOGETHER = [["a", "b"], ["b", "c"], ["c", "a"]]


def test_tokens_leave_where_people_share_all_their_rows():
    release = hm.anonymize(panel(TWO_ALIKE), hm.KAnonymity(2), method="optimal", pseudonym=KEY)
    rows = release.to_arrow().to_pylist()
    waves = Counter(row["id"] for row in rows)
    assert sorted(waves.values()) == [2, 2, 2, 2]
    assert all(len(token) == 32 for token in waves)
    held = defaultdict(list)
    for row in rows:
        held[row["id"]].append(row["place"])
    assert min(Counter(tuple(sorted(p)) for p in held.values()).values()) >= 2
    assert "Whoever has the key" in " ".join(release.notes)
    again = hm.anonymize(panel(TWO_ALIKE), hm.KAnonymity(2), method="optimal", pseudonym=KEY)
    assert {row["id"] for row in again.to_arrow().to_pylist()} == set(waves)


def test_tokens_that_would_single_somebody_out_do_not_leave():
    table = panel(ALONE_TOGETHER)
    free = hm.anonymize(table, hm.KAnonymity(2), method="optimal")
    assert free.to_arrow().column_names == ["place", "ill"]  # each place alone is shared
    with pytest.raises(PrivacyError, match="tie a person's rows together"):
        hm.anonymize(table, hm.KAnonymity(2), method="optimal", pseudonym=KEY)
    with pytest.raises(PrivacyError, match="tie a person's rows together"):
        hm.mask(table, hm.masks.Pseudonym("id", key=KEY), models=[hm.KAnonymity(2)])


def test_who_has_more_rows_is_told_by_that():
    table = panel([["a"], ["a"], ["a", "a"]])
    with pytest.raises(PrivacyError, match="2 rows"):
        hm.anonymize(table, hm.KAnonymity(2), method="optimal", pseudonym=KEY)


def test_tokens_need_a_person_and_a_key():
    rows = hm.read({"place": ["a", "a"]}, schema={"place": "quasi"})
    with pytest.raises(SchemaError, match="person"):
        hm.anonymize(rows, hm.KAnonymity(2), pseudonym=KEY)
    with pytest.raises(hm.errors.ParameterError, match="16 random bytes"):
        hm.anonymize(panel(TWO_ALIKE), hm.KAnonymity(2), pseudonym=b"short")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=14))
def test_people_are_tied_by_all_of_their_rows(rows):
    who, ids = (np.array(column) for column in zip(*rows, strict=True))
    found, count = tied_classes(ids, who)
    held = defaultdict(list)
    for person, one in rows:
        held[person].append(one)
    profiles = {person: tuple(sorted(those)) for person, those in held.items()}
    assert count == len(set(profiles.values()))
    for i, (one, _) in enumerate(rows):
        for j, (other, _) in enumerate(rows):
            assert (found[i] == found[j]) == (profiles[one] == profiles[other])
