"""The pages of assessments, comparisons, rates, frontiers and synthetic tables, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halfmask.report import (
    attacks,
    discrimination,
    frontier_words,
    population,
    sentences,
    survey,
)
from halfmask.report.assessment_plots import MOST_BARS, assessment
from halfmask.report.comparison_plots import comparison
from halfmask.report.figures import percent, score
from halfmask.report.frontier_plots import frontier
from halfmask.report.page import rendered
from halfmask.report.risk_plots import band, synthetic
from halfmask.report.terms import term

if TYPE_CHECKING:
    from collections.abc import Callable

_KINDS: dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "halfmask.assessment": ("assessment.html", assessment),
    "halfmask.comparison": ("comparison.html", comparison),
    "halfmask.discrimination": ("discrimination.html", lambda _: {}),
    "halfmask.frontier": ("frontier.html", frontier),
    "halfmask.synthetic": ("synthetic.html", synthetic),
}


def render_page(document: dict[str, Any]) -> str:
    """The page for a document, by its ``format``.

    Example:
        >>> from halfmask.report.pages import render_page
        >>> render_page(assessment.to_dict())  # doctest: +SKIP
        '<!doctype html>...'
    """
    template, plots = _KINDS[document["format"].split("/")[0]]
    return rendered(
        template,
        {"estimate": estimate, "score": score},
        document=document,
        plots=plots(document),
        attacks=attacks.lines(document, estimate) if template == "comparison.html" else (),
        rates=discrimination,
        say=sentences,
        population=population,
        survey=survey,
        band=band,
        most_bars=MOST_BARS,
        frontier=frontier_words,
        term=term,
    )


def estimate(value: dict[str, Any] | None, form: str = "percent") -> str:
    """An estimate with its interval, or why there is none."""
    if value is None:
        return "not measured"
    if value["value"] is None:
        return f"not known: {value['reason']}"
    write = percent if form == "percent" else score
    text = write(value["value"])
    low, high = value["low"], value["high"]
    if low is not None and high is not None and (low, high) != (value["value"], value["value"]):
        text += f" ({write(low)} to {write(high)})"
    return text if value["trusted"] else f"{text}, not to be relied on: {value['reason']}"
