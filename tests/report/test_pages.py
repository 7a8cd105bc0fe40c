"""The pages of assessments, comparisons and frontiers, as text and in a real browser."""

from __future__ import annotations

import os
import shutil

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.report.pages import estimate, render_page
from halfmask.report.terms import TERMS

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
    release = hm.anonymize(people, hm.KAnonymity(2))
    documents = {
        "assessment": hm.assess(people, fraction=0.5),
        "comparison": hm.compare(people, release, learn=False),
        "frontier": hm.frontier(people, [hm.KAnonymity(2), hm.KAnonymity(3)]),
    }
    return {name: render_page(one.to_dict()) for name, one in documents.items()}


@pytest.mark.parametrize("name", ["assessment", "comparison", "frontier"])
def test_names_cannot_break_out(pages, name):
    assert "<script>alert(1)" not in pages[name]
    assert "<b>&" not in pages[name]


def test_definitions_are_one_click_away(pages):
    for word in ("prosecutor", "singling out", "special unique"):
        assert f"<summary>{word}</summary>" in pages["assessment"]
        assert TERMS[word].split(".")[0][:40] in pages["assessment"]


def test_an_estimate_that_failed_says_why():
    bad = {"value": None, "low": None, "high": None, "n": 0, "trusted": False, "reason": "why"}
    assert estimate(bad) == "not known: why"
    good = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 9, "trusted": True, "reason": ""}
    assert estimate(good) == "50.0% (40.0% to 60.0%)"
    doubt = good | {"trusted": False, "reason": "few rows"}
    assert "not to be relied on: few rows" in estimate(doubt)
    assert estimate(None) == "not measured"


@pytest.fixture(scope="module")
def browser():
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as engine:
        started = engine.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--no-first-run"]
        )
        yield started
        started.close()


@pytest.mark.parametrize("width", [390, 1100], ids=["on a phone", "on a desk"])
@pytest.mark.parametrize("name", ["assessment", "comparison", "frontier"])
def test_the_page_draws_its_plots_and_is_quiet(browser, pages, tmp_path, name, width):
    path = tmp_path / "page.html"
    path.write_text(pages[name], encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda asking: asked.append(asking.url))
    page.goto(path.as_uri())
    for plot in page.query_selector_all(".plot"):
        page.wait_for_selector(f"#{plot.get_attribute('id')} svg path", state="attached")
    assert said == []
    assert asked == [path.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
