"""The plots of assessments, comparisons and frontiers as Vega-Lite specifications."""

from __future__ import annotations

from typing import Any

from halfmask.report.plots import _BAR, _PERCENT, plot

_WARM, _COOL = "#c2703d", "#2f7f86"


def assessment(document: dict[str, Any]) -> dict[str, Any]:
    """One specification per plot, by the id of the element that shows it."""
    return {
        "plot-risk": _risk(document["reidentification"]["distribution"]),
        "plot-criteria": _criteria(document),
        "plot-advice": _advice(document),
        "plot-columns": _contributions(document),
    }


def comparison(document: dict[str, Any]) -> dict[str, Any]:
    """One specification per plot."""
    out = {
        "plot-criteria": _criteria(document),
        "plot-distances": _distances(document),
        "plot-associations": _associations(document),
        "plot-risk": _before_after(document),
    }
    if document["predictions"]:
        out["plot-predictions"] = _predictions(document)
    return out


def synthetic(document: dict[str, Any]) -> dict[str, Any]:
    """The criteria that were tried on a synthetic table."""
    criteria = document["statement"]["measured"]["criteria"]
    return {"plot-criteria": _criteria({"criteria": criteria, "limit": criteria[0]["limit"]})}


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
                "mark": {"type": "line", "color": _COOL, "opacity": 0.5,
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
                                  "range": [_COOL, "#9aa5a8"]},
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


def _risk(bins: list[dict[str, Any]]) -> dict[str, Any]:
    data = [{"risk": _band(one), "rows": one["rows"]} for one in bins]
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


def _before_after(document: dict[str, Any]) -> dict[str, Any]:
    data = [
        {"risk": _band(one), "rows": one["rows"], "table": name}
        for name in ("original", "release")
        for one in document["before" if name == "original" else "after"]["distribution"]
    ]
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
            "xOffset": {"field": "table"},
            "y": {"field": "rows", "type": "quantitative", "title": "rows",
                  "axis": {"format": "~s"}},
            "color": _two("table", "original", "release"),
            "tooltip": [{"field": "table"}, {"field": "risk"}, {"field": "rows", "format": ","}],
        },
    )  # fmt: skip


def _band(one: dict[str, Any]) -> str:
    return f"to {one['high']:.0%}" if one["low"] == 0 else f"{one['low']:.0%} to {one['high']:.0%}"


def _criteria(document: dict[str, Any]) -> dict[str, Any]:
    data = []
    for one in document["criteria"]:
        if one["risk"]["value"] is None:
            continue
        name = one["name"] if one["column"] is None else f"{one['name']} of {one['column']}"
        data.append(
            {
                "criterion": name,
                "risk": one["risk"]["value"],
                "low": one["risk"]["low"],
                "high": one["risk"]["high"],
                "outcome": one["outcome"],
            }
        )
    y = {"field": "criterion", "type": "nominal", "sort": None, "title": None,
         "axis": {"labelLimit": 190}}  # fmt: skip
    x = {**_PERCENT, "field": "risk", "title": "risk (dashed: the limit)"}
    x.pop("stack", None)
    return plot(
        data,
        height=max(60, 2 * _BAR * len(data) // 2),
        layer=[
            {
                "mark": {"type": "rule", "strokeDash": [4, 4], "color": _WARM},
                "encoding": {"x": {"datum": document["limit"], "type": "quantitative"}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 2, "color": _COOL},
                "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 80, "color": _COOL},
                "encoding": {
                    "y": y,
                    "x": x,
                    "tooltip": [
                        {"field": "criterion"},
                        {"field": "risk", "format": ".1%"},
                        {"field": "low", "format": ".1%"},
                        {"field": "high", "format": ".1%"},
                        {"field": "outcome"},
                    ],
                },
            },
        ],
    )


def _advice(document: dict[str, Any]) -> dict[str, Any]:
    data = []
    for one in document["advice"]:
        data.append({"column": one["column"], "case": "one level up", "rows": one["one_level"]})
        data.append({"column": one["column"], "case": "removed", "rows": one["removed"]})
    return plot(
        data,
        height=int(_BAR * 1.5 * max(1, len(document["advice"]))),
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
            "color": _two("case", "one level up", "removed"),
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
        height=_BAR * len(data),
        mark="bar",
        encoding={
            "y": {"field": "column", "type": "nominal", "sort": "-x", "title": None},
            "x": {**_PERCENT, "field": "share", "title": "part in singling people out"},
            "tooltip": [{"field": "column"}, {"field": "share", "format": ".1%"}],
        },
    )


def _distances(document: dict[str, Any]) -> dict[str, Any]:
    data = [{"column": one["name"], "distance": one["hellinger"]} for one in document["distances"]]
    return plot(
        data,
        height=_BAR * len(data),
        mark="bar",
        encoding={
            "y": {"field": "column", "type": "nominal", "sort": None, "title": None},
            "x": {**_PERCENT, "field": "distance", "title": "Hellinger distance",
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
                         "color": _COOL},
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


def _predictions(document: dict[str, Any]) -> dict[str, Any]:
    data = [
        {
            "model": f"{one['model']}, {one['target']}",
            "trained": name,
            "score": max(0.0, one[name]["value"] or 0.0),
        }
        for one in document["predictions"]
        for name in ("original", "release")
    ]
    return plot(
        data,
        height=int(_BAR * 1.5 * max(1, len(document["predictions"]))),
        mark="bar",
        encoding={
            "y": {"field": "model", "type": "nominal", "sort": None, "title": None,
                  "axis": {"labelLimit": 190}},
            "yOffset": {"field": "trained"},
            "x": {**_PERCENT, "stack": None, "field": "score", "title": "score on original rows"},
            "color": _two("trained", "original", "release"),
            "tooltip": [{"field": "model"}, {"field": "trained"},
                        {"field": "score", "format": ".1%"}],
        },
    )  # fmt: skip


def _two(field: str, first: str, second: str) -> dict[str, Any]:
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "scale": {"domain": [first, second], "range": [_WARM, _COOL]},
    }
