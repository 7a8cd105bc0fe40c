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
from halfmask.table.classes import distinct_classes
from halfmask.table.tuples import Tuples

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


FIVE_AND_ONE = [["a", "b"]] * 5 + [["a", "a"]]


@pytest.mark.parametrize("method", ["optimal", "local", "mondrian", "auto"])
def test_people_whose_rows_nobody_shares_are_left_out_whole(method):
    table = panel(FIVE_AND_ONE)
    release = hm.anonymize(table, hm.KAnonymity(2), method=method, suppression=0.2, pseudonym=KEY)
    rows = release.to_arrow().to_pylist()
    assert release.suppressed == 2
    held = defaultdict(list)
    for row in rows:
        held[row["id"]].append(row["place"])
    assert len(held) == 5
    assert min(Counter(tuple(sorted(p)) for p in held.values()).values()) >= 2
    assert "2 rows were left out with all others of their people" in " ".join(release.notes)


def test_refused_tokens_say_what_share_lets_them_leave():
    table = panel(FIVE_AND_ONE)
    with pytest.raises(PrivacyError, match=r"2 rows of 12 .*\n.*suppression = 0.1667 or more"):
        hm.anonymize(table, hm.KAnonymity(2), method="optimal", suppression=0.1, pseudonym=KEY)
    release = hm.anonymize(
        table, hm.KAnonymity(2), method="optimal", suppression=0.1667, pseudonym=KEY
    )
    assert release.suppressed == 2


def test_tokens_need_a_person_and_a_key():
    rows = hm.read({"place": ["a", "a"]}, schema={"place": "quasi"})
    with pytest.raises(SchemaError, match="person"):
        hm.anonymize(rows, hm.KAnonymity(2), pseudonym=KEY)
    with pytest.raises(hm.errors.ParameterError, match="16 random bytes"):
        hm.anonymize(panel(TWO_ALIKE), hm.KAnonymity(2), pseudonym=b"short")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=14))
def test_people_are_tied_by_all_of_their_rows(rows):
    who, ids = (np.array(column) for column in zip(*rows, strict=True))
    wanted = classes_by_hand(rows)
    found, count = tied_classes(ids, who)
    assert count == len(set(wanted))
    table = hm.read(
        {"id": [f"t{one}" for one in who], "place": [f"p{one}" for one in ids]},
        schema={"table": {"person": "id"}, "columns": {"place": "quasi"}, "release": {"rows": 1}},
    )
    classes, told = distinct_classes(Tuples.of(table), ["place"], tied=True)
    assert len(classes) == count
    for i, one in enumerate(wanted):
        for j, other in enumerate(wanted):
            assert (found[i] == found[j]) == (told[i] == told[j]) == (one == other)
    people = [len({who for (who, _), c in zip(rows, wanted, strict=True) if c == one})
              for one in wanted]  # fmt: skip
    assert classes.people[told].tolist() == people
    seen = hm.assess(table)
    assert seen.smallest == min(people)
    assert seen.unique_rows == people.count(1)
    assert all(one.unique_rows == seen.unique_rows for one in seen.advice)
    assert hm.row_risks(table).people.tolist() == people
    assert hm.check(table, hm.KAnonymity(2))[0].achieved == min(people)


def classes_by_hand(rows):
    """Per row its place, and what its person holds in all."""
    held = defaultdict(list)
    for person, one in rows:
        held[person].append(one)
    return [(one, tuple(sorted(held[person]))) for person, one in rows]


def test_a_value_of_one_row_is_hidden_by_rows_like_it_alone():
    """Who knows both places of a person reads the illness of the first visit: two have flu there.

    Of all rows of these two people together there are three illnesses, of all people in ``a`` two.
    """
    rows = [("A", "a", "flu"), ("A", "b", "gout"), ("B", "a", "flu"), ("B", "b", "none"),
            ("C", "a", "gout"), ("D", "a", "none")]  # fmt: skip
    who, place, ill = zip(*rows, strict=True)
    table = hm.read({"id": who, "place": place, "ill": ill}, schema=SCHEMA)
    promises = (hm.KAnonymity(2), hm.LDiversity(2, "ill"))
    assert hm.anonymize(table, *promises, method="optimal").rows == 6  # without tokens
    with pytest.raises(PrivacyError, match="l-diversity"):
        hm.anonymize(table, *promises, method="optimal", pseudonym=KEY)
    with pytest.raises(PrivacyError, match="l-diversity"):
        hm.mask(table, hm.masks.Pseudonym("id", key=KEY), models=promises)


