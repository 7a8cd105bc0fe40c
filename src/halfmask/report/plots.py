"""The report's plots as Vega-Lite specifications; all figures come from the document."""

from __future__ import annotations

from typing import Any

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_ACCENT = "#2f7f86"
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
    "legend": {**_TEXT, "labelFontSize": 12, "titleFontSize": 12, "orient": "bottom"},
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
            "axis": {"labelAngle": -40 if len(data) > 8 else 0, "labelOverlap": False},
        },
        "y": {"field": "rows", "type": "quantitative", "title": "rows", "axis": {"format": "~s"}},
        "tooltip": [
            {"field": "size", "title": "rows in the class"},
            {"field": "classes", "title": "classes", "format": ","},
            {"field": "rows", "title": "rows", "format": ","},
        ],
    }
    return _plot(data, height=220, mark={"type": "bar", "tooltip": True}, encoding=encoding)


def generalization(document: dict[str, Any]) -> dict[str, Any]:
    """How far each quasi-identifier was generalized, by share of the published rows."""
    data = [
        {
            "column": column["name"],
            "level": _level(cell["level"], column["height"]),
            "detail": min(cell["level"] / max(column["height"], 1), 1.0),
            "share": cell["rows"] / document["rows"]["published"],
        }
        for column in quasi(document)
        for cell in column["cells"]
    ]
    return _plot(
        data,
        height={"step": 26},
        mark={"type": "bar", "tooltip": True},
        encoding={
            "y": _columns(document),
            "x": {
                "field": "share",
                "type": "quantitative",
                "stack": "zero",
                "title": "share of the published rows",
                "axis": {"format": "%"},
                "scale": {"domain": [0, 1]},
            },
            "order": {"field": "detail", "type": "quantitative"},
            "color": {
                "field": "detail",
                "type": "quantitative",
                "title": "how far up its hierarchy",
                "scale": {"domain": [0, 1], "range": ["#8fd0c7", "#2f7f86", "#123c4a"]},
                "legend": {"format": "%", "gradientLength": 160, "tickCount": 3},
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
    x = {
        "field": "loss",
        "type": "quantitative",
        "title": "loss",
        "axis": {"format": "%"},
        "scale": {"domain": [0, 1]},
    }
    encoding = {"y": _columns(document), "x": x}
    tooltip = [
        {"field": "column", "title": "column"},
        {"field": "loss", "title": "loss", "format": ".1%"},
    ]
    bars = {"mark": {"type": "bar", "tooltip": True}, "encoding": {"tooltip": tooltip}}
    figures = {
        "mark": {"type": "text", "align": "left", "dx": 4},
        "encoding": {"text": {"field": "loss", "type": "quantitative", "format": ".1%"}},
    }
    return _plot(data, height={"step": 26}, encoding=encoding, layer=[bars, figures])


def quasi(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The columns that were generalized or could have been."""
    return [column for column in document["columns"] if column["role"] == "quasi"]


def bin_label(one: dict[str, Any]) -> str:
    """The sizes that a bin covers."""
    low, high = one["smallest"], one["largest"]
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _plot(data: list[dict[str, Any]], **rest: Any) -> dict[str, Any]:
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


def _level(level: int, height: int) -> str:
    return "suppressed cell" if level > height else f"{level} of {height}"
