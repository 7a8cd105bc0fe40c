"""Which role a column seems to have, and why; in doubt it is a quasi-identifier."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow.compute as pc

if TYPE_CHECKING:
    from halfmask.table.proposals.facts import Facts

_ENOUGH_ROWS = 20
_NEARLY_ALL = 0.95

_PERSON = {"id", "person", "patient", "customer", "client", "member", "user", "pid", "uid"}
_NAMES = {
    "email", "mail", "phone", "telephone", "mobile", "fax", "ssn", "nss", "passport", "iban",
    "surname", "firstname", "lastname", "fullname", "username", "login", "nickname", "forename",
    "address", "street", "ip", "mac", "imei", "url", "vin", "plate", "uuid", "guid",
}  # fmt: skip
_NAME_PAIRS = {("first", "name"), ("last", "name"), ("full", "name"), ("family", "name"),
               ("given", "name"), ("user", "name"), ("patient", "name"), ("person", "name"),
               ("social", "security"), ("medical", "record"), ("account", "number")}  # fmt: skip
_SENSITIVE = {
    "disease", "diseases", "diagnosis", "diagnoses", "diagnostic", "illness", "symptom",
    "symptoms", "icd", "icd10", "medication", "medicine", "drug", "treatment", "therapy",
    "surgery", "hiv", "cancer", "pregnant", "pregnancy", "disability", "allergy", "condition",
    "salary", "income", "wage", "wages", "earnings", "debt", "credit", "balance", "wealth",
    "religion", "religious", "political", "politics", "party", "vote", "union", "orientation",
    "sexuality", "criminal", "crime", "conviction", "offence", "offense", "genetic", "genotype",
    "gene", "score", "grade", "result",
}  # fmt: skip
_POLICY = re.compile(r"^(?:policy_|personal_|min_)?([kl])(?:_?i|_policy|_demand|_min)?$", re.I)


def policy_of(facts: Facts) -> str | None:
    """The demand (k or l) that a column seems to hold."""
    found = _POLICY.match(facts.name)
    if not found or not facts.is_integer or facts.missing or not facts.distinct:
        return None
    return found[1].lower() if pc.min(facts.values).as_py() >= 1 else None


def is_person(facts: Facts) -> bool:
    """Whether a column seems to say whose row this is, with several rows for some people."""
    return (
        (facts.is_text or facts.is_integer)
        and bool(_PERSON & set(facts.words))
        and facts.missing == 0
        and facts.rows * 0.1 <= facts.distinct < facts.rows
        and facts.distinct > 1
    )


def role_of(facts: Facts) -> tuple[str, str]:
    """The role of a column that is neither a policy nor the person, and the reason."""
    for rule in (_named_identifier, _sensitive, _unique):
        found = rule(facts)
        if found is not None:
            return found
    return "quasi", _alone(facts)


def _named_identifier(facts: Facts) -> tuple[str, str] | None:
    words = facts.words
    named = (
        bool(_NAMES & set(words))
        or words == ("name",)
        or any(pair in _NAME_PAIRS for pair in pairwise(words))
    )
    if named and (facts.is_text or facts.is_integer):
        return "identifier", f"its name says that it identifies a person; {_share(facts)}"
    if _PERSON & set(words) and facts.held and facts.distinct >= 0.5 * facts.held:
        return "identifier", f"its name says that it numbers people; {_share(facts)}"
    return None


def _sensitive(facts: Facts) -> tuple[str, str] | None:
    if _SENSITIVE & set(facts.words):
        return "sensitive", "its name is a well-known one of things that people keep to themselves"
    return None


def _unique(facts: Facts) -> tuple[str, str] | None:
    if facts.held < _ENOUGH_ROWS or not (facts.is_text or facts.is_integer):
        return None
    if facts.distinct == facts.held:
        return "identifier", f"every row has another value ({facts.distinct:,} of {facts.held:,})"
    if facts.distinct >= _NEARLY_ALL * facts.held:
        return "identifier", f"nearly every row has another value; {_share(facts)}"
    return None


def _share(facts: Facts) -> str:
    return f"{facts.distinct:,} distinct values in {facts.held:,} rows"


def _alone(facts: Facts) -> str:
    if facts.distinct == 0:
        return "it holds nothing but missing values; drop it, or declare it other"
    if facts.single:
        return f"alone it singles out {facts.single:,} of {facts.rows:,} rows"
    return (
        "others may know it, and nothing says that they cannot; declare it sensitive or other"
        " if they cannot"
    )
