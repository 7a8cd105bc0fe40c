"""What a frontier found and what to choose, in words."""

from __future__ import annotations

from typing import Any

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
    best = [point for point in points if point["best"]]
    field = RISK[document["risk"]][0]
    different = {(point[field], point[document["utility"]]) for point in best}
    said = [
        f"{_settings(len(points))} tried; {len(best)} of them not beaten: no other has less "
        f"risk without more {document['utility']}.",
    ]
    if len(different) < len(best):
        said.append(f"Some give the same figures: {len(different)} different ones are left.")
    if failed:
        said.append(f"{failed} more cannot be satisfied.")
    if document["undecided"]:
        said.append(f"{len(document['undecided'])} more were not decided within the time limit.")
    return " ".join(said)


def _settings(count: int) -> str:
    return "1 setting was" if count == 1 else f"{count} settings were"


def choices(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Per usual limit of the highest risk, the setting that keeps it and loses least."""
    utility = document["utility"]
    out = []
    for people in _PEOPLE:
        kept = [
            point
            for point in document["points"]
            if point["highest_risk"] <= 1 / people
            and point[utility] is not None
            and point["epsilon"] is None
        ]
        least = min(kept, key=lambda p: (p[utility], p["risk"], p["name"]), default=None)
        out.append({"limit": 1 / people, "people": people, "point": least})
    return out
