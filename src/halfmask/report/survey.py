"""Plain sentences about a table as a sample: its weights, and matches with the population."""

from __future__ import annotations

from typing import Any

from halfmask.report.figures import percent, rows
from halfmask.report.population import MODELS


def outcome(found: dict[str, Any], limit: float) -> str:
    """How many people an attacker is expected to find in the population, and how many rows lead."""
    chances = found["individual"]
    return (
        f"By the weights in column {found['column']} the people of the table stand for "
        f"{found['population']:,.0f} people, {percent(found['fraction'])} of whom are in it. Who "
        "looks for everybody of the table among all of them is expected to find "
        f"{people(chances['expected'])} ({percent(chances['mean'])}). {_above(chances, limit)}"
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
    said = f" Of those alone here they take {percent(alone)} to be alone in the population"
    value = None if uniqueness is None else uniqueness["unique_if_alone"]["value"]
    if value is None or uniqueness is None:
        return f"{first}{said}."
    doubt = "" if uniqueness["unique_if_alone"]["trusted"] else ", a guess not to be relied on"
    model = dict(MODELS).get(uniqueness["model"], uniqueness["model"])
    return f"{first}{said}; the model of class sizes, {model}, {percent(value)}{doubt}."


def intrusion(found: dict[str, Any]) -> str:
    """How likely a single row that fits is the right one."""
    chance = found["chance"]
    first = (
        "Where one row of the table fits somebody of the population, it is the right one with a "
        f"chance of {percent(chance['value'])}"
    )
    if not chance["trusted"]:
        return f"{first}, which is not to be relied on: {chance['reason']}"
    if found["fraction"] == 1:
        return f"{first}: the table is the population."
    if not found["rows"]:
        return f"{first}."
    return (
        f"{first} on average; for {rows(found['rows'])} that few columns single out it is up to "
        f"{percent(found['highest'])}."
    )


def people(expected: float) -> str:
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
        return f"The chance of {rows(count)} is above {percent(limit)}."
    return (
        f"Nobody's chance is above {percent(limit)}; the highest is {percent(chances['highest'])}."
    )
