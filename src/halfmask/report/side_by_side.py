"""Several releases side by side for a reader: what was found, and one plot per attack."""

from __future__ import annotations

from typing import Any

from halfmask.report.discrimination import ATTACKERS, NAMES
from halfmask.report.plots import BAR, plot

_RATES = "discrimination."
_ORIGINAL = "original"
# What the source of the discrimination rate thinks of measures (tables 4.10 and 5.5): of so many
# stars so many are full.
CRITERIA = {
    "link to a person": 2, "granularity": 3, "analytical": 2, "generality": 3, "applicable": 1,
}  # fmt: skip
_STARS = {
    "k-anonymity and its family": (1, 0, 1, 1, 1),
    "epsilon": (0, 0, 2, 0, 0),
    "uniqueness": (2, 1, 0, 0, 1),
    "special uniqueness": (2, 2, 0, 1, 1),
    "record linkage: distance, interval, probabilistic": (1, 3, 0, 2, 0),
    "other record linkage": (1, 3, 0, 3, 0),
    "discrimination rate": (2, 3, 2, 2, 1),
    "the same with a semantic partition": (2, 3, 2, 3, 1),
}


def side_by_side_summary(document: dict[str, Any]) -> str:
    """How many releases, and which of them meet all conditions."""
    releases, stated = document["releases"], document["conditions"]
    said = f"{len(releases)} releases are compared with the same original."
    if not stated:
        return said
    count = "the condition" if len(stated) == 1 else f"all {len(stated)} conditions"
    kept = [
        name for i, name in enumerate(releases) if all(condition["met"][i] for condition in stated)
    ]
    if not kept:
        return f"{said} None meets {count}."
    verb = "meets" if len(kept) == 1 else "meet"
    return f"{said} {', '.join(kept)} {verb} {count}."


def release_notes(document: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """What a reader should know: of all releases, then of each alone."""
    notes = [dict.fromkeys(one["notes"]) for one in document["comparisons"]]
    common = [note for note in notes[0] if all(note in others for others in notes)]
    out = [("all releases", common)]
    for name, own in zip(document["releases"], notes, strict=True):
        out.append((name, [note for note in own if note not in common]))
    return [(name, listed) for name, listed in out if listed]


def attacks_scored(document: dict[str, Any]) -> list[dict[str, str]]:
    """The attacks that are scored by a rate somewhere, with their attackers and plots."""
    return [
        {
            "attack": NAMES.get(attack, attack),
            "attacker": attacker,
            "plot": _plot_name(attack),
        }
        for attack, attacker in ATTACKERS.items()
        if _data(document, attack)
    ]


def rated_measures() -> list[tuple[str, list[str]]]:
    """Each family of measures with its stars."""
    return [
        (name, ["★" * full + "☆" * (of - full) for full, of in zip(given, most, strict=True)])
        for most in [tuple(CRITERIA.values())]
        for name, given in _STARS.items()
    ]


def rate_plots(document: dict[str, Any]) -> dict[str, Any]:
    """One plot per attack: the rate of each column, a bar for the original and each release."""
    out = {}
    for attack in ATTACKERS:
        data = _data(document, attack)
        if data:
            out[_plot_name(attack)] = _bars(data, [_ORIGINAL, *_names(document)])
    return out


def _plot_name(attack: str) -> str:
    return f"plot-{attack}"


def _names(document: dict[str, Any]) -> list[str]:
    """The releases; one that is called as the original is says what it is."""
    return [f"{name} (release)" if name == _ORIGINAL else name for name in document["releases"]]


def _data(document: dict[str, Any], attack: str) -> list[dict[str, Any]]:
    """The rates of an attack that are known, per column and table."""
    start, out = f"{_RATES}{attack}.", []
    for line in document["headlines"]:
        if not line["name"].startswith(start):
            continue
        column = line["name"].removeprefix(start)
        rates = [line["before"], *(one and one["value"] for one in line["after"])]
        for table, rate in zip([_ORIGINAL, *_names(document)], rates, strict=True):
            if rate is not None:
                out.append({"column": column, "table": table, "rate": rate})
    return out


def _bars(data: list[dict[str, Any]], tables: list[str]) -> dict[str, Any]:
    """Bars from 0 to 1, those of a column together."""
    columns = list(dict.fromkeys(one["column"] for one in data))
    offset = {"field": "table", "type": "nominal", "sort": tables}
    return plot(
        data,
        height=max(BAR, BAR * len(tables) * len(columns) * 2 // 3),
        mark="bar",
        encoding={
            "y": {"field": "column", "type": "nominal", "sort": columns, "title": None},
            "yOffset": offset,
            "x": {
                "field": "rate",
                "type": "quantitative",
                "title": "rate",
                "scale": {"domain": [0, 1]},
            },
            "color": {
                "field": "table",
                "type": "nominal",
                "title": None,
                "scale": {"domain": tables},
                "legend": {"labelLimit": 260},
            },
            "tooltip": [
                {"field": "table"},
                {"field": "column"},
                {"field": "rate", "format": ".4f"},
            ],
        },
    )
