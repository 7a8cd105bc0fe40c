from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import jinja2
import pytest

from halfmask.report import render


class Reader(HTMLParser):
    """Collects the text and the scripts of a page as a browser would tell them apart."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.inside.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        if tag in self.inside:
            while self.inside.pop() != tag:
                pass

    def handle_data(self, data):
        if self.inside and self.inside[-1] == "script":
            self.scripts[-1] += data
        elif "style" not in self.inside:
            self.text.append(data)


def read(page: str) -> tuple[str, Reader]:
    reader = Reader()
    reader.feed(page)
    return re.sub(r"\s+", " ", " ".join(reader.text)), reader


def test_the_page_says_what_the_document_says(document):
    text, _ = read(render(document))
    for words in (
        "950 of 1,000 rows may leave.",
        "23.5%",
        "k-anonymity ✓ yes at least 5 6 everybody",
        "at most 0.3 0.2877",
        "A note of the model.",
        "A note of the search.",
        "removed: it names a person",
        "70 → 7",
        "50 of 1,000 rows (5.0%) do not leave",
        "Everybody shares all published quasi-identifiers with at least k - 1 others.",
        "These columns leave as they were, row by row: disease.",
        "this is proven",
        "python 3.11.7",
        "rows that may be left out 5.0%",
        "6 to 9 4 30",
    ):
        assert words in text, words


def test_a_failed_promise_and_no_suppression_are_said(document):
    document["verdicts"][0] |= {"holds": False, "failing_rows": 17}
    document["rows"]["suppressed"] = 0
    text, _ = read(render(document))
    assert "✗ no: 17 rows" in text
    assert "No row was suppressed." in text


def test_names_from_the_table_stay_text(document):
    page = render(document)
    text, reader = read(page)
    hostile = document["columns"][2]["name"]
    assert re.sub(r"\s+", " ", hostile) in text
    assert len(reader.scripts) == 4
    assert "alert(1)" not in page.replace("alert(1)&lt;/script&gt;", "").replace(
        "alert(1)\\u003c/script\\u003e", ""
    )


def test_small_shares_are_not_rounded_to_nothing(document):
    document["rows"]["suppressed_share"] = 0.00003
    text, _ = read(render(document))
    assert "rows (under 0.1%) do not leave" in text


def test_the_plots_hold_the_document_s_figures(document):
    _, reader = read(render(document))
    plots = json.loads(reader.scripts[0])
    assert list(plots) == ["plot-classes", "plot-levels", "plot-loss"]
    assert plots["plot-classes"]["data"]["values"][0] == {
        "size": "6 to 9",
        "rows": 30,
        "classes": 4,
    }
    assert [row["loss"] for row in plots["plot-loss"]["data"]["values"]] == [0.2, 1.0]
    assert [row["level"] for row in plots["plot-levels"]["data"]["values"]] == ["1 of 4", "4 of 4"]


def test_a_local_recoding_shows_shares_of_rows(local):
    _, reader = read(render(local))
    values = json.loads(reader.scripts[0])["plot-levels"]["data"]["values"]
    assert [(row["level"], row["part"]) for row in values[:2]] == [("0 of 4", 0), ("suppressed", 1)]
    assert sum(row["share"] for row in values[:2]) == pytest.approx(1)


def test_the_page_points_nowhere(document):
    page = render(document)
    _, reader = read(page)
    assert reader.links == ["data:,"]
    assert "sourceMappingURL" not in page
    assert "@import" not in page


def test_an_incomplete_document_is_no_page(document):
    del document["outcome"]
    with pytest.raises(jinja2.UndefinedError, match="outcome"):
        render(document)


def test_a_release_of_quasi_identifiers_only_and_infinite_figures(document):
    document["columns"] = [c for c in document["columns"] if c["role"] == "quasi"]
    document["verdicts"][0]["achieved"] = None
    text, _ = read(render(document))
    assert "leave as they were" not in text
    assert "at least 5 none everybody" in text
