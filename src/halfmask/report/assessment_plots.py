"""The plots of assessments as Vega-Lite specifications."""

from __future__ import annotations

from typing import Any

from halfmask.report.plots import BAR, PERCENT, plot
from halfmask.report.risk_plots import band, criteria, found_axes, two

MOST_BARS = 12  # columns that a plot shows; the tables hold all


def assessment(document: dict[str, Any]) -> dict[str, Any]:
    """One specification per plot, by the id of the element that shows it."""
    out = {
        "plot-risk": _risk(document["reidentification"]["distribution"]),
        "plot-criteria": criteria(document),
    }
    if document["unique_rows"]:
        out["plot-advice"] = _advice(document)
    if document["special_uniques"]["special_rows"]:
        out["plot-columns"] = _contributions(document)
    if document["survey"]:
        out["plot-survey"] = _risk(document["survey"]["individual"]["distribution"])
    return out


def _risk(bins: list[dict[str, Any]]) -> dict[str, Any]:
    data = [{"risk": band(one), "rows": one["rows"]} for one in bins]
    return plot(
        data,
        height=200,
        mark="bar",
        encoding={
            **found_axes(),
            "tooltip": [{"field": "risk"}, {"field": "rows", "format": ","}],
        },
    )  # fmt: skip


def _advice(document: dict[str, Any]) -> dict[str, Any]:
    data = []
    shown = document["advice"][:MOST_BARS]
    for one in shown:
        data.append({"column": one["column"], "case": "one level up", "rows": one["one_level"]})
        data.append({"column": one["column"], "case": "removed", "rows": one["removed"]})
    return plot(
        data,
        height=int(BAR * 1.5 * len(shown)),
        mark="bar",
        encoding={
            "y": {"field": "column", "type": "nominal", "sort": None, "title": None},
            "yOffset": {"field": "case"},
            "x": {
                "field": "rows",
                "type": "quantitative",
                "title": f"rows left alone (now: {document['unique_rows']:,})",
                "axis": {"format": "~s", "tickCount": 5},
            },
            "color": two("case", "one level up", "removed"),
            "tooltip": [
                {"field": "column"},
                {"field": "case"},
                {"field": "rows", "format": ","},
            ],
        },
    )


def _contributions(document: dict[str, Any]) -> dict[str, Any]:
    found = sorted(document["special_uniques"]["contributions"], key=lambda one: -one["score"])
    data = [{"column": one["name"], "share": one["score"]} for one in found[:MOST_BARS]]
    return plot(
        data,
        height=BAR * len(data),
        mark="bar",
        encoding={
            "y": {"field": "column", "type": "nominal", "sort": "-x", "title": None},
            "x": {**PERCENT, "field": "share", "title": "part in singling people out"},
            "tooltip": [{"field": "column"}, {"field": "share", "format": ".1%"}],
        },
    )
