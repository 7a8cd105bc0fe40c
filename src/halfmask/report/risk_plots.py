"""Plots that several pages share: the criteria, and the marks of two tables."""

from __future__ import annotations

from typing import Any

from halfmask.report.plots import BAR, PERCENT, plot

WARM, COOL = "#c2703d", "#2f7f86"


def criteria(document: dict[str, Any]) -> dict[str, Any]:
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


def two(field: str, first: str, second: str) -> dict[str, Any]:
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
    return {"plot-criteria": criteria({"criteria": tried, "limit": tried[0]["limit"]})}
