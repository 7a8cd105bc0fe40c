"""What a column is to people who look for somebody: roles, from values and names, with reasons."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.table.proposals import vocabulary as words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from halfmask.table.proposals.shapes import Facts

_ENOUGH_ROWS = 20
_NEARLY_ALL = 0.95
_REPEATED = 0.2  # numbers of cases, of telephones ... that several rows share
_DENSE = 3  # numbers of people leave few gaps; amounts many
_LONG_NUMBER = 6
_CONTENTS = {
    "e-mail addresses": r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
    "numbers of telephones": r"^(\+|00)[0-9][0-9 ()/.-]{6,}$",
    "account numbers (IBAN)": r"^[A-Z]{2}[0-9]{2}[A-Z0-9 ]{11,}$",
    "social security numbers": r"^[0-9]{3}-[0-9]{2}-[0-9]{4}$",
    "addresses of machines": r"^[0-9]{1,3}(\.[0-9]{1,3}){3}$",
    "universal identifiers": r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
    "web addresses": r"^https?://",
}
_DEMANDS = re.compile(r"(k|l|t|epsilon|eps)i?", re.I)


@dataclass(frozen=True, slots=True)
class RoleFound:
    """The role proposed for a column.

    Attributes:
        role: identifier, quasi, sensitive, other or drop; or policy.
        reason: why, in few words that many columns may share.
        details: what else was seen of this column.
    """

    role: str
    reason: str
    details: str = ""


@dataclass(frozen=True, slots=True)
class SurveyDesign:
    """The columns that say how rows belong together and whom they stand for.

    Attributes:
        person: whose row this is, where people have several.
        household: which rows belong to one household.
        weight: how many people of the population a row stands for.
        roles: the roles of these and of strata and clusters.
    """

    person: str | None
    household: str | None
    weight: str | None
    roles: Mapping[str, RoleFound]


def design_of(facts: Sequence[Facts], pairs: Callable[[Facts, Facts], int]) -> SurveyDesign:
    """Find the columns of a survey's design, and whose rows these are.

    ``pairs`` counts the combinations of the values of two columns.
    """
    roles: dict[str, RoleFound] = {}
    household = next((f for f in facts if is_household(f)), None)
    if household is not None:
        said = f"{household.distinct:,} households in {household.rows:,} rows"
        roles[household.name] = RoleFound("identifier", "numbers households; never leaves", said)
    person = next((f for f in facts if f is not household and is_person(f)), None)
    if person is not None:
        said = f"{person.distinct:,} people in {person.rows:,} rows"
        roles[person.name] = RoleFound("identifier", "says whose row this is; never leaves", said)
    bodies = any(_measures_bodies(f) for f in facts)
    drawn = any(words.contains_word(words.STRATA + " " + words.CLUSTERS, f.words) for f in facts)
    weights = [f for f in facts if f.name not in roles and is_weight(f, bodies=bodies, drawn=drawn)]
    faults = {one.name: _weight_fault(one, person, pairs) for one in weights}
    for name, fault in faults.items():
        said = fault or "exact weights can tell people apart: declare it other if readers need it"
        use = "not used for risks" if fault else "for risks"
        roles[name] = RoleFound("drop", f"sampling weight: {use}, does not leave", said)
    for one in facts:
        if one.name in roles:
            continue
        found = _design_role(one)
        if found is not None:
            roles[one.name] = found
    return SurveyDesign(
        None if person is None else person.name,
        None if household is None else household.name,
        next((name for name, fault in faults.items() if not fault), None),
        roles,
    )


def _measures_bodies(facts: Facts) -> bool:
    """Whether a column is about bodies, or births; where somebody was born is about neither."""
    born = words.contains_word(words.BIRTHS, facts.words) and not facts.is_text
    return born or words.contains_word(words.BODIES, facts.words)


def _weight_fault(weight: Facts, person: Facts | None, pairs: Callable[[Facts, Facts], int]) -> str:
    """Why weights do not say how many people somebody stands for; empty where they do."""
    numbers = weight.values.cast(pa.float64(), safe=False)
    if weight.missing:
        return "some rows have none: fill them in, then name it as weight under [table]"
    if not pc.all(pc.is_finite(numbers)).as_py():
        return "some are not finite: correct them, then name it as weight under [table]"
    if pc.min(numbers).as_py() < 1:
        return (
            "some are below 1, as where weights are scaled to a mean of 1: multiply them by "
            "population / sample, then name it as weight under [table]"
        )
    if person is None or pairs(person, weight) == person.distinct:
        return ""
    return (
        "rows of one person carry different ones: give each person one weight, then name it as "
        "weight under [table]"
    )


def _design_role(facts: Facts) -> RoleFound | None:
    if facts.is_text and facts.distinct > 1 and words.contains_word(words.WEIGHTS, facts.words):
        texts = facts.values.cast(pa.string())
        if pc.all(pc.match_substring_regex(texts, "^[0-9.,]+$")).as_py():
            said = "it was not read as numbers: say its decimal mark to use it"
            return RoleFound("drop", "named as a sampling weight: does not leave", said)
    for what, listed in (("stratum", words.STRATA), ("cluster", words.CLUSTERS)):
        if words.contains_word(listed, facts.words) and facts.distinct < facts.rows:
            said = "it often tells the place: declare it other if readers need it"
            return RoleFound("drop", f"{what} of a survey's design: does not leave", said)
    return None


def policy_of(facts: Facts) -> str | None:
    """The demand (k, l, t or epsilon) that a column seems to hold; empty where none is stated."""
    demand = named_demand(facts.name)
    if demand is None:
        return None
    if not facts.distinct:
        return demand if facts.rows else None
    if not facts.is_number:
        return None
    ends = pc.min_max(facts.values.cast(pa.float64()))
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if demand in ("k", "l"):
        whole = facts.values.cast(pa.float64())
        return demand if low >= 1 and pc.all(pc.equal(whole, pc.floor(whole))).as_py() else None
    if demand == "t":
        return demand if low >= 0 and high <= 1 else None
    return demand if low > 0 else None


def named_demand(name: str) -> str | None:
    """The demand that a name says: ``k``, ``k_i``, ``own k``, ``Eigenes k``, ``k propre``."""
    said = [part for part in re.split(r"[^A-Za-z0-9]+", words.fold_accents(name)) if part]
    stated = [part for part in said if _DEMANDS.fullmatch(part)]
    others = [part.lower() for part in said if not _DEMANDS.fullmatch(part)]
    if len(stated) != 1 or not all(words.contains_word(words.OWN, [part]) for part in others):
        return None
    found = stated[0].lower()
    if found == "t" and not others:  # a treatment, a time, a temperature
        return None
    return "epsilon" if found.startswith("eps") else found[0]


def is_person(facts: Facts) -> bool:
    """Whether a column seems to say whose row this is, with several rows for some people."""
    return (
        (facts.is_text or facts.is_whole)
        and words.contains_word(words.PEOPLE, facts.words)
        and not words.counts_something(facts.words)
        and facts.missing == 0
        and facts.rows * 0.1 <= facts.distinct < facts.rows
        and facts.distinct > 1
    )


def is_household(facts: Facts) -> bool:
    """Whether a column seems to number households: most of its values have several rows."""
    counted = words.contains_word(words.AMOUNTS, facts.words)  # or perhaps the people in each
    least = 0.1 if counted else 0.02
    return (
        (facts.is_text or facts.is_whole)
        and words.contains_word(words.HOUSEHOLDS, facts.words)
        and not words.counts_something(facts.words)
        and facts.missing == 0
        and max(2, facts.rows * least) <= facts.distinct < facts.rows
    )


def is_weight(facts: Facts, *, bodies: bool, drawn: bool = False) -> bool:
    """Whether a column seems to say for how many people a row stands, not how heavy they are.

    ``bodies``: another column measures bodies; ``drawn``: others tell how a sample was drawn.
    """
    if not facts.is_number or facts.distinct < 2:
        return False
    ends: Any = pc.min_max(facts.values.cast(pa.float64(), safe=False))
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low < 0:
        return False
    if words.contains_word(words.WEIGHTS, facts.words):
        return True
    if not words.contains_word(words.BODY_OR_SURVEY_WEIGHTS, facts.words):
        return False
    if words.contains_word(words.SURVEYS, facts.words):
        return True
    if bodies or words.contains_word(words.BIRTHS, facts.words):
        return False
    if drawn or (facts.words == ("w",) and not facts.is_integer):
        return True
    mean = pc.mean(facts.values.cast(pa.float64(), safe=False)).as_py()
    return high > 1000 or (high <= 20 and 0.2 <= mean <= 5 and not facts.is_integer)


def role_of(facts: Facts) -> RoleFound:
    """The role of a column that is neither a policy nor part of the design, and the reason."""
    for rule in (_row_numbers, _named_identifier, _sensitive, _content, _unique):
        found = rule(facts)
        if found is not None:
            return found
    return _known_to_others(facts)


def _row_numbers(facts: Facts) -> RoleFound | None:
    """What pandas calls the row numbers of a file that it wrote and read again."""
    if re.fullmatch(r"Unnamed: [0-9]+", facts.name) and facts.distinct == facts.rows:
        return RoleFound("drop", "row numbers, as pandas names them: they do not leave")
    return None


def _named_identifier(facts: Facts) -> RoleFound | None:
    said = facts.words
    if facts.distinct <= 2 or words.counts_something(said):
        return None  # a yes or no, an amount or a kind is nobody's name
    named = (
        words.contains_word(words.IDENTIFIERS, said)
        or said == ("name",)
        or any(pair in words.IDENTIFIER_PAIRS for pair in pairwise(said))
    )
    half = facts.distinct >= 0.5 * facts.held
    several = half or facts.distinct >= max(_ENOUGH_ROWS, _REPEATED * facts.held)
    if named and (facts.is_text or (facts.is_whole and several)):
        return RoleFound("identifier", "its name says that it identifies a person", _share(facts))
    numbered = facts.is_text or facts.is_whole
    if facts.is_whole and words.contains_word(words.AMOUNTS, said):
        numbered = _are_numbers_of_people(facts)  # or how many of them there are
    if numbered and half and words.contains_word(words.PEOPLE, said):
        return RoleFound("identifier", "its name says that it numbers people", _share(facts))
    return None


def _sensitive(facts: Facts) -> RoleFound | None:
    kind, more = words.special_category(facts.words), ""
    if kind is None and facts.label:
        kind, more = words.special_category(words.words_of(facts.label)), "by its label"
    if kind is None and facts.is_number and words.contains_word(words.MONEY_AMOUNTS, facts.words):
        kind = "money"
    if kind is None or (kind == "performance" and more):
        return None
    if kind == "ethnicity":
        more = "if others can see it, quasi protects more from being recognized"
    elif kind == "money" and facts.single:
        more = "if others may know its exact amounts, as of a bill, quasi protects more"
    reason = f"{kind}: people keep it to themselves"
    return RoleFound("sensitive", reason, more)


def _content(facts: Facts) -> RoleFound | None:
    if not facts.is_text or facts.distinct <= 2:
        return None
    texts = facts.values.cast(pa.string())
    for what, pattern in _CONTENTS.items():
        like = pc.sum(pc.match_substring_regex(texts, pattern)).as_py() or 0
        if like >= 0.9 * facts.distinct:
            return RoleFound("identifier", f"its values are {what}", _share(facts))
    return None


def _unique(facts: Facts) -> RoleFound | None:
    many = facts.held >= _ENOUGH_ROWS and facts.distinct >= _NEARLY_ALL * facts.held
    if not many or words.contains_word(words.PLACES, facts.words):
        return None
    if not facts.is_text and not (facts.is_whole and _are_numbers_of_people(facts)):
        return None
    every = "every" if facts.distinct == facts.held else "nearly every"
    return RoleFound("identifier", f"{every} row has another value", _share(facts))


def _are_numbers_of_people(facts: Facts) -> bool:
    """Whether whole numbers that differ in all rows count or number rows; amounts leave gaps."""
    ends: Any = pc.min_max(facts.values)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    lengths = facts.lengths
    alike = lengths[0] == lengths[1] >= _LONG_NUMBER
    return low >= 0 and (high - low < _DENSE * facts.distinct or alike)


def _known_to_others(facts: Facts) -> RoleFound:
    if facts.distinct == 0:
        return RoleFound("drop", "it holds nothing but missing values")
    alone = ""
    if facts.single:
        alone = f"alone it singles out {facts.single:,} of {facts.rows:,} rows"
    return RoleFound("quasi", "others may know it", alone)


def _share(facts: Facts) -> str:
    return f"{facts.distinct:,} distinct values in {facts.held:,} rows"
