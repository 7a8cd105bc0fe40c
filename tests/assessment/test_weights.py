"""Sampling weights, against the table of the practice guide and counting in plain Python."""

from __future__ import annotations

from collections import defaultdict
from math import comb

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import InputError, SchemaError
from halfmask.report.page import render_page

QUASI = ("residence", "gender", "education", "labor")
# Benschop, Machingauta and Welch, "Statistical disclosure control: a practice guide", table 4.4.
GUIDE = {
    "residence": ["Urban"] * 4 + ["Rural"] + ["Urban"] * 5,
    "gender": ["F", "F", "F", "M", "F", "M", "F", "M", "F", "F"],
    "education": ["si", "si", "pi", "sc", "sc", "sc", "pc", "ps", "si", "si"],
    "labor": ["E", "E", "N", "E", "U", "E", "N", "U", "N", "N"],
    "weight": [180, 180, 215, 76, 186, 76, 180, 215, 186, 76],
}
RISKS = [0.0054, 0.0054, 0.0251, 0.0126, 0.0282, 0.0126, 0.0290, 0.0251, 0.0074, 0.0074]
SCHEMA = dict.fromkeys(QUASI, "quasi")


def guide(**columns):
    return hm.read(GUIDE | columns, schema=SCHEMA)


def test_the_table_of_the_practice_guide():
    risks = hm.row_risks(guide(), weights="weight")
    assert np.round(risks.individual, 4).tolist() == RISKS
    assert risks.represented.tolist() == [360, 360, 215, 152, 186, 152, 180, 215, 262, 262]
    assert risks.weighted == pytest.approx(1 / risks.represented)
    found = hm.assess(guide(), weights="weight").survey
    assert (found.column, found.population, found.fraction) == ("weight", 1570, 10 / 1570)
    assert found.individual.mean == pytest.approx(0.01582, abs=5e-6)
    assert found.individual.expected == pytest.approx(0.1582, abs=5e-5)
    assert found.individual.highest == risks.individual.max()
    assert {one.limit: one.rows for one in found.individual.thresholds}[0.05] == 0
    assert sum(one.rows for one in found.individual.distribution) == 10
    assert found.plain.highest == pytest.approx(1 / 152)
    assert found.unique_if_alone == pytest.approx((2 / 215 + 1 / 186 + 1 / 180) / 4)


def test_weights_say_how_much_of_the_population_there_is():
    found = hm.assess(guide(), weights="weight")
    assert found.uniqueness.fraction == 10 / 1570
    assert any("weights differ" in note for note in found.notes)
    equal = hm.assess(guide(weight=[157.0] * 10), weights="weight")
    assert equal.survey.equal
    assert not any("weights differ" in note for note in equal.notes)
    # What is stated beside the weights stands for the models.
    assert hm.assess(guide(), weights="weight", fraction=0.001).uniqueness.fraction == 0.001


def test_a_population_that_everybody_stands_for_alone_is_the_table():
    found = hm.assess(guide(weight=[1] * 10), weights="weight")
    assert found.survey.fraction == 1
    assert found.survey.individual.highest == found.highest_risk == 1
    assert found.survey.individual.mean == pytest.approx(found.mean_risk)
    assert found.uniqueness.model == "counted"


def test_the_column_of_weights_tells_nobody_apart():
    names = {name for one in hm.assess(guide(), weights="weight").sets for name in one.columns}
    assert names == set(QUASI)
    declared = hm.read(GUIDE, schema=SCHEMA | {"weight": "quasi"})
    found = hm.assess(declared, weights="weight")
    assert "weight" in {one.name for one in found.columns}


def summed(f, p):
    """The sum over F of P(F | f) / F."""
    return sum(comb(n - 1, f - 1) * p**f * (1 - p) ** (n - f) / n for n in range(f, f + 1200))


surveys = st.lists(
    st.tuples(
        st.sampled_from("abcdefg"), st.sampled_from("xy"), st.sampled_from("uvw"), st.just(0)
    ),
    min_size=1,
    max_size=12,
)


