"""A game: plant somebody who comes, leaves or is met twice, release, attack, count."""

from __future__ import annotations

import numpy as np
import pytest

import halfmask as hm

SCHEMA = {
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20, 40]}},
        "zip": {"role": "quasi", "kind": "nominal", "hierarchy": {"mask": 3}},
        "ill": {"role": "sensitive"},
    }
}
ILLS = np.array([f"ill-{i}" for i in range(6)])
MODELS = (hm.KAnonymity(3), hm.LDiversity(3, "ill"))


def _rows(rng, count):
    return [
        (int(rng.integers(20, 60)), f"{rng.integers(100, 140)}", str(rng.choice(ILLS)))
        for _ in range(count)
    ]


def _table(rows):
    age, code, ill = zip(*rows, strict=True)
    return hm.read({"age": list(age), "zip": list(code), "ill": list(ill)}, SCHEMA)


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(11)
    rows = _rows(rng, 240)
    return rng, rows, hm.anonymize(_table(rows), *MODELS, method="optimal")


def _again(world, rows):
    return world[2].recoding.apply(_table(rows), *MODELS, suppression=1.0)


def _kinds(one, two, **more):
    found = hm.audit_releases(one, two, schema=hm.Schema.from_dict(SCHEMA), **more)
    return {(w.kind, w.people, w.values) for w in found.witnesses}, found


def test_everybody_who_comes_or_leaves_alone_is_found(world):
    rng, rows, first = world
    played = 0
    for _ in range(8):
        come = [*rows, *_rows(rng, 1)]
        leave = list(rows)
        del leave[int(rng.integers(len(rows)))]
        for changed, kind in ((come, "arrival"), (leave, "departure")):
            second = _again(world, changed)
            if len(second) != len(changed):
                continue  # a class fell below its promise and was suppressed whole
            played += 1
            assert (kind, 1, 1) in _kinds(first, second)[0]
    assert played >= 10


def test_the_same_people_released_again_reveal_nothing(world):
    _, found = _kinds(world[2], _again(world, world[1]))
    assert found.outcome == "nothing"


def test_intersections_of_other_divisions_are_found(world):
    """Two divisions of the same rows: whom classes of both leave one value is counted."""
    _, rows, _ = world
    table = _table(rows)
    made = [hm.anonymize(table, *MODELS, method=method) for method in ("mondrian", "local")]
    _, found = _kinds(*made, people=table)
    alone = [_possible(one, rows) for one in made]
    certain = sum(len(a & b) == 1 and min(len(a), len(b)) > 1 for a, b in zip(*alone, strict=True))
    assert found.certain["ill"] == certain


def _possible(release, rows):
    """Per person, the values of all released rows whose labels fit."""
    made = release.to_arrow().to_pylist()
    return [
        {one["ill"] for one in made if _fits(str(one["age"]), age) and _begins(one["zip"], code)}
        for age, code, _ in rows
    ]


def _fits(label, age):
    if label == "*":
        return True
    low, _, high = label.partition("-")
    return int(low) <= age <= int(high or low)


def _begins(label, code):
    return str(code).startswith(str(label).rstrip("*"))


def test_compare_no_longer_trusts_what_a_difference_tells(world):
    rng, rows, first = world
    for _ in range(20):
        changed = [*rows, *_rows(rng, 1)]
        second = _again(world, changed)
        if len(second) == len(changed):
            break
    found = hm.compare(_table(changed), second, earlier=first, learn=False, attacks=20)
    assert found.differencing.outcome == "revealed"
    ((column, share),) = found.differencing.disclosed
    assert (column, share.value) == ("ill", 1 / len(changed))
    (criterion,) = [c for c in found.criteria if c.name.endswith("with the earlier release")]
    assert criterion.outcome == "not met"
    assert "came" in criterion.notes[0]
