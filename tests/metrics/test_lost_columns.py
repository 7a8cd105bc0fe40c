"""A quasi-identifier that a release lacks counts as suppressed in every row."""

from __future__ import annotations

import pytest

import halfmask as hm

ROLES = {"age": "quasi", "town": "quasi", "ill": "sensitive"}


@pytest.fixture
def people():
    """Twelve people of four ages and two towns."""
    rows = {"age": [20, 30, 40, 50] * 3, "town": ["a", "b"] * 6, "ill": ["x", "y", "z"] * 4}
    return hm.read(rows, schema=ROLES)


def test_a_column_that_is_gone_compares_as_one_of_stars(people):
    gone = hm.mask(people, hm.masks.Suppress("age"), seed=1).to_arrow()
    starred = gone.add_column(0, "age", [["*"] * 12])
    without, with_stars = hm.compare(people, gone), hm.compare(people, starred)
    said = "The release lacks the column 'age': it is taken as suppressed in every row."
    assert said in without.notes
    assert said not in with_stars.notes
    ours, theirs = without.to_dict(), with_stars.to_dict()
    for one in (ours, theirs):
        one["notes"] = [note for note in one["notes"] if note != said]
    assert ours == theirs


def test_a_release_without_any_quasi_identifier_is_refused(people):
    with pytest.raises(hm.errors.SchemaError, match="no quasi-identifier of the original"):
        hm.compare(people, people.arrow.select(["ill"]))
