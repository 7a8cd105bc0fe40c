"""Sentences about the population behind a table: estimates, sampling weights, matches."""

from __future__ import annotations

from typing import Any

from halfmask.report.words import percent_text, rows_text

MODELS = (
    ("pitman", "Pitman"),
    ("zayatz", "Zayatz"),
    ("snb", "shifted negative binomial (SNB)"),
)


def uniqueness_outcome(found: dict[str, Any]) -> str:
    """How many people of the population are unique, in one or two sentences."""
    least, most = found["bounds"]
    if found["model"] == "counted":
        return f"The table is the population: {percent_text(most)} of the people in it are unique."
    ends = (
        f"between {percent_text(least)} and {percent_text(most)}"
        if least
        else f"at most {percent_text(most)}"
    )
    bounds = (
        f"Whatever the population looks like, {ends} of it are unique, if the table was drawn from "
        "it at random (95 % confidence)."
    )
    if found["model"] is None:
        return f"{bounds} No model gives a figure in between."
    share = percent_text(found["unique"]["value"])
    if found["unique"]["trusted"]:
        return f"About {share} of the population are unique. {bounds}"
    if found["agree"]:  # too little of the population is in the table
        return f"The best guess is {share}, on too few people to rely on. {bounds}"
    return f"The best guess is {share}, but do not sign on it. {bounds}"


def agreement(found: dict[str, Any]) -> str:
    """How far the models are apart, and what that means."""
    if found["span"] is None or found["model"] == "counted":
        return ""
    low, high = (percent_text(end) for end in found["span"])
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


def survey_outcome(found: dict[str, Any], limit: float) -> str:
    """How many people an attacker is expected to find in the population, and how many rows lead."""
    chances = found["individual"]
    return (
        f"By the weights in column {found['column']} the people of the table stand for "
        f"{found['population']:,.0f} people, {percent_text(found['fraction'])} of whom are in it. "
        "Who "
        "looks for everybody of the table among all of them is expected to find "
        f"{people_text(chances['expected'])} ({percent_text(chances['mean'])}). "
        f"{_above(chances, limit)}"
    )


def lean(found: dict[str, Any], uniqueness: dict[str, Any] | None) -> str:
    """Why the figures may be too low, beside what the models of the population say."""
    if found["fraction"] == 1:
        return "Everybody stands for one person only: the table is the population."
    first = (
        "Weights say how many people somebody stands for on average, not how rare the combination "
        "of values is: detailed tables may come out too safe."
    )
    alone = found["unique_if_alone"]
    if alone is None:
        return first
    said = f" Of those alone here they take {percent_text(alone)} to be alone in the population"
    value = None if uniqueness is None else uniqueness["unique_if_alone"]["value"]
    if value is None or uniqueness is None:
        return f"{first}{said}."
    doubt = "" if uniqueness["unique_if_alone"]["trusted"] else ", a guess not to be relied on"
    model = dict(MODELS).get(uniqueness["model"], uniqueness["model"])
    return f"{first}{said}; the model of class sizes, {model}, {percent_text(value)}{doubt}."


def intrusion_sentence(found: dict[str, Any]) -> str:
    """How likely a single row that fits is the right one."""
    chance = found["chance"]
    first = (
        "Where one row of the table fits somebody of the population, it is the right one with a "
        f"chance of {percent_text(chance['value'])}"
    )
    if not chance["trusted"]:
        return f"{first}, which is not to be relied on: {chance['reason']}"
    if found["fraction"] == 1:
        return f"{first}: the table is the population."
    if not found["rows"]:
        return f"{first}."
    return (
        f"{first} on average; for {rows_text(found['rows'])} that few columns single out "
        "it is up to "
        f"{percent_text(found['highest'])}."
    )


def people_text(expected: float) -> str:
    """An expected number of people, in few digits."""
    if 0 < expected < 0.05:
        return "under 0.1 people"
    return f"{expected:,.1f} people" if expected < 100 else f"{expected:,.0f} people"


def rows_above(chances: dict[str, Any], limit: float) -> int:
    """How many rows have a chance above ``limit``, which is one of the thresholds."""
    return int(next(one["rows"] for one in chances["thresholds"] if one["limit"] == limit))


def _above(chances: dict[str, Any], limit: float) -> str:
    count = rows_above(chances, limit)
    if count:
        return f"The chance of {rows_text(count)} is above {percent_text(limit)}."
    highest = percent_text(chances["highest"])
    return f"Nobody's chance is above {percent_text(limit)}; the highest is {highest}."
