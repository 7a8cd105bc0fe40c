"""Which kind of values a column holds and which hierarchy fits, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.table.hierarchies import Dates, Flat, Intervals, Mask, Ordered
from halfmask.table.infer import date_type, number_type

if TYPE_CHECKING:
    from halfmask.table.hierarchy import HierarchyBuilder
    from halfmask.table.proposals.facts import Facts

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
    if _is_code(facts):
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
    found, _ = number_type(facts.values)
    if found is not None and not _padded(facts.values):
        return _numbers(pc.replace_substring_regex(facts.values, r"^\+", "").cast(found))
    found, _ = date_type(facts.values)
    if found is not None:
        return _dates(facts.values.cast(found))
    return Shape(
        "nominal",
        Flat(),
        "text without a known order: kept or hidden; give a tree or a csv hierarchy to lose less",
    )


def _padded(values: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring_regex(values, r"^0[0-9]")).as_py())


def _is_code(facts: Facts) -> bool:
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
