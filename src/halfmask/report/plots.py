"""The report's plots as Vega-Lite specifications; all figures come from the document."""

from __future__ import annotations

from typing import Any

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
        "plot-classes": class_sizes(document),
        "plot-levels": generalization(document),
        "plot-loss": column_losses(document),
    }


def class_sizes(document: dict[str, Any]) -> dict[str, Any]:
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
