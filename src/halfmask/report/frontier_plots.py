"""The plot of a frontier as a Vega-Lite specification."""

from __future__ import annotations

from typing import Any

from halfmask.report.figures import figure, percent
from halfmask.report.frontier_words import RISK, UTILITY
from halfmask.report.plots import plot

_BEST, _BEATEN = "#2f7f86", "#9aa5a8"


def frontier(document: dict[str, Any]) -> dict[str, Any]:
    """The one plot: risk against loss, which can be moved, enlarged and filtered by method."""
    field, risk_title = RISK[document["risk"]]
    cost_title = UTILITY[document["utility"]]
    data = [_datum(point, field, document["utility"]) for point in document["points"]]
    data = [one for one in data if one["chance"] is not None and one["cost"] is not None]
    data.sort(key=lambda one: one["choice"] == "not dominated")  # what is drawn last lies on top
    x = _axis("cost", cost_title, "%" if document["utility"] == "loss" else ".3~g")
    y = _axis("chance", risk_title, "~%")
    line = {
        "mark": {"type": "line", "color": _BEST, "opacity": 0.5, "interpolate": "step-after"},
        "transform": [{"filter": "datum.choice == 'not dominated'"}],
        "encoding": {"x": x, "y": y, "order": {"field": "cost"}},
    }
    return {"plot-frontier": plot(data, height=340, layer=[line, _points(x, y)])}


def _datum(point: dict[str, Any], field: str, utility: str) -> dict[str, Any]:
    def said(value: float | None) -> str:
        return "not known" if value is None else percent(value)

    return {
        "chance": point[field],
        "cost": point[utility],
        "method": point["method"],
        "choice": "not dominated" if point["best"] else "dominated",
        "setting": point["name"],
        "mean risk": said(point["risk"]),
        "highest risk": said(point["highest_risk"]),
        "inference": said(point["inference"]),
        "loss": said(point["loss"]),
        "distance": figure(point["distance"]),
        "suppressed": said(point["suppressed"]),
    }


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
                "legend": {"symbolFillColor": "currentColor", "symbolStrokeColor": "currentColor"},
            },
            "opacity": {"condition": {"param": "method", "value": 0.9}, "value": 0.1},
            "tooltip": [{"field": name, "type": "nominal"} for name in shown],
        },
    }
