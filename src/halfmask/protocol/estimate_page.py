"""The estimate as a page: four plots drawn as SVG, readable without any script."""

from __future__ import annotations

from dataclasses import asdict
from html import escape
from math import ceil, floor, log10
from pathlib import Path
from typing import TYPE_CHECKING

from halfmask.errors import InputError
from halfmask.release.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.protocol.estimate import Device, Point

WIDTH, HEIGHT, LEFT, BOTTOM = 560, 320, 64, 44
COLORS = {"tree": "#6b7280", "swap": "#b45309", "network": "#2f7f86"}
NAMES = {"tree": "tree, all in memory", "swap": "swap-merge", "network": "network-merge"}
Line = tuple[str, str, list[tuple[float, float]]]


def write_page(points: Sequence[Point], device: Device, path: str | Path) -> None:
    """Write the plots as one HTML file."""
    if Path(path).suffix.lower() != ".html":
        raise InputError(f"The estimate {Path(path).name!r} is a page: name it .html.")
    with whole_file(path) as temporary:
        temporary.write_text(page(points, device), encoding="utf-8")


def page(points: Sequence[Point], device: Device) -> str:
    """The page."""
    cells = points[0].cells if points else 0
    tree = [p for p in points if p.merge == "tree"]
    plots: list[tuple[str, list[Line], str]] = [
        (
            "Aggregation: seconds by number of groups",
            _by_merge(points, "aggregation_s"),
            "The line of the tree ends where a cell's memory does.",
        ),
        (
            "Seconds one cell must stay, by number of groups",
            _by_merge(points, "availability_s"),
            "Network-merge needs a cell for two frames only, however many groups there are.",
        ),
        (
            "Filtering: seconds by number of groups",
            [("filtering", "#2f7f86", [(p.groups, p.filtering_s) for p in tree])],
            "The step is where flash becomes necessary.",
        ),
        (
            "Collection: seconds of a contribution",
            [
                ("with a policy", "#2f7f86", [(p.groups, p.collection_s) for p in tree]),
                ("without", "#6b7280", [(p.groups, p.collection_s - p.privacy_s) for p in tree]),
            ],
            "A contribution takes the same time whatever the others say.",
        ),
    ]
    figures = "".join(
        f"<figure><figcaption><b>{escape(title)}</b><br>{escape(words)}</figcaption>"
        f"{_plot(lines)}</figure>"
        for title, lines, words in plots
    )
    facts = ", ".join(f"{escape(n)} {v:g}" for n, v in asdict(device).items())
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>What a query takes</title>"
        "<style>body{font:16px system-ui;margin:2rem;max-width:75rem}figure{display:inline-block;"
        "margin:1rem;vertical-align:top}svg text{font:12px system-ui}</style>"
        f"<h1>What a query takes with {cells:,} cells</h1>{figures}<p>Device: {facts}.</p></html>\n"
    )


def _by_merge(points: Sequence[Point], name: str) -> list[Line]:
    return [
        (
            NAMES[merge],
            color,
            [
                (p.groups, getattr(p, name))
                for p in points
                if p.merge == merge and getattr(p, name) is not None
            ],
        )
        for merge, color in COLORS.items()
    ]


def _plot(lines: Sequence[Line]) -> str:
    every = [point for _, _, line in lines for point in line if point[1] > 0]
    if not every:
        return "<p>Nothing fits.</p>"
    x0, x1 = _decades([x for x, _ in every])
    y0, y1 = _decades([y for _, y in every])

    def place(x: float, y: float) -> tuple[float, float]:
        right = (log10(x) - x0) / (x1 - x0) * (WIDTH - LEFT - 150)
        up = (log10(y) - y0) / (y1 - y0) * (HEIGHT - BOTTOM - 16)
        return LEFT + right, HEIGHT - BOTTOM - up

    parts = []
    for decade in range(x0, x1 + 1):
        x, _ = place(10.0**decade, 10.0**y0)
        parts.append(
            f"<line x1='{x:.1f}' x2='{x:.1f}' y1='16' y2='{HEIGHT - BOTTOM}' stroke='#ddd'/>"
            f"<text x='{x:.1f}' y='{HEIGHT - BOTTOM + 18}' text-anchor='middle'>"
            f"{_short(decade)}</text>"
        )
    for decade in range(y0, y1 + 1):
        _, y = place(10.0**x0, 10.0**decade)
        parts.append(
            f"<line x1='{LEFT}' x2='{WIDTH - 150}' y1='{y:.1f}' y2='{y:.1f}' stroke='#ddd'/>"
            f"<text x='{LEFT - 6}' y='{y + 4:.1f}' text-anchor='end'>{_short(decade)}</text>"
        )
    last = max(x for x, _ in every)
    for at, (name, color, line) in enumerate(lines):
        places = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in line if y > 0)
        # The first line is wide, so that it is seen under another one.
        width = 6 if at == 0 and len(lines) > 2 else 2
        parts.append(
            f"<polyline points='{places}' fill='none' stroke='{color}' stroke-width='{width}'/>"
            f"<text x='{WIDTH - 144}' y='{30 + 18 * at}' fill='{color}'>{escape(name)}</text>"
        )
        if line and line[-1][0] < last:
            end, _ = place(*line[-1])
            parts.append(
                f"<line x1='{end:.1f}' x2='{end:.1f}' y1='16' y2='{HEIGHT - BOTTOM}' "
                f"stroke='{color}' stroke-dasharray='4 4'/>"
            )
    parts.append(
        f"<text x='{(LEFT + WIDTH - 150) / 2:.0f}' y='{HEIGHT - BOTTOM + 34}' "
        "text-anchor='middle'>groups</text>"
    )
    return f"<svg width='{WIDTH}' height='{HEIGHT}' role='img'>{''.join(parts)}</svg>"


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return low, max(high, low + 1)


def _short(decade: int) -> str:
    return f"{10.0**decade:g}" if -4 < decade < 5 else f"1e{decade}"
