"""The plots of assessments as Vega-Lite specifications."""

from __future__ import annotations

from typing import Any

from halfmask.report.plots import BAR, PERCENT, plot
from halfmask.report.risk_plots import band, criteria, two


def assessment(document: dict[str, Any]) -> dict[str, Any]:
    """One specification per plot, by the id of the element that shows it."""
    return {
        "plot-risk": _risk(document["reidentification"]["distribution"]),
        "plot-criteria": criteria(document),
        "plot-advice": _advice(document),
        "plot-columns": _contributions(document),
    }


def _risk(bins: list[dict[str, Any]]) -> dict[str, Any]:
    data = [{"risk": band(one), "rows": one["rows"]} for one in bins]
    return plot(
        data,
        height=200,
        mark="bar",
        encoding={
            "x": {
                "field": "risk",
                "type": "ordinal",
                "sort": None,
                "title": "chance of being found",
                "axis": {"labelAngle": -35},
            },
            "y": {"field": "rows", "type": "quantitative", "title": "rows",
                  "axis": {"format": "~s"}},
            "tooltip": [{"field": "risk"}, {"field": "rows", "format": ","}],
        },
    )  # fmt: skip


def _advice(document: dict[str, Any]) -> dict[str, Any]:
    data = []
    for one in document["advice"]:
        data.append({"column": one["column"], "case": "one level up", "rows": one["one_level"]})
        data.append({"column": one["column"], "case": "removed", "rows": one["removed"]})
    return plot(
        data,
        height=int(BAR * 1.5 * max(1, len(document["advice"]))),
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
    data = [
        {"column": one["name"], "share": one["score"]}
        for one in document["special_uniques"]["contributions"]
    ]
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
