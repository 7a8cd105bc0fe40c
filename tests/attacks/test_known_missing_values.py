"""Somebody who reads a class with one known value, and missing ones beside it, knows the value."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pytest

import halfmask as hm
from halfmask.errors import InternalError, UnsatisfiableError
from halfmask.models.l_diversity import LDiversity
from halfmask.models.options import read_models

ROWS = 120


def people(**policy):
    """Every second value is missing; who is young has one illness only, if any."""
    random = np.random.default_rng(11)
    ages = random.integers(20, 60, ROWS)
    drawn = random.choice(["flu", "cancer", "asthma"], ROWS)
    ill = [
        None if place % 2 else "flu" if age < 35 else str(illness)
        for place, (age, illness) in enumerate(zip(ages.tolist(), drawn, strict=True))
    ]
    columns = {
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
        "disease": "sensitive",
    }
    data = {"age": ages, "disease": ill}
    if policy:
        data["l_i"] = [2] * ROWS
    return hm.read(data, schema={"policy": policy, "columns": columns})


def fewest_known(release):
    """The fewest known values that a reader finds behind one published age."""
    found = defaultdict(set)
    for row in release.to_arrow().to_pylist():
        found[row["age"]] |= {row["disease"]} - {None}
    return min(map(len, found.values()))


@pytest.mark.parametrize("method", ["optimal", "local", "mondrian", "k-member", "mdav"])
def test_every_class_of_a_release_holds_known_values(method):
    release = hm.anonymize(people(), hm.KAnonymity(2), hm.LDiversity(2, "disease"), method=method)
    assert fewest_known(release) >= 2


@pytest.mark.parametrize("method", ["optimal", "local", "mondrian", "personal"])
def test_so_does_the_class_of_whoever_demands_it(method):
    release = hm.anonymize(people(l="l_i"), hm.KAnonymity(2), method=method)
    assert fewest_known(release) >= 2


def test_the_controller_may_count_missing_values():
    table = people()
    promise = hm.LDiversity(2, "disease", missing="value")
    release = hm.anonymize(table, hm.KAnonymity(2), promise, method="optimal")
    assert fewest_known(release) == 1
    assert "count as a value" in release.verdicts[1].note
    (read,) = read_models({"l": ["disease=2:value"]})
    assert read == promise


@dataclass(frozen=True, slots=True)
class Careless(LDiversity):
    """A promise whose own check lets everything through."""

    def passes(self, classes):
        return np.ones(len(classes), dtype=bool)


def test_the_door_counts_known_values_by_itself():
    with pytest.raises(InternalError, match="fewer known values"):
        hm.anonymize(people(), hm.KAnonymity(2), Careless(2, "disease"), method="optimal")


def test_a_column_of_missing_values_is_refused():
    table = hm.read(
        {"age": [1, 1, 2, 2], "disease": ["flu", None, None, None]},
        schema={"age": "quasi", "disease": "sensitive"},
    )
    with pytest.raises(UnsatisfiableError):
        hm.anonymize(table, hm.KAnonymity(2), hm.LDiversity(2, "disease"), method="optimal")
