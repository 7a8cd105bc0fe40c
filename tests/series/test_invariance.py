"""m-invariant series: random histories against every assignment of values, and the door."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from effort import THOROUGH

import halfmask as hm
from halfmask.release import seal
from halfmask.release.partition import RowPartition
from halfmask.series import invariance

ILLS = "abcd"
SCHEMA = {
    "table": {"person": "id"},
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [2, 4, 8]}},
        "ill": {"role": "sensitive"},
    },
}


def _table(people, schema=SCHEMA, **more):
    """People as id, age and illness."""
    ids, ages, ills = zip(*people, strict=True)
    return hm.read({"id": list(ids), "age": list(ages), "ill": list(ills), **more}, schema)


def _people(rng, first, count):
    ages, ills = rng.integers(0, 16, count), rng.integers(0, len(ILLS), count)
    return [(f"p{first + i}", int(ages[i]), ILLS[ills[i]]) for i in range(count)]


def _history(rng, ledger, m, releases=3):
    """A series of releases of people who come, leave and come back."""
    everybody = _people(rng, 0, 14)
    made = []
    for _ in range(releases):
        there = [one for one in everybody if rng.random() < 0.7] or everybody[:4]
        made.append((there, hm.anonymize(_table(there), hm.MInvariance(m, "ill"), previous=ledger,
                                         counterfeits=5)))  # fmt: skip
    return made


def _possible(history, ledger):
    """Per person, the values in all assignments, to whoever knows everybody's classes too."""
    kept = hm.SeriesLedger.open(ledger)
    people = sorted({one for there, _ in history for one in there})
    hashes = dict(
        zip(kept.hashes([p[0] for p in people]).tolist(), range(len(people)), strict=True)
    )
    groups = set()
    for held in kept.releases:
        for number in set(held.classes.tolist()):
            inside = held.classes == number
            (signature,) = {kept.signatures[s] for s in held.signature[inside].tolist()}
            members = tuple(sorted(hashes[h] for h in held.people[inside].tolist()))
            groups.add((members, tuple(kept.values[v] for v in signature)))
    domains = [set(ILLS)] * len(people)
    for members, values in groups:
        for one in members:
            domains[one] = domains[one] & set(values)
    found = [set() for _ in people]

    def fill(place, chosen):
        if place == len(people):
            for i, value in enumerate(chosen):
                found[i].add(value)
            return
        for value in domains[place]:
            clash = any(
                place in members and any(o < place and chosen[o] == value for o in members)
                for members, _ in groups
            )
            if not clash:
                fill(place + 1, [*chosen, value])

    # Different sets of people who share no class are independent; a person alone is quick.
    fill(0, []) if len(people) <= 9 else _by_swaps(people, groups, domains, found)
    return people, found


def _by_swaps(people, groups, domains, found):
    """Search one assignment for each person and value."""

    def fits(chosen, place, value):
        return all(
            chosen.get(o) != value
            for members, _ in groups if place in members for o in members if o != place
        )  # fmt: skip

    def complete(chosen, left):
        if not left:
            return True
        place = min(left, key=lambda p: sum(fits(chosen, p, v) for v in domains[p]))
        for value in domains[place]:
            if fits(chosen, place, value):
                chosen[place] = value
                if complete(chosen, left - {place}):
                    return True
                del chosen[place]
        return False

    for place in range(len(people)):
        for value in domains[place]:
            if complete({place: value}, set(range(len(people))) - {place}):
                found[place].add(value)


@pytest.mark.parametrize("m", [2, 3])
def test_nobody_is_told_below_m_values_whatever_the_history(tmp_path, m):
    rng = np.random.default_rng(m)
    for turn in range(8 if THOROUGH else 3):
        ledger = tmp_path / f"{turn}.ledger"
        history = _history(rng, ledger, m)
        people, found = _possible(history, ledger)
        truth = {one[0]: one[2] for one in people}
        for one, held in zip(people, found, strict=True):
            assert len(held) >= m
            assert truth[one[0]] in held


def test_published_rows_are_those_of_people_and_counterfeits(tmp_path):
    rng = np.random.default_rng(0)
    for there, release in _history(rng, tmp_path / "s.ledger", 3):
        rows = release.to_arrow().to_pylist()
        assert len(rows) == len(there) + release.counterfeits
        counted = {v: sum(row["ill"] == v for row in rows) for v in ILLS}
        own = {v: sum(one[2] == v for one in there) for v in ILLS}
        assert sum(counted[v] - own[v] for v in ILLS) == release.counterfeits
        assert min(counted[v] - own[v] for v in ILLS) >= 0
        assert release.to_dict()["rows"]["original"] == len(there)
        assert any("counterfeit" in note for note in release.notes)


