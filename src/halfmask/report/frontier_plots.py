"""The plot of a frontier as a Vega-Lite specification."""

from __future__ import annotations

from typing import Any

from halfmask.report.figures import figure, percent
from halfmask.report.frontier_words import RISK, UTILITY, different, interval
from halfmask.report.plots import plot

_BEST, _BEATEN = "#2f7f86", "#9aa5a8"


def frontier(document: dict[str, Any]) -> dict[str, Any]:
    """The one plot: risk against loss, which can be moved, enlarged and filtered by method."""
    field, risk_title = RISK[document["risk"]]
    cost_title = UTILITY[document["utility"]]
    data = [_datum(point, field, document["utility"]) for point in different(document)]
    data = [one for one in data if one["chance"] is not None and one["cost"] is not None]
    data.sort(key=lambda one: one["choice"] == "not dominated")  # what is drawn last lies on top
    x = _axis("cost", cost_title, "%" if document["utility"] == "loss" else ".3~g")
    y = _axis("chance", risk_title, "~%")
    line = {
        "mark": {"type": "line", "color": _BEST, "opacity": 0.5, "interpolate": "step-after"},
        "transform": [{"filter": "datum.choice == 'not dominated'"}],
        "encoding": {
            "x": x | {"field": "cost high"},  # where points are compared
            "y": y | {"field": "chance high"},
            "order": {"field": "cost high"},
        },
    }
    bars = _bars(x, y) if any(one["draws"] for one in data) else []
    return {"plot-frontier": plot(data, height=340, layer=[line, *bars, _points(x, y)])}


def _datum(point: dict[str, Any], field: str, utility: str) -> dict[str, Any]:
    def said(name: str) -> str:
        if point[name] is None:
            return "not known"
        text = figure(point[name]) if name == "distance" else percent(point[name])
        ends = interval(point, name)
        return f"{text} ({ends})" if ends else text

    ends = point["intervals"] or {}
    chance, cost = ends.get(field, (point[field],) * 2), ends.get(utility, (point[utility],) * 2)
    same = len(point["same"])
    return {
        "chance": point[field],
        "chance low": chance[0],
        "chance high": chance[1],
        "cost": point[utility],
        "cost low": cost[0],
        "cost high": cost[1],
        "draws": point["draws"],
        "method": point["method"],
        "choice": "not dominated" if point["best"] else "dominated",
        "setting": point["name"] + (f" (and {same} more)" if same else ""),
        "mean risk": said("risk"),
        "highest risk": said("highest_risk"),
        "inference": said("inference"),
        "loss": said("loss"),
        "distance": said("distance"),
        "suppressed": said("suppressed"),
    }


def _bars(x: dict[str, Any], y: dict[str, Any]) -> list[dict[str, Any]]:
    """The intervals of points that were drawn, across and upright."""
    both = {
        "mark": {"type": "rule", "color": _BEATEN, "strokeWidth": 1.5},
        "transform": [{"filter": "datum.draws != null"}],
    }
    across = {"x": x | {"field": "cost low"}, "x2": {"field": "cost high"}, "y": y}
    upright = {"y": y | {"field": "chance low"}, "y2": {"field": "chance high"}, "x": x}
    return [both | {"encoding": across}, both | {"encoding": upright}]


def _axis(field: str, title: str, form: str) -> dict[str, Any]:
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "axis": {"format": form, "tickCount": 6},
        "scale": {"zero": True, "nice": True},
    }


def _points(x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    shown = ("setting", "mean risk", "highest risk", "inference", "loss", "distance", "suppressed")
    return {
        "params": [
            {"name": "method", "select": {"type": "point", "fields": ["method"]}, "bind": "legend"},
            {"name": "view", "select": "interval", "bind": "scales"},
        ],
        "mark": {"type": "point", "filled": True, "size": 90},
        "encoding": {
            "x": x,
            "y": y,
            "color": {
                "field": "choice",
                "type": "nominal",
                "title": None,
                "scale": {"domain": ["not dominated", "dominated"], "range": [_BEST, _BEATEN]},
            },
            "shape": {
                "field": "method",
                "type": "nominal",
                "title": "method",
                "legend": {
                    "symbolFillColor": "currentColor",
                    "symbolStrokeColor": "currentColor",
                    "columns": 3,
                },
            },
            "opacity": {"condition": {"param": "method", "value": 0.9}, "value": 0.1},
            "tooltip": [{"field": name, "type": "nominal"} for name in shown],
        },
    }
