"""Writes the growth table of docs/engines.md and docs/growth.svg from docs/growth.jsonl.

The lines of docs/growth.jsonl are what ``python benchmarks/scale.py`` printed. ``--check`` only
compares.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- growth: written by scripts/growth_reference.py -->\n", "<!-- end of growth -->"
HEAD = (
    "| rows | grouped count | count and search: optimal, local, auto | check | assess | query | "
    "compare | written aside | counted there | write | peak memory |\n" + "|---" * 11 + "|\n"
)
# What is drawn, in the order of the legend: a name, and where a line of figures has it.
CURVES = {
    "one grouped count": lambda one: one["grouped_count"],
    "count and search (optimal)": lambda one: searched(one, "optimal"),
    "compare": lambda one: one["compare"],
    "written aside": lambda one: one["optimal"]["written aside"],
    "counted there": lambda one: one["optimal"]["checked"],
    "write": lambda one: one["optimal"]["write"],
}
COLORS = ("#222222", "#1f6f8b", "#b4552d", "#6b8e23", "#8a5a9e", "#999999")
WIDTH, HEIGHT, LEFT, TOP = 560, 300, 60, 20


def searched(one: dict[str, Any], method: str) -> float:
    """Processor seconds until the search ended."""
    return float(one[method]["counted"] + one[method]["searched"])


def table(lines: list[dict[str, Any]]) -> str:
    """One row a size; times in processor seconds, and as often as one grouped count."""
    out = HEAD
    for one in lines:
        unit, best = one["grouped_count"], one["optimal"]
        found = [searched(one, m) for m in ("optimal", "local", "auto") if m in one]
        ratios = ", ".join(f"{seconds / unit:.1f} x" for seconds in found)
        verbs = " | ".join(
            f"{one[v] / unit:.1f} x" for v in ("check", "assess", "query", "compare")
        )
        stages = " | ".join(
            f"{best[s] / unit:.1f} x" for s in ("written aside", "checked", "write")
        )
        peak = f"{one['peak_mb'] / 1000:.1f} GB"
        out += f"| {one['rows']:,} | {unit:.2f} s | {ratios} | {verbs} | {stages} | {peak} |\n"
    return out


def plot(lines: list[dict[str, Any]]) -> str:
    """Processor seconds over rows, both on logarithmic scales."""
    rows = [one["rows"] for one in lines]
    every = [curve(one) for one in lines for curve in CURVES.values()]
    ends = (math.floor(math.log10(min(every))), math.ceil(math.log10(max(every))))
    low, high = math.log10(min(rows)), math.log10(max(rows))

    def x(size: float) -> float:
        return LEFT + (math.log10(size) - low) / (high - low) * (WIDTH - LEFT - 170)

    def y(seconds: float) -> float:
        share = (math.log10(seconds) - ends[0]) / (ends[1] - ends[0])
        return TOP + (1 - share) * (HEIGHT - TOP - 50)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="11" role="img" '
        'aria-label="Processor seconds over rows">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for power in range(ends[0], ends[1] + 1):
        at = y(10**power)
        line = f'<line x1="{LEFT}" x2="{WIDTH - 170}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>'
        parts += [
            line,
            f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{10**power:g} s</text>',
        ]
    parts += [
        f'<text x="{x(size):.1f}" y="{HEIGHT - 30}" text-anchor="middle">{size / 1e6:g}</text>'
        for size in rows
    ]
    parts.append(
        f'<text x="{LEFT}" y="{HEIGHT - 8}">million rows (processor seconds, DuckDB in 4 GB)</text>'
    )
    for place, (name, curve) in enumerate(CURVES.items()):
        color, level = COLORS[place], TOP + 14 + 18 * place
        points = " ".join(f"{x(one['rows']):.1f},{y(curve(one)):.1f}" for one in lines)
        parts += [
            f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>',
            f'<text x="{WIDTH - 160}" y="{level}" fill="{color}">{name}</text>',
        ]
    return "\n".join([*parts, "</svg>\n"])


def main() -> int:
    """Write the table and the plot, or compare them."""
    text = (DOCS / "growth.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    page = DOCS / "engines.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    wanted = {
        page: before + BEGIN + table(lines) + END + rest.partition(END)[2],
        DOCS / "growth.svg": plot(lines),
    }
    if "--check" in sys.argv:
        return int(any(not p.exists() or p.read_text("utf-8") != t for p, t in wanted.items()))
    for place, made in wanted.items():
        place.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
