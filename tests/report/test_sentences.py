"""Verdicts and figures as a reader meets them, on documents made by hand."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.assessment.comparison import COMPARED, Comparison, PeopleFound
from halfmask.assessment.measure import list_findings
from halfmask.metrics.estimate import Estimate, exact_estimate, failed_estimate
from halfmask.metrics.risk.differencing import Differencing
from halfmask.metrics.risk.disclosure import Attribution, Disclosure
from halfmask.metrics.risk.inference import Membership
from halfmask.metrics.risk.linkage import Bands, Linkage
from halfmask.report import frontier
from halfmask.report.discrimination import need_lines
from halfmask.report.page import finding, render_page
from halfmask.report.plots import comparison
from halfmask.report.population import agreement, uniqueness_outcome
from halfmask.report.words import (
    assessment_outcome,
    common_notes,
    comparison_outcome,
    comparison_steps,
    criteria_verdicts,
    mark,
    next_steps,
    own_notes,
    role_text,
    setting_lines,
    style,
)
from halfmask.table.columns import ROLES
from halfmask.table.document import plain_value


def criterion(name, outcome, column=None, control=None, notes=()):
    return {
        "name": name, "outcome": outcome, "column": column, "control": control,
        "notes": list(notes), "limit": 0.09,
        "risk": {"high": 0.05 if outcome == "met" else 0.5},
    }  # fmt: skip


def figure(value, low=None, high=None, **more):
    ends = (value, value) if low is None else (low, high)
    plain = {"value": value, "low": ends[0], "high": ends[1], "n": 9, "trusted": True, "reason": ""}
    return plain | more


@pytest.mark.parametrize(
    ("outcome", "word", "shown"),
    [("met", "✓ met", "holds"), ("not met", "✗ not met", "fails"),
     ("undecided", "? undecided", "open")],
)  # fmt: skip
def test_an_outcome_has_its_word_and_its_style(outcome, word, shown):
    one = criterion("linkability", outcome)
    assert (mark(one), style(one)) == (word, shown)


@pytest.mark.parametrize(
    ("one", "two", "worst"),
    [("met", "met", "met"), ("met", "undecided", "undecided"), ("undecided", "met", "undecided"),
     ("undecided", "not met", "not met"), ("not met", "undecided", "not met"),
     ("met", "not met", "not met"), ("not met", "met", "not met")],
)  # fmt: skip
def test_a_verdict_is_the_worst_of_its_attacks(one, two, worst):
    document = {
        "criteria": [
            criterion("singling out", one),
            criterion("singling out, by any column", two),
            criterion("inference", "met", "ill"),
        ]
    }
    by = "by any column" if two == worst != one else ""
    assert criteria_verdicts(document) == [
        {"name": "singling out", "outcome": worst, "by": by},
        {"name": "inference", "outcome": "met", "by": ""},
    ]


def assessed(*outcomes, rows=10, alone=2, smallest=1):
    names = ("singling out", "linkability", "inference")
    criteria = [criterion(n, o) for n, o in zip(names, outcomes, strict=False)]
    return {"rows": rows, "unique_rows": alone, "smallest": smallest, "criteria": criteria}


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        (("met", "met", "met"), "All criteria are met."),
        (("met", "undecided", "met"), "Not every criterion could be decided."),
        (("met", "not met", "undecided"), "the table fails on linkability."),
        (("not met", "not met", "met"), "the table fails on singling out, linkability."),
    ],
)
def test_an_assessment_is_summed_up_by_its_worst(outcomes, said):
    assert assessment_outcome(assessed(*outcomes)).endswith(said)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"rows": 1, "alone": 1}, "The table has one row"),
        ({"alone": 10}, "Every one of the 10 rows"),
        ({"alone": 1}, "1 of 10 rows is the only one"),
        ({"alone": 3}, "3 of 10 rows (30.0%) are the only ones"),
        ({"alone": 0, "smallest": 4}, "No row stands alone: everybody hides among at least 4."),
    ],
)
def test_who_stands_alone_is_counted_in_words(facts, said):
    assert assessment_outcome(assessed("met", **facts)).startswith(said)


def compared(*criteria, **more):
    plain = {
        "criteria": list(criteria), "counting": {"median": 0.125}, "loss": 0.25, "made_up": False,
        "differencing": None, "disclosures": [], "generalized": [], "notes": [],
    }  # fmt: skip
    return plain | more


SAFE = criterion("linkability", "met", control={"n": 9})


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        (("met", "met"), "None of the attacks that were tried gets above the limit."),
        (("met", "undecided"), "No attack surely gets above the limit, but not all could"),
        (("met", "not met"), "The attacks that were tried succeed on linkability."),
        (("not met", "undecided"), "The attacks that were tried succeed on singling out."),
    ],
)
def test_a_comparison_is_summed_up_by_its_worst(outcomes, said):
    both = zip(("singling out", "linkability"), outcomes, strict=True)
    document = compared(*(criterion(name, outcome) for name, outcome in both))
    assert comparison_outcome(document).startswith(said)
    assert comparison_outcome(document).endswith(
        "25.0% of the detail in the known columns is lost. Half of random counts are off by less "
        "than 12.5% (median)."
    )
    assert "detail" not in comparison_outcome(document | {"loss": None})
    assert "detail" not in comparison_outcome(document | {"made_up": True})


def test_what_is_to_be_done_follows_from_what_is_not_met():
    assert comparison_steps(compared(SAFE)) == []
    assert comparison_steps(compared(SAFE | {"outcome": "undecided"})) == []
    (one,) = comparison_steps(compared(SAFE | {"outcome": "not met", "risk": {"high": 0.5}}))
    assert one == "Raise k, or generalize further, to bring linkability below the limit."
    (one,) = comparison_steps(compared(criterion("inference", "not met", "ill", {"n": 9})))
    assert one.startswith("ill can be guessed")
    assert "control" not in one
    (one,) = comparison_steps(
        compared(criterion("singling out, by any column", "not met", None, {"n": 9}))
    )
    assert one.startswith("Rows are unique once sensitive or other columns are known too")
    both = [criterion(f"linkability{by}", "not met", None, {"n": 9}) for by in ("", ", by names")]
    (one,) = comparison_steps(compared(*both))
    assert "to bring linkability and linkability by names below the limit" in one
    (one,) = comparison_steps(compared(SAFE | {"control": None}))
    assert "--control" in one


def test_many_columns_share_a_line_and_several_criteria_are_a_list():
    found = [criterion("inference", "not met", name, {"n": 9}) for name in "abcdefghijkl"]
    (one,) = comparison_steps(compared(*found))
    assert one.startswith("a, b, c, d, e, f, g, h, i, j and 2 more can be guessed from the other")
    assert one.endswith("ask for l-diversity or t-closeness on them.")
    names = ("singling out", "linkability", "linkability, by names")
    (one,) = comparison_steps(compared(*(criterion(n, "not met", None, {"n": 9}) for n in names)))
    assert "to bring singling out, linkability and linkability by names below the limit" in one


def test_what_must_not_leave_is_taken_out_and_no_larger_k_is_asked_for():
    """The attack found nothing: the criterion fails by the column that left."""
    note = "Column 'id' must not leave. Take it out."
    (one,) = comparison_steps(compared(SAFE | {"outcome": "not met"}, notes=[note, "Other."]))
    assert one == note


def test_what_is_lost_or_certain_is_pointed_out():
    (one,) = comparison_steps(compared(SAFE, differencing={"alone": figure(0.125)}))
    assert "12.5% of the people stand alone" in one
    assert comparison_steps(compared(SAFE, differencing={"alone": figure(0.0)})) == []
    lost = [{"name": "age", "loss": 1.0}, {"name": "sex", "loss": 0.5}, {"name": "x", "loss": None}]
    (one,) = comparison_steps(compared(SAFE, generalized=lost))
    assert one.startswith("age: nothing is left of it.")
    certain = [{"after": {"column": "ill", "homogeneity": 0.5}}, {"after": None}]
    (one,) = comparison_steps(compared(SAFE, disclosures=certain))
    assert one.startswith("ill is certain for 50.0% of released rows")
    assert comparison_steps(compared(SAFE, disclosures=certain, made_up=True)) == []


def test_notes_that_all_criteria_share_are_told_once():
    document = {"criteria": [criterion("linkability", "met", notes=["all", "own"]),
                             criterion("inference", "met", notes=["all"])]}  # fmt: skip
    assert common_notes(document) == ["all"]
    assert [own_notes(document, one) for one in document["criteria"]] == [["own"], []]


def test_next_steps_count_who_stays_alone():
    document = {
        "unique_rows": 8,
        "advice": [
            {"column": "age", "unique_rows": 8, "one_level": 3, "removed": 1, "levels": 4},
            {"column": "sex", "unique_rows": 8, "one_level": 5, "removed": 5, "levels": 1},
            {"column": "zip", "unique_rows": 8, "one_level": 8, "removed": 8, "levels": 2},
        ],
        "way": [],
        "special_uniques": {"by_set": [{"columns": ["age", "zip"], "rows": 6},
                                       {"columns": ["sex"], "rows": 1}]},
        "reidentification": {"thresholds": [{"limit": 0.2, "rows": 7}, {"limit": 0.5, "rows": 5}]},
        "disclosures": [{"column": "ill", "homogeneity": 0.25}, {"column": "p", "homogeneity": 0}],
    }  # fmt: skip
    first, second, third, fourth, fifth, last = next_steps(document)
    assert first == "Generalizing age by one level leaves 3 rows alone instead of 8 (5 fewer)."
    assert second == "Removing sex leaves 5 rows alone instead of 8 (3 fewer)."
    assert third == "age, zip: this combination alone singles out 6 rows, more than others."
    assert fourth.startswith("Fewer than five people share the class of 7 rows")
    assert fifth.startswith("ill is certain for 25.0% of the rows")
    assert last.startswith("Anonymize it")


def assessment(*criteria, **more):
    plain = {"unique_rows": 0, "smallest": 5, "advice": [], "way": [], "disclosures": [],
             "special_uniques": {"by_set": []}, "reidentification": {"thresholds": []},
             "criteria": list(criteria)}  # fmt: skip
    return plain | more


def test_a_release_that_fails_is_told_how_large_its_classes_must_be():
    linked = criterion("linkability, by classes", "not met")
    (one,) = next_steps(assessment(linked))
    assert one == (
        "Classes hold 5 people at least: raise k (12 is enough), or generalize further, to bring "
        "linkability by classes below the limit."
    )
    (one,) = next_steps(assessment(criterion("inference, by classes", "not met", "ill")))
    assert one.startswith("ill can be guessed from the quasi-identifiers: ask for l-diversity")
    assert next_steps(assessment(criterion("linkability, by classes", "met"))) == []


def test_many_certain_columns_share_a_line():
    given = [{"column": name, "homogeneity": 0.25 if name == "c" else 0.5} for name in "cab"]
    (one,) = next_steps(assessment(disclosures=given))
    assert one == (
        "Certain for a share of the rows once the quasi-identifiers are known: a (50.0%), "
        "b (50.0%), c (25.0%): ask for l-diversity or t-closeness too."
    )
    (one,) = next_steps(assessment(disclosures=[{"column": "a", "homogeneity": 0.0001}]))
    assert one.startswith("a is certain for under 0.1% of the rows")


def test_a_way_that_helps_nobody_is_no_way():
    steps = [{"column": name, "level": 1, "unique_rows": 100} for name in "abcdefgh"]
    said = next_steps(assessment(unique_rows=100, way=steps))[0]
    assert "they leave 100 of 100 rows alone" in said
    steps[-1] = steps[-1] | {"unique_rows": 40}
    said = next_steps(assessment(unique_rows=100, way=steps))[0]
    assert said.endswith("as the report lists them, to leave 40 rows alone.")


def test_settings_are_told_in_words_and_only_where_they_were_set():
    asked = {"seed": 0, "time_limit": None, "models": [{}], "suppression": 0.05}
    assert setting_lines(asked | {"weights": {"age": 1.0, "sex": 1.0}}) == [
        ("seed", "0"), ("rows that may be left out", "5.0%"),
    ]  # fmt: skip
    divided = {"weights": {"age": 2.0, "sex": 1.0}, "value": 0.30101, "left_out": 0,
               "suppression": 0.0, "must_link": "home"}  # fmt: skip
    assert setting_lines(divided) == [("weights", "age 2, sex 1"), ("must link", "home")]


@pytest.mark.parametrize("role", ROLES)
def test_each_role_is_told_in_words(role):
    assert " " in role_text(role)


def test_needs_are_said_to_be_met_only_where_they_are():
    asked = {"name": "n", "before": 0.5, "rows_before": 9, "rows_after": 8, "reason": "",
             "notes": [], "at_least": 0.25, "at_most": 0.75}  # fmt: skip
    needs = [asked | {"after": 0.5, "met": True}, asked | {"after": 0.1, "met": False},
             asked | {"after": None, "met": None, "at_least": None, "at_most": None}]  # fmt: skip
    lines = need_lines({"needs": needs})
    assert [(one["verdict"], one["style"]) for one in lines] == [
        ("met", "holds"), ("not met", "fails"), ("", "open"),
    ]  # fmt: skip
    assert lines[0]["asked"] == "at least 0.25 and at most 0.75"
    assert (lines[0]["before"], lines[1]["after"], lines[2]["after"]) == (
        "0.5000", "0.1000", "not known",
    )  # fmt: skip
    assert lines[0]["rows"] == "9 → 8"


def estimated(**more):
    plain = {"model": "pitman", "unique": figure(0.05), "span": [0.05, 0.07], "agree": True,
             "bounds": [0.01, 0.6]}  # fmt: skip
    return plain | more


def test_a_guess_about_the_population_is_as_sure_as_it_is():
    doubted = figure(0.05, trusted=False)
    assert uniqueness_outcome(estimated()).startswith("About 5.0% of the population are unique.")
    assert "between 1.0% and 60.0% of it" in uniqueness_outcome(estimated())
    assert "at most 60.0% of it" in uniqueness_outcome(estimated(bounds=[0.0, 0.6]))
    few = uniqueness_outcome(estimated(unique=doubted))
    assert few.startswith("The best guess is 5.0%, on too few people to rely on.")
    assert "do not sign on it" in uniqueness_outcome(estimated(unique=doubted, agree=False))
    counted = estimated(model="counted", bounds=[0.25, 0.25], span=[0.25, 0.25])
    assert uniqueness_outcome(counted) == (
        "The table is the population: 25.0% of the people in it are unique."
    )
    assert agreement(counted) == ""
    alone = estimated(span=[0.05, 0.05])
    assert "confirms it" in agreement(alone)
    assert "nothing confirms it" in agreement(alone | {"agree": False})


def attacked(**more):
    """A comparison of which the attacks alone are known."""
    before = disclosed(1.0, 1.0, 0.5)
    figures = {
        "rows": 10,
        "suppressed": 0,
        "finding": PeopleFound(found=0.1, highest=0.5, uncovered=0.0),
        "disclosures": ((before, disclosed(0.25, 0.5, 0.125)),),
        "linkage": linked(),
        "membership": Membership(
            Estimate(0.6, 0.5, 0.7, 20), exact_estimate(0.1, 20), Attribution(0.2, 0.3, 0.1)
        ),
        "minimality": exact_estimate(0.4, 10),
        "differencing": Differencing(
            2,
            1,
            exact_estimate(0.02, 10),
            exact_estimate(0.01, 10),
            (("ill", exact_estimate(0.03, 10)),),
        ),
    }
    found = Comparison(figures | more, 0.09, ())
    return list_findings([one for one in COMPARED if one.name in figures], found)


def disclosed(homogeneity, background, skewness):
    return Disclosure("ill", homogeneity, background, skewness, 0.0, None, None, None, 0.0, 0.0)


def linked(distance=None):
    bands = Bands(1.0, 0.0, 9, 4, 7, 2, 0, 0)
    found = distance or exact_estimate(0.5, 10)
    near = failed_estimate("why")
    return Linkage(
        found,
        near,
        exact_estimate(0.25, 10),
        near,
        exact_estimate(0.125, 10),
        bands,
        (),
        baseline=0.1,
    )


def figures_of(found):
    lines = plain_value([one for one in found if one.section == "attacks"])
    return {(one["name"], one["meaning"]): finding(one) for one in lines}


def test_every_attack_has_its_own_figure_before_and_after():
    seen = figures_of(attacked())
    assert seen["homogeneity of ill", "rows whose value is certain"] == "100.0% → 25.0%"
    then = "rows whose value is then certain"
    assert seen["background knowledge of ill", then] == "100.0% → 50.0%"
    assert seen["skewness of ill", "largest gain of a value"] == "50.0% → 12.5%"
    assert seen["similarity of ill", "rows whose values mean the same"].startswith("not known")
    right = "rows matched rightly"
    assert seen["record linkage, by the nearest row", right] == "50.0%"
    assert seen["record linkage, in the best matching of all", right] == "25.0%"
    assert seen["record linkage, by where rows agree (Fellegi and Sunter)", right] == "12.5%"
    assert seen["record linkage, with a person who decides", "pairs of rows"] == (
        "9 links, 4 of them right; 7 possible, 2 of them right"
    )
    assert seen["membership", "right answers (50 % is guessing)"] == "60.0% (50.0% to 70.0%)"
    assert seen["copies", "released rows that equal an original one"] == "30.0%"
    assert seen["attribution", "released rows that are left for this one"] == "20.0%"
    assert seen["differencing", "people left alone"] == "1.0%"
    assert seen["differencing", "people in smaller classes than in either release"] == "2.0%"
    assert seen["differencing, ill", "people whose value becomes certain"] == "3.0%"


def test_what_was_not_measured_is_not_said_to_be_nothing():
    nobody = PeopleFound(found=0.1, highest=0.5, uncovered=1.0)
    seen = figures_of(attacked(finding=nobody, differencing=None))
    assert seen["homogeneity of ill", "rows whose value is certain"] == "100.0% → not known"
    assert seen["differencing", ""].startswith("not measured")
    unknown = figures_of(attacked(linkage=linked(failed_estimate("why"))))
    assert [one for key, one in unknown.items() if "link" in key[0]] == ["not known: why"]


def settled(name, highest, loss, *, best=False, epsilon=None, risk=0.1, same_as=None):
    return {"name": name, "highest_risk": highest, "loss": loss, "distance": loss, "risk": risk,
            "best": best, "epsilon": epsilon, "same_as": same_as}  # fmt: skip


def test_a_frontier_recommends_what_keeps_the_limit_and_loses_least():
    points = [
        settled("k = 2", 0.5, 0.1, best=True), settled("k = 5", 0.2, 0.3, best=True),
        settled("k = 5, worse", 0.2, 0.4), settled("k = 12", 1 / 12, 0.6),
        settled("private", 0.01, 0.0, epsilon=1.0), settled("unknown", 0.01, None),
    ]  # fmt: skip
    document = {"points": points, "impossible": ["a"], "undecided": ["b", "c"], "risk": "highest",
                "utility": "loss"}  # fmt: skip
    found = {one["people"]: one["point"] and one["point"]["name"]
             for one in frontier.choices_by_limit(document)}  # fmt: skip
    assert found == {5: "k = 5", 11: "k = 12", 20: None}
    assert frontier.frontier_summary(document) == (
        "6 settings were tried; 2 not dominated: no other has less risk without more loss. "
        "1 more cannot be satisfied. 2 more were not decided within the time limit."
    )
    twice = [settled("a", 0.2, 0.3, best=True), settled("b", 0.2, 0.3, best=True, same_as="a")]
    assert frontier.frontier_summary(document | {"points": twice}).startswith(
        "2 settings were tried and give 1 result; 1 not dominated: no other"
    )
    (one,) = frontier.distinct_results(document | {"points": twice})
    assert (one["name"], one["same"]) == ("a", ["b"])
    nothing = frontier.frontier_summary(document | {"points": []})
    assert nothing.startswith("None of the 3 settings can be satisfied")


@pytest.fixture(scope="module")
def document():
    rows = {"age": [30, 31, 41, 42, 43, 44], "ill": ["flu", "cold", "flu", "gout", "gout", "flu"]}
    tree = {"tree": {"30-39": ["30", "31"], "40-49": ["41", "42", "43", "44"]}}
    schema = {"age": {"role": "quasi", "hierarchy": tree}, "ill": "sensitive"}
    people = hm.read(pa.table(rows), schema=schema)
    release = pa.table(rows | {"age": ["30-39"] * 2 + ["40-49"] * 4})
    return hm.compare(people, hm.read(release), weaker=people, learn=False, attacks=20).to_dict()


def text_of(page):
    page = page[page.index("<body") : page.index('<script type="application/json"')]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


@pytest.mark.parametrize("outcome", ["met", "not met", "undecided"])
def test_a_page_shows_no_outcome_that_the_document_does_not_have(document, outcome):
    criteria = [one | {"outcome": outcome} for one in document["criteria"]]
    page = render_page(document | {"criteria": criteria})
    words = {"met": "✓ met", "not met": "✗ not met", "undecided": "? undecided"}
    styles = {"met": "holds", "not met": "fails", "undecided": "open"}
    for one, word in words.items():
        count = len(criteria) + 3 if one == outcome else 0  # and once for each of the three
        assert page.count(word) == count
        assert page.count(f'<span class="{styles[one]}">') == count


def test_a_page_shows_the_risks_of_both_sides(document):
    text = text_of(render_page(document))
    # Six people alone; then two and four of them share a class.
    assert "smallest class, people 1 → 2" in text
    assert "highest risk (prosecutor) 100.0% → 50.0%" in text
    assert "mean risk (marketer) 100.0% → 33.3%" in text
    assert "20% to 34% 0 4 34% to 50% 0 2 50% to 100% 6 0" in text
    assert "Nowhere does it tell more than the weaker release." in text
    worse = {"attack": "homogeneity", "target": "ill", "keys": ["age"], "rate": 0.5, "weaker": 0.25}
    rates = document["discrimination"] | {"inversions": [worse]}
    text = text_of(render_page(document | {"discrimination": rates}))
    assert "It tells more than the weaker release in 1 case." in text
    assert "homogeneity: ill age 0.5000 0.2500" in text


def test_plots_show_the_risks_of_both_sides(document):
    drawn = comparison(document)["plot-risk"]["data"]["values"]
    assert {(one["risk"], one["table"]): one["rows"] for one in drawn if one["rows"]} == {
        ("50% to 100%", "original"): 6, ("34% to 50%", "release"): 2, ("20% to 34%", "release"): 4,
    }  # fmt: skip


def test_a_control_stands_beside_the_attack_where_there_is_one(document):
    criteria = [one | {"control": figure(0.4321), "baseline": figure(0.1234)}
                for one in document["criteria"]]  # fmt: skip
    text = text_of(render_page(document | {"criteria": criteria}))
    assert text.count("43.2% control 12.3% guessing") == len(criteria)
    alone = [one | {"control": None} for one in criteria]
    text = text_of(render_page(document | {"criteria": alone}))
    assert text.count("12.3% guessing") == len(criteria)
    assert "control" not in text.split("What to do next")[0]
