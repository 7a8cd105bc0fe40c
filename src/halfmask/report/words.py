"""The words of reports: figures, sentences and terms for a reader who knows no statistics.

Figures have few digits, and are never 0 % or 100 % where that is not quite so. What a promise means
is said by its model.
"""

from __future__ import annotations

import json
import math
from typing import Any

from halfmask.metrics.risk.reidentification import CLASSES
from halfmask.metrics.risk.reidentification import HIGHEST as HIGHEST  # templates take them here
from halfmask.metrics.risk.reidentification import MEAN as MEAN
from halfmask.metrics.risk.reidentification import SMALLEST as SMALLEST
from halfmask.models.verdict import Words, known_models
from halfmask.table.columns import abbreviate_names

_ROUNDING = 1e-12  # what sums in another order leave


def count_text(value: float) -> str:
    """A count with its thousands apart."""
    return f"{value:,}"


def rows_text(value: int) -> str:
    """A count of rows."""
    return f"{value:,} row" if value == 1 else f"{value:,} rows"


def percent_text(value: float) -> str:
    """A share as percent."""
    if _ROUNDING < value < 0.001:
        return "under 0.1%"
    return "over 99.9%" if 0.999 < value < 1 - _ROUNDING else f"{value:.1%}"


def score_text(value: float) -> str:
    """A figure between about 0 and 1, or a small ratio, in three digits."""
    if abs(value) < _ROUNDING:
        return "0"
    if abs(value) < 0.0005:
        return "under 0.001"
    if 0.9995 < value < 1:
        return "over 0.999"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"


def figure_text(value: float | None) -> str:
    """A required or achieved figure, in few digits."""
    if value is None:
        return "none"
    if isinstance(value, int):
        return f"{value:,}"
    if 0 < abs(value) < 1e-12:  # what rounding leaves
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return "over 0.9999" if 0.9999 < value < 1 else f"{value:.4g}"


_MARKS = {"met": "✓ met", "not met": "✗ not met", "undecided": "? undecided"}
_NAMED = 6  # columns that a sentence can name
_LINES = 2  # columns that have a line each
_HELP = 0.05  # a step that leaves more of the rows alone is hardly worth naming
_ORDER = {"not met": 0, "undecided": 1, "met": 2}
_COARSER = (  # mended by larger classes
    "singling out", "linkability", "linkability, by names", f"singling out, {CLASSES}",
    f"linkability, {CLASSES}",
)  # fmt: skip
TAKE_OUT = "Take it out."  # how notes about columns end that must not leave
_STYLES = {"met": "holds", "not met": "fails", "undecided": "open"}
STATISTICS = {  # what people read of the statistics of numeric columns
    "mean": "means",
    "covariance": "covariances",
    "correlation": "correlations",
    "factor correlation": "correlations with the first principal component",
    "communality": "shares that the first principal component explains (communality)",
    "factor score": "weights in the first principal component (factor score)",
}
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
    if column is None:
        return str(criterion["name"])
    name, comma, by = criterion["name"].partition(",")
    return f"{name} of {column}{comma}{by}"


def base(criterion: dict[str, Any]) -> str:
    """The word that the criterion is explained under."""
    return str(criterion["name"]).split(",")[0]


def criteria_verdicts(document: dict[str, Any]) -> list[dict[str, Any]]:
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


def trials_text(criterion: dict[str, Any]) -> str:
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
    attacks = {(base(one), one["column"]) for one in failed if not one["name"].endswith(CLASSES)}
    failed = [
        one
        for one in failed
        if not one["name"].endswith(CLASSES) or (base(one), one["column"]) not in attacks
    ]
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
    return f"{risk} {detail}Half of random counts are off by less than {error:.1%} (median)."


