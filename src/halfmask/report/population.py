"""Plain sentences about the population behind a table, made from its estimates."""

from __future__ import annotations

from typing import Any

from halfmask.report.figures import percent

MODELS = (
    ("pitman", "Pitman"),
    ("zayatz", "Zayatz"),
    ("snb", "shifted negative binomial (SNB)"),
)


def outcome(found: dict[str, Any]) -> str:
    """How many people of the population are unique, in one or two sentences."""
    least, most = found["bounds"]
    if found["model"] == "counted":
        return f"The table is the population: {percent(most)} of the people in it are unique."
    ends = f"between {percent(least)} and {percent(most)}" if least else f"at most {percent(most)}"
    bounds = (
        f"Whatever the population looks like, {ends} of it are unique, if the table was drawn from "
        "it at random (95 % confidence)."
    )
    if found["model"] is None:
        return f"{bounds} No model gives a figure in between."
    share = percent(found["unique"]["value"])
    if found["unique"]["trusted"]:
        return f"About {share} of the population are unique. {bounds}"
    if found["agree"]:  # too little of the population is in the table
        return f"The best guess is {share}, on too few people to rely on. {bounds}"
    return f"The best guess is {share}, but do not sign on it. {bounds}"


def agreement(found: dict[str, Any]) -> str:
    """How far the models are apart, and what that means."""
    if found["span"] is None or found["model"] == "counted":
        return ""
    low, high = (percent(end) for end in found["span"])
    if low == high:
        if found["agree"]:
            return "One model only gives a figure; what holds under any model confirms it."
        return "One model only gives a figure, so that nothing confirms it."
    if found["agree"]:
        return (
            f"The models say {low} to {high}, which is near. That does not prove them right: in "
            "small samples all of them tend to say too much."
        )
    return (
        f"The models contradict each other: {low} to {high}. Take the highest to be safe, or have "
        "the population counted (--population)."
    )
