"""Plots as Vega-Lite specifications; all figures come from the document."""

from __future__ import annotations

from math import exp, sqrt
from typing import Any

from halfmask.metrics.estimate import NORMAL_95

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_ACCENT = "#2f7f86"
BAR = 26
PERCENT = {
    "type": "quantitative",
    "stack": "zero",
    "axis": {"format": "%", "tickCount": 5},
    "scale": {"domain": [0, 1]},
}
_TEXT = {"labelColor": "currentColor", "titleColor": "currentColor"}
_CONFIG = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        **_TEXT,
        "domainColor": "currentColor",
        "tickColor": "currentColor",
        "gridColor": "currentColor",
        "gridOpacity": 0.15,
        "domainOpacity": 0.4,
        "tickOpacity": 0.4,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 140,
    },
    "legend": {
        **_TEXT,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "orient": "bottom",
        "layout": {"bottom": {"direction": "vertical"}},  # beside each other they leave a phone
    },
    "bar": {"color": _ACCENT},
    "text": {"color": "currentColor", "fontSize": 12},
}


def plots(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """One specification per plot, by the id of the element that shows it."""
    return {
        "plot-classes": plot_class_sizes(document),
        "plot-levels": generalization(document),
        "plot-loss": column_losses(document),
    }


def plot_class_sizes(document: dict[str, Any]) -> dict[str, Any]:
    """How many rows stand in classes of which size."""
    data = [
        {"size": bin_label(one), "rows": one["rows"], "classes": one["classes"]}
        for one in document["classes"]["bins"]
    ]
    encoding = {
        "x": {
            "field": "size",
            "type": "ordinal",
            "sort": None,
            "title": "rows in the class",
            "axis": {"labelAngle": -40 if len(data) > 8 else 0, "labelOverlap": "greedy"},
        },
        "y": {"field": "rows", "type": "quantitative", "title": "rows", "axis": {"format": "~s"}},
        "tooltip": [
            {"field": "size", "title": "rows in the class"},
            {"field": "classes", "title": "classes", "format": ","},
            {"field": "rows", "title": "rows", "format": ","},
        ],
    }
    return plot(data, height=220, mark="bar", encoding=encoding)


def generalization(document: dict[str, Any]) -> dict[str, Any]:
    """How far each quasi-identifier was generalized."""
    return _same_levels(document) if document["levels"] else _mixed_levels(document)


def _same_levels(document: dict[str, Any]) -> dict[str, Any]:
    """One bar per column: its level as a share of the height of its hierarchy."""
    data = [
        {"column": c["name"], "part": _part(c["level"], c), "level": _level(c["level"], c)}
        for c in quasi(document)
    ]
    text = {"field": "level", "type": "nominal"}
    return _bars(document, data, "part", "level, as a share of the hierarchy's height", text)


def _mixed_levels(document: dict[str, Any]) -> dict[str, Any]:
    """One bar per column, cut into the levels that its rows got."""
    data = [
        {
            "column": column["name"],
            "level": _level(cell["level"], column),
            "part": _part(cell["level"], column),
            "share": cell["rows"] / document["rows"]["published"],
        }
        for column in quasi(document)
        for cell in column["cells"]
    ]
    return plot(
        data,
        height=BAR * len(quasi(document)),
        mark={"type": "bar", "stroke": "currentColor", "strokeOpacity": 0.4, "strokeWidth": 0.5},
        encoding={
            "y": _columns(document),
            "x": {**PERCENT, "field": "share", "title": "share of the published rows"},
            "order": {"field": "part", "type": "quantitative"},
            "color": {
                "field": "part",
                "type": "quantitative",
                "title": "level, as a share of the hierarchy's height",
                "scale": {"domain": [0, 1], "range": ["#bfe6e0", "#2f7f86", "#123c4a"]},
                "legend": {"format": "%", "gradientLength": 160, "tickCount": 3, "titleLimit": 300},
            },
            "tooltip": [
                {"field": "column", "title": "column"},
                {"field": "level", "title": "level"},
                {"field": "share", "title": "share of rows", "format": ".1%"},
            ],
        },
    )


def column_losses(document: dict[str, Any]) -> dict[str, Any]:
    """How much of each quasi-identifier's detail was lost."""
    data = [{"column": c["name"], "loss": c["loss"]} for c in quasi(document)]
    text = {"field": "loss", "type": "quantitative", "format": ".1%"}
    return _bars(document, data, "loss", "loss", text)


def _bars(
    document: dict[str, Any], data: list[dict[str, Any]], field: str, title: str, text: Any
) -> dict[str, Any]:
    """One bar per column from 0 to 100%, with its figure behind it."""
    return plot(
        data,
        height=BAR * len(quasi(document)),
        encoding={
            "y": _columns(document),
            "x": {**PERCENT, "field": field, "title": title},
            "tooltip": [{"field": "column", "title": "column"}, {**text, "title": title}],
        },
        layer=[
            {"mark": "bar"},
            {
                "mark": {"type": "text", "align": "left", "dx": 4},
                "encoding": {"text": text},
            },
        ],
    )


def quasi(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The columns that were generalized or could have been."""
    return [column for column in document["columns"] if column["role"] == "quasi"]


def bin_label(one: dict[str, Any]) -> str:
    """The sizes that a bin covers."""
    low, high = one["smallest"], one["largest"]
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def plot(data: list[dict[str, Any]], **rest: Any) -> dict[str, Any]:
    """A specification in the style of the report."""
    return {
        "$schema": _SCHEMA,
        "config": _CONFIG,
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": data},
        **rest,
    }


def _columns(document: dict[str, Any]) -> dict[str, Any]:
    names = [column["name"] for column in quasi(document)]
    return {"field": "column", "type": "nominal", "sort": names, "title": None}


def _part(level: int, column: dict[str, Any]) -> float:
    return float(min(level / max(column["height"], 1), 1.0))


def _level(level: int, column: dict[str, Any]) -> str:
    return "suppressed" if level > column["height"] else f"{level} of {column['height']}"


WARM, COOL = "#c2703d", "#2f7f86"


def plot_criteria(document: dict[str, Any]) -> dict[str, Any]:
    """The risk of each criterion with its interval, beside the limit."""
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
    x = {**PERCENT, "field": "risk", "title": "risk (dashed: the limit)"}
    x.pop("stack", None)
    return plot(
        data,
        height=max(60, 2 * BAR * len(data) // 2),
        layer=[
            {
                "mark": {"type": "rule", "strokeDash": [4, 4], "color": WARM},
                "encoding": {"x": {"datum": document["limit"], "type": "quantitative"}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 2, "color": COOL},
                "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 80, "color": COOL},
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


def found_axes() -> dict[str, Any]:
    """Rows by the chance that their people are found."""
    return {
        "x": {
            "field": "risk",
            "type": "ordinal",
            "sort": None,
            "title": "chance of being found",
            "axis": {"labelAngle": -35},
        },
        "y": {"field": "rows", "type": "quantitative", "title": "rows", "axis": {"format": "~s"}},
    }


def band(one: dict[str, Any]) -> str:
    """The chances that a bar covers."""
    return f"to {one['high']:.0%}" if one["low"] == 0 else f"{one['low']:.0%} to {one['high']:.0%}"


def two_colors(field: str, first: str, second: str) -> dict[str, Any]:
    """The colors of two tables or cases."""
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "scale": {"domain": [first, second], "range": [WARM, COOL]},
    }


def synthetic(document: dict[str, Any]) -> dict[str, Any]:
    """The criteria that were tried on a synthetic table."""
    tried = document["statement"]["measured"]["criteria"]
    return {"plot-criteria": plot_criteria({"criteria": tried, "limit": tried[0]["limit"]})}


MOST_BARS = 12  # columns that a plot shows; the tables hold all


def assessment(document: dict[str, Any]) -> dict[str, Any]:
    """One specification per plot, by the id of the element that shows it."""
    out = {
        "plot-risk": _risk(document["reidentification"]["distribution"]),
        "plot-criteria": plot_criteria(document),
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
            "color": two_colors("case", "one level up", "removed"),
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


def comparison(document: dict[str, Any]) -> dict[str, Any]:
    """One specification per plot."""
    out = {
        "plot-criteria": plot_criteria(document),
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
            "color": two_colors("table", "original", "release"),
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
            "color": two_colors("trained", "original", "release"),
            "tooltip": [{"field": "model"}, {"field": "trained"},
                        {"field": "score", "format": ".1%"}],
        },
    )  # fmt: skip


# Epsilons that are drawn: from a coin that nearly decides alone to answers that are nearly true.
EPSILONS = tuple(round(10 ** (step / 10), 3) for step in range(-10, 10))
_STEPS = (0.1, 1, 10)  # times as many rows


def half_width(epsilon: float, values: int, rows: float) -> float:
    """Half the 95 % interval of the share of one of ``values`` equally frequent answers.

    Definition: 1.96 sqrt(q (1 - q) / n) / (p - other) with q = 1 / values, where p and other are
    the chances of the true and of each other answer.

    Example:
        >>> round(half_width(1.0986122886681098, 2, 10_000), 4)  # 0.98 / 100 / (3/4 - 1/4)
        0.0196
    """
    apart = (1 - exp(-epsilon)) / (1 + (values - 1) * exp(-epsilon))
    even = 1 / values
    return NORMAL_95 * sqrt(even * (1 - even) / rows) / apart


def response_plots(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Two plots for each randomized column, by the id of the element that shows them."""
    out = {}
    for place, one in enumerate(document["statement"].get("randomized", ())):
        out[f"plot-bound-{place}"] = _answer_bound(one)
        out[f"plot-error-{place}"] = _answer_error(one, document["rows"]["published"])
    return out


def _epsilon_axis() -> dict[str, Any]:
    return {
        "field": "epsilon",
        "type": "quantitative",
        "title": "epsilon (dashed: this release)",
        "scale": {"type": "log"},
        "axis": {"values": [0.1, 0.2, 0.5, 1, 2, 5, 10], "format": "~g"},
    }


def _release_rule(receipt: dict[str, Any]) -> dict[str, Any]:
    """A rule at the epsilon of the release."""
    return {
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": WARM},
        "encoding": {"x": {"datum": receipt["epsilon"], "type": "quantitative"}},
    }


def _answer_bound(receipt: dict[str, Any]) -> dict[str, Any]:
    """The best chance of an attacker, of equally likely answers: the bound of Theorem 22."""
    from halfmask.dp.figures import attacker

    count = len(receipt["values"])
    data = [{"epsilon": e, "chance": attacker(e, count)} for e in EPSILONS]
    chance = {**PERCENT, "field": "chance", "title": "best chance, of equally likely answers"}
    chance.pop("stack")
    tooltip = [{"field": "epsilon"}, {"field": "chance", "format": ".1%"}]
    line = {
        "mark": {"type": "line", "color": COOL, "point": True},
        "encoding": {"x": _epsilon_axis(), "y": chance, "tooltip": tooltip},
    }
    guess = {
        "mark": {"type": "rule", "strokeDash": [2, 2], "opacity": 0.6},
        "encoding": {"y": {"datum": 1 / count, "type": "quantitative"}},
    }
    return plot(data, height=220, layer=[line, guess, _release_rule(receipt)])


def _answer_error(receipt: dict[str, Any], rows: int) -> dict[str, Any]:
    """How far an estimated share may be off, by epsilon and number of rows."""
    count = len(receipt["values"])
    sizes = [max(1, round(rows * step)) for step in _STEPS]
    data = [
        {"epsilon": e, "rows": f"{size:,} rows", "off": min(1.0, half_width(e, count, size))}
        for size in dict.fromkeys(sizes)
        for e in EPSILONS
    ]
    off = {
        "field": "off",
        "type": "quantitative",
        "title": "95 % interval of a share: ±",
        "scale": {"type": "log"},
        "axis": {"format": "~%"},
    }
    color = {"field": "rows", "type": "nominal", "sort": None, "title": None}
    tooltip = [{"field": "rows"}, {"field": "epsilon"}, {"field": "off", "format": ".2%"}]
    line = {
        "mark": {"type": "line", "point": True},
        "encoding": {"x": _epsilon_axis(), "y": off, "color": color, "tooltip": tooltip},
    }
    return plot(data, height=220, layer=[line, _release_rule(receipt)])