def _way(steps: list[dict[str, Any]], before: int) -> str:
    """Several columns together, with the levels that they reach; ``before``: rows alone now."""
    levels = {one["column"]: one.get("words") or f"level {one['level']}" for one in steps}
    alone = steps[-1]["unique_rows"]
    if alone > (1 - _HELP) * before:
        return (
            f"No step alone is enough, nor do {len(levels)} columns generalized step by step help: "
            f"they leave {alone:,} of {rows_text(before)} alone. Fewer quasi-identifiers, or "
            "coarser hierarchies, would."
        )
    if len(levels) > _NAMED:
        return (
            f"No step alone is enough. It takes {len(levels)} columns, generalized step by step as "
            f"the report lists them, to leave {rows_text(alone)} alone."
        )
    said = ", ".join(f"{name} to {words}" for name, words in levels.items())
    first = "No step alone is enough. " if len(levels) > 1 else ""
    return f"{first}Generalizing {said} leaves {rows_text(alone)} alone."


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
            f"{how} {one['column']}{level} leaves {rows_text(one['one_level'])} alone instead of "
            f"{one['unique_rows']:,} ({saved:,} fewer)."
        )
    if len(document["way"]) > 1:
        out.append(_way(document["way"], document["unique_rows"]))
    sets = document["special_uniques"]["by_set"]
    if sets:
        names, rows = ", ".join(sets[0]["columns"]), sets[0]["rows"]
        what = "combination" if len(sets[0]["columns"]) > 1 else "column"
        more = ", more than others" if len(sets) > 1 else ""
        out.append(f"{names}: this {what} alone singles out {rows_text(rows)}{more}.")
    small = next((t for t in document["reidentification"]["thresholds"] if t["limit"] == 0.2), None)
    if small and small["rows"]:
        out.append(
            f"Fewer than five people share the class of {rows_text(small['rows'])}: these drive "
            "the "
            "risk."
        )
    known = [(one["column"], one["homogeneity"]) for one in document["disclosures"]]
    out += _certain(known, "the rows")
    if not document["unique_rows"]:
        return out + _larger_classes(document)
    return [
        *out,
        "Anonymize it (halfmask anonymize), or look at what that would cost first (halfmask "
        "frontier).",
    ]


def _larger_classes(document: dict[str, Any]) -> list[str]:
    """How large classes must be for a criterion that fails by them."""
    failed = [one for one in document["criteria"] if one["outcome"] == "not met"]
    by_size = [one for one in failed if one["name"] == f"linkability, {CLASSES}"]
    out = [
        f"Classes hold {document['smallest']:,} people at least: raise k "
        f"({math.ceil(1 / one['limit']):,} is enough), or generalize further, to bring "
        f"{_names([one])} below the limit."
        for one in by_size
    ]
    certain = {one["column"] for one in document["disclosures"] if one["homogeneity"] > 0}
    guessed = [one["column"] for one in failed if base(one) == "inference"]
    names = [name for name in guessed if name not in certain]
    if names:
        out.append(
            f"{abbreviate_names(names)} can be guessed from the quasi-identifiers: ask for "
            "l-diversity or t-closeness too."
        )
    return out


def _guessed(found: list[dict[str, Any]]) -> list[str]:
    """Which columns attacks guess, in two lines at most."""
    columns = list(dict.fromkeys(one["column"] for one in found))
    uncontrolled = any(one["control"] is None for one in found)
    check = ", or check with a control whether this is common knowledge" if uncontrolled else ""
    ask = "can be guessed from the other columns: ask for l-diversity or t-closeness on"
    if len(columns) <= _LINES:
        return [f"{name} {ask} it{check}." for name in columns]
    return [f"{abbreviate_names(columns)} {ask} them{check}."]


def _names(criteria: list[dict[str, Any]]) -> str:
    *others, last = (one["name"].replace(",", "") for one in criteria)
    return f"{', '.join(others)} and {last}" if others else last


def _certain(columns: list[tuple[str, float]], rows: str) -> list[str]:
    """What classes give away of sensitive columns, in two lines at most."""
    found = [(name, share) for name, share in columns if share > 0]
    ask = "once the quasi-identifiers are known: ask for l-diversity or t-closeness too."
    if len(found) <= _LINES:
        return [
            f"{name} is certain for {percent_text(share)} of {rows} {ask}" for name, share in found
        ]
    found.sort(key=lambda one: -one[1])
    said = ", ".join(f"{name} ({percent_text(share)})" for name, share in found[:_NAMED])
    more = f" and {len(found) - _NAMED:,} more columns" if len(found) > _NAMED else ""
    return [f"Certain for a share of {rows} {ask.split(':')[0]}: {said}{more}:{ask.split(':')[1]}"]


