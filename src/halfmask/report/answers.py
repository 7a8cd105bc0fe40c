"""The page of an answer: what was asked, the rows, what each level promised, who was withheld."""

from __future__ import annotations

from typing import Any

from halfmask.report.page import rendered
from halfmask.report.plots import BAR, plot

MOST_ROWS = 500


def render_answer(document: dict[str, Any], columns: list[str], rows: list[list[object]]) -> str:
    """The page for the document of an answer and its rows; long answers are cut and say so."""
    return rendered(
        "answer.html",
        document=document,
        columns=columns,
        rows=[[_shown(value) for value in row] for row in rows[:MOST_ROWS]],
        numeric=[_is_numeric(rows, i) for i in range(len(columns))],
        plots={"plot-levels": levels(document)},
    )


def levels(document: dict[str, Any]) -> dict[str, Any]:
    """One bar per level: how many rows were published there."""
    data = [
        {"level": f"{x['level']}: {x['step']} (k={x['k']}, l={x['l']})", "rows": x["rows"]}
        for x in document["levels"]
    ]
    text = {"field": "rows", "type": "quantitative", "format": ",d"}
    return plot(
        data,
        height=BAR * max(len(data), 1),
        encoding={
            "y": {
                "field": "level",
                "type": "nominal",
                "sort": None,
                "title": None,
                "axis": {"labelLimit": 320},
            },
            "x": {
                "field": "rows",
                "type": "quantitative",
                "title": "rows published",
                "axis": {"tickMinStep": 1, "format": ",d"},
            },
            "tooltip": [{"field": "level"}, text],
        },
        layer=[
            {"mark": "bar"},
            {"mark": {"type": "text", "align": "left", "dx": 4}, "encoding": {"text": text}},
        ],
    )


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def _is_numeric(rows: list[list[object]], column: int) -> bool:
    values = [row[column] for row in rows if row[column] is not None]
    return bool(values) and not any(isinstance(v, str | bool) for v in values)