PLACES = [["a", "b"], ["a", "b"], ["b", "b"], ["b", "b"], ["b", "b"], ["a"], ["a"]]


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
@pytest.mark.parametrize("engine", [None, "duckdb"])
@pytest.mark.parametrize("verb", ["anonymize", "mask"])
def test_verbs_count_a_file_with_tokens_as_the_door_did(name, engine, verb, tmp_path):
    """Each place is of four people or more; of two, both places or the one are all they have."""
    table = panel(PLACES)
    if verb == "mask":
        release = hm.mask(table, hm.masks.Pseudonym("id", key=KEY), models=[hm.KAnonymity(2)])
    else:
        release = hm.anonymize(table, hm.KAnonymity(2), method="optimal", pseudonym=KEY)
    wanted = release.to_dict()["risk"]
    # Classes: a and b of two people who have both, b of three, a of two.
    assert wanted == {
        "smallest": 2, "highest_risk": 0.5, "mean_risk": pytest.approx(4 / 9),
    }  # fmt: skip
    release.write(tmp_path / name)
    held = hm.read(str(tmp_path / name), engine=engine)
    seen = hm.assess(held)
    both = hm.compare(table, held, learn=False, attacks=5)
    for found in (seen, both, hm.compare(table, release, learn=False, attacks=5)):
        assert {key: found.to_dict()[key] for key in wanted} == wanted
    assert both.finding.highest >= 0.5
    (kept,) = hm.check(held)
    assert (kept.achieved, kept.smallest, kept.holds) == (2, 2, True)
    (more,) = hm.check(held, hm.KAnonymity(3))
    assert (more.achieved, more.holds) == (2, False)
    assert hm.row_risks(held).prosecutor.max() == 0.5


def test_a_token_of_households_ties_their_rows(tmp_path):
    """Two of four homes hold somebody in a and somebody in b; nobody else's home does."""
    rows = {
        "who": list("abcdefgh"),
        "home": [1, 1, 2, 2, 3, 3, 4, 4],
        "place": list("ababaaaa"),
    }
    schema = {"table": {"person": "who", "household": "home"}, "columns": {"place": "quasi"}}
    table = hm.read(rows, schema=schema)
    steps = (hm.masks.Pseudonym("home", key=KEY),)
    release = hm.mask(table, *steps, models=[hm.KAnonymity(2)])
    path = tmp_path / "out.csv"
    release.write(path)
    wanted = release.to_dict()["risk"]
    assert wanted["smallest"] == 2  # homes: six people are in a
    assert hm.check(str(path))[0].achieved == 2
    assert hm.assess(str(path)).smallest == 2
    assert hm.compare(table, str(path), learn=False, attacks=5).smallest == 2


def test_a_record_without_a_word_on_tokens_is_not_believed(tmp_path):
    path = tmp_path / "out.csv"
    release = hm.anonymize(panel(PLACES), hm.KAnonymity(2), method="optimal", pseudonym=KEY)
    release.write(path)
    beside = tmp_path / "out.toml"
    lines = [one for one in beside.read_text().splitlines() if not one.startswith("ties")]
    beside.write_text("\n".join(lines))
    assert hm.check(str(path), hm.KAnonymity(3))[0].achieved == 2
    assert hm.assess(str(path)).smallest == 2


def test_a_population_is_not_held_against_tied_rows(tmp_path):
    path = tmp_path / "out.csv"
    hm.anonymize(panel(PLACES), hm.KAnonymity(2), method="optimal", pseudonym=KEY).write(path)
    everybody = hm.read({"place": list("aabb") * 9}, schema={"place": "quasi"})
    for ask in (hm.assess, hm.row_risks):
        with pytest.raises(hm.errors.InputError, match="leave the population out"):
            ask(str(path), population=everybody)
