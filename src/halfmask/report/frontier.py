"""What a frontier found and what to choose: its figures, in words, and as a plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from halfmask.metrics.risk.reidentification import HIGHEST
from halfmask.report.plots import plot
from halfmask.report.words import figure_text, percent_text

_PEOPLE = (5, 11, 20)  # usual limits of the highest risk: 1 in so many


@dataclass(frozen=True, slots=True)
class PointFigure:
    """A figure of every point, declared once for terminal, page and plot.

    Attributes:
        name: what it is called in the document.
        title: what people read.
        axis: the title of its axis.
        kind: what it can be compared as; nothing if it is only shown.
        asked: how ``risk=`` or ``utility=`` calls it.
        form: how it is written.
    """

    name: str
    title: str
    axis: str = ""
    kind: Literal["risk", "utility", ""] = ""
    asked: str = ""
    form: Literal["percent", "figure"] = "percent"

    def text(self, value: float) -> str:
        """The figure for people."""
        return percent_text(value) if self.form == "percent" else figure_text(value)


FIGURES = (
    PointFigure("risk", "mean risk of all rows", "mean chance of being found", "risk", "mean"),
    PointFigure("highest_risk", HIGHEST, "highest chance of being found", "risk", "highest"),
    PointFigure(
        "inference", "inference", "gain of a guess about a sensitive column", "risk", "inference"
    ),
    PointFigure("loss", "loss", "loss", "utility", "loss"),
    PointFigure("distance", "distance", "mean Hellinger distance", "utility", "distance", "figure"),
    PointFigure("suppressed", "suppressed"),
)
RISKS = {one.asked: one for one in FIGURES if one.kind == "risk"}
UTILITIES = {one.asked: one for one in FIGURES if one.kind == "utility"}


def frontier_summary(document: dict[str, Any]) -> str:
    """What was found, in a few sentences."""
    points, failed = document["points"], len(document["impossible"])
    aside = not document.get("demands", {"kept": True})["kept"]
    first = f"{document['notes'][0]} " if aside else ""
    if not points:
        return (
            f"{first}None of the {failed + len(document['undecided'])} settings can be satisfied: "
            "promise less, let more rows be suppressed, or give hierarchies that generalize "
            "further."
        )
    results = distinct_results(document)
    best = sum(point["best"] for point in results)
    alike = "" if len(results) == len(points) else f" and give {_results(len(results))}"
    said = [
        f"{first}{_settings(len(points))} tried{alike}; {best} not dominated: no other has less "
        f"risk without more {document['utility']}.",
    ]
    if failed:
        said.append(f"{failed} more cannot be satisfied.")
    if document["undecided"]:
        said.append(f"{len(document['undecided'])} more were not decided within the time limit.")
    return " ".join(said)


def distinct_results(document: dict[str, Any]) -> list[dict[str, Any]]:
    """One point for each result, with the names of other settings that give the same."""
    same: dict[str, list[str]] = {}
    for point in document["points"]:
        if point["same_as"] is not None:
            same.setdefault(point["same_as"], []).append(point["name"])
    first = [point for point in document["points"] if point["same_as"] is None]
    return [point | {"same": same.get(point["name"], [])} for point in first]


def mean_interval_text(point: dict[str, Any], figure: PointFigure) -> str:
    """Where the mean of draws lies; nothing for a figure of one table."""
    ends = (point["intervals"] or {}).get(figure.name)
    if ends is None or ends[0] == ends[1]:
        return ""
    low, high = map(figure.text, ends)
    return f"{low} to {high}"


def _results(count: int) -> str:
    return "1 result" if count == 1 else f"{count} different results"


def _settings(count: int) -> str:
    return "1 setting was" if count == 1 else f"{count} settings were"


def choices_by_limit(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Per usual limit of the highest risk, the setting that keeps it and loses least."""
    utility = document["utility"]
    out = []
    for people in _PEOPLE:
        kept = [
            point
            for point in distinct_results(document)
            if point["highest_risk"] <= 1 / people
            and point[utility] is not None
            and point["epsilon"] is None
        ]
        least = min(kept, key=lambda p: (p[utility], p["risk"], p["name"]), default=None)
        out.append({"limit": 1 / people, "people": people, "point": least})
    return out


_BEST, _BEATEN = "#2f7f86", "#9aa5a8"


def frontier_plot(document: dict[str, Any]) -> dict[str, Any]:
    """The one plot: risk against loss, which can be moved, enlarged and filtered by method."""
    risk, utility = RISKS[document["risk"]], UTILITIES[document["utility"]]
    data = [_datum(point, risk.name, utility.name) for point in distinct_results(document)]
    data = [one for one in data if one["chance"] is not None and one["cost"] is not None]
    data.sort(key=lambda one: one["choice"] == "not dominated")  # what is drawn last lies on top
    x = _axis("cost", utility.axis, "%" if utility.form == "percent" else ".3~g")
    y = _axis("chance", risk.axis, "~%")
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
    def text(figure: PointFigure) -> str:
        if point[figure.name] is None:
            return "not known"
        ends = mean_interval_text(point, figure)
        return figure.text(point[figure.name]) + (f" ({ends})" if ends else "")

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
        **{figure.title: text(figure) for figure in FIGURES},
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
    shown = ("setting", *(figure.title for figure in FIGURES))
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
