"""The pages of assessments, comparisons and frontiers, as text and in a real browser."""

from __future__ import annotations

import itertools
import json
import re

import pyarrow as pa
import pytest
from drawing import assert_drawn_quietly
from effort import THOROUGH

import halfmask as hm
from halfmask.assessment.discriminate import discriminate
from halfmask.report.discrimination import exact_rate_text, rate_sentence
from halfmask.report.page import estimate_text, render_page
from halfmask.report.words import TERMS

HOSTILE = "</script><script>alert(1)</script><b>&\"'"


@pytest.fixture(scope="module")
def pages():
    rows = {
        HOSTILE: [30, 30, 41, 42, 43, 43],
        "sex": ["f", "m", "f", "m", "f", "f"],
        "disease": ["flu", "cold", "flu", "gout", "gout", "flu"],
    }
    schema = {HOSTILE: "quasi", "sex": "quasi", "disease": "sensitive"}
    people = hm.read(pa.table(rows), schema=schema)
    release = hm.anonymize(people, hm.KAnonymity(2), method="optimal")
    documents = {
        "assessment": hm.assess(people, fraction=0.5),
        "survey": hm.assess(people, weights=HOSTILE),
        "comparison": hm.compare(people, release, learn=False),
        "frontier": hm.frontier(people, [hm.KAnonymity(2), hm.KAnonymity(3)]),
        "rate": discriminate(people, "disease", [HOSTILE], values=True, permutations=2),
        "sets": discriminate(people, "disease", None, permutations=2),
    }
    return {name: render_page(one.to_dict()) for name, one in documents.items()}


@pytest.mark.parametrize("name", ["assessment", "survey", "comparison", "frontier", "rate", "sets"])
def test_names_cannot_break_out(pages, name):
    assert "<script>alert(1)" not in pages[name]
    assert "<b>&" not in pages[name]


def test_definitions_are_one_click_away(pages):
    for word in ("prosecutor", "singling out", "special unique"):
        assert f"<summary>{word}</summary>" in pages["assessment"]
        assert TERMS[word].split(".")[0][:40] in pages["assessment"]
    for word in ("sampling weight", "individual risk", "DIS-SUDA"):
        assert f"<summary>{word}</summary>" in pages["survey"]
    for word in ("discrimination rate", "identity", "information loss", "semantic partition"):
        assert f"<summary>{word}</summary>" in pages["comparison"]
    for name in ("rate", "sets"):
        assert "<summary>by chance</summary>" in pages[name]


def test_rates_are_said_in_a_sentence_and_never_quite_0_or_1():
    one = {"keys": ["age", "sex"], "target": "ill", "kind": "partial", "inflation": None}
    assert rate_sentence(one) == "Who knows age and sex of a person knows ill of some for certain."
    doubted = {"adjusted": {"trusted": False, "value": 0.1}}
    assert rate_sentence(one | {"inflation": doubted}).endswith(
        "would give such small groups as much."
    )
    figures = [0.0, 1e-5, 0.25, 0.99999, 1.0, None, -0.0281]
    said = ["0", "under 0.0001", "0.2500", "over 0.9999", "1", "not known", "-0.0281"]
    assert [exact_rate_text(value) for value in figures] == said


def test_an_estimate_that_failed_says_why():
    bad = {"value": None, "low": None, "high": None, "n": 0, "trusted": False, "reason": "why"}
    assert estimate_text(bad) == "not known: why"
    good = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 9, "trusted": True, "reason": ""}
    assert estimate_text(good) == "50.0% (40.0% to 60.0%)"
    doubt = good | {"trusted": False, "reason": "few rows"}
    assert "not to be relied on: few rows" in estimate_text(doubt)
    assert estimate_text(None) == "not measured"


@pytest.mark.parametrize("name", ["assessment", "comparison", "frontier"])
def test_the_page_draws_its_plots_and_is_quiet(browser, pages, tmp_path, name):
    path = tmp_path / "page.html"
    path.write_text(pages[name], encoding="utf-8")
    assert_drawn_quietly(browser, path)


ODD = {
    "no sensitive column": (
        {"age": [30, 31, 31], "sex": list("fmm")},
        {"age": "quasi", "sex": "quasi"},
    ),
    "one row": ({"age": [30], "ill": ["flu"]}, {"age": "quasi", "ill": "sensitive"}),
    "all rows alike": ({"age": [30] * 9, "ill": ["flu"] * 9}, {"age": "quasi", "ill": "sensitive"}),
    "missing values": (
        {"age": [30, None, None, 41], "ill": ["flu", None, "flu", None]},
        {"age": "quasi", "ill": "sensitive"},
    ),
    "twenty-five columns": (
        {f"column {i}": [j % (2 + i) for j in range(40)] for i in range(25)},
        {f"column {i}": "quasi" for i in range(25)},
    ),
    "long names": (
        {"long_name_without_a_space_" * 5: [1, 2, 3, 3], "b " * 60: list("xyyx")},
        {"long_name_without_a_space_" * 5: "quasi", "b " * 60: "sensitive"},
    ),
}


def odd(name):
    rows, schema = ODD[name]
    return hm.read(pa.table(rows), schema=schema)