def comparison_steps(document: dict[str, Any]) -> list[str]:
    """What to do next with a release."""
    out = [note for note in document["notes"] if note.endswith(TAKE_OUT)]
    failed = [one for one in document["criteria"] if one["outcome"] == "not met"]
    found = [one for one in failed if decided_by_attack(one)]
    coarser = [one for one in found if one["name"] in _COARSER]
    if coarser:
        out.append(f"Raise k, or generalize further, to bring {_names(coarser)} below the limit.")
    if any(one["name"] == "singling out, by any column" for one in found):
        out.append(
            "Rows are unique once sensitive or other columns are known too: if others may know "
            "one of these, make it a quasi-identifier and anonymize again; if not, nobody can "
            "look for people by it."
        )
    out += _guessed([one for one in found if base(one) == "inference"])
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
    if not document["made_up"]:
        after = [one["after"] for one in document["disclosures"] if one["after"] is not None]
        out += _certain([(one["column"], one["homogeneity"]) for one in after], "released rows")
    lost = [c for c in document["generalized"] if (c["loss"] or 0) > 0.99]
    if lost:
        names = ", ".join(c["name"] for c in lost)
        out.append(
            f"{names}: nothing is left of it. A finer hierarchy, a smaller weight for the other "
            "columns, or local recoding may keep something."
        )
    return list(dict.fromkeys(out))


_SHORT = 24  # letters of a name that fit a column of a table


def whole(name: str) -> str:
    """The class of style of a name that is not to be broken."""
    return " whole" if len(name) <= _SHORT else ""


_COUNTED = ("models", "value", "left_out")  # told elsewhere: models, loss, rows suppressed


def setting_lines(parameters: dict[str, Any]) -> list[tuple[str, str]]:
    """The settings that repeat a release, as people read them: those that were set."""
    out = []
    for name, value in parameters.items():
        if value is None or name in _COUNTED:
            continue
        said = json.dumps(value) if isinstance(value, dict | list | tuple) else str(value)
        if name == "weights" and isinstance(value, dict):
            if set(value.values()) <= {1}:
                continue
            said = ", ".join(f"{column} {weight:g}" for column, weight in value.items())
        if name == "suppression":
            if "left_out" in parameters and not value:  # who divides rows leaves nobody out
                continue
            out.append(("rows that may be left out", percent_text(value)))
            continue
        out.append((name.replace("_", " "), said))
    return out


