"""The plots of comparisons as Vega-Lite specifications."""

from __future__ import annotations

from typing import Any

from halfmask.report.plots import BAR, PERCENT, plot
from halfmask.report.risk_plots import COOL, band, criteria, found_axes, two


def comparison(document: dict[str, Any]) -> dict[str, Any]:
    """One specification per plot."""
    out = {
        "plot-criteria": criteria(document),
        "plot-distances": _distances(document),
        "plot-associations": _associations(document),
    }
    if not document["made_up"]:
        out["plot-risk"] = _before_after(document)
    known = [
        one
        for one in document["predictions"]
        if one["original"]["value"] is not None and one["release"]["value"] is not None
    ]
    if known:
        out["plot-predictions"] = _predictions(known)
    return out


def _before_after(document: dict[str, Any]) -> dict[str, Any]:
    data = [
        {"risk": band(one), "rows": one["rows"], "table": name}
        for name in ("original", "release")
        for one in document["before" if name == "original" else "after"]["distribution"]
    ]
    return plot(
        data,
        height=200,
        mark="bar",
        encoding={
            **found_axes(),
            "xOffset": {"field": "table"},
            "color": two("table", "original", "release"),
            "tooltip": [{"field": "table"}, {"field": "risk"}, {"field": "rows", "format": ","}],
        },
    )  # fmt: skip


def _distances(document: dict[str, Any]) -> dict[str, Any]:
    data = [{"column": one["name"], "distance": one["hellinger"]} for one in document["distances"]]
    return plot(
        data,
        height=BAR * len(data),
        mark="bar",
        encoding={
            "y": {"field": "column", "type": "nominal", "sort": None, "title": None},
            "x": {**PERCENT, "field": "distance", "title": "Hellinger distance",
                  "axis": {"format": ".1f", "tickCount": 5}},
            "tooltip": [{"field": "column"}, {"field": "distance", "format": ".3f"}],
        },
    )  # fmt: skip


def _associations(document: dict[str, Any]) -> dict[str, Any]:
    data = [
        {
            "pair": " and ".join(one["columns"]),
            "kind": one["kind"],
            "before": one["before"],
            "after": one["after"],
        }
        for one in document["pairs"]
    ]
    low = -1 if any(min(one["before"], one["after"]) < -0.005 for one in data) else 0
    axis = {"type": "quantitative", "scale": {"domain": [low, 1]}, "axis": {"tickCount": 5}}
    return plot(
        data,
        height=260,
        layer=[
            {
                "data": {"values": [{"x": low, "y": low}, {"x": 1, "y": 1}]},
                "mark": {"type": "line", "strokeDash": [4, 4], "color": "#9aa5a8"},
                "encoding": {
                    "x": {"field": "x", "type": "quantitative"},
                    "y": {"field": "y", "type": "quantitative"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 0.7,
                         "color": COOL},
                "encoding": {
                    "x": {**axis, "field": "before", "title": "association in the original"},
                    "y": {**axis, "field": "after", "title": "in the release"},
                    "tooltip": [
                        {"field": "pair"},
                        {"field": "kind"},
                        {"field": "before", "format": ".2f"},
                        {"field": "after", "format": ".2f"},
                    ],
                },
            },
        ],
    )  # fmt: skip


def _predictions(found: list[dict[str, Any]]) -> dict[str, Any]:
    data = [
        {
            "model": f"{one['model']}, {one['target']}",
            "trained": name,
            "score": max(0.0, one[name]["value"]),
        }
        for one in found
        for name in ("original", "release")
    ]
    return plot(
        data,
        height=int(BAR * 1.5 * len(found)),
        mark="bar",
        encoding={
            "y": {"field": "model", "type": "nominal", "sort": None, "title": None,
                  "axis": {"labelLimit": 190}},
            "yOffset": {"field": "trained"},
            "x": {**PERCENT, "stack": None, "field": "score", "title": "score on original rows"},
            "color": two("trained", "original", "release"),
            "tooltip": [{"field": "model"}, {"field": "trained"},
                        {"field": "score", "format": ".1%"}],
        },
    )  # fmt: skip
