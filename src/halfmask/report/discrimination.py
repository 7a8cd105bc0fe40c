"""Discrimination rates for a reader: who attacks, what is learned, how much is left."""

from __future__ import annotations

from typing import Any

RateLine = dict[str, Any]
ATTACKERS = {
    "identity": "has the original column and the published labels (white box), and wants the value "
    "behind a label",
    "homogeneity": "knows the published quasi-identifiers of a person and reads off what they "
    "leave open",
    "background": "knows the same; this share of the information must still come from elsewhere",
    "skewness": "knew the original quasi-identifiers; this share was taken away by generalizing",
    "similarity": "knows the published quasi-identifiers and wants the meaning of a value only",
}
NAMES = {"background": "external information needed", "skewness": "skewness, what is told no more"}


def exact_rate_text(value: float | None) -> str:
    """A rate with four decimals, and never 0 or 1 that is not quite so."""
    if value is None:
        return "not known"
    if abs(value) < 1e-12:  # what rounding leaves
        return "0"
    if abs(value) < 5e-5:
        return "under 0.0001"
    if value == 1:
        return "1"
    return "over 0.9999" if 0.99995 < value < 1 else f"{value:.4f}"


def attack_lines(document: dict[str, Any], *, together: bool) -> list[RateLine]:
    """Per attack its attacker and a line per column.

    With ``together``, all quasi-identifiers are known jointly; else each of them alone.
    """
    quasi = len(document["generalized"])
    out = []
    for attack, attacker in ATTACKERS.items():
        lines = [
            _line(one)
            for one in document["discrimination"]["rates"]
            if one["attack"] == attack and _whole(one, quasi) == together
        ]
        lines = [one for one in lines if together or not one["reason"]]
        if lines:
            name = NAMES.get(attack, attack)
            out.append({"attack": name, "attacker": attacker, "lines": lines})
    return out


def _whole(one: dict[str, Any], quasi: int) -> bool:
    return one["attack"] == "identity" or len(one["keys"]) == quasi


def _line(one: dict[str, Any]) -> RateLine:
    known = one["rate"] is not None
    return {
        "target": one["target"],
        "keys": ", ".join(one["keys"]),
        "before": "" if one["before"] is None else exact_rate_text(one["before"]),
        "after": exact_rate_text(one["rate"]) if known else "not known",
        "chance_before": _chance(one["chance_before"]),
        "chance": _chance(one["chance"]),
        "class": (one["kind"] or "") if known else "",
        "reason": one["reason"],
        "rows": one["rows"],
        "certain": one["identified_rows"] if one["kind"] else None,
    }


def _chance(one: dict[str, Any] | None) -> str:
    if one is None or one["value"] is None:
        return ""
    ends = (
        ""
        if one["low"] == one["high"]
        else f" ({exact_rate_text(one['low'])} to {exact_rate_text(one['high'])})"
    )
    return f"by chance {exact_rate_text(one['value'])}{ends}"


def need_lines(document: dict[str, Any]) -> list[RateLine]:
    """Each need before and after, and whether it is met."""
    out = []
    for one in document["needs"]:
        asked = [
            f"{words} {one[key]:g}"
            for key, words in (("at_least", "at least"), ("at_most", "at most"))
            if one[key] is not None
        ]
        verdict = {True: "met", False: "not met", None: ""}[one["met"]]
        out.append(
            {
                "name": one["name"],
                "before": "" if one["before"] is None else exact_rate_text(one["before"]),
                "after": "not known" if one["after"] is None else exact_rate_text(one["after"]),
                "rows": f"{one['rows_before']:,} → {one['rows_after']:,}",
                "asked": " and ".join(asked),
                "verdict": verdict,
                "style": {True: "holds", False: "fails", None: "open"}[one["met"]],
                "notes": " ".join([one["reason"], *one["notes"]]).strip(),
            }
        )
    return out


def label_tables(documents: list[dict[str, Any]], most: int = 50) -> list[RateLine]:
    """Rates of single labels: a table per attack, column and target, a column per release.

    A label that a release does not publish has no rate in it.
    """
    held: dict[tuple[str, str, str], dict[str, list[RateLine | None]]] = {}
    for place, document in enumerate(documents):
        for one in document["labels"] or ():
            table = held.setdefault((one["attack"], one["target"], one["column"]), {})
            table.setdefault(one["label"], [None] * len(documents))[place] = one
    out = []
    for (attack, target, column), lines in held.items():
        shown = [
            {
                "label": label,
                "rates": [None if one is None else exact_rate_text(one["rate"]) for one in found],
                "rows": [None if one is None else one["rows"] for one in found],
            }
            for label, found in list(lines.items())[:most]
        ]
        name = NAMES.get(attack, attack)
        out.append({"attack": name, "target": target, "column": column, "lines": shown,
                    "labels": len(lines)})  # fmt: skip
    return out


def rate_sentence(one: dict[str, Any]) -> str:
    """What a rate says, in a sentence."""
    known = " and ".join([", ".join(one["keys"][:-1]), one["keys"][-1]]).removeprefix(" and ")
    said = {
        "identifier": f"Who knows {known} of a person knows {one['target']}, always.",
        "partial": f"Who knows {known} of a person knows {one['target']} of some for certain.",
        "sketchy": f"Who knows {known} of a person can guess {one['target']} better.",
        "zero": f"{known} tells nothing about {one['target']}.",
        "undefined": f"{one['target']} never varies: there is nothing to learn.",
    }
    chance = one["inflation"] and one["inflation"]["adjusted"]
    if chance and not chance["trusted"] and one["kind"] not in ("zero", "undefined"):
        return f"{said[one['kind']]} Chance alone would give such small groups as much."
    return said[one["kind"]]


def short_figure(one: dict[str, Any]) -> str:
    """A figure without its interval."""
    return "not known" if one["value"] is None else exact_rate_text(one["value"])


def most_telling_values(one: dict[str, Any]) -> list[RateLine]:
    """The hundred values that tell most, weighed by their rows."""
    held = sorted(one["values"], key=lambda v: (-(v["unweighted"] or 0) * v["share"], -v["count"]))
    return [v | {"value": _write_value(v["value"])} for v in held[:100]]


def _write_value(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_write_value, value))
    return "missing" if value is None else str(value)