@pytest.fixture(scope="module")
def odd_pages():
    out = {f"assessment, {name}": hm.assess(odd(name), fraction=0.1) for name in ODD}
    out |= {
        f"comparison, {name}": hm.compare(
            odd(name), hm.anonymize(odd(name), hm.KAnonymity(2), method="optimal"), learn=False
        )
        for name in ("all rows alike", "missing values", "long names")
    }
    return {name: render_page(one.to_dict()) for name, one in out.items()}


def test_tables_have_captions_and_heads_and_headings_are_in_order(pages, odd_pages):
    for name in ("assessment", "comparison", "frontier", "rate", "sets"):
        for page in (pages[name], *(p for key, p in odd_pages.items() if key.startswith(name))):
            body = page[: page.index('<script type="application/json"')]
            tables = re.findall(r"<table.*?</table>", body, re.S)
            assert tables
            assert all("<caption>" in table for table in tables)
            assert not re.search(r"<th(?! scope)[ >]", "".join(tables))
            levels = [int(level) for level in re.findall(r"<h([1-6])", body)]
            assert levels[0] == 1
            assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


def test_every_plot_has_its_place_and_its_words(pages, odd_pages):
    for page in (pages["assessment"], pages["comparison"], *odd_pages.values()):
        drawn = json.loads(re.search(r'id="plots">(.*?)</script>', page, re.S).group(1))
        places = dict(re.findall(r'id="(plot-[a-z]+)" role="img" aria-label="([^"]+)"', page))
        assert drawn.keys() == places.keys()
        assert all(len(words) > 20 for words in places.values())


def test_the_page_says_nothing_that_the_document_does_not():
    from halfmask.report.words import count_text, percent_text, score_text

    rows = {
        "age": [30, 30, 41, 42, 43, 43, 43, 50],
        "sex": list("fmfmffff"),
        "ill": ["flu", "cold", "flu", "gout", "gout", "flu", "flu", "flu"],
    }
    schema = {"age": "quasi", "sex": "quasi", "ill": "sensitive"}
    document = hm.assess(hm.read(pa.table(rows), schema=schema), fraction=0.3).to_dict()
    known: set[str] = set()

    def walk(value):
        if isinstance(value, dict):
            for one in value.values():
                walk(one)
        elif isinstance(value, list):
            for one in value:
                walk(one)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            known.update(
                {count_text(value), percent_text(value), score_text(value), f"{value:.0%}"}
            )
        elif isinstance(value, str):
            known.update(re.findall(r"\d[\d,.]*%?", value))

    walk(document)
    page = render_page(document)
    body = page[page.index("<main>") : page.index('<script type="application/json"')]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", body, re.S)
    assert len(cells) > 60
    for cell in cells:
        text = re.sub(r"<[^>]+>", " ", cell)
        for figure in re.findall(r"\d[\d,.]*%?", text):
            assert figure.rstrip(".,") in known, (figure, text)


def test_three_verdicts_stand_first(pages):
    for name in ("assessment", "comparison"):
        head = pages[name][: pages[name].index("</header>")]
        for criterion in ("singling out:", "linkability:", "inference:"):
            assert criterion in head


def test_contradicting_models_are_said_to_contradict():
    from halfmask.report.population import agreement
    from halfmask.report.population import uniqueness_outcome as outcome

    doubted = {"value": 0.05, "low": 0.04, "high": 0.06, "n": 9, "trusted": False, "reason": "why"}
    found = {"model": "pitman", "unique": doubted, "span": [0.05, 0.5], "agree": False,
             "bounds": [0.0, 0.6]}  # fmt: skip
    assert "do not sign on it" in outcome(found)
    assert "at most 60.0%" in outcome(found)
    assert "contradict each other: 5.0% to 50.0%" in agreement(found)
    near = found | {"unique": doubted | {"trusted": True}, "agree": True, "span": [0.05, 0.07]}
    assert outcome(near).startswith("About 5.0%")
    assert "near" in agreement(near)
    nothing = found | {"model": None, "unique": doubted | {"value": None}, "span": None}
    assert "No model" in outcome(nothing)
    assert agreement(nothing) == ""


# What may reach over the side, and what has nothing to draw; the others meet the thorough run.
WIDE = ("twenty-five columns", "long names", "one row")
# The widest part of the page, and whether each wide thing scrolls within itself.
WIDTHS = """[
    document.documentElement.scrollWidth,
    [...document.querySelectorAll('.wide')].every(e => e.scrollWidth <= e.clientWidth + 1),
]"""


def test_no_page_overflows(browser, odd_pages, tmp_path):
    """On a small phone, a phone and a desk; opened on the smallest, as the page may be turned."""
    path = tmp_path / "page.html"
    page = browser.new_page(viewport={"width": 320, "height": 900})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    asked = odd_pages if THOROUGH else [name for name in odd_pages if name.endswith(WIDE)]
    for name in asked:
        path.write_text(odd_pages[name], encoding="utf-8")
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        for width in (320, 390, 1100):
            page.set_viewport_size({"width": width, "height": 900})
            reach, inside = page.evaluate(WIDTHS)
            assert reach <= width, (name, width)
            assert inside, (name, width)
        page.set_viewport_size({"width": 320, "height": 900})
    assert said == []
    page.close()
