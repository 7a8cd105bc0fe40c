"""The plots of the thesis's experiments, ours beside the printed values where there are some."""

from __future__ import annotations

from typing import Any

from halfmask.report.page import render_template
from halfmask.report.plots import plot
from halfmask.sample.policies import CONCERNS

Lines = list[dict[str, Any]]
FIGURES = {
    "scenario_1": "Figures 5.5 and 5.6, scenario 1: DBIL(k_m) / DBIL(k_i)",
    "scenario_2": "Figures 5.7 and 5.8, scenario 2: DBIL(k_c) / DBIL(k_i)",
    "scenario_3": "Figure 5.10, scenario 3: (DBIL(k_m) + deletions) / DBIL(k_i)",
    "correlation": "Figures 5.12 and 5.13: DBIL(at random) / DBIL(along the data)",
}


def page(parts: dict[str, Lines]) -> str:
    """One page with the plots of all parts that are there."""
    plots: dict[str, Any] = {}
    if "table" in parts:
        plots["Table 5.3: DBIL(k_c) / DBIL(k_i), ours with intervals, printed in red"] = ratios(
            parts["table"]
        )
    for field, title in FIGURES.items():
        if "scenarios" in parts:
            plots[title] = grid(parts["scenarios"], field)
    if "scale" in parts:
        plots["Figure 5.9, scenario 2 with k_l = k_m - scale and k_c = k_m + scale"] = scales(
            parts["scale"]
        )
    if "exact" in parts:
        plots["Figure 6.6: DBIL over the optimum, with intervals"] = points(parts["exact"])
    return render_template("plots.html", title="The thesis's experiments", plots=plots)


def ratios(lines: Lines) -> dict[str, Any]:
    """Ours with its interval and the printed value, a panel per method and k."""
    data = [{**one, "population": f"{one['concern']}, {one['demands']}"} for one in lines]
    y = {"field": "population", "type": "nominal", "title": None}
    x = {"type": "quantitative", "title": "ratio", "scale": {"zero": False}}
    layer = [
        {"mark": {"type": "rule", "strokeWidth": 2},
         "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}},
        {"mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
         "encoding": {"y": y, "x": {**x, "field": "mean"},
                      "tooltip": [{"field": f} for f in ("population", "mean", "printed")]}},
        {"mark": {"type": "point", "color": "#b4552d", "filled": True, "opacity": 1},
         "encoding": {"y": y, "x": {**x, "field": "printed"}}},
    ]  # fmt: skip
    return _panels(data, {"layer": layer}, 200)


def grid(lines: Lines, field: str) -> dict[str, Any]:
    """A field over the shares of liberals and conservatives; white dots are the presets."""
    x = {"type": "quantitative", "title": "liberals (%)", "scale": {"domain": [-12, 112]}}
    y = {"type": "quantitative", "title": "conservatives (%)", "scale": {"domain": [-12, 112]}}
    high = max(max(abs(one[field] - 1) for one in lines), 0.01)
    color = {
        "field": field, "type": "quantitative", "title": "ratio",
        "scale": {"domain": [1 - high, 1, 1 + high], "range": ["#2b5f9e", "#222222", "#f0c929"]},
    }  # fmt: skip
    dots = [{"low": float(c[2]), "high": float(c[0]), "name": n} for n, c in CONCERNS.items()]
    layer = [
        {"mark": {"type": "point", "shape": "square", "filled": True, "size": 700, "opacity": 1},
         "encoding": {"x": {**x, "field": "liberal"}, "y": {**y, "field": "conservative"},
                      "color": color,
                      "tooltip": [{"field": f} for f in ("liberal", "conservative", field)]}},
        {"mark": {"type": "text", "color": "white", "fontSize": 9},
         "encoding": {"x": {**x, "field": "liberal"}, "y": {**y, "field": "conservative"},
                      "text": {"field": field, "format": ".2f"}}},
        {"data": {"values": dots},
         "mark": {"type": "point", "filled": True, "color": "white", "stroke": "black",
                  "opacity": 1},
         "encoding": {"x": {**x, "field": "low"}, "y": {**y, "field": "high"},
                      "tooltip": [{"field": "name"}]}},
    ]  # fmt: skip
    return _panels(lines, {"layer": layer}, 220)


def scales(lines: Lines) -> dict[str, Any]:
    """The gain against the scale, a line per k_m."""
    x = {
        "field": "scale",
        "type": "quantitative",
        "title": "scale",
    }
    y = {"field": "mean", "type": "quantitative", "title": "ratio", "scale": {"zero": False}}
    encoding = {"x": x, "y": y, "color": {"field": "k_m", "type": "ordinal", "title": "k_m"}}
    data = [{**one, "k": "personal profile"} for one in lines]
    return _panels(data, {"mark": {"type": "line", "point": True}, "encoding": encoding}, 200)


def points(lines: Lines) -> dict[str, Any]:
    """The mean ratio of each method with its interval."""
    y = {"field": "method", "type": "nominal", "sort": None, "title": None}
    x = {"type": "quantitative", "title": "DBIL / least DBIL", "scale": {"zero": False}}
    layer = [
        {"mark": {"type": "rule", "strokeWidth": 2},
         "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}},
        {"mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
         "encoding": {"y": y, "x": {**x, "field": "mean"}}},
    ]  # fmt: skip
    return plot(lines, height=26 * len(lines), layer=layer)


def _panels(data: Lines, spec: dict[str, Any], side: int) -> dict[str, Any]:
    """The same plot for each method and k that there are figures for."""
    named = [{**one, "panel": f"{one['method']}, {one['k']}"} for one in data]
    base = plot(named)
    order = list(dict.fromkeys(one["panel"] for one in named))
    facet = {"field": "panel", "type": "nominal", "title": None, "sort": order}
    whole = {name: base[name] for name in ("$schema", "config", "data")}
    inner = {"width": side, "height": side, **spec}
    return {**whole, "facet": facet, "columns": 4, "spec": inner}
