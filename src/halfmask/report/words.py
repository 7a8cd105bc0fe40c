"""What each promise means, what it assumes of an attacker and what it leaves open, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Words:
    """One model for a reader who is no specialist.

    Attributes:
        promise: what holds for everybody in the release.
        attacker: what the promise assumes that an attacker knows and does.
        open: what it does not protect from.
        bound: how the figure is compared, ``"at least"`` or ``"at most"``.
    """

    promise: str
    attacker: str
    open: str
    bound: str


_KNOWS = "The attacker knows that a person is in the table, and this person's quasi-identifiers"
_SENSITIVE = f"{_KNOWS}, and looks for the sensitive value."

# A model's name, or the part of it that its kinds share: "entropy l-diversity" is l-diversity.
WORDS: dict[str, Words] = {
    "personal k-anonymity": Words(
        "Everybody shares all published quasi-identifiers with as many people as they asked for.",
        f"{_KNOWS}, but nothing else of the row.",
        "If all rows of a class hold the same sensitive value, that value is known.",
        "at least",
    ),
    "personal l-diversity": Words(
        "Every class holds as many values of the sensitive column as each person in it asked for.",
        _SENSITIVE,
        "Values may be alike in meaning, and one of them may be much likelier than before.",
        "at least",
    ),
    "personal t-closeness": Words(
        "In every class the sensitive column is distributed as near to the whole release as each "
        "person in it asked for.",
        f"{_SENSITIVE} The distribution in the whole release is taken to be known to everybody.",
        "What the whole release tells about everybody in it stays told.",
        "at most",
    ),
    "(alpha, k)-anonymity": Words(
        "Everybody shares all published quasi-identifiers with at least k - 1 others, and no "
        "sensitive value makes up more than the share alpha of a class.",
        _SENSITIVE,
        "Values that are near each other count as different; rare values may still stand out.",
        "at most",
    ),
    "k-anonymity": Words(
        "Everybody shares all published quasi-identifiers with at least k - 1 others.",
        f"{_KNOWS}, but nothing else of the row.",
        "If all rows of a class hold the same sensitive value, that value is known.",
        "at least",
    ),
    "l-diversity": Words(
        "Every class holds at least l well-represented values of the sensitive column.",
        _SENSITIVE,
        "Values may be alike in meaning, and one of them may be much likelier than before.",
        "at least",
    ),
    "t-closeness": Words(
        "In every class the sensitive column is distributed almost as in the whole release: at "
        "most the distance t apart.",
        f"{_SENSITIVE} The distribution in the whole release is taken to be known to everybody.",
        "What the whole release tells about everybody in it stays told.",
        "at most",
    ),
    "delta-disclosure": Words(
        "No class makes a sensitive value much likelier or unlikelier than in the whole release: "
        "the logarithm of the change stays below delta.",
        f"{_SENSITIVE} The distribution in the whole release is taken to be known to everybody.",
        "With a large delta a value can become certain although the promise holds.",
        "at most",
    ),
    "beta-likeness": Words(
        "No class makes a sensitive value likelier than in the whole release by more than the "
        "factor beta allows.",
        f"{_SENSITIVE} The distribution in the whole release is taken to be known to everybody.",
        "That a value becomes less likely is not bounded.",
        "at most",
    ),
    "delta-presence": Words(
        "From the release nobody can tell too surely whether a person of the population is in it.",
        "The attacker has the population table with everybody's quasi-identifiers.",
        "It says nothing about sensitive values, and stands or falls with the population table.",
        "at most",
    ),
    "k-map": Words(
        "Every published combination of quasi-identifiers fits at least k people of the "
        "population.",
        "The attacker has the population table but does not know who of it is in the release.",
        "An attacker who knows that a person is in the release faces fewer candidates.",
        "at least",
    ),
    "average risk": Words(
        "An attacker who names a person for every row is right for at most this share of them.",
        "The attacker wants to find many people, and has everybody's quasi-identifiers.",
        "A single person may be at higher risk than the average.",
        "at most",
    ),
    "sample uniques": Words(
        "At most this share of rows stands alone with its quasi-identifiers.",
        "The attacker looks for rows that fit one person only.",
        "Rows in small classes are not counted, and some rows may stand alone.",
        "at most",
    ),
}

_UNKNOWN = Words(
    "See the documentation of this model.",
    "See the documentation of this model.",
    "See the documentation of this model.",
    "required:",
)


def words(model: str) -> Words:
    """The words for a model's name."""
    fitting = [name for name in WORDS if name in model]
    return WORDS[max(fitting, key=len)] if fitting else _UNKNOWN


def limits(document: dict[str, Any]) -> list[str]:
    """What the release does not promise, in sentences for this very release."""
    kept = [c["name"] for c in document["columns"] if c["published"] and c["role"] != "quasi"]
    out = [
        "The promises speak of what an attacker learns through the columns declared as "
        "quasi-identifiers. If others can know a further column, it must be declared too.",
    ]
    if kept:
        names = ", ".join(kept)
        out.append(f"These columns leave as they were, row by row: {names}.")
    out += [
        "This is no differential privacy: an attacker who knows more than assumed may learn more.",
        "A second release about the same people can be combined with this one; the promises hold "
        "for each alone.",
        "What is known about people changes with time: assess the release again before it is "
        "published anew.",
    ]
    return out


def effort(document: dict[str, Any]) -> str:
    """How good the found recoding is, in one sentence."""
    gap = document["gap"]
    if document.get("statement", {}).get("kind") == "hybrid":
        return (
            "All rows of a class carry the same labels, found by a heuristic; some labels are "
            "false for some rows."
        )
    if document["method"] == "recoding":
        return "The rows were recoded by a recoding that was found on other rows."
    if gap is None:
        return "The recoding was found by a heuristic: one that loses less may exist."
    if gap == 0:
        return "No recoding of this kind scores better by the chosen metric: this is proven."
    return (
        "The search was stopped before it was done: the best recoding of this kind scores better "
        f"by at most {gap:.4g}."
    )
