"""Models as text: every way to write one, and what is wrong with the others."""

from __future__ import annotations

import pytest

import halfmask as hm
from halfmask.errors import InputError
from halfmask.models.options import read_alternatives, read_models, read_numbers

POPULATION = hm.read({"age": [30, 30, 41]}, schema={"age": "quasi"})
WRITTEN = [
    ({"k": 5}, hm.KAnonymity(5)),
    ({"personal_k": True}, hm.PersonalKAnonymity()),
    ({"l": ["disease=3"]}, hm.LDiversity(3, "disease")),
    ({"l": ["disease=2.5:entropy"]}, hm.LDiversity(2.5, "disease", kind="entropy")),
    ({"l": ["a=b=3:recursive:2"]}, hm.LDiversity(3, "a=b", kind="recursive", c=2)),
    ({"t": ["disease=0.2:ordered"]}, hm.TCloseness(0.2, "disease", distance="ordered")),
    ({"personal_l": ["disease"]}, hm.PersonalLDiversity("disease")),
    ({"personal_t": ["disease:ordered"]}, hm.PersonalTCloseness("disease", "ordered")),
    ({"delta_disclosure": ["a=1:ignored"]}, hm.DeltaDisclosure(1, "a", absent="ignored")),
    ({"beta": ["a=2:enhanced"]}, hm.BetaLikeness(2, "a", kind="enhanced")),
    ({"average_risk": 0.1}, hm.AverageRisk(0.1)),
    ({"sample_uniques": 0.0}, hm.SampleUniques(0.0)),
]


@pytest.mark.parametrize(("given", "model"), WRITTEN, ids=lambda value: str(value)[:40])
def test_a_model_is_what_it_says(given, model):
    assert [one.to_dict() for one in read_models(given)] == [model.to_dict()]


def test_several_options_give_several_models_in_order():
    made = read_models({"k": 2, "alpha": ["a=0.5"], "l": ["a=2", "b=2"], "average_risk": 0.2})
    assert [type(one).__name__ for one in made] == [
        "KAnonymity", "AlphaKAnonymity", "LDiversity", "LDiversity", "AverageRisk",
    ]  # fmt: skip


def test_a_population_is_asked_for_only_where_it_is_needed():
    asked = []

    def population():
        asked.append(1)
        return POPULATION

    read_models({"k": 2}, population=population)
    assert asked == []
    made = read_models({"k_map": 3, "delta_presence": "0,0.5"}, population=population)
    assert [type(one).__name__ for one in made] == ["KMap", "DeltaPresence"]
    assert asked == [1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "No promise is named: give --k"),
        ({"l": ["disease"]}, "--l takes COLUMN=NUMBER"),
        ({"l": ["=3"]}, "--l takes COLUMN=NUMBER"),
        ({"t": ["disease=0.2:equal:more"]}, "one of unknown, value"),
        ({"t": ["disease=0.2:equal:value:more"]}, "one of release, original"),
        ({"t": ["disease=0.2:equal:value:release:more"]}, "--t takes COLUMN=NUMBER"),
        ({"beta": ["disease=x"]}, "--beta takes a number"),
        ({"alpha": ["disease=0.5"]}, "--alpha needs --k"),
        ({"delta_presence": "0,0.5"}, "--population FILE"),
        ({"personal_t": ["disease:ordered:more"]}, "--personal-t takes COLUMN"),
        ({"personal_l": [""]}, "No promise is named"),
        ({"delta_disclosure": ["a=1:ignored:x"]}, "one of release, original"),
        ({"beta": ["a=1:basic:original:x"]}, "--beta takes COLUMN=NUMBER"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_written_otherwise_is_explained(given, words):
    with pytest.raises(InputError, match=words):
        read_models(given, mark="--")
    with pytest.raises(InputError) as caught:
        read_models(given)
    assert "--" not in str(caught.value)


def test_bounds_are_two_numbers():
    for wrong in ("0.5", "0,1,2", "a,b"):
        with pytest.raises(InputError, match="delta-presence takes"):
            read_models({"delta_presence": wrong}, population=lambda: POPULATION)


def test_alternatives_are_one_list_per_option_and_column():
    given = {"k": "2, 5", "l": ["a=2,3:entropy", "b=2"], "personal_k": True, "sample_uniques": "0"}
    found = [[str(one.to_dict()) for one in several] for several in read_alternatives(given)]
    wanted = [
        [hm.KAnonymity(2), hm.KAnonymity(5)],
        [hm.LDiversity(2, "a", kind="entropy"), hm.LDiversity(3, "a", kind="entropy")],
        [hm.LDiversity(2, "b")],
        [hm.PersonalKAnonymity()],
        [hm.SampleUniques(0.0)],
    ]
    assert found == [[str(one.to_dict()) for one in several] for several in wanted]
    assert read_alternatives({}) == []


def test_a_number_that_two_models_share_is_tried_with_each_of_the_other():
    (found,) = read_alternatives({"k": "2,5", "alpha": ["a=0.5,0.6"]})
    assert [(one.k, one.alpha) for one in found] == [(2, 0.5), (2, 0.6), (5, 0.5), (5, 0.6)]
    with pytest.raises(InputError, match="alpha for several columns takes one k"):
        read_alternatives({"k": "2,5", "alpha": ["a=0.5", "b=0.5"]})


def test_bounds_that_are_given_several_times_are_alternatives():
    given = {"delta_presence": ["0,0.5", "0,0.8"], "k_map": "2,3"}
    found = read_alternatives(given, population=lambda: POPULATION)
    assert [[type(one).__name__ for one in several] for several in found] == [
        ["KMap", "KMap"], ["DeltaPresence", "DeltaPresence"],
    ]  # fmt: skip
    assert [one.upper for one in found[1]] == [0.5, 0.8]


def test_numbers_need_a_number():
    assert read_numbers("k", "2, 5,") == [2.0, 5.0]
    for wrong in ("", ",", "a", "2;5"):
        with pytest.raises(InputError, match="numbers separated by commas"):
            read_numbers("k", wrong)
