"""Plain sentences for a reader who knows no statistics, made from the figures of a document."""

from __future__ import annotations

from typing import Any

_MARKS = {"met": "✓ met", "not met": "✗ not met", "undecided": "? undecided"}
_HELP = 0.05  # a step that leaves more of the rows alone is hardly worth naming
_STYLES = {"met": "holds", "not met": "fails", "undecided": "open"}


def mark(criterion: dict[str, Any]) -> str:
    """The outcome as a word with a sign, so that it needs no color."""
    return _MARKS[criterion["outcome"]]


def style(criterion: dict[str, Any]) -> str:
    """The class of style of an outcome."""
    return _STYLES[criterion["outcome"]]


def title(criterion: dict[str, Any]) -> str:
    """The criterion, and what is guessed."""
    column = criterion["column"]
    return criterion["name"] if column is None else f"{criterion['name']} of {column}"


def base(criterion: dict[str, Any]) -> str:
    """The word that the criterion is explained under."""
    return str(criterion["name"]).split(",")[0]


def assessment_outcome(document: dict[str, Any]) -> str:
    """What was found, in two sentences."""
    rows, alone = document["rows"], document["unique_rows"]
    if alone == rows:
        first = f"Every one of the {rows:,} rows is the only one with its combination of values."
    elif alone:
        first = (
            f"{alone:,} of {rows:,} rows ({alone / rows:.1%}) are the only ones with their "
            "combination of values."
        )
    else:
        first = f"No row stands alone: everybody hides among at least {document['smallest']:,}."
    failed = [one for one in document["criteria"] if one["outcome"] == "not met"]
    if failed:
        names = ", ".join(dict.fromkeys(base(one) for one in failed))
        return f"{first} Published as it stands, the table fails on {names}."
    if all(one["outcome"] == "met" for one in document["criteria"]):
        return f"{first} All criteria are met."
    return f"{first} Not every criterion could be decided."


def comparison_outcome(document: dict[str, Any]) -> str:
    """What was found, in two or three sentences."""
    failed = [one for one in document["criteria"] if one["outcome"] == "not met"]
    names = ", ".join(dict.fromkeys(title(one) for one in failed))
    risk = f"The attacks that were tried succeed on {names}." if failed else (
        "None of the attacks that were tried gets above the limit."
        if all(one["outcome"] == "met" for one in document["criteria"])
        else "No attack surely gets above the limit, but not all could be decided."
    )  # fmt: skip
    error = document["counting"]["median"]
    lost = document["loss"]
    detail = "" if lost is None else f"{lost:.1%} of the detail in the known columns is lost. "
    return f"{risk} {detail}A typical count on the release is off by {error:.1%}."


def _way(steps: list[dict[str, Any]]) -> str:
    """Several columns together, with the levels that they reach."""
    levels = {one["column"]: one["level"] for one in steps}
    said = ", ".join(f"{name} to level {level}" for name, level in levels.items())
    alone = steps[-1]["unique_rows"]
    first = "No step alone is enough. " if len(levels) > 1 else ""
    return f"{first}Generalizing {said} leaves {alone:,} rows alone."


def next_steps(document: dict[str, Any]) -> list[str]:
    """What to do next, in counts and column names, never values."""
    out = []
    helpful = [one for one in document["advice"] if one["one_level"] < one["unique_rows"]]
    enough = [one for one in helpful if one["one_level"] <= (1 - _HELP) * one["unique_rows"]]
    for one in (enough if document["way"] else helpful)[:3]:
        saved = one["unique_rows"] - one["one_level"]
        how = "Removing" if one["levels"] <= 1 else "Generalizing"
        level = "" if one["levels"] <= 1 else " by one level"
        out.append(
            f"{how} {one['column']}{level} leaves {one['one_level']:,} rows alone instead of "
            f"{one['unique_rows']:,} ({saved:,} fewer)."
        )
    if len(document["way"]) > 1:
        out.append(_way(document["way"]))
    sets = document["special_uniques"]["by_set"]
    if sets:
        names, rows = ", ".join(sets[0]["columns"]), sets[0]["rows"]
        out.append(f"{names}: this combination alone singles out {rows:,} rows, more than others.")
    small = next((t for t in document["reidentification"]["thresholds"] if t["limit"] == 0.2), None)
    if small and small["rows"]:
        out.append(
            f"{small['rows']:,} rows are in classes of fewer than five people: they drive the risk."
        )
    out += [
        f"{one['column']} is certain for {one['homogeneity']:.1%} of the rows once the "
        "quasi-identifiers are known: ask for l-diversity or t-closeness too."
        for one in document["disclosures"]
        if one["homogeneity"] > 0
    ]
    if document["unique_rows"]:
        out.append(
            "Anonymize it (halfmask anonymize), or look at what that would cost first (halfmask "
            "frontier)."
        )
    return out


def comparison_steps(document: dict[str, Any]) -> list[str]:
    """What to do next with a release."""
    out = []
    for one in document["criteria"]:
        if one["outcome"] != "not met":
            continue
        if one["name"] == "singling out, by any column":
            out.append(
                "Sensitive or other columns make rows unique: generalize or remove those with many "
                "different values, if others may learn them."
            )
        elif one["name"] == "inference":
            out.append(
                f"{one['column']} can be guessed from the other columns: ask for l-diversity or "
                "t-closeness on it, or check with a control whether this is common knowledge."
            )
        else:
            out.append(f"Raise k, or generalize further, to bring {one['name']} below the limit.")
    if any(one["control"] is None for one in document["criteria"]):
        out.append(
            "Give rows of people who are not in the release (--control): only then can leaks be "
            "told from what the table says about everybody."
        )
    both = document["differencing"]
    if both is not None and (both["alone"]["value"] or 0) > 0:
        out.append(
            f"Together with the earlier release {both['alone']['value']:.1%} of the people stand "
            "alone: do not publish both, or publish this one at the levels of the earlier one."
        )
    out += [
        f"{one['after']['column']} is certain for {one['after']['homogeneity']:.1%} of released "
        "rows once the quasi-identifiers are known: ask for l-diversity or t-closeness too."
        for one in document["disclosures"]
        if one["after"] is not None and one["after"]["homogeneity"] > 0
    ]
    lost = [c for c in document["generalized"] if (c["loss"] or 0) > 0.99]
    if lost:
        names = ", ".join(c["name"] for c in lost)
        out.append(
            f"{names}: nothing is left of it. A finer hierarchy, a smaller weight for the other "
            "columns, or local recoding may keep something."
        )
    return out
