"""Discrimination rates for a reader: who attacks, what is learned, how much is left."""

from __future__ import annotations

from typing import Any

from halfmask.report.figures import figure

Line = dict[str, Any]
_ATTACKERS = {
    "identity": "has the original column and the published labels, and wants the value behind a "
    "label",
    "homogeneity": "knows the published quasi-identifiers of a person and reads off what they "
    "leave open",
    "background": "knows the same; this share of the information must still come from elsewhere",
    "skewness": "knew the original quasi-identifiers; this share was taken away by generalizing",
    "similarity": "knows the published quasi-identifiers and wants the meaning of a value only",
}
_NAMES = {"background": "external information needed", "skewness": "skewness: told no more"}


def attack_lines(document: dict[str, Any]) -> dict[str, list[Line]]:
    """The attacks by all quasi-identifiers together, and those by each of them."""
    rates = document["discrimination"]["rates"]
    quasi = len(document["generalized"])
    return {
        "together": [_line(one) for one in rates if _whole(one, quasi)],
        "each": [_line(one) for one in rates if not _whole(one, quasi) and one["rate"] is not None],
    }


def _whole(one: dict[str, Any], quasi: int) -> bool:
    return one["attack"] == "identity" or len(one["keys"]) == quasi


def _line(one: dict[str, Any]) -> Line:
    name = _NAMES.get(one["attack"], one["attack"])
    return {
        "attack": f"{name}: {one['target']}",
        "attacker": _ATTACKERS[one["attack"]],
        "keys": ", ".join(one["keys"]),
        "before": _said(one["before"], one["chance_before"]),
        "after": _said(one["rate"], one["chance"]) if one["rate"] is not None else "not known",
        "class": one["kind"] or "",
        "reason": one["reason"],
        "rows": one["rows"],
        "certain": one["identified_rows"] if one["kind"] else None,
    }


def _said(rate: float | None, chance: dict[str, Any] | None) -> str:
    if rate is None:
        return ""
    if chance is None or chance["value"] is None:
        return figure(rate)
    return f"{figure(rate)} (chance: {figure(chance['value'])})"


def need_lines(document: dict[str, Any]) -> list[Line]:
    """Each need before and after, and whether it is met."""
    out = []
    for one in document["needs"]:
        asked = [
            f"{words} {figure(one[key])}"
            for key, words in (("at_least", "at least"), ("at_most", "at most"))
            if one[key] is not None
        ]
        verdict = {True: "met", False: "not met", None: ""}[one["met"]]
        out.append(
            {
                "name": one["name"],
                "before": "" if one["before"] is None else figure(one["before"]),
                "after": "not known" if one["after"] is None else figure(one["after"]),
                "rows": f"{one['rows_before']:,} → {one['rows_after']:,}",
                "asked": " and ".join(asked),
                "verdict": verdict,
                "style": {True: "holds", False: "fails", None: "open"}[one["met"]],
                "notes": " ".join([one["reason"], *one["notes"]]).strip(),
            }
        )
    return out