TERMS: dict[str, str] = {
    "class": "The rows that share all their quasi-identifiers. Who knows these of a person cannot "
    "tell the rows of a class apart.",
    "quasi-identifier": "A column that others may know about a person, such as age or postcode. "
    "One alone says little; several together often fit one person only.",
    "sensitive": "A column whose values must not be tied to a person.",
    "prosecutor": "The attacker knows that a certain person is in the table, and what the "
    "quasi-identifiers of this person are. The risk is 1 / people in the class; the highest "
    "counts.",
    "journalist": "The attacker wants to find anybody. By population: 1 / people of the population "
    "in the class. Any hit: the chance that one guess for each class is right at least once.",
    "marketer": "The attacker guesses everybody at once. The risk is the share of people who are "
    "expected to be found: classes / people.",
    "singling out": "Isolating the row of one person. One of the three criteria of the European "
    "data protection authorities (opinion 05/2014).",
    "linkability": "Joining two files about the same person. One of the three criteria of the "
    "European data protection authorities (opinion 05/2014).",
    "inference": "Guessing a value of a person from the others, much better than without the "
    "table. One of the three criteria of the European data protection authorities (opinion "
    "05/2014).",
    "risk of an attack": "(attack - control) / (1 - control): how much of what is safe without the "
    "release the attack takes. The control is the same attack on people who are not in the "
    "release; where there are none, plain guessing (the baseline) takes its place.",
    "interval": "With 95 % confidence the true figure lies between these ends. A figure without "
    "an interval was counted on all rows, unless its text names a sample.",
    "special unique": "Somebody who is unique already through few columns. A minimal unique set is "
    "a set of columns that singles a row out while no part of it does (SUDA2): no other person "
    "shares the values.",
    "population uniqueness": "How many people of the whole population are unique, estimated from "
    "this table, which must be a random part of it. Models of class sizes give different answers; "
    "one that fails says so. Up to a tenth of the population Pitman's model is relied on, above it "
    "the lower of SNB and Zayatz (Dankar and others, 2012).",
    "bounds under any model": "Who is unique in the population is alone in every part of it, so no "
    "more can be unique than are alone here. And people who share their class meet in a random "
    "part of it with a known chance, so that few meetings mean that few share.",
    "sampling weight": "How many people of the population somebody in a survey stands for, the "
    "person included. The weights of a class together estimate how many people of the population "
    "share it.",
    "individual risk": "How likely a person of the table is found among the whole population, by "
    "an attacker who does not know who is in the table. How many people F share the class there is "
    "not known: the risk is the expected value of 1 / F, given the people of the class here and "
    "their weights (Benedetti and Franconi, 1998; the same as in sdcMicro and mu-Argus). It is "
    "higher than 1 / the people stood for, because F may be smaller than the weights say.",
    "DIS-SUDA": "Data intrusion simulation (DIS) asks how often a match is right when one row fits "
    "somebody: with U people alone, P in classes of two and the share d of the population in the "
    "table, U d / (U d + P (1 - d)). DIS-SUDA gives special uniques with a high SUDA score more of "
    "it and others less (Skinner and Elliot, 2002; Elliot and Manning, 2003; as in sdcMicro).",
    "k-map": "How many people of the population share the class of somebody in the table, by the "
    "Poisson model. It takes everybody who is alone here to be alone in the population with the "
    "same chance, the share of the population that is in the table: too little for detailed "
    "tables.",
    "distinction and separation": "Distinction: different combinations / people (somebody with two "
    "combinations counts twice). Separation: the share of pairs of people that differ.",
    "discrimination rate": "1 - H(X | Y) / H(X): how far knowing Y shrinks what X can be. 0: not "
    "at all; 1: to one outcome.",
    "identity": "How far a published label gives the original value of its column away, as a "
    "discrimination rate: 1 - H(value | label) / H(value).",
    "external information needed": "1 - the discrimination rate: what an attacker must know "
    "besides the published quasi-identifiers. The lower, the more vulnerable.",
    "semantic partition": "Blocks of values that mean the same to an attacker or an analyst, such "
    "as all cancers. Given, or else the first level of the column's hierarchy.",
    "class of identifier": "Identifier: every combination leaves one outcome. Partial: some do. "
    "Sketchy: none does, but they tell something. Zero: they tell nothing.",
    "by chance": "The rate that the same groups have when the target is shuffled among the rows. "
    "Many small groups raise a rate whatever the data says.",
    "information loss": "1 - the mean discrimination rate of an attack; overall, the mean of "
    "identity and homogeneity. What resisting the attacks took from the data.",
    "need": "What somebody wants to learn from which columns, as a discrimination rate: an "
    "analyst's need asks for at least so much, an attacker's goal may reach at most so much.",
    "homogeneity": "All rows of a class hold the same sensitive value, so that it is known without "
    "finding the row.",
    "background knowledge": "Ruling out one value is enough to know the sensitive value.",
    "skewness": "How much likelier a value is in a class than in the whole table.",
    "similarity": "The values of a class differ but mean the same: they stand in one block of a "
    "given partition, else under one label of the first level of the hierarchy, else, being "
    "numbers, in one tenth of their range. As a share, it counts the rows of such classes; as a "
    "discrimination rate, it says how far the block of a row is told.",
    "loss": "The share of a column's values that a published label leaves open: 0 % as it was, "
    "100 % nothing left. A suppressed row counts as lost in full.",
    "Hellinger distance": "How far two distributions are apart, from 0 (the same) to 1 (nothing in "
    "common). A generalized value is spread evenly over the values it covers.",
    "counting queries": "Counts of rows under random conditions on two columns, on the original "
    "and on the release; the relative error is the difference / the true count.",
    "prediction": "Models are trained on the release and tested on original rows, beside the same "
    "models trained on the original.",
    "linear model": "Least squares of a numeric column on all others, fitted on either table. Of "
    "each coefficient the 95 % intervals are compared: the length that they share / the length of "
    "each, on average (Karr and others, 2006). 1: the same; 0 or below: apart. Rows drawn anew "
    "from the original's give about 0.80, other people of the same population about 0.71.",
    "telling apart": "A classifier tries to tell original and released rows apart: 50 % is "
    "perfect for the release, 100 % means that they look different.",
    "propensity": "pMSE: how far the chance to come from the release, as a model sees it, is from "
    "a half. A ratio of 1 is what rows drawn from a right model of the "
    "original would give, 2 what other people of the same population would.",
    "membership": "Telling who was in the original by how near the released rows come: 50 % is "
    "guessing.",
    "minimality": "Classes that were generalized more than their size needs tell an attacker who "
    "knows the method that something else was wrong with them.",
    "record linkage": "Matching a file with names to the release row by row: by the nearest row, "
    "by the cheapest matching of all rows, or by the odds that rows which agree in these columns "
    "belong together (Fellegi and Sunter), where doubtful pairs are left to a person. It is tried "
    "on a sample of people; among all rows for the nearest, among whole classes for the others.",
    "attribution": "An attacker who knows every row but one takes away all released rows that "
    "these explain. What is left may come from the last person: the less, the surer.",
    "differencing": "Two releases of the same people, held against each other, leave fewer people "
    "and fewer values that fit both.",
    "not dominated": "No other setting has less risk and no more loss, or less loss and no more "
    "risk. Private tables, which are drawn at random, are compared at the upper ends of their "
    "intervals, so that a lucky draw does not count as better.",
    "gain of a guess": "(guess - prior) / (1 - prior): guess is how often the likeliest sensitive "
    "value of a class is right, prior how often the likeliest of all rows is. The column where it "
    "is largest counts.",
}


