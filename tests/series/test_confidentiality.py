"""m-confidentiality: the minimality attack is played on the real method, coin by coin.

The attacker knows everybody's quasi-identifiers, the method and its promises, and weighs every
table that may be behind a release by how likely the method makes this release of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from itertools import combinations
from math import comb, prod

import numpy as np
import pytest

import halfmask as hm
from halfmask.anonymize.partition import confidential
from halfmask.errors import HalfmaskError, InputError, InternalError, ParameterError, SchemaError
from halfmask.models import m_confidentiality
from halfmask.release.doors.confidentiality import _chance_of_more
from halfmask.release.partition import RowPartition
from halfmask.release.seal import seal

AGES = [30, 30, 31, 31, 31, 31]


def schema(**more):
    return {
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [10]}},
            "ill": {"role": "sensitive"},
        }
        | more
    }


def people(values, ages=None):
    return hm.read({"age": ages or AGES, "ill": list(values)}, schema())


def shown(release):
    rows = release.to_arrow()
    return sorted(zip(map(str, rows["age"].to_pylist()), rows["ill"].to_pylist(), strict=True))


# The attack of test_minimality.py, on the same six people.


def test_the_attack_on_six_people_fails():
    def published(ill):
        values = ["hiv" if i in ill else f"other {i}" for i in range(6)]
        release = hm.anonymize(people(values), hm.KAnonymity(2), hm.MConfidentiality(2, "ill"))
        return [(age, value == "hiv") for age, value in shown(release)]

    seen = published({0, 1})
    worlds = [set(ill) for ill in combinations(range(6), 2)]
    possible = [ill for ill in worlds if sorted(published(ill)) == sorted(seen)]
    for one in range(6):
        assert Fraction(sum(one in ill for ill in possible), len(possible)) <= Fraction(1, 2)
    assert len(possible) == 15  # nothing is published finer, whoever is ill


# Every coin of every table of a few people.


def outcomes(tree, limits, often):
    """Each division that the method can make, with its chance."""
    found = defaultdict(Fraction)
    waiting = [()]
    while waiting:
        script = waiting.pop()
        asked = []

        def coin(chance, script=script, asked=asked):
            asked.append(chance)
            return script[len(asked) - 1] if len(asked) <= len(script) else False

        ids = confidential.draw_classes(tree, limits, often, coin)
        if len(asked) > len(script):
            waiting += [(*script, True), (*script, False)]
            continue
        chance = prod(c if heads else 1 - c for c, heads in zip(asked, script, strict=True))
        found[tuple(ids.tolist())] += chance
    return found


def worlds(values):
    """All ways to deal values to as many people."""
    if not values:
        yield ()
        return
    for one in sorted(set(values)):
        rest = list(values)
        rest.remove(one)
        for others in worlds(rest):
            yield (one, *others)


def multisets(ids, world):
    parts = defaultdict(Counter)
    for name, value in zip(ids, world, strict=True):
        parts[name][value] += 1
    return tuple(sorted((name, tuple(sorted(held.items()))) for name, held in parts.items()))


def strongest_link(ages, values, m, stop=None):
    """The highest chance of any link, over all releases of all tables; and how many differ."""
    places = np.array(ages, dtype=np.int32).reshape(-1, 1)
    tree = m_confidentiality.grow(places, np.full(len(ages), m))
    limits = m_confidentiality.node_limits(tree, m, max(Counter(values).values()))
    if stop is not None:  # an attacker of a method that never leaves a cut out
        limits = NeverStops(limits.least, limits.cut, limits.most)
    weights = defaultdict(Fraction)
    links = defaultdict(Fraction)
    divisions = set()
    for world in worlds(values):
        codes = np.array(world, dtype=np.int32)
        often = confidential.most_frequent(tree, codes)
        for ids, chance in outcomes(tree, limits, often).items():
            divisions.add(ids)
            seen = (ids, multisets(ids, world))
            weights[seen] += chance
            for one, value in enumerate(world):
                links[seen, one, value] += chance
    return max(links[key] / weights[key[0]] for key in links if weights[key[0]]), len(divisions)


class NeverStops(m_confidentiality.Limits):
    __slots__ = ()

    def stop(self, rows):
        return Fraction(0)


CASES = [
    ([1, 1, 2, 2, 2, 2], [0, 0, 1, 2, 3, 4], 2),
    ([1, 1, 1, 2, 2, 2], [0, 0, 1, 1, 2, 3], 2),
    ([1, 1, 1, 2, 2, 3, 3], [0, 0, 1, 1, 2, 2, 3], 2),
    ([1, 1, 1, 2, 2, 2, 2], [0, 0, 1, 1, 2, 2, 3], 3),
]


@pytest.mark.parametrize(("ages", "values", "m"), CASES)
@pytest.mark.parametrize("stop", [Fraction(1, 8), Fraction(9, 10)])
def test_no_link_is_surer_than_one_in_m(monkeypatch, ages, values, m, stop):
    monkeypatch.setattr(m_confidentiality, "STOP", stop)
    monkeypatch.setattr(m_confidentiality, "_GROWTH", 1.01)
    monkeypatch.setattr(
        m_confidentiality.math, "isqrt", lambda _: 0
    )  # the smallest parts that can be
    link, _ = strongest_link(ages, values, m)
    assert link <= Fraction(1, m)


def test_the_game_has_something_to_find(monkeypatch):
    # Two of six hold a value; only where they are the two of age 1 can the six not be cut. Without
    # a coin the attack is certain. With 0.9 * 4/6 = 0.6, one way of weight 1 and fourteen of 0.6
    # are left; of those that give somebody of age 1 the value, 1 and 4: (1 + 2.4) / (1 + 8.4).
    monkeypatch.setattr(m_confidentiality, "STOP", Fraction(9, 10))
    monkeypatch.setattr(m_confidentiality.math, "isqrt", lambda _: 0)
    ages, values, m = CASES[0]
    surest, _ = strongest_link(ages, values, m, stop=0)
    assert surest == 1
    tree = m_confidentiality.grow(np.array(ages, dtype=np.int32).reshape(-1, 1), np.full(6, 2))
    limits = m_confidentiality.node_limits(tree, m, 2)
    assert limits.cut[0]
    link, divisions = strongest_link(ages, values, m)
    assert divisions == 2
    assert link == Fraction(1, 2)  # of a class of two; of six it is less
    seen = sum(
        chance
        for world in worlds(values)
        if world[0] == 0
        for ids, chance in outcomes(
            tree, limits, confidential.most_frequent(tree, np.array(world, dtype=np.int32))
        ).items()
        if len(set(ids)) == 1
    )
    assert seen / 24 == Fraction(34, 10)  # 24 ways to deal the other values
    every = sum(
        chance
        for world in worlds(values)
        for ids, chance in outcomes(
            tree, limits, confidential.most_frequent(tree, np.array(world, dtype=np.int32))
        ).items()
        if len(set(ids)) == 1
    )
    assert seen / every == Fraction(34, 94)


# Limits, trees and tails.


@pytest.mark.parametrize(("rows", "marked", "drawn"), [(12, 4, 6), (20, 7, 5), (9, 9, 4)])
def test_tails_against_counting(rows, marked, drawn):
    for least in range(1, drawn + 1):
        ways = sum(
            comb(marked, one) * comb(rows - marked, drawn - one)
            for one in range(least, min(marked, drawn) + 1)
            if drawn - one <= rows - marked
        )
        exact = Fraction(ways, comb(rows, drawn))
        assert m_confidentiality._tail(rows, marked, drawn, least) >= float(exact) * (1 - 1e-9)
        assert _chance_of_more(rows, marked, drawn, least - 1) == pytest.approx(float(exact))


def test_the_tree_is_the_same_whatever_people_hold():
    rng = np.random.default_rng(3)
    places = rng.integers(0, 40, (300, 2)).astype(np.int32)
    tree = m_confidentiality.grow(places, np.full(300, 5))
    assert tree.rows[0] == 300
    assert tree.rows.min() >= 5
    leaves = np.flatnonzero(tree.parts[:, 0] < 0)
    assert tree.rows[leaves].sum() == 300
    values = rng.integers(0, 6, 300).astype(np.int32)
    often = confidential.most_frequent(tree, values)
    for node in range(len(tree)):
        inside = (node <= tree.leaf) & (tree.leaf < tree.end[node])
        assert inside.sum() == tree.rows[node]
        assert often[node] == max(Counter(values[inside].tolist()).values())


# The verb.


def large(rows=1200, seed=1):
    rng = np.random.default_rng(seed)
    ages = rng.integers(20, 80, rows).tolist()
    zips = rng.integers(0, 50, rows).tolist()
    ills = [f"ill {v}" for v in rng.integers(0, 12, rows).tolist()]
    return {"age": ages, "zip": zips, "ill": ills}


BOTH = schema(zip={"role": "quasi", "hierarchy": {"intervals": [5, 25]}})


def test_a_release_is_cut_and_says_so():
    release = hm.anonymize(hm.read(large(), BOTH), hm.MConfidentiality(2, "ill"))
    assert release.method == "confidential"
    (verdict,) = release.guarantee.verdicts
    assert (verdict.holds, verdict.required, verdict.achieved) == (True, 2, 2)  # no more is claimed
    assert release.classes.count > 2
    assert release.loss < 0.9
    rows = release.to_arrow()
    held = Counter(zip(rows["age"].to_pylist(), rows["zip"].to_pylist(), strict=True))
    each = Counter(
        zip(rows["age"].to_pylist(), rows["zip"].to_pylist(), rows["ill"].to_pylist(), strict=True)
    )
    assert all(2 * count <= held[key[:2]] for key, count in each.items())
    assert any("without a look at sensitive values" in note for note in release.notes)


def test_people_keep_their_own_k():
    rows = large() | {"own": [40 if i == 7 else None for i in range(1200)]}
    declared = BOTH | {"policy": {"k": "own"}}
    release = hm.anonymize(hm.read(rows, declared), hm.MConfidentiality(2, "ill"))
    assert release.guarantee.demands is not None
    assert release.classes.smallest >= 2


@pytest.mark.parametrize(
    ("models", "options", "kind", "words"),
    [
        ([hm.LDiversity(2, "ill")], {}, ParameterError, "k alone"),
        ([], {"method": "mondrian"}, ParameterError, "confidential"),
        ([], {"metric": "loss"}, ParameterError, "blindly"),
        ([], {"previous": "some.ledger"}, ParameterError, "one release"),
        ([hm.MConfidentiality(3, "ill")], {}, InputError, "once"),
    ],
)
def test_what_would_look_at_values_is_refused(models, options, kind, words):
    with pytest.raises(kind, match=words):
        hm.anonymize(hm.read(large(), BOTH), hm.MConfidentiality(2, "ill"), *models, **options)


def test_the_method_alone_promises_nothing():
    with pytest.raises(ParameterError, match="MConfidentiality"):
        hm.anonymize(hm.read(large(), BOTH), hm.KAnonymity(2), method="confidential")


@pytest.mark.parametrize("verb", [hm.check, lambda table, model: hm.mask(table, [], model)])
def test_rows_do_not_show_how_classes_were_chosen(verb):
    with pytest.raises(HalfmaskError):
        verb(hm.read(large(), BOTH), hm.MConfidentiality(2, "ill"))


def test_a_value_that_too_many_hold_is_refused():
    with pytest.raises(HalfmaskError, match="one class"):
        hm.anonymize(people(["flu"] * 4 + ["gout"] * 2), hm.MConfidentiality(2, "ill"))


def test_missing_values_and_several_rows_are_refused():
    with pytest.raises(SchemaError, match="missing values"):
        hm.anonymize(people(["a", "b", "c", "d", "e", None]), hm.MConfidentiality(2, "ill"))
    declared = schema(who={"role": "identifier"}) | {"table": {"person": "who"}}
    rows = {"age": AGES, "ill": list("abcdef"), "who": [1, 1, 2, 3, 4, 5]}
    with pytest.raises(SchemaError, match="1 people have several rows"):
        hm.anonymize(hm.read(rows, declared), hm.MConfidentiality(2, "ill"))


# The door looks again.


def doctored(monkeypatch, change):
    def changed(candidate):
        return seal(change(candidate))

    monkeypatch.setattr(import_module("halfmask.anonymize.run"), "seal", changed)
    return hm.anonymize(hm.read(large(), BOTH), hm.MConfidentiality(2, "ill"))


def test_the_door_knows_classes_that_blind_cuts_do_not_make(monkeypatch):
    def swap(candidate):
        step = candidate.step.copy()
        one, other = np.flatnonzero(step == step[0])[0], np.flatnonzero(step != step[0])[0]
        step[[one, other]] = step[[other, one]]
        lines = {"age": True, "zip": True}
        return replace(
            candidate,
            step=step,
            recoding=RowPartition.of(candidate.table, step, lines, np.full(1200, 2)),
        )

    with pytest.raises(InternalError, match="blind cuts make"):
        doctored(monkeypatch, swap)


def test_the_door_knows_cuts_that_may_not_be_made(monkeypatch):
    monkeypatch.setattr(
        confidential, "draw_classes",
        lambda tree, *_: np.unique(tree.leaf, return_inverse=True)[1].astype(np.int32),
    )  # fmt: skip
    with pytest.raises(InternalError, match=r"too often|may not be"):
        hm.anonymize(hm.read(large(), BOTH), hm.MConfidentiality(2, "ill"))
