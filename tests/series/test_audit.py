"""What several releases reveal together, against every assignment of values that fits them."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

import halfmask as hm
from halfmask.series.common_leaves import column_leaves

SCHEMA = {"age": "quasi", "ill": "sensitive"}
VALUES = "abc"


def _release(rows):
    labels, ill = zip(*rows, strict=True)
    return hm.read({"age": list(labels), "ill": list(ill)}, SCHEMA)


def _cut(rng):
    """A division of the ages 0 to 3 into ranges."""
    ends = [0, *(n for n in (1, 2, 3) if rng.random() < 0.4), 4]
    return [(a, b - 1) for a, b in itertools.pairwise(ends)]


def _label(ranges, age):
    low, high = next(one for one in ranges if one[0] <= age <= one[1])
    return f"{low}-{high}" if low < high else f"{low}"


class World:
    """People who come and leave once, and releases of them by ranges."""

    def __init__(self, rng, releases):
        people = int(rng.integers(4, 8))
        self.ages = rng.integers(0, 4, people)
        self.ill = rng.integers(0, len(VALUES), people)
        first = rng.integers(0, releases, people) * (rng.random(people) < 0.4)
        last = releases - 1 - rng.integers(0, releases, people) * (rng.random(people) < 0.3)
        self.there = [(first <= t) & (t <= np.maximum(first, last)) for t in range(releases)]
        same = _cut(rng)
        self.cuts = [same if rng.random() < 0.6 else _cut(rng) for _ in range(releases)]

    @property
    def usable(self):
        return all(held.any() for held in self.there)

    def labels(self, t):
        return [_label(self.cuts[t], age) for age in self.ages]

    def releases(self):
        return [
            _release([(self.labels(t)[i], VALUES[self.ill[i]]) for i in np.flatnonzero(held)])
            for t, held in enumerate(self.there)
        ]

    def possible(self, which):
        """Per person, the values in all assignments that fit some releases."""
        people = len(self.ages)
        worlds = np.array(list(itertools.product(range(len(VALUES)), repeat=people)))
        fits = np.ones(len(worlds), dtype=bool)
        for t in which:
            labels = np.array(self.labels(t))
            for label in set(labels[self.there[t]]):
                inside = self.there[t] & (labels == label)
                for value in range(len(VALUES)):
                    number = (self.ill[inside] == value).sum()
                    fits &= (worlds[:, inside] == value).sum(axis=1) == number
        return [set(worlds[fits, i]) for i in range(people)]

    def alone(self):
        """Per person, the fewest values that one release with this person leaves."""
        found = [self.possible([t]) for t in range(len(self.there))]
        return [
            min(len(found[t][i]) for t in range(len(found)) if self.there[t][i])
            for i in range(len(self.ages))
        ]

    def least(self):
        """The fewest values of a class of any release."""
        sizes = []
        for t, held in enumerate(self.there):
            labels = np.array(self.labels(t))
            sizes += [len(set(self.ill[held & (labels == one)])) for one in set(labels[held])]
        return max(2, min(sizes))


@pytest.fixture(scope="module")
def worlds():
    rng = np.random.default_rng(7)
    made = [World(rng, int(rng.integers(2, 4))) for _ in range(180)]
    return [(one, hm.audit_releases(*one.releases())) for one in made if one.usable]


def test_outcomes_are_all_met(worlds):
    assert {found.outcome for _, found in worlds} == {"revealed", "nothing", "not known"}


def test_nothing_means_that_no_assignment_tells_more(worlds):
    proven = [one for one, found in worlds if found.outcome == "nothing"]
    assert len(proven) > 20
    for one in proven:
        together = one.possible(range(len(one.there)))
        for held, alone in zip(together, one.alone(), strict=True):
            assert len(held) >= min(one.least(), alone)


def test_whoever_is_told_further_is_found_or_not_known(worlds):
    told = 0
    for one, found in worlds:
        together = one.possible(range(len(one.there)))
        limit, alone = one.least(), one.alone()
        if any(len(h) < min(limit, a) for h, a in zip(together, alone, strict=True)):
            told += 1
            assert found.outcome != "nothing"
    assert told > 20


def test_arrivals_and_departures_are_real(worlds):
    seen = Counter()
    for one, found in worlds:
        for witness in found.witnesses:
            if witness.kind == "intersection":
                continue
            s, t = (n - 1 for n in witness.releases)
            came, left = one.there[t] & ~one.there[s], one.there[s] & ~one.there[t]
            moved, others = (came, left) if witness.kind == "arrival" else (left, came)
            assert witness.people <= moved.sum()
            if not others.any():  # then what changed is exactly who moved
                held = one.possible([s, t])
                assert min(len(held[i]) for i in np.flatnonzero(moved)) <= witness.values
                seen[witness.kind] += 1
    assert min(seen["arrival"], seen["departure"]) > 5


def test_people_who_are_told_have_as_few_values_in_every_assignment():
    rng = np.random.default_rng(3)
    told = 0
    for _ in range(90):
        one = World(rng, 3)
        one.there = [np.ones(len(one.ages), dtype=bool)] * 3
        table = hm.read({"age": one.ages, "ill": [VALUES[v] for v in one.ill]}, SCHEMA)
        found = hm.audit_releases(*one.releases(), people=table)
        held = one.possible(range(3))
        certain = sum(len(h) == 1 < a for h, a in zip(held, one.alone(), strict=True))
        assert found.certain["ill"] <= certain
        told += found.certain["ill"]
    assert told > 0


def test_one_person_who_arrives_is_an_exact_difference():
    before = [("20-29", v) for v in "abc"] + [("30-39", v) for v in "abd"]
    found = hm.audit_releases(_release(before), _release([*before, ("20-29", "d")]))
    (witness,) = found.witnesses
    assert (witness.kind, witness.people, witness.values) == ("arrival", 1, 1)
    assert found.outcome == "revealed"
    assert "d" not in witness.sentence.split()


def test_a_departure_is_found_between_any_two_of_several():
    rows = [("20-29", v) for v in "abcd"]
    found = hm.audit_releases(*map(_release, (rows, rows, rows[:3])))
    assert {(w.kind, w.releases) for w in found.witnesses} == {
        ("departure", (1, 3)),
        ("departure", (2, 3)),
    }


def test_classes_that_meet_leave_one_value():
    one = _release([("20-29", v) for v in "ab"] + [("30-39", v) for v in "cd"])
    two = _release([("20-34", v) for v in "bc"] + [("35-39", v) for v in "ad"])
    kinds = {(w.kind, w.values) for w in hm.audit_releases(one, two).witnesses}
    assert ("intersection", 1) in kinds


def test_an_intersection_of_three_is_found_for_people():
    triples = ("abc", "abd", "bcd")
    cuts = (("10-39", "40-49"), ("20-49", "10-19"), ("30-59", "10-29"))
    releases = [
        _release([(cut[0], v) for v in held] + [(cut[1], v) for v in "abcd"])
        for held, cut in zip(triples, cuts, strict=True)
    ]
    people = hm.read({"age": [35], "ill": ["b"]}, SCHEMA)
    found = hm.audit_releases(*releases, people=people)
    assert found.certain == {"ill": 1}


def test_whole_groups_may_come():
    rows = [("20-29", v) for v in "abc"]
    more = [*rows, *(("20-29", v) for v in "bcd")]
    assert hm.audit_releases(_release(rows), _release(more)).outcome == "nothing"


def test_rows_are_known_by_all_their_columns():
    """Each column alone could be exchanged; together they say whose row is whose."""
    schema = {"age": "quasi", "ill": "sensitive", "pay": "sensitive"}
    rows = {"age": ["20-29"] * 4, "ill": list("aabb"), "pay": list("xyxy")}
    moved = {"age": ["20-29"] * 4, "ill": list("abab"), "pay": list("xxyy")}
    one, same, other = (
        hm.read(held, schema) for held in (rows, moved, {**rows, "pay": list("xxyy")})
    )
    assert hm.audit_releases(one, same).outcome == "nothing"
    assert hm.audit_releases(one, other).outcome == "not known"


def test_labels_that_cannot_be_read_are_not_known():
    job = {"role": "quasi", "hierarchy": {"tree": {"work": ["a", "b"]}}}
    tree = {"columns": {"job": job, "ill": {"role": "sensitive"}}}
    made = [hm.read({"job": [label] * 2, "ill": ["x", "y"]}) for label in ("work", "toil")]
    found = hm.audit_releases(*made, schema=tree)
    assert found.outcome == "not known"
    assert "job" in found.reasons[0]


def test_words_without_a_hierarchy_are_not_known():
    """Nothing says that one word does not stand for the other."""
    made = [hm.read({"land": [word] * 3, "ill": list("abc")}, {"land": "quasi", "ill": "sensitive"})
            for word in ("fr", "europe")]  # fmt: skip
    assert hm.audit_releases(*made).outcome == "not known"
    assert hm.audit_releases(*made, schema=made[0].schema).outcome == "nothing"
    mixed = [hm.read({"age": [word] * 3, "ill": list("abc")}, SCHEMA) for word in ("20s", "20-29")]
    assert hm.audit_releases(*mixed, schema=mixed[0].schema).outcome == "not known"


@pytest.mark.parametrize(
    ("rule", "labels", "meet"),
    [
        ({"intervals": [10, 20]}, ("20-29", "20-39"), True),
        ({"intervals": [10, 20]}, ("20-29", "30-39"), False),
        ({"mask": 3}, ("35*", "3**"), True),
        ({"mask": 3}, ("35*", "36*"), False),
        ({"mask": 3}, ("35*", "*"), True),
        ({"tree": {"eu": ["fr", "de"], "as": ["jp"]}}, ("fr", "eu"), True),
        ({"tree": {"eu": ["fr", "de"], "as": ["jp"]}}, ("as", "eu"), False),
        ({"dates": ["month", "year"]}, ("2020-05", "2020"), True),
        ({"dates": ["month", "year"]}, ("2020-05", "2021"), False),
        (None, ("[20, 30[", "[30, 40["), False),
        (None, ("[20, 30]", "]29, 40["), True),
        (None, ("a | b", "b | c"), True),
        (None, ("<20", ">=20"), False),
        (None, ("8033*", "8****"), True),
        (None, ("8033*", "8034*"), False),
        (None, ("0033*", "00331"), True),
        (None, ("1964-01-01 to 1998-12-31", "1990-01-01 to 1999-12-31"), True),
        (None, ("1964-01-01 to 1968-12-31", "1969-01-01 to 1999-12-31"), False),
        (None, ("1964-01-01 to 1968-12-31", "1966"), True),
        (None, ("1964-03-01 to 1968-12-31", "1964-02"), False),
        (None, ("a | missing", None), True),
    ],
)
def test_labels_meet_where_they_share_a_leaf(rule, labels, meet):
    column = {"role": "quasi"} | ({} if rule is None else {"hierarchy": rule})
    schema = hm.Schema.from_dict({"columns": {"x": column}})
    found = column_leaves(schema.columns["x"], "x", labels)
    one, two = (found.labels.index(label) for label in labels)
    assert (found.overlaps()[one, two] > 0) == meet


def test_bad_releases_are_refused():
    one = _release([("20-29", v) for v in "ab"])
    other = hm.read({"town": ["x"], "ill": ["a"]}, {"town": "quasi", "ill": "sensitive"})
    with pytest.raises(hm.errors.InputError, match="two or more"):
        hm.audit_releases(one)
    with pytest.raises(hm.errors.InputError, match="Release 2 lacks the column 'age'"):
        hm.audit_releases(one, other)
    strange = _release([("20-29", v) for v in "xyz"])
    assert hm.audit_releases(one, strange).outcome != "nothing"


LABELS = {"born": "quasi", "code": "quasi", "job": "quasi", "ill": "sensitive"}


def _own(rows):
    return hm.read(dict(zip(LABELS, map(list, zip(*rows, strict=True)), strict=True)), LABELS)


def test_dates_and_masks_are_read_without_a_hierarchy():
    """Nobody left: the wider class of the second release holds those of the first."""
    one = [("1964-01-01 to 1968-12-31", "8033*", "*", v) for v in "abc"]
    two = [("1969-01-01 to 1979-12-31", "8034*", "*", v) for v in "abc"]
    wide = [("1964-01-01 to 1979-12-31", "80***", "*", v) for v in "aabbcc"]
    found = hm.audit_releases(_own(one + two), _own(wide))
    assert not found.reasons
    assert found.outcome == "nothing"
    more = hm.audit_releases(_own(one + two), _own([*wide, (*wide[0][:3], "d")]))
    assert [(w.kind, w.people, w.values) for w in more.witnesses] == [("arrival", 1, 1)]


def test_nothing_is_revealed_on_the_ground_of_labels_that_cannot_be_read():
    """A hierarchy that is not given may put cook under craft: nobody came, nobody left."""
    cooks = [("1964", "80331", "cook", v) for v in "abc"]
    others = [("1964", "80331", "smith", v) for v in "abd"]
    craft = [("1964", "80331", "craft", v) for v in "abcab"] + [("1964", "80331", "smith", "d")]
    found = hm.audit_releases(_own(cooks + others), _own(craft))
    assert found.outcome == "not known"
    assert "job" in found.reasons[0]
    came = hm.audit_releases(_own(cooks + others), _own([*craft, (*craft[0][:3], "e")]))
    assert [(w.kind, w.people, w.values) for w in came.witnesses] == [("arrival", 1, 1)]


def test_codes_of_several_lengths_under_masks_are_not_known():
    made = [_own([("1964", code, "*", v) for v in "abc"]) for code in ("80***", "803")]
    assert hm.audit_releases(*made).outcome == "not known"


def test_the_very_same_rows_again_are_one_release():
    rows = [(label, v) for label in ("20-29", "30-34") for v in "aab"]
    found = hm.audit_releases(_release(rows), _release(rows[::-1]))
    assert found.outcome == "nothing"
    assert "count as one" in found.reasons[0]
    assert hm.audit_releases(_release(rows), _release([*rows[1:], ("20-29", "b")])).witnesses


def test_the_very_same_rows_in_classes_that_overlap_are_not_known():
    """Who is 32 left and who is 22 came, so who is 27 went over, and holds the value of both."""
    rows = [("20-29", "a"), ("20-29", "b"), ("25-34", "b"), ("25-34", "c")]
    people = {1: [21, 27, 31, 32], 2: [21, 22, 27, 31]}
    covers = {"20-29": range(20, 30), "25-34": range(25, 35)}
    held = set()
    ages = [21, 22, 27, 31, 32]
    for values in itertools.product("abc", repeat=len(ages)):
        of = dict(zip(ages, values, strict=True))
        if all(
            any(
                all(age in covers[label] and of[age] == v for age, (label, v) in
                    zip(order, rows, strict=True))
                for order in itertools.permutations(there)
            )
            for there in people.values()
        ):  # fmt: skip
            held.add(of[27])
    assert held == {"b"}
    found = hm.audit_releases(_release(rows), _release(rows))
    assert found.outcome == "not known"
    assert "which the rows do not tell" in found.reasons[0]


@pytest.mark.parametrize(
    "rule", [None, {"mask": 3}, {"intervals": [2]}, {"dates": ["month", "year"]}]
)
def test_a_column_that_is_suppressed_throughout_is_read(rule):
    column = {"role": "quasi"} | ({} if rule is None else {"hierarchy": rule})
    schema = {"columns": {"x": column, "ill": {"role": "sensitive"}}}
    made = [hm.read({"x": ["*"] * len(ills), "ill": list(ills)}) for ills in ("aabb", "aabbab")]
    assert hm.audit_releases(*made, schema=schema).outcome == "revealed"
    assert hm.audit_releases(*made, made[0], schema=schema).witnesses