def term(name: str) -> str:
    """What a word means."""
    return TERMS[name]


_ROLES = {
    "quasi": "others may know it",
    "sensitive": "sensitive: nobody may learn it",
    "identifier": "names a person",
    "person": "says whose row it is",
    "policy": "a person's own demand",
    "other": "leaves as it is",
    "drop": "does not leave",
}


def role_text(role: str) -> str:
    """What a role means."""
    return _ROLES.get(role, role)


_REACHED = {"k-anonymity": "smallest class", "l-diversity": "fewest values"}


def demands_text(model: str, levels: list[dict[str, Any]], most: int = 50) -> str:
    """What people demand for themselves and what they have, as a list.

    Example:
        >>> demands_text("personal k-anonymity", [{"demanded": 3, "people": 1650, "reached": 4}])
        'demanded 3: 1,650 people, smallest class 4'
    """
    name = next((word for family, word in _REACHED.items() if family in model), "farthest class")
    said = [
        f"demanded {figure_text(one['demanded'])}: {one['people']:,} people, {name} "
        f"{figure_text(one['reached'])}"
        for one in levels
    ]
    more = [] if len(said) <= most else [f"{len(said) - most} more levels"]
    return "; ".join([*said[:most], *more])


_UNKNOWN = Words(
    "See the documentation of this model.",
    "See the documentation of this model.",
    "See the documentation of this model.",
    "required:",
)


def model_words(model: str) -> Words:
    """What the family of models that a name belongs to says of itself."""
    fitting = [known for known in known_models() if known.family in model]
    return max(fitting, key=lambda known: len(known.family)).words if fitting else _UNKNOWN


def limit_sentences(document: dict[str, Any]) -> list[str]:
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
