"""The plot of a frontier as a Vega-Lite specification."""

from __future__ import annotations

from typing import Any

from halfmask.report.plots import plot
from halfmask.report.risk_plots import COOL


def frontier(document: dict[str, Any]) -> dict[str, Any]:
    """The one plot: risk against loss, which can be moved, enlarged and filtered by method."""
    known = all(point["loss"] is not None for point in document["points"])
    cost, title = ("loss", "loss") if known else ("distance", "mean Hellinger distance")
    data = [
        {
            "name": p["name"],
            "risk": p["risk"],
            "cost": p[cost],
            "highest": p["highest_risk"],
            "suppressed": p["suppressed"],
            "method": p["method"],
            "choice": "not dominated" if p["best"] else "dominated",
        }
        for p in document["points"]
    ]
    x = {"field": "cost", "type": "quantitative", "title": title,
         "axis": {"format": "%", "tickCount": 6}}  # fmt: skip
    y = {
        "field": "risk",
        "type": "quantitative",
        "title": "mean chance of being found",
        "axis": {"format": ".1%", "tickCount": 6},
    }
    tooltip = [
        {"field": "name", "title": "setting"},
        {"field": "risk", "title": "mean risk", "format": ".2%"},
        {"field": "highest", "title": "highest risk", "format": ".1%"},
        {"field": "cost", "title": title, "format": ".1%"},
        {"field": "suppressed", "title": "suppressed", "format": ".1%"},
    ]
    spec = plot(
        data,
        height=340,
        layer=[
            {
                "mark": {"type": "line", "color": COOL, "opacity": 0.5,
                         "interpolate": "step-after"},
                "transform": [{"filter": "datum.choice == 'not dominated'"}],
                "encoding": {"x": x, "y": y, "order": {"field": "cost"}},
            },
            {
                "params": [
                    {"name": "method", "select": {"type": "point", "fields": ["method"]},
                     "bind": "legend"},
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
                        "scale": {"domain": ["not dominated", "dominated"],
                                  "range": [COOL, "#9aa5a8"]},
                    },
                    "shape": {
                        "field": "method",
                        "type": "nominal",
                        "title": "method",
                        "legend": {"symbolFillColor": "currentColor",
                                   "symbolStrokeColor": "currentColor"},
                    },
                    "opacity": {"condition": {"param": "method", "value": 0.95}, "value": 0.1},
                    "tooltip": tooltip,
                },
            },
        ],
    )  # fmt: skip
    return {"plot-frontier": spec}