def test_the_ledger_holds_no_row_and_tells_who_was_where(tmp_path):
    ledger = tmp_path / "s.ledger"
    people = [(f"person-{i}", i, ILLS[i % 4]) for i in range(12)]
    for there in (people, people[1:]):
        hm.anonymize(_table(there), hm.MInvariance(3, "ill"), previous=ledger)
    kept = hm.SeriesLedger.open(ledger)
    assert (kept.holding("person-0"), kept.holding("person-1")) == ([1], [1, 2])
    assert kept.holding("nobody") == []
    assert b"person-" not in ledger.read_bytes()


def test_who_leaves_is_no_difference(tmp_path):
    """The place of somebody who left is taken by the same value."""
    ledger = tmp_path / "s.ledger"
    people = [(f"p{i}", i // 4, ILLS[i % 4]) for i in range(16)]
    first = hm.anonymize(_table(people), hm.MInvariance(4, "ill"), previous=ledger)
    second = hm.anonymize(_table(people[1:]), hm.MInvariance(4, "ill"), previous=ledger)
    assert second.counterfeits == 1
    assert len(second) == len(first)
    found = hm.audit_releases(first, second, schema=hm.Schema.from_dict(SCHEMA))
    assert not [one for one in found.witnesses if one.values == 1]


def test_the_ledger_proves_its_own_releases_and_no_others(tmp_path):
    ledger = tmp_path / "s.ledger"
    people = [(f"p{i}", i, ILLS[i % 4]) for i in range(16)]
    model = hm.MInvariance(3, "ill")
    made = [hm.anonymize(_table(t), model, previous=ledger) for t in (people, people[1:])]
    paths = [tmp_path / "a.csv", tmp_path / "b.parquet"]
    for release, path in zip(made, paths, strict=True):
        release.write(path)
    schema = hm.Schema.from_dict(SCHEMA)
    found = hm.audit_releases(*paths, schema=schema, previous=ledger)
    assert (found.outcome, found.witnesses) == ("nothing", ())
    other = hm.anonymize(_table(people), model, previous=tmp_path / "other.ledger")
    rows = other.to_arrow().slice(1)
    found = hm.audit_releases(made[0], hm.read(rows), schema=schema, previous=ledger)
    assert found.outcome != "nothing"


def test_classes_that_are_whole_stay(tmp_path):
    ledger = tmp_path / "s.ledger"
    rng = np.random.default_rng(5)
    people = _people(rng, 0, 60)
    hm.anonymize(_table(people), hm.MInvariance(2, "ill"), previous=ledger)
    hm.anonymize(
        _table([*people, *_people(rng, 60, 20)]), hm.MInvariance(2, "ill"), previous=ledger
    )
    first, second = hm.SeriesLedger.open(ledger).releases
    both = np.isin(second.people, first.people)
    pairs = set(zip(first.classes.tolist(), second.classes[both].tolist(), strict=True))
    assert len(pairs) == len(set(first.classes.tolist()))


def test_own_demands_hold_over_the_series(tmp_path):
    schema = {**SCHEMA, "policy": {"k": "k_i", "l": "l_i"}}
    ledger = tmp_path / "s.ledger"
    rng = np.random.default_rng(2)
    people = [(f"p{i}", int(rng.integers(0, 16)), ILLS[i % 4]) for i in range(40)]
    for there in (people[:30], people[5:], people):
        numbers = [int(one[0][1:]) for one in there]
        demand = {"k_i": [4 if n % 10 == 0 else 2 for n in numbers],
                  "l_i": [3 if n % 10 == 1 else 2 for n in numbers]}  # fmt: skip
        release = hm.anonymize(
            _table(there, schema, **demand), hm.MInvariance(2, "ill"), previous=ledger,
            on_infeasible="suppress", counterfeits=1,
        )  # fmt: skip
        assert release.demands.kept
        assert release.suppressed <= 8
    held = hm.SeriesLedger.open(ledger)
    wide = held.hashes([f"p{n}" for n in range(0, 40, 10)])
    for one in held.releases:
        at = np.isin(one.people, wide)
        assert all(len(held.signatures[s]) >= 4 for s in one.signature[at].tolist())


def test_a_value_that_changes_is_refused_or_left_out(tmp_path):
    ledger = tmp_path / "s.ledger"
    people = [(f"p{i}", i, "ab"[i % 2]) for i in range(8)] + [("q", 3, "c"), ("r", 4, "d")]
    hm.anonymize(_table(people), hm.MInvariance(2, "ill"), previous=ledger)
    changed = [*people[1:], ("p0", 0, "c")]
    model = hm.MInvariance(2, "ill")
    with pytest.raises(hm.errors.PrivacyError, match="1 people hold a value that is not among"):
        hm.anonymize(_table(changed), model, previous=ledger)
    assert len(hm.SeriesLedger.open(ledger).releases) == 1
    release = hm.anonymize(_table(changed), model, previous=ledger, on_infeasible="suppress",
                           counterfeits=1)  # fmt: skip
    assert release.suppressed == 1


def test_a_larger_m_than_before_is_refused_or_its_people_left_out(tmp_path):
    ledger = tmp_path / "s.ledger"
    people = [(f"p{i}", i, ILLS[i % 4]) for i in range(16)]
    hm.anonymize(_table(people), hm.MInvariance(2, "ill"), previous=ledger)
    before = ledger.read_bytes()
    with pytest.raises(hm.errors.PrivacyError, match=r"fewer than 4 values since .* ask for m = 2"):
        hm.anonymize(_table(people), hm.MInvariance(4, "ill"), previous=ledger)
    with pytest.raises(hm.errors.ParameterError, match="on_infeasible"):
        hm.anonymize(_table(people), hm.MInvariance(2, "ill"), previous=ledger,
                     on_infeasible="drop")  # fmt: skip
    assert ledger.read_bytes() == before
    more = [(f"q{i}", i, ILLS[i % 4]) for i in range(8)]
    wide = hm.anonymize(_table([*people, *more]), hm.MInvariance(4, "ill"), previous=ledger,
                        on_infeasible="suppress")  # fmt: skip
    assert (len(wide), wide.suppressed, wide.verdicts[0].achieved) == (8, 16, 4)


def _label_holds(label, age):
    ends = re.fullmatch(r"(-?\d+)(?:(?:-| to )(-?\d+))?", str(label))
    return label == "*" or int(ends[1]) <= age <= int(ends[2] or ends[1])


@pytest.mark.parametrize("seed", range(25 if THOROUGH else 8))
def test_histories_of_moves_and_corrections_are_as_the_definition_says(tmp_path, seed):
    """People come, leave, come back, move, are corrected inside their signature, demand k and l."""
    rng, ledger, m = np.random.default_rng(seed), tmp_path / "s.ledger", int(seed % 2 + 2)
    schema = {**SCHEMA, "policy": {"k": "k_i", "l": "l_i"}}
    everybody = {f"p{i}": [int(rng.integers(16)), ILLS[rng.integers(4)]] for i in range(30)}
    demand = {who: (int(rng.integers(1, 3)), int(rng.integers(1, 4))) for who in everybody}
    signature, made = {}, 0
    for _ in range(5):
        kept = hm.SeriesLedger.open(ledger)
        there = [who for who in everybody if rng.random() < 0.7]
        for who in there:
            if rng.random() < 0.3:
                everybody[who][0] = int(rng.integers(16))
            if who in signature and rng.random() < 0.3:
                everybody[who][1] = str(rng.choice(sorted(signature[who])))
        table = _table([(who, *everybody[who]) for who in there], schema,
                       k_i=[demand[who][0] for who in there],
                       l_i=[demand[who][1] for who in there])  # fmt: skip
        try:
            release = hm.anonymize(table, hm.MInvariance(m, "ill"), previous=ledger, counterfeits=9,
                                   on_infeasible="suppress")  # fmt: skip
        except hm.errors.PrivacyError:  # too few are left: then nothing is noted either
            assert len(hm.SeriesLedger.open(ledger).releases) == len(kept.releases)
            continue
        made += 1
        kept = hm.SeriesLedger.open(ledger)
        last, rows = kept.releases[-1], release.to_arrow().to_pylist()
        hashes = {int(h): who for h, who in zip(kept.hashes(there), there, strict=True)}
        classes = {}
        for one, sign, number in zip(last.people, last.signature, last.classes, strict=True):
            who, values = hashes[int(one)], {kept.values[v] for v in kept.signatures[sign]}
            assert signature.setdefault(who, values) == values
            assert everybody[who][1] in values
            assert len(values) >= m
            assert any(_label_holds(row["age"], everybody[who][0]) for row in rows)
            classes.setdefault(int(number), ([], values))[0].append(who)
        for people, values in classes.values():
            assert len({everybody[who][1] for who in people}) == len(people) <= len(values)
            assert all(len(people) >= max(demand[who]) for who in people)
        published = sorted(row["ill"] for row in rows)
        assert published == sorted(v for _, values in classes.values() for v in values)
        assert release.counterfeits == len(rows) - len(last.people)
        assert len(there) == len(last.people) + release.suppressed
    assert made > 1


@pytest.fixture
def candidate(tmp_path, monkeypatch):
    """The second candidate of a series."""
    ledger = tmp_path / "s.ledger"
    people = [(f"p{i}", i // 4, ILLS[i % 4]) for i in range(16)]
    hm.anonymize(_table(people), hm.MInvariance(4, "ill"), previous=ledger)
    caught = []
    monkeypatch.setattr(invariance, "seal", caught.append)
    hm.anonymize(_table(people[1:]), hm.MInvariance(4, "ill"), previous=ledger)
    return caught[0]


def test_the_door_refuses_what_breaks_a_signature(candidate):
    given = candidate
    classes, _ = given.counterfeits
    bad = {
        "fewer values": replace(given, counterfeits=(classes[:0], ())),
        "twice": replace(given, counterfeits=(classes, ("b",))),
        "other values": replace(given, counterfeits=(classes, ("new",))),
        "do not match": replace(given, step=given.step[:-1]),
    }
    for words, one in bad.items():
        with pytest.raises(hm.errors.InternalError, match=words):
            seal(one)
    before = given.ledger.file.path.read_bytes()
    assert len(hm.SeriesLedger.open(given.ledger.file.path).releases) == 1
    seal(given)
    assert given.ledger.file.path.read_bytes() != before
    with pytest.raises(hm.errors.LedgerError, match="meanwhile"):
        seal(given)


def test_ledgers_that_do_not_fit_are_refused(tmp_path):
    ledger = tmp_path / "s.ledger"
    model = hm.MInvariance(2, "ill")
    people = [(f"p{i}", i, ILLS[i % 4]) for i in range(8)]
    hm.anonymize(_table(people), model, previous=ledger)
    before = ledger.read_bytes()
    strangers = [(f"q{i}", i, ILLS[i % 4]) for i in range(8)]
    with pytest.raises(hm.errors.InputError, match="Nobody of this table"):
        hm.anonymize(_table(strangers), model, previous=ledger)
    own = {**SCHEMA, "policy": {"k": "k"}}  # nor does it help to know one whom nothing can serve
    known = _table([("p0", 0, "flu"), *strangers], own, k=[1000, *[2] * 8])
    with pytest.raises(hm.errors.InputError, match="Nobody of this table"):
        hm.anonymize(known, model, previous=ledger, on_infeasible="suppress")
    other = {**SCHEMA, "columns": {**SCHEMA["columns"], "sex": {"role": "quasi"}}}
    with pytest.raises(hm.errors.InputError, match="of another table"):
        hm.anonymize(_table(people, other, sex=["f"] * 8), model, previous=ledger)
    with pytest.raises(hm.errors.InputError, match="who is who"):
        hm.anonymize(_table(people, {"columns": {**SCHEMA["columns"], "id": "identifier"}}), model,
                     previous=ledger)  # fmt: skip
    with pytest.raises(hm.errors.InputError, match="--m-invariance COLUMN=M"):
        hm.anonymize(_table(people), hm.KAnonymity(2), previous=ledger)
    assert ledger.read_bytes() == before
    at = before.index(b'"signature"')
    ledger.write_bytes(before[: at + 20] + b"AAAA" + before[at + 24 :])
    with pytest.raises(hm.errors.LedgerError, match="damaged"):
        hm.anonymize(_table(people), model, previous=ledger)


def test_one_release_alone_is_as_the_definition_says():
    table = hm.read(
        {"age": [1, 1, 1, 2, 2], "ill": list("abcab")}, {"age": "quasi", "ill": "sensitive"}
    )
    (two,), (three,) = (hm.check(table, hm.MInvariance(m, "ill")) for m in (2, 3))
    assert (two.holds, two.achieved, three.holds) == (True, 2, False)


def test_no_label_shows_the_value_of_an_outlier(tmp_path):
    people = [(f"p{i}", 20 + i % 20, ILLS[i % 4]) for i in range(200)] + [("x", 97, "a")]
    release = hm.anonymize(_table(people), hm.MInvariance(3, "ill"), previous=tmp_path / "s.ledger")
    labels = set(map(str, release.to_arrow()["age"].to_pylist()))
    assert not any("97" in label for label in labels)
    assert any(int(label.split("-")[-1]) > 97 for label in labels if "-" in label)


def test_the_door_refuses_a_bound_that_one_person_holds(candidate):
    given = candidate
    ages = np.arange(len(given.table))
    schema = {**SCHEMA, "columns": {**SCHEMA["columns"], "age": "quasi"}}
    people = [(f"p{i + 1}", int(age), ILLS[(i + 1) % 4]) for i, age in enumerate(ages)]
    table = _table(people, schema)
    exact = RowPartition.of(table, given.step, {"age": True}, np.ones(len(table), dtype=np.int64))
    with pytest.raises(hm.errors.InternalError, match="show a value that too few"):
        seal(replace(given, table=table, partition=exact))


@pytest.mark.parametrize(
    "model",
    [hm.TCloseness(0.3, "ill"), hm.LDiversity(2, "ill", kind="entropy"), hm.BetaLikeness(1, "ill")],
)
def test_promises_that_no_series_keeps_are_refused_first(tmp_path, model):
    people = [(f"p{i}", i // 4, ILLS[i % 4]) for i in range(16)]
    with pytest.raises(hm.errors.ParameterError, match="a series keeps no other promise"):
        hm.anonymize(_table(people), hm.MInvariance(2, "ill"), model, previous=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_words_say_whose_demand_no_class_can_serve(tmp_path):
    schema = {**SCHEMA, "policy": {"k": "k_i"}}
    people = [(f"p{i}", i // 4, ILLS[i % 4]) for i in range(16)]
    table = _table(people, schema, k_i=[10] + [2] * 15)
    model = hm.MInvariance(2, "ill")
    with pytest.raises(hm.errors.InfeasibleDemandsError, match="1 of 16 people demand more"):
        hm.anonymize(table, model, previous=tmp_path / "s")
    done = hm.anonymize(table, model, previous=tmp_path / "s", on_infeasible="suppress")
    assert done.suppressed == 1
    with pytest.raises(hm.errors.PrivacyError, match="and classes of 10 are asked for"):
        hm.anonymize(_table(people), hm.MInvariance(10, "ill"), previous=tmp_path / "t")
    with pytest.raises(hm.errors.InputError, match="--m-invariance COLUMN=M"):
        hm.anonymize(_table(people), hm.KAnonymity(2), previous=tmp_path / "t")


def test_types_do_not_tell_what_somebody_held_who_is_left_out(tmp_path):
    schema = {
        "table": {"person": "id"}, "policy": {"k": "k_i"},
        "columns": {"id": "identifier", "age": "quasi", "pay": "sensitive"},
    }  # fmt: skip
    lines = [f"{i},{10 + i},{1 + i % 4},2" for i in range(24)]
    told = []
    for odd in ("5", "7.5", "unknown", "2006-02-28"):
        (tmp_path / "in.csv").write_text(
            "\n".join(["id,age,pay,k_i", *lines, f"99,40,{odd},900"]) + "\n"
        )
        ledger = tmp_path / f"{odd}.ledger"
        table = hm.read(tmp_path / "in.csv", schema)
        model = hm.MInvariance(2, "pay")
        made = hm.anonymize(table, model, previous=ledger, on_infeasible="suppress")
        rows = made.to_arrow()
        assert (len(rows), made.suppressed) == (24, 1)
        told.append((str(rows.schema.field("pay").type), made.schema.to_toml()))
        assert hm.SeriesLedger.open(ledger).proves([rows])
    assert told == [("int64", told[0][1])] * 4


def test_who_stands_among_counterfeits_alone_shows_no_value_of_their_own(tmp_path):
    columns = {**SCHEMA["columns"], "job": {"role": "quasi"}}
    schema = {**SCHEMA, "columns": columns}
    people = [(f"p{i}", 20 + i % 5, ILLS[i % 4]) for i in range(40)] + [("x", 97, "a")]
    ledger, model = tmp_path / "s", hm.MInvariance(3, "ill")
    made = []
    for there in (people, [people[0], people[-1]]):
        jobs = ["pilot" if one[0] == "x" else "cook" for one in there]
        made.append(hm.anonymize(_table(there, schema, job=jobs), model, previous=ledger,
                                 counterfeits=5).to_arrow())  # fmt: skip
    for rows in made:
        assert not any("97" in str(label) for label in rows["age"].to_pylist())
        assert "pilot" not in rows["job"].to_pylist()


def test_people_with_several_rows_are_refused_with_their_number(tmp_path):
    columns = {
        "id": ["p1", "p1", "p2", "p2", "p3", None],
        "age": [20, 21, 30, 31, 40, 41],
        "ill": ["flu", "gout", "flu", "gout", "flu", "gout"],
    }
    table = hm.read(columns, SCHEMA)
    ledger = tmp_path / "s.ledger"
    with pytest.raises(hm.errors.InputError, match="2 people have several rows, and 1 rows name"):
        hm.anonymize(table, hm.MInvariance(2, "ill"), previous=ledger)
    assert not ledger.exists()
