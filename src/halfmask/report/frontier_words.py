"""What a frontier found and what to choose, in words."""

from __future__ import annotations

from typing import Any

from halfmask.report.figures import figure, percent

_PEOPLE = (5, 11, 20)  # usual limits of the highest risk: 1 in so many
RISK = {
    "mean": ("risk", "mean chance of being found"),
    "highest": ("highest_risk", "highest chance of being found"),
    "inference": ("inference", "gain of a guess about a sensitive column"),
}
UTILITY = {"loss": "loss", "distance": "mean Hellinger distance"}


def outcome(document: dict[str, Any]) -> str:
    """What was found, in a few sentences."""
    points, failed = document["points"], len(document["impossible"])
    if not points:
        return (
            f"None of the {failed + len(document['undecided'])} settings can be satisfied: promise "
            "less, let more rows be suppressed, or give hierarchies that generalize further."
        )
    results = different(document)
    best = sum(point["best"] for point in results)
    alike = "" if len(results) == len(points) else f" and give {_results(len(results))}"
    said = [
        f"{_settings(len(points))} tried{alike}; {best} not dominated: no other has less risk "
        f"without more {document['utility']}.",
    ]
    if failed:
        said.append(f"{failed} more cannot be satisfied.")
    if document["undecided"]:
        said.append(f"{len(document['undecided'])} more were not decided within the time limit.")
    return " ".join(said)


def different(document: dict[str, Any]) -> list[dict[str, Any]]:
    """One point for each result, with the names of other settings that give the same."""
    same: dict[str, list[str]] = {}
    for point in document["points"]:
        if point["same_as"] is not None:
            same.setdefault(point["same_as"], []).append(point["name"])
    first = [point for point in document["points"] if point["same_as"] is None]
    return [point | {"same": same.get(point["name"], [])} for point in first]


def interval(point: dict[str, Any], name: str) -> str:
    """Where the mean of draws lies; nothing for a figure of one table."""
    ends = (point["intervals"] or {}).get(name)
    if ends is None or ends[0] == ends[1]:
        return ""
    low, high = map(figure if name == "distance" else percent, ends)
    return f"{low} to {high}"


def _results(count: int) -> str:
    return "1 result" if count == 1 else f"{count} different results"


def _settings(count: int) -> str:
    return "1 setting was" if count == 1 else f"{count} settings were"


def choices(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Per usual limit of the highest risk, the setting that keeps it and loses least."""
    utility = document["utility"]
    out = []
    for people in _PEOPLE:
        kept = [
            point
            for point in different(document)
            if point["highest_risk"] <= 1 / people
            and point[utility] is not None
            and point["epsilon"] is None
        ]
        least = min(kept, key=lambda p: (p[utility], p["risk"], p["name"]), default=None)
        out.append({"limit": 1 / people, "people": people, "point": least})
    return out
