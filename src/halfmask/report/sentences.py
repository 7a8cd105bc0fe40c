"""Plain sentences for a reader who knows no statistics, made from the figures of a document."""

from __future__ import annotations

from typing import Any

from halfmask.report.figures import rows as counted

_MARKS = {"met": "✓ met", "not met": "✗ not met", "undecided": "? undecided"}
_NAMED = 6  # columns that a sentence can name
_HELP = 0.05  # a step that leaves more of the rows alone is hardly worth naming
_ORDER = {"not met": 0, "undecided": 1, "met": 2}
_COARSER = ("singling out", "linkability", "linkability, by names")  # mended by larger classes
TAKE_OUT = "Take it out."  # how notes about columns end that must not leave
_STYLES = {"met": "holds", "not met": "fails", "undecided": "open"}
MADE_UP = (
    "Some people fit no released row although nobody was left out: cells are false, rows stand for "
    "nobody, or labels cannot be read. How many released rows are alike, and what values they "
    "share, is then no measure of people; the criteria and the attacks are."
)


def mark(criterion: dict[str, Any]) -> str:
    """The outcome as a word with a sign, so that it needs no color."""
    return _MARKS[criterion["outcome"]]


def style(criterion: dict[str, Any]) -> str:
    """The class of style of an outcome."""
    return _STYLES[criterion["outcome"]]


def decided_by_attack(criterion: dict[str, Any]) -> bool:
    """Whether the attack itself fails the criterion; else what left with the rows does."""
    high = criterion["risk"]["high"]
    return high is not None and high > criterion["limit"]


def title(criterion: dict[str, Any]) -> str:
    """The criterion, and what is guessed."""
    column = criterion["column"]
    return criterion["name"] if column is None else f"{criterion['name']} of {column}"


def base(criterion: dict[str, Any]) -> str:
    """The word that the criterion is explained under."""
    return str(criterion["name"]).split(",")[0]


def verdicts(document: dict[str, Any]) -> list[dict[str, Any]]:
    """One outcome for each of the three criteria: the worst of its attacks, and which that is.

    ``by`` is empty where the attack that the criterion is named for is as bad.
    """
    worst: dict[str, dict[str, Any]] = {}
    for one in document["criteria"]:
        name = base(one)
        if name not in worst or _ORDER[one["outcome"]] < _ORDER[worst[name]["outcome"]]:
            by = one["name"].removeprefix(name).removeprefix(", ")
            worst[name] = {"name": name, "outcome": one["outcome"], "by": by}
    return list(worst.values())


def common_notes(document: dict[str, Any]) -> list[str]:
    """What is to be known of every criterion."""
    notes = [one["notes"] for one in document["criteria"]]
    return [note for note in notes[0] if all(note in others for others in notes)]


def tried(criterion: dict[str, Any]) -> str:
    """How often an attack was tried; nothing where all rows were counted."""
    attack, control = criterion["attack"], criterion["control"]
    if attack["value"] is None or attack["low"] == attack["high"]:
        return ""
    others = "" if control is None else f", and {control['n']:,} times on people not in it"
    return f"Tried {attack['n']:,} times{others}."


def own_notes(document: dict[str, Any], criterion: dict[str, Any]) -> list[str]:
    """What is to be known of one criterion only."""
    common = common_notes(document)
    return [note for note in criterion["notes"] if note not in common]


def assessment_outcome(document: dict[str, Any]) -> str:
    """What was found, in two sentences."""
    rows, alone = document["rows"], document["unique_rows"]
    if alone == rows == 1:
        first = "The table has one row, and whoever it is about stands alone."
    elif alone == rows:
        first = f"Every one of the {rows:,} rows is the only one with its combination of values."
    elif alone == 1:
        first = f"1 of {rows:,} rows is the only one with its combination of values."
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
    failing = {one["name"] for one in failed}
    titles = [title(one) for one in failed if one["name"] == base(one) or base(one) not in failing]
    names = ", ".join(one.replace(", by", " by") for one in titles)
    risk = f"The attacks that were tried succeed on {names}." if failed else (
        "None of the attacks that were tried gets above the limit."
        if all(one["outcome"] == "met" for one in document["criteria"])
        else "No attack surely gets above the limit, but not all could be decided."
    )  # fmt: skip
    error = document["counting"]["median"]
    lost = document["loss"]
    known = lost is not None and not document["made_up"]  # false values may be as detailed as true
    detail = f"{lost:.1%} of the detail in the known columns is lost. " if known else ""
    return f"{risk} {detail}A typical count on the release is off by {error:.1%}."


def _way(steps: list[dict[str, Any]]) -> str:
    """Several columns together, with the levels that they reach."""
    levels = {one["column"]: one["level"] for one in steps}
    alone = steps[-1]["unique_rows"]
    if len(levels) > _NAMED:
        return (
            f"No step alone is enough. It takes {len(levels)} columns, generalized step by step as "
            f"listed below, to leave {counted(alone)} alone."
        )
    said = ", ".join(f"{name} to level {level}" for name, level in levels.items())
    first = "No step alone is enough. " if len(levels) > 1 else ""
    return f"{first}Generalizing {said} leaves {counted(alone)} alone."


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
            f"{how} {one['column']}{level} leaves {counted(one['one_level'])} alone instead of "
            f"{one['unique_rows']:,} ({saved:,} fewer)."
        )
    if len(document["way"]) > 1:
        out.append(_way(document["way"]))
    sets = document["special_uniques"]["by_set"]
    if sets:
        names, rows = ", ".join(sets[0]["columns"]), sets[0]["rows"]
        what = "combination" if len(sets[0]["columns"]) > 1 else "column"
        more = ", more than others" if len(sets) > 1 else ""
        out.append(f"{names}: this {what} alone singles out {counted(rows)}{more}.")
    small = next((t for t in document["reidentification"]["thresholds"] if t["limit"] == 0.2), None)
    if small and small["rows"]:
        out.append(
            f"Fewer than five people share the class of {counted(small['rows'])}: these drive the "
            "risk."
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
    out = [note for note in document["notes"] if note.endswith(TAKE_OUT)]
    failed = [one for one in document["criteria"] if one["outcome"] == "not met"]
    found = [one for one in failed if decided_by_attack(one)]
    coarser = [one["name"] for one in found if one["name"] in _COARSER]
    if coarser:
        names = " and ".join(name.replace(",", "") for name in coarser)
        out.append(f"Raise k, or generalize further, to bring {names} below the limit.")
    for one in found:
        if one["name"] == "singling out, by any column":
            out.append(
                "Rows are unique once sensitive or other columns are known too: if others may know "
                "one of these, make it a quasi-identifier and anonymize again; if not, nobody can "
                "look for people by it."
            )
        elif one["name"] == "inference":
            check = ", or check with a control whether this is common knowledge"
            out.append(
                f"{one['column']} can be guessed from the other columns: ask for l-diversity or "
                f"t-closeness on it{check if one['control'] is None else ''}."
            )
    if document["criteria"][0]["control"] is None:
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
        if not document["made_up"] and one["after"] is not None and one["after"]["homogeneity"] > 0
    ]
    lost = [c for c in document["generalized"] if (c["loss"] or 0) > 0.99]
    if lost:
        names = ", ".join(c["name"] for c in lost)
        out.append(
            f"{names}: nothing is left of it. A finer hierarchy, a smaller weight for the other "
            "columns, or local recoding may keep something."
        )
    return out
