"""What the values of a column seem to be, and why: their kind, and how to merge them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.table.classes import codes_of
from halfmask.table.hierarchies import Dates, Flat, Intervals, Mask, Ordered
from halfmask.table.hierarchies.intervals import MOST_WIDTH
from halfmask.table.proposals.vocabulary import words_of
from halfmask.table.tuples import all_ones, pick_counts, rows_in
from halfmask.table.values import dictionary_of, is_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.hierarchy import HierarchyBuilder
    from halfmask.table.proposals.counts import CountedColumn
    from halfmask.table.tuples import Counts


@dataclass(frozen=True, eq=False)
class Facts:
    """Counts of one column.

    Attributes:
        name: the column.
        rows: how many rows the table has.
        values: the distinct values in any order, without the missing one.
        codes: per row, or per value that was counted, a number for its value.
        size: how many such numbers there may be, the missing value's among them.
        missing: how many rows have none.
        label: what the file says of the column beside its name.
        counts: how many rows each of ``codes`` stands for; None: one.
        many: where ``values`` are some of very many, how many there are and one row alone has.
    """

    name: str
    rows: int
    values: pa.Array
    codes: np.ndarray[tuple[int], np.dtype[np.int32]]
    size: int
    missing: int
    label: str = ""
    counts: Counts | None = None
    many: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"Facts({self.name!r}, {self.distinct} values, {self.rows} rows)"

    @property
    def distinct(self) -> int:
        """How many values differ."""
        return len(self.values) if self.many is None else self.many[0]

    @property
    def held(self) -> int:
        """How many rows have a value."""
        return self.rows - self.missing

    @cached_property
    def single(self) -> int:
        """How many rows hold a value that nobody else has."""
        if self.many is not None:
            return self.many[1]
        return int(np.count_nonzero(np.bincount(self.codes, self.counts) == 1))

    @cached_property
    def prevailing(self) -> Any:
        """The value that at least half of the rows with a value hold; None where there is none."""
        rows = np.bincount(self.codes, self.counts, self.size)[:-1]
        used = np.flatnonzero(rows)
        # Fewer values than codes: a missing one stood among them, and they do not correspond.
        if len(used) != len(self.values) or 2 * rows.max(initial=0) < max(self.held, 1):
            return None
        return self.values[int(np.argmax(rows[used]))].as_py()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the name: ``patientID`` is patient, id."""
        return words_of(self.name)

    @property
    def is_text(self) -> bool:
        """Whether the values are text."""
        return is_text(self.values.type)

    @property
    def is_integer(self) -> bool:
        """Whether the values are whole numbers."""
        return bool(pa.types.is_integer(self.values.type))

    @cached_property
    def is_whole(self) -> bool:
        """Whether the values are whole numbers, however they are written (``93703.0``)."""
        if self.is_integer or not pa.types.is_floating(self.values.type):
            return self.is_integer
        numbers = self.values.cast(pa.float64(), safe=False)
        return bool(
            pc.all(pc.and_(pc.is_finite(numbers), pc.equal(numbers, pc.floor(numbers)))).as_py()
        )

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


def facts_of(name: str, column: pa.ChunkedArray, counted: CountedColumn | None = None) -> Facts:
    """Count one column, whose entries stand for rows as ``counted`` says; else for one each."""
    rows, missing, label = len(column), column.null_count, ""
    counts: Counts | None = None
    if counted is not None:
        label = counted.label
        if not all_ones(counted.counts) or counted.many is not None:
            counts = counted.counts
            rows = rows_in(counts)
            missing = rows_in(pick_counts(counts, _is_missing(column)))
    array = dictionary_of(column)
    codes, size = codes_of(pa.chunked_array([array]))
    values = array.dictionary
    used = np.zeros(size, dtype=bool)
    used[codes] = True
    if not used[:-1].all():
        values = values.filter(pa.array(used[:-1]))
    values = pc.drop_null(values)
    if counted is None or counted.many is None:
        return Facts(name, rows, values, codes, size, missing, label, counts)
    # Some of the values that were looked at may have been found to mean a missing one.
    every = counted.many
    before = len(counted.entries) - counted.entries.null_count
    missing += every.missing - rows_in(pick_counts(counted.counts, _is_missing(counted.entries)))
    many = (every.distinct - before + len(values), every.single)
    return Facts(name, every.rows, values, codes, size, missing, label, counts, many)


def _is_missing(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=bool)


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
        return _numbers(facts.values, facts.prevailing)
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


def _numbers(values: pa.Array, prevailing: Any) -> Shape:
    whole = bool(pa.types.is_integer(values.type))
    numbers = values if whole else values.cast(pa.float64(), safe=False)
    ends: Any = pc.min_max(numbers) if len(numbers) else None
    if ends is None or len(numbers) <= 2:
        return Shape("numeric", Flat(), "two numbers or fewer: kept or hidden")
    span = ends["max"].as_py() - ends["min"].as_py()
    if not math.isfinite(span):
        return Shape("numeric", Flat(), "numbers, some of them infinite: kept or hidden")
    fit = [width for width in nice_widths(span, whole=whole) if width < MOST_WIDTH]
    plain = numbers.to_numpy(zero_copy_only=False)
    alone = None if prevailing is None else _around(plain, prevailing, fit, whole=whole)
    if alone is not None:
        return alone
    widths = _merging(plain, fit)
    if not widths:
        return Shape("numeric", Flat(), "numbers that no round interval merges: kept or hidden")
    said = ", ".join(map(str, widths))
    return Shape("numeric", Intervals(widths), f"numbers, merged into intervals of {said}")