@given(surveys, st.lists(st.sampled_from([1.0, 2.5, 8.0, 19.75]), min_size=7, max_size=7))
@settings(max_examples=examples(40), deadline=None)
def test_people_with_several_rows_stand_for_their_weight_once(rows, each):
    weight = dict(zip("abcdefg", each, strict=True))
    who, one, two, _ = zip(*rows, strict=True)
    table = hm.read(
        {"who": who, "one": one, "two": two, "w": [weight[p] for p in who]},
        schema={"table": {"person": "who"}, "columns": {"one": "quasi", "two": "quasi"}},
    )
    classes = defaultdict(list)
    for place, row in enumerate(rows):
        classes[row[1:3]].append(place)
    risks = hm.row_risks(table, weights="w")
    expected = 0.0
    for places in classes.values():
        people = {who[place] for place in places}
        stood_for = sum(weight[p] for p in people)
        chance = summed(len(people), len(people) / stood_for)
        expected += len(people) * chance
        for place in places:
            assert risks.represented[place] == pytest.approx(stood_for)
            assert risks.individual[place] == pytest.approx(chance, rel=1e-6)
    found = hm.assess(table, weights="w").survey
    assert found.population == pytest.approx(sum(weight[p] for p in set(who)))
    assert found.individual.expected == pytest.approx(expected, rel=1e-6)
    above = sum(risks.individual > 0.33)
    assert {t.limit: t.rows for t in found.individual.thresholds}[0.33] == above


def test_households_are_found_by_the_weights():
    homes = ["a", "a", *"bcdefghi"]
    risks = hm.row_risks(guide(home=homes), weights="weight", household="home")
    alone = risks.individual[0]
    assert risks.household[0] == pytest.approx(1 - (1 - alone) ** 2)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([None, *[7] * 9], r"1 row\(s\) have no weight.*leave these rows out"),
        ([0.25, *[7] * 9], r"1 weight\(s\) are below 1.*multiply"),
        ([-3, -3, *[7] * 8], r"2 weight\(s\) are below 1"),
        ([float("inf"), *[7] * 9], r"1 weight\(s\) are not finite or above 1e\+12.*correct"),
        ([1e308] * 10, r"10 weight\(s\) are not finite or above"),
        (["Canaria"] * 10, "holds text, not weights: name the column"),
        (["7,5"] * 10, "decimal comma"),
        ([True] * 10, "holds bool, not weights"),
    ],
    ids=["missing", "below 1", "negative", "infinite", "huge", "text", "comma", "yes or no"],
)
def test_what_is_no_weight_is_refused(weight, words):
    for verb in (hm.assess, hm.row_risks):
        with pytest.raises(SchemaError, match=words) as told:
            verb(guide(weight=weight), weights="weight")
        assert "Canaria" not in str(told.value)


def test_every_fault_is_told_at_once():
    with pytest.raises(SchemaError) as told:
        hm.assess(guide(weight=[None, 0.5, *[7] * 8]), weights="weight")
    assert len(told.value.faults) == 2


def test_rows_of_one_person_carry_one_weight():
    schema = {"table": {"person": "who"}, "columns": {"age": "quasi"}}
    rows = {"who": [1, 1, 2], "age": [30, 31, 30], "w": [5, 6, 5]}
    with pytest.raises(SchemaError, match=r"of 1 people.*give each person one"):
        hm.assess(hm.read(rows, schema=schema), weights="w")


def test_weights_and_what_is_said_of_the_population_must_fit():
    for verb in (hm.assess, hm.row_risks):
        with pytest.raises(InputError, match=r"\(100\).*correct the population or the fraction"):
            verb(guide(), weights="weight", fraction=0.1)
        with pytest.raises(InputError, match=r"\(10\)"):
            verb(guide(), weights="weight", population=guide())
        with pytest.raises(InputError, match="'nobody'"):
            verb(guide(), weights="nobody")
    rounded = round(10 / 1570, 4)
    assert hm.assess(guide(), weights="weight", fraction=rounded).survey.population == 1570


def test_the_page_says_it_in_words():
    found = hm.assess(guide(), weights="weight")
    page = " ".join(render_page(found.to_dict()).split())
    assert "In the population, by the sampling weights" in page
    assert "stand for 1,570 people" in page
    assert "expected to find 0.2 people (1.6%). Nobody&#39;s chance is above 9.0%" in page
    assert "<summary>individual risk</summary>" in page
    assert "plot-survey" in page
    assert "sampling weights, in the" not in render_page(hm.assess(guide()).to_dict())
    above = hm.assess(guide(), weights="weight", limit=0.0285).to_dict()
    assert "The chance of 1 row is above 2.9%" in render_page(above)


def test_weights_with_zeros_at_the_end_are_numbers_in_a_text_file_too(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,w\n30,10.0\n30,2.50\n41,4.25\n")
    found = hm.assess(hm.read(path, schema={"age": "quasi"}), weights="w")
    assert found.survey.population == pytest.approx(16.75)
