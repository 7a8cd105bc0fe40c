"""The verbs that assess, compare and weigh up, as a user calls them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from halfmask.assessment import measure
from halfmask.assessment.measure import Finding, Measure, known_figure

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("released")


@pytest.fixture
def three(halfmask, sample, folder):
    """A release of the sample with k = 3."""
    out = folder / "k3.csv"
    if not out.exists():
        made = halfmask("anonymize", sample, "--k", 3, "--suppression", 0.1, "-o", out)
        assert made.code == 0, made.err
    return out


def test_assess_writes_a_page_and_names_the_criteria(halfmask, few, tmp_path):
    page = tmp_path / "report.html"
    outcome = halfmask("assess", few, "--fraction", "0.1", "-o", page)
    assert outcome.code == 0
    assert "singling out" in outcome.out
    assert "What to do next" in outcome.err
    assert len(outcome.out.splitlines()) < 40
    outcome = halfmask("assess", few, "--fraction", "0.1", "-v")
    assert "singling out" in outcome.out
    assert "one level up" in outcome.out
    assert "by chance" in outcome.out
    assert "Pitman" in outcome.out
    assert page.read_text().startswith("<!doctype html>")
    document = tmp_path / "report.json"
    outcome = halfmask("assess", few, "-o", document, "--json")
    assert outcome.json()["verb"] == "assess"
    assert json.loads(document.read_text())["criteria"] == outcome.json()["criteria"]


def test_compare_takes_queries_and_a_control(halfmask, sample, three, tmp_path):
    page = tmp_path / "report.html"
    queries = tmp_path / "queries.sql"
    queries.write_text("SELECT sex, COUNT(*) FROM people GROUP BY sex")
    outcome = halfmask(
        "compare", sample, three, "--queries", queries, "--control", sample, "--no-learn",
        "--attacks", 50, "-o", page,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert "query 1 of the file" in outcome.out
    assert page.exists()


def test_the_short_lines_are_those_of_the_whole_comparison(
    halfmask, sample, three, monkeypatch, tmp_path
):
    one = ("compare", sample, three, "--no-learn", "--attacks", 50)
    page = tmp_path / "report.html"  # a page needs all measures, and the lines stay the same
    whole = halfmask(*one, "-o", page)
    for name in ("published_measures", "pairs_of", "membership", "minimality", "moments"):
        monkeypatch.setattr(f"halfmask.assessment.comparison.{name}", _refuse)
    short = halfmask(*one)
    assert (short.code, short.out) == (0, whole.out)
    assert f"The report is in {page}.\n{short.err}" == whole.err
    assert halfmask(*one, "-o", page).code == 70  # whose measures were taken away


def _refuse(*_: object, **__: object) -> None:
    raise AssertionError("this is shown by no short line")


def test_registered_measures_see_all_others(halfmask, sample, three, monkeypatch):
    def show(one: float, found: Any) -> Iterator[Finding]:
        yield Finding("mine", after=known_figure(one + found.membership.area.n), section="sizes")

    monkeypatch.setitem(measure._ADDED, "compare", [Measure("mine", "?", lambda _: 1.0, show)])
    found = halfmask("compare", sample, three, "--no-learn", "--attacks", 20)
    assert found.code == 0, found.err
    assert "mine" in found.out


def test_needs_and_limits_are_given_as_options(halfmask, sample, three):
    options = ("--no-learn", "--attacks", 20, "--json", "--limit", 0.5)
    found = halfmask("compare", sample, three, "--need", "disease=age,sex", *options).json()
    assert [need["name"] for need in found["needs"]] == ["disease from age, sex"]
    assert found["needs"][0]["after"] <= found["needs"][0]["before"]
    assert found["limit"] == 0.5
    assert halfmask("compare", sample, three, "--need", "disease").code == 1
    assert halfmask("assess", sample, "--limit", 0.3, "--json").json()["limit"] == 0.3
    assert halfmask("assess", sample, "--limit", 2).code == 1
    assert halfmask("compare", sample, three, "--limit", 2).code == 1


def test_frontier_lists_settings_and_writes_a_plot(halfmask, few, tmp_path):
    page = tmp_path / "frontier.html"
    outcome = halfmask(
        "frontier", few, "--k", "2,5", "--l", "disease=2", "--suppression", "0.05", "-o", page,
        "--ignore-demands",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    best = [outcome.out.count(f"; {method}") for method in ("personal", "k-member")]
    assert sum(best) == 2  # what loses least of those that auto tries
    assert "plot-frontier" in page.read_text()
    outcome = halfmask("frontier", few, "--k", "2", "--suppression", "0.1", "--json")
    assert len(outcome.json()["points"]) == 1


def test_frontier_prints_the_same_result_once(halfmask, tmp_path):
    rows = tmp_path / "few.csv"
    rows.write_text("a,s\n" + "1,x\n1,y\n1,x\n2,x\n2,y\n2,y\n" * 2)
    options = ("--quasi", "a", "--sensitive", "s", "--k", "2,3,6,7", "--suppression", "0")
    outcome = halfmask("frontier", rows, *options)
    assert outcome.out.count("; optimal") == 2  # k = 2, 3 and 6 change nothing, k = 7 everything
    assert "k = 6" in outcome.out
    assert "(and 2" in outcome.out
    assert "✓ not dominated" in outcome.out
    assert "the same figures" in outcome.err
    points = halfmask("frontier", rows, *options, "--json").json()["points"]
    assert [one["same_as"] for one in points if one["classes"] == 2] == [
        None, "k = 6; optimal, none suppressed", "k = 6; optimal, none suppressed",
    ]  # fmt: skip
    assert len(points) == 4


def test_frontier_takes_promises_about_a_population(halfmask, tmp_path):
    rows, everybody = tmp_path / "few.csv", tmp_path / "all.csv"
    rows.write_text("a\n1\n1\n2\n2\n")
    everybody.write_text("a\n" + "1\n" * 3 + "2\n" * 6)
    about = ("--quasi", "a", "--population", everybody, "--suppression", "0", "--json")
    found = halfmask("frontier", rows, "--k-map", "3,4", *about)
    assert found.code == 0, found.err
    classes = {one["name"]: one["classes"] for one in found.json()["points"]}
    # Three people of the population have 1: k = 3 keeps both values apart, k = 4 does not.
    assert classes == {"k-map k = 3; optimal, none suppressed": 2,
                       "k-map k = 4; optimal, none suppressed": 1}  # fmt: skip
    bounds = ("--delta-presence", "0,0.7", "--delta-presence", "0,0.5")
    found = halfmask("frontier", rows, *bounds, *about).json()
    # Two of the three with 1 are in the table: above 0.5, so that both values become one.
    assert {one["models"][0]["upper"]: one["classes"] for one in found["points"]} == {
        0.7: 2,
        0.5: 1,
    }


@pytest.mark.parametrize(
    "options",
    [(), ("--k", "two"), ("--l", "disease"), ("--k", "2", "--method", "magic"), ("--k-map", "2"),
     ("--delta-presence", "0.5", "--population", "x.csv"), ("--k", "2", "--draws", "1")],
    ids=["no promise", "no number", "no value", "no method", "no population", "no bounds",
         "one draw"],
)  # fmt: skip
def test_bad_settings_are_the_users_fault(halfmask, few, options):
    assert halfmask("frontier", few, *options).code == 1


def test_no_original_is_written_over(halfmask, sample):
    assert halfmask("assess", sample, "-o", sample).code == 1


def test_compare_counts_by_an_engine_what_it_reads(halfmask, few, tmp_path):
    out = tmp_path / "out.parquet"
    assert halfmask("anonymize", few, "--k", 3, "--method", "mondrian", "-o", out).code == 0
    # Other people's rows take the schema of the original: a copy without one beside it.
    control = tmp_path / "others.csv"
    control.write_bytes(few.read_bytes())
    options = ("--control", control, "--earlier", out, "--no-learn", "--attacks", 20, "--json")
    read = halfmask("compare", few, out, *options)
    assert read.code == 0, read.err
    limits = ("--engine", "duckdb", "--memory-limit", "200MB")
    counted = halfmask("compare", few, out, *options, *limits)
    assert counted.code == 0, counted.err
    for key in ("rows", "rows_released", "loss", "classes_released"):
        assert counted.json()[key] == pytest.approx(read.json()[key])
    assert counted.json()["membership"]["area"]["value"] is not None
    assert any("counted by duckdb" in note for note in counted.json()["notes"])
    refused = halfmask("compare", few, out, "--same-order", *limits)
    assert refused.code == 1
    assert "have no order" in refused.err
    assert halfmask("compare", few, tmp_path / "all.duckdb").code == 1


def test_a_survey_is_weighed(halfmask, tmp_path):
    path = tmp_path / "survey.csv"
    path.write_text("age,job,weight\n30,a,50\n30,a,70.5\n41,b,9\n52,c,2\n")
    roles = ("--quasi", "age,job", "--weights", "weight")
    outcome = halfmask("assess", path, *roles, "--limit", 0.3)
    assert outcome.code == 0, outcome.err
    assert "expected number found" in outcome.out
    assert "stand for 132 people" in outcome.err
    assert "The chance of 1 row is above 30.0%" in outcome.err
    found = halfmask("assess", path, *roles, "--json").json()["survey"]
    counted = halfmask("assess", path, *roles, "--engine", "duckdb", "--json").json()["survey"]
    assert found == counted
    assert found["population"] == 131.5
    risks = halfmask("risks", path, *roles, "--json").json()["risks"]
    assert [one["risk"] for one in risks] == ["prosecutor", "individual", "weighted", "special_dis"]
    assert risks[1]["highest"] == pytest.approx(0.6931, abs=1e-4)  # p = 1/2 alone: log 2
    assert (
        "Rows are above the limit: -o risks.csv writes which" in halfmask("risks", path, *roles).err
    )
    assert "above the limit" not in halfmask("risks", path, *roles, "--limit", 1).err
    refused = halfmask("risks", path, "--quasi", "age", "--weights", "job")
    assert refused.code == 1
    assert "holds text, not weights" in refused.err


def test_compare_shows_the_risks_of_both_sides(halfmask, tmp_path):
    rows, recoded = tmp_path / "people.csv", tmp_path / "recoded.csv"
    rows.write_text("age,ill\n30,flu\n31,cold\n41,flu\n42,gout\n")
    recoded.write_text("age,ill\n30-39,flu\n30-39,cold\n40-49,flu\n40-49,gout\n")
    rows.with_suffix(".toml").write_text(
        'columns.ill = "sensitive"\n[columns.age]\nrole = "quasi"\nhierarchy.intervals = [10]\n'
    )
    outcome = halfmask("compare", rows, recoded, "--no-learn", "--attacks", 20)
    assert outcome.code == 0, outcome.err
    lines = [line.strip("│").split("│") for line in outcome.out.splitlines() if line[0] == "│"]
    shown = {name.strip(): [cell.strip() for cell in figures] for name, *figures in lines}
    # Four people alone become two pairs.
    assert shown["smallest class, people"] == ["1", "2"]
    assert shown["highest risk (prosecutor)"] == ["100.0%", "50.0%"]
    assert shown["mean risk (marketer)"] == ["100.0%", "50.0%"]
    assert shown["classes"] == ["4", "2"]
    assert shown["singling out"][0] == "? undecided"  # four people prove nothing
    # Counted, not sampled: in pairs everybody is linked one time in two, a guess one in four.
    assert shown["linkability"][0] == "✗ not met (by classes)"


def test_several_releases_stand_side_by_side(halfmask, sample, three, tmp_path):
    ten, page, named = (tmp_path / name for name in ("k10.csv", "report.html", "named.html"))
    made = halfmask("anonymize", sample, "--k", 10, "--method", "mondrian", "-o", ten)
    assert made.code == 0, made.err
    options = ("--no-learn", "--attacks", 20)
    both = ("compare", sample, three, ten, *options)
    outcome = halfmask(*both, "--require", "smallest>=3", "-o", page)
    assert outcome.code == 0, outcome.err
    assert "Releases side by side" in outcome.out
    assert "plot-homogeneity" in page.read_text()
    assert "★☆" in page.read_text(encoding="utf-8")  # what each measure is good for
    outcome = halfmask(*both, "--require", "smallest>=10", "--report", named, "--json")
    assert (outcome.code, "plot-homogeneity" in named.read_text()) == (2, True)
    found = outcome.json()
    assert found["releases"] == [str(three), str(ten)]
    assert found["conditions"][0]["met"] == [False, True]
    risks = next(one for one in found["headlines"] if one["name"] == "highest_risk")["after"]
    for path, risk in zip((three, ten), risks, strict=True):
        alone = halfmask("compare", sample, path, *options, "--json").json()
        assert risk["value"] == alone["highest_risk"]
    assert halfmask(*both, "--require", "smallest").code == 1
    outcome = halfmask(*both, "--require", "small>=1")
    assert outcome.code == 1
    assert "; highest_risk; " in outcome.err
    assert halfmask(*both, "--release-table", "t").code == 1
    outcome = halfmask(*both, "--reports", tmp_path / "never.html")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1)
    assert outcome.err.startswith("halfmask: No such option '--reports'")
    assert not (tmp_path / "never.html").exists()


def test_correlations_principal_component_and_attackers_are_named_everywhere(halfmask, tmp_path):
    """Terminal, JSON and page, of one release and of two side by side."""
    numbers = "".join(f"{20 + i},{1000 + 37 * i % 400},{i % 7}\n" for i in range(40))
    (tmp_path / "people.csv").write_text("age,pay,score\n" + numbers)
    roles = "age = 'quasi'\npay = 'quasi'\nscore = 'sensitive'\n"
    (tmp_path / "people.toml").write_text(f"[columns]\n{roles}")
    original, one, two = (tmp_path / name for name in ("people.csv", "one.csv", "two.csv"))
    for k, out in ((2, one), (5, two)):
        made = halfmask("anonymize", original, "--k", k, "--method", "mondrian", "-o", out)
        assert made.code == 0, made.err
    options = ("--no-learn", "--attacks", 20, "--values")
    statistics = ("correlations", "first principal component", "communality")
    boxes = ("black box", "grey box", "white box")
    page = tmp_path / "one.html"
    alone = halfmask("compare", original, one, *options, "-v", "-o", page)
    assert alone.code == 0, alone.err
    text = " ".join(alone.out.split())
    for words in (*statistics, *boxes, "identity: age by age"):
        assert words in text, words
    for words in (*statistics, *boxes, "identity: age by each label of age"):
        assert words in page.read_text(), words
    document = halfmask("compare", original, one, *options, "--json").json()
    told = {found["name"]: found for found in document["findings"]}
    (error,) = [m["absolute_error"] for m in document["moments"] if m["statistic"] == "correlation"]
    assert told["correlations"]["after"]["value"] == error > 0
    attackers = " ".join(found["attacker"] for found in document["findings"])
    assert "black box" in attackers
    assert "grey box" in attackers
    assert {"identity"} <= {found["attack"] for found in document["labels"]}
    page = tmp_path / "both.html"
    beside = halfmask("compare", original, one, two, *options, "-o", page,
                      "--require", "moments.correlation<=1")  # fmt: skip
    assert beside.code == 0, beside.err
    for words in (*statistics, *boxes):
        assert words in page.read_text(), words
    for word in ("correlations", "principal", "communality", "black", "grey", "white"):
        assert word in beside.out, word  # cells of the terminal break between words


def test_one_release_may_be_held_to_conditions(halfmask, sample, three):
    one = ("compare", sample, three, "--no-learn", "--attacks", 20)
    outcome = halfmask(*one, "--require", "smallest>=3", "--values")
    assert outcome.code == 0
    assert "identity: sex by sex" in outcome.out
    outcome = halfmask(*one, "--require", "smallest>=1000", "--json")
    assert outcome.code == 2
    found = outcome.json()
    assert found["format"] == "halfmask.comparison/1"
    assert (found["conditions"][0]["met"], found["met"]) == ([False], False)