def _around(numbers: Any, prevailing: Any, widths: list[float], *, whole: bool) -> Shape | None:
    """Intervals of which one holds the prevailing number alone, at every level.

    Otherwise a column of zeros with few other numbers were hidden as soon as one of those is.
    """
    value = int(prevailing) if whole else float(prevailing)
    after = _end_of(value, numbers[numbers > value], whole=whole)
    if not value < after:
        return None
    low, high = Fraction(str(numbers.min())), Fraction(str(numbers.max()))
    levels, said, before = [], [], len(numbers)
    for width in [*widths, None]:
        cuts = {value, after}
        if width is not None:
            step = Fraction(str(width))
            places = range(math.floor(low / step) + 1, math.floor(high / step) + 1)
            found = [int(n * step) if whole else float(n * step) for n in places]
            cuts |= {cut for cut in found if not value < cut < after}
        level = sorted(cuts - {math.inf})
        labels = len(np.unique(np.searchsorted(level, numbers, side="right")))
        if 1 < labels < before:
            levels.append(level)
            said += [str(width)] if width is not None else []
            before = labels
    if not levels:
        return None
    merged = f"merged into intervals of {', '.join(said)}" if said else "merged"
    why = f"numbers, {merged}; the one that at least half of the rows hold stands alone"
    return Shape("numeric", Intervals(bounds=levels), why)


def _end_of(value: float, above: Any, *, whole: bool) -> float:
    """A short number behind ``value`` and not behind the next one of those ``above``."""
    if whole:
        return value + 1
    if not len(above):
        return math.inf
    gap = float(above.min()) - value
    return float(Fraction(str(value)) + Fraction(10) ** min(0, math.floor(math.log10(gap))))


def _merging(numbers: Any, widths: list[float]) -> list[float]:
    """Those of ``widths`` at which some values merge, and not all of them."""
    kept, before = [], len(numbers)
    for width in widths:
        # Against the rounding of 0.3 / 0.1, a little more than the quotient.
        labels = len(np.unique(np.floor(numbers / width + 1e-9)))
        if 1 < labels < before:
            kept.append(width)
            before = labels
    return kept


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
        out.append(_times_power(digit * factor, exponent))
        factor *= 2
    return out


def round_intervals(builder: HierarchyBuilder) -> HierarchyBuilder:
    """The same intervals with round bounds near those that were found; others as they are.

    A bound moves by a fifth of the way to its neighbor at most, so that the levels still nest.
    """
    if not isinstance(builder, Intervals) or not builder.bounds:
        return builder
    finest = builder.bounds[0]
    gaps = [high - low for low, high in pairwise(finest)] or [abs(finest[0]) or 1.0]
    moved = {
        bound: _roundest(bound, min(gaps[max(place - 1, 0) : place + 1]) / 5)
        for place, bound in enumerate(finest)
    }
    return replace(
        builder, bounds=tuple(tuple(moved[b] for b in level) for level in builder.bounds)
    )


def _roundest(number: float, room: float) -> float:
    """The roundest number within ``room`` of this one."""
    if not room > 0 or not math.isfinite(room):
        return number
    power = math.floor(math.log10(max(abs(number), room))) + 1
    for exponent in range(power, power - 20, -1):
        for digit in (5, 2, 1):
            count = round(number / (digit * 10.0**exponent))
            found = _times_power(count * digit, exponent)
            if abs(found - number) <= room:
                return found
    return number


def _times_power(number: int, exponent: int) -> float:
    return number * 10**exponent if exponent >= 0 else float(f"{number}e{exponent}")


def _dates(values: pa.Array) -> Shape:
    timed = bool(pa.types.is_timestamp(values.type))
    levels, before = [], len(values)
    for level in ["day", *_UNITS] if timed else _UNITS:
        labels = _moments(values, level)
        if 1 < labels < before:
            levels.append(level)
            before = labels
    if not levels:
        return Shape("date", Flat(), "dates that no month, year or decade merges: kept or hidden")
    return Shape("date", Dates(levels), f"dates, merged into {', '.join(levels)}")


_UNITS = ["month", "quarter", "year", "decade"]


def _moments(values: pa.Array, level: str) -> int:
    """How many different days, months, ... there are."""
    if level == "day":
        return len(values.cast(pa.date32(), safe=False).unique())
    years = pc.year(values).to_numpy(zero_copy_only=False)
    if level in ("year", "decade"):
        return len(np.unique(years // (10 if level == "decade" else 1)))
    part = pc.month(values) if level == "month" else pc.quarter(values)
    return len(np.unique(years * 12 + part.to_numpy(zero_copy_only=False)))


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
