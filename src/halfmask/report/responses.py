"""Randomized answers on a page: what an epsilon means, and what it costs in precision.

Both plots follow from public numbers: how many answers there are, and how many rows leave.
"""

from __future__ import annotations

from math import exp, sqrt
from typing import Any

from halfmask.dp.figures import attacker
from halfmask.metrics.estimate import NORMAL_95
from halfmask.report.plots import COOL, PERCENT, WARM, plot

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
        out[f"plot-bound-{place}"] = _bound(one)
        out[f"plot-error-{place}"] = _error(one, document["rows"]["published"])
    return out


def _epsilon_axis() -> dict[str, Any]:
    return {
        "field": "epsilon",
        "type": "quantitative",
        "title": "epsilon (dashed: this release)",
        "scale": {"type": "log"},
        "axis": {"values": [0.1, 0.2, 0.5, 1, 2, 5, 10], "format": "~g"},
    }


def _here(receipt: dict[str, Any]) -> dict[str, Any]:
    """A rule at the epsilon of the release."""
    return {
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": WARM},
        "encoding": {"x": {"datum": receipt["epsilon"], "type": "quantitative"}},
    }


def _bound(receipt: dict[str, Any]) -> dict[str, Any]:
    """The best chance of an attacker, of equally likely answers: the bound of Theorem 22."""
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
    return plot(data, height=220, layer=[line, guess, _here(receipt)])


def _error(receipt: dict[str, Any], rows: int) -> dict[str, Any]:
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
    return plot(data, height=220, layer=[line, _here(receipt)])
