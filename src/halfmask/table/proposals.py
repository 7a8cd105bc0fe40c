"""What a column seems to be, from its values and its name, and why: kind, hierarchy, role."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.table.classes import codes_of
from halfmask.table.hierarchies import Dates, Flat, Intervals, Mask, Ordered
from halfmask.table.values import dictionary_of, is_text

if TYPE_CHECKING:
    from halfmask.table.hierarchy import HierarchyBuilder


_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


@dataclass(frozen=True, eq=False)
class Facts:
    """Counts of one column.

    Attributes:
        name: the column.
        rows: how many rows the table has.
        values: the distinct values in any order, without the missing one.
        codes: per row, a number for its value.
        size: how many such numbers there may be, the missing value's among them.
        missing: how many rows have none.
    """

    name: str
    rows: int
    values: pa.Array
    codes: np.ndarray[tuple[int], np.dtype[np.int32]]
    size: int
    missing: int

    def __repr__(self) -> str:
        return f"Facts({self.name!r}, {self.distinct} values, {self.rows} rows)"

    @property
    def distinct(self) -> int:
        """How many values differ."""
        return len(self.values)

    @property
    def held(self) -> int:
        """How many rows have a value."""
        return self.rows - self.missing

    @cached_property
    def single(self) -> int:
        """How many rows hold a value that nobody else has."""
        return int(np.count_nonzero(np.bincount(self.codes) == 1))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the name: ``patientID`` is patient, id."""
        return tuple(word.lower() for word in _WORDS.findall(self.name))

    @property
    def is_text(self) -> bool:
        """Whether the values are text."""
        return is_text(self.values.type)

    @property
    def is_integer(self) -> bool:
        """Whether the values are whole numbers."""
        return bool(pa.types.is_integer(self.values.type))

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers."""
        kind = self.values.type
        return bool(self.is_integer or pa.types.is_floating(kind) or pa.types.is_decimal(kind))

    @property
    def is_date(self) -> bool:
        """Whether the values are dates or times."""
        return bool(pa.types.is_date(self.values.type) or pa.types.is_timestamp(self.values.type))

    @cached_property
    def lengths(self) -> tuple[int, int]:
        """The shortest and the longest text."""
        if not self.distinct:
            return 0, 0
        found = pc.min_max(pc.utf8_length(self.values.cast(pa.string())))
        return int(found["min"].as_py()), int(found["max"].as_py())


def facts_of(name: str, column: pa.ChunkedArray) -> Facts:
    """Count one column."""
    rows, missing = len(column), column.null_count
    array = dictionary_of(column)
    codes, size = codes_of(pa.chunked_array([array]))
    values = array.dictionary
    used = np.zeros(size, dtype=bool)
    used[codes] = True
    if not used[:-1].all():
        values = values.filter(pa.array(used[:-1]))
    return Facts(name, rows, pc.drop_null(values), codes, size, missing)


_CODES = {"zip", "zipcode", "postal", "postcode", "plz", "cap", "code", "icd", "insee", "fips"}
_STEPS = 20
_LONGEST_CODE = 12
_SCALES: tuple[tuple[str, ...], ...] = (
    ("very low", "low", "medium", "high", "very high"),
    ("very low", "low", "moderate", "high", "very high"),
    ("none", "mild", "moderate", "severe", "critical"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("very poor", "poor", "fair", "good", "very good", "excellent"),
    ("xxs", "xs", "s", "m", "l", "xl", "xxl"),
    ("small", "medium", "large"),
    ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    ("january", "february", "march", "april", "may", "june", "july", "august", "september",
     "october", "november", "december"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """The kind and hierarchy proposed for one column, with the reason."""

    kind: str
    hierarchy: HierarchyBuilder
    why: str


def shape_of(facts: Facts) -> Shape:
    """Propose kind and hierarchy."""
    if facts.is_date:
        return _dates(facts.values)
    if is_code(facts):
        length = facts.lengths[1]
        return Shape(
            "nominal",
            Mask(length),
            f"codes of {length} characters, masked from the right one by one",
        )
    if facts.is_number:
        return _numbers(facts.values)
    if facts.is_text and facts.distinct:
        return _texts(facts)
    return Shape("nominal", Flat(), "kept or hidden, nothing between")


def _texts(facts: Facts) -> Shape:
    scale = _scale(facts)
    if scale is not None:
        return Shape("ordinal", Ordered(scale, _sizes(len(scale))), "words of a known scale")
    return Shape(
        "nominal",
        Flat(),
        "text without a known order: kept or hidden; give a tree or a csv hierarchy to lose less",
    )


def is_padded(values: pa.Array) -> bool:
    """Whether some texts are digits behind a zero, as in codes."""
    return bool(pc.any(pc.match_substring_regex(values, r"^0[0-9]")).as_py())


def is_code(facts: Facts) -> bool:
    """Codes: digits (perhaps with letters) of one length; whole numbers only if named so."""
    shortest, longest = facts.lengths if facts.is_text or facts.is_integer else (0, 0)
    if not shortest or longest > _LONGEST_CODE or longest < 2:
        return False
    if facts.is_integer:
        return bool(_CODES & set(facts.words)) and pc.min(facts.values).as_py() >= 0
    if not facts.is_text or shortest != longest:
        return False
    texts = facts.values.cast(pa.string())
    digits = pc.all(pc.match_substring_regex(texts, "^[0-9]+$")).as_py()
    mixed = pc.all(pc.match_substring_regex(texts, "^[A-Za-z0-9 .-]*[0-9][A-Za-z0-9 .-]*$")).as_py()
    plain = pc.any(pc.match_substring_regex(texts, r"^[0-9]+\.[0-9]+$")).as_py()
    dated = pc.all(pc.match_substring_regex(texts, "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")).as_py()
    return bool((digits or mixed) and not plain and not dated)


def _numbers(values: pa.Array) -> Shape:
    whole = bool(pa.types.is_integer(values.type))
    numbers = values if whole else values.cast(pa.float64(), safe=False)
    ends: Any = pc.min_max(numbers) if len(numbers) else None
    if ends is None or len(numbers) <= 2:
        return Shape("numeric", Flat(), "two numbers or fewer: kept or hidden")
    span = ends["max"].as_py() - ends["min"].as_py()
    if not math.isfinite(span):
        return Shape("numeric", Flat(), "numbers, some of them infinite: kept or hidden")
    widths = nice_widths(span, whole=whole)
    said = ", ".join(map(str, widths))
    return Shape("numeric", Intervals(widths), f"numbers, merged into intervals of {said}")


def nice_widths(span: float, *, whole: bool) -> list[float]:
    """Widths that double, from about a twentieth of ``span`` (1, 2 or 5 times a power of ten).

    Example:
        >>> nice_widths(73, whole=True)
        [5, 10, 20, 40]
    """
    target = span / _STEPS
    power = math.floor(math.log10(target)) if target > 0 else 0
    exponent, digit = next(
        (p, d) for p in (power, power + 1) for d in (1, 2, 5) if d * 10.0**p >= target * (1 - 1e-12)
    )
    if whole and (exponent < 0 or digit * 10**exponent < 2):
        exponent, digit = 0, 2
    out: list[float] = []
    factor = 1
    while not out or digit * factor * 10.0**exponent < span:
        out.append(_scaled(digit * factor, exponent))
        factor *= 2
    return out


def _scaled(number: int, exponent: int) -> float:
    return number * 10**exponent if exponent >= 0 else float(f"{number}e{exponent}")


def _dates(values: pa.Array) -> Shape:
    timed = bool(pa.types.is_timestamp(values.type))
    levels = (["day"] if timed else []) + ["month", "quarter", "year"]
    if len(values):
        years = pc.min_max(pc.year(values))
        if years["max"].as_py() - years["min"].as_py() >= 10:
            levels.append("decade")
    return Shape("date", Dates(levels), f"dates, merged into {', '.join(levels)}")


def _scale(facts: Facts) -> tuple[str, ...] | None:
    """The values in their known order, spelled as in the table."""
    longest = max(len(scale) for scale in _SCALES)
    if not 3 <= facts.distinct <= longest:
        return None
    spelled = {str(value).strip().lower(): str(value) for value in facts.values.to_pylist()}
    if len(spelled) != facts.distinct:
        return None
    for scale in _SCALES:
        if set(spelled) <= set(scale):
            return tuple(spelled[word] for word in scale if word in spelled)
    return None


def _sizes(count: int) -> list[int]:
    return [size for size in (2, 4, 8) if size < count]


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
_POLICY = re.compile(
    r"^(?:policy_|personal_|own_|min_|max_)?(k|l|t|epsilon|eps)"
    r"(?:_?i|_policy|_demand|_own|_min|_max)?$",
    re.I,
)


def policy_of(facts: Facts) -> str | None:
    """The demand (k, l, t or epsilon) that a column seems to hold; empty where none is stated."""
    found = _POLICY.match(facts.name)
    if not found or found[0].lower() == "t":  # a treatment, a time, a temperature
        return None
    demand = "epsilon" if found[1].lower() == "eps" else found[1].lower()
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
