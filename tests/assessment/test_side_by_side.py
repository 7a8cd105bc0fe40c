"""Several releases of one original: the figures of single comparisons, and conditions on them."""

from __future__ import annotations

import json
import math

import pytest
from tests.assessment.test_compare import original, published

import halfmask as hm
from halfmask.assessment.side_by_side import FigureBound
from halfmask.errors import InputError
from halfmask.report.discrimination import label_tables

AGES = ["young", "young", "old", "old"]
SEXES = ["f", "f", "m", "m"]
ILLS = ["flu", "flu", "cold", "gout"]
NEED = hm.Need("disease", ("sex",), name="by sex", at_least=0.6)


def releases():
    return (
        published(AGES, SEXES, ILLS),
        published(["*"] * 4, ["*"] * 4, ILLS),
        published(AGES[:3], SEXES[:3], ILLS[:3]),
    )


def found(*more, **settings):
    return hm.compare(original(), *releases(), *more, learn=False, **settings)


def line(beside, name):
    return next(one for one in beside.headlines if one.name == name)


def values(beside, name):
    return [one and one.value for one in line(beside, name).after]


def test_each_release_is_compared_as_it_is_alone():
    beside = found(needs=[NEED])
    assert beside.releases == ("release 1", "release 2", "release 3")
    for alone, one in zip(releases(), beside.comparisons, strict=True):
        single = hm.compare(original(), alone, learn=False, needs=[NEED])
        assert one.to_dict() == single.to_dict()


def test_figures_are_those_that_can_be_counted_by_hand():
    beside = found(needs=[NEED])
    assert values(beside, "rows_released") == [4, 4, 3]
    assert line(beside, "rows_released").before == 4
    assert values(beside, "smallest") == [2, 4, 1]
    assert values(beside, "highest_risk") == [1 / 2, 1 / 4, 1]
    assert line(beside, "highest_risk").before == 1
    # One level up of four values is 1/3, of everything 1: the roots of 4/3 * 1 and of 2 * 2.
    assert values(beside, "loss")[:2] == pytest.approx([(4 / 3) ** 0.5 - 1, 1])
    # H(disease) = 1.5 bits. Classes of two leave one bit in half of the rows: 1 - 0.5 / 1.5.
    told = values(beside, "discrimination.homogeneity.disease")
    assert told == pytest.approx([2 / 3, 0, 1])
    assert values(beside, "discrimination.background.disease") == pytest.approx([1 / 3, 1, 0])
    # Ages: two bits, of which a label of two leaves one.
    assert values(beside, "discrimination.identity.age")[:2] == pytest.approx([1 / 2, 0])
    assert values(beside, "needs.by sex") == pytest.approx([2 / 3, 0, 1])


def test_bounds_of_needs_and_stated_conditions_are_judged_per_release():
    beside = found(needs=[NEED]).require(
        "highest_risk<=0.5", "discrimination.homogeneity.disease <= 0.5", "rows_released>=4"
    )
    judged = {one.condition: one.met for one in beside.conditions}
    assert judged == {
        "needs.by sex>=0.6": (True, False, True),
        "highest_risk<=0.5": (True, True, False),
        "discrimination.homogeneity.disease<=0.5": (False, True, False),
        "rows_released>=4": (True, True, False),
    }
    assert not beside.met
    assert found().met  # nothing is asked
    assert found().require("smallest>=1").met


def test_conditions_that_were_required_before_stay():
    first = found(needs=[NEED]).require("rows_released>=4")
    both = first.require("smallest>=1").require("rows_released>=4")
    assert [one.condition for one in both.conditions] == [
        "needs.by sex>=0.6", "rows_released>=4", "smallest>=1",
    ]  # fmt: skip
    assert not found().require("rows_released>=4").require("smallest>=1").met


@pytest.mark.parametrize("text", ["x>=1<=2", "loss >= 0.1 <= 0.2", "loss<=0.2>=.1", "a<=1<=2"])
def test_a_condition_states_one_bound(text):
    with pytest.raises(InputError, match="states two bounds"):
        FigureBound.of(text)


def test_what_is_not_known_keeps_no_bound():
    strange = published(["a", "b", "c", "d"], SEXES, ILLS)
    beside = hm.compare(original(), strange, releases()[0], learn=False)
    assert line(beside, "loss").after[0] is None
    judged = beside.require("loss<=1", "discrimination.identity.age<=1").conditions
    assert [one.met for one in judged] == [(False, True), (False, True)]


def test_the_whole_interval_must_keep_a_bound():
    beside = found(attacks=4)
    risk = line(beside, "criteria.linkability").after[0]
    assert risk.low < risk.high
    middle = (risk.value + risk.high) / 2
    (judged,) = beside.require(f"criteria.linkability<={middle}").conditions
    assert not judged.met[0]


@pytest.mark.parametrize("text", ["loss", "loss<0.1", "<=0.1", "loss<=much", "loss<=nan", "a<=inf"])
def test_a_condition_that_cannot_be_read_is_refused(text):
    with pytest.raises(InputError, match="cannot be read: write a figure"):
        FigureBound.of(text)


def test_a_condition_on_no_figure_lists_the_figures():
    with pytest.raises(InputError, match=r"No figure is called 'los'.*; highest_risk; .*; loss; "):
        found().require("los<=1")


def test_a_name_may_hold_a_sign():
    assert FigureBound.of("needs.a<=b>=0.5") == FigureBound("needs.a<=b", ">=", 0.5)


def test_labels_of_several_releases_stand_in_one_table(tmp_path):
    beside = found(values=True)
    tables = {
        (one["attack"], one["target"], one["column"]): one
        for one in label_tables([each.to_dict() for each in beside.comparisons])
    }
    ages = {line["label"]: line for line in tables["homogeneity", "disease", "age"]["lines"]}
    # Labels of the first release, of the second, and of the third, which lacks a row: H = 1.5 and
    # 0.918 bits. In "old" of the first are cold and gout: 1 - 2/4 * 1 / 1.5.
    assert ages["young"]["rates"] == ["1", None, "1"]
    assert ages["old"]["rates"] == ["0.6667", None, "1"]
    assert ages["*"]["rates"] == [None, "0", None]
    assert ages["old"]["rows"] == [2, None, 1]
    beside.report(tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text()
    assert "homogeneity: disease by each label of age" in page
    found().report(tmp_path / "none.html")
    assert "by each label" not in (tmp_path / "none.html").read_text()


def test_the_document_and_the_page_hold_the_same(tmp_path):
    beside = found(needs=[NEED])
    beside.report(tmp_path / "out.json")
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["format"] == "halfmask.side_by_side/1"
    assert document["met"] is False
    assert len(document["comparisons"]) == 3
    rates = {one["name"]: one for one in document["headlines"]}
    told = rates["discrimination.homogeneity.disease"]["after"]
    assert math.isclose(told[0]["value"], 2 / 3)
    beside.report(tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text()
    said = "release 1, release 3 meet the condition"
    for words in (said, "plot-identity", "plot-homogeneity", "✗ not met"):
        assert words in page
    assert "release 3" in beside._repr_html_()
