"""The page that shows what personal demands gain."""

from __future__ import annotations

from typing import Any

from halfmask.report.page import rendered
from halfmask.report.plots import plot

SCENARIOS = {
    "over_moderate": "over one moderate k",
    "over_uniform": "over the highest k for all",
    "over_deleting": "over deleting the demanding",
}


def render_policies(document: dict[str, Any]) -> str:
    """The page for the document of a comparison of policies."""
    return rendered(
        "policies.html",
        document=document,
        scenarios=SCENARIOS,
        plots={"plot-gains": gains(document)},
    )


def gains(document: dict[str, Any]) -> dict[str, Any]:
    """One point with its interval per population and scenario; above 1 personal demands gain."""
    data = [
        {
            "population": one["concern"],
            "scenario": words,
            "gain": one[key]["mean"],
            "low": one[key]["low"],
            "high": one[key]["high"],
        }
        for one in document["gains"]
        for key, words in SCENARIOS.items()
    ]
    order = [one["concern"] for one in document["gains"]]
    y = {"field": "population", "type": "nominal", "sort": order, "title": None}
    color = {
        "field": "scenario",
        "type": "nominal",
        "sort": None,
        "title": None,
        "legend": {"labelLimit": 260},
    }
    offset = {"field": "scenario", "type": "nominal", "sort": None}
    x = {"field": "gain", "type": "quantitative", "title": "loss of the alternative / personal",
         "scale": {"zero": False, "type": "log"}}  # fmt: skip
    return plot(
        data,
        height=64 * max(len(order), 1),
        layer=[
            {"mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": {"x": {"datum": 1}}},
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "y": y,
                    "yOffset": offset,
                    "color": color,
                    "x": {**x, "field": "low"},
                    "x2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {
                    "y": y,
                    "yOffset": offset,
                    "color": color,
                    "x": x,
                    "tooltip": [
                        {"field": "population"},
                        {"field": "scenario"},
                        {"field": "gain", "format": ".3f"},
                    ],
                },
            },
        ],
    )
