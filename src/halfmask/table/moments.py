"""Dates and times: how texts and numbers are read as such, and which of them a calendar holds."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

KINDS = (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
ALLOWED = "YYYY-MM-DD of the years 1 to 9999, or with a time, all with a zone or all without"

_FIRST, _LAST = -719_162, 2_932_896  # days from 1970-01-01 to 0001-01-01 and 9999-12-31
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000}


def out_of_calendar(values: pa.Array | pa.ChunkedArray) -> int:
    """How many dates or times lie outside the years 1 to 9999, which nothing could write."""
    kind = values.type
    if pa.types.is_date32(kind):
        first, last, count = _FIRST, _LAST + 1, values.cast(pa.int32())
    elif pa.types.is_timestamp(kind) and kind.unit in _PER_DAY:
        slack = 1 if kind.tz else 0  # a zone may move a time into the next or the last day
        first, last = (day * _PER_DAY[kind.unit] for day in (_FIRST + slack, _LAST + 1 - slack))
        count = values.cast(pa.int64())
    else:
        return 0
    outside = pc.or_(pc.less(count, first), pc.greater_equal(count, last))
    return pc.sum(outside).as_py() or 0


def zone_known(kind: pa.DataType) -> bool:
    """Whether the time zone of a type, if it has one, is one that Arrow can compute with."""
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return True
    try:
        pc.year(pa.array([0], kind))
    except pa.ArrowInvalid:
        return False
    return True


def as_moments(texts: pa.Array, kinds: Sequence[pa.DataType] = KINDS) -> pa.Array | None:
    """ISO 8601 texts as the first of ``kinds`` that takes all of them; those with a zone as UTC."""
    for kind in kinds:
        try:
            moments = texts.cast(kind)
        except pa.ArrowInvalid:
            continue
        if not out_of_calendar(moments):
            return moments
    return None


def no_moments(texts: pa.Array) -> pa.Array:
    """Which texts hinder ``as_moments``: those that are none or, if all are, those with a zone."""
    # Arrow casts all or none: each text alone says whether it is one.
    alone = [pa.array([text]) for text in texts.to_pylist()]
    bad = [as_moments(text) is None for text in alone]
    if not any(bad):
        bad = [as_moments(text, KINDS[:2]) is None for text in alone]
    return pa.array(bad, pa.bool_())


_MONTHS = {  # without accents, by language
    "english": "january february march april may june july august september october november "
    "december",
    "german": "januar|janner februar marz|maerz|mrz april mai juni juli august september oktober "
    "november dezember",
    "french": "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre "
    "decembre",
    "spanish": "enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre "
    "noviembre diciembre",
    "italian": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre "
    "novembre dicembre",
    "dutch": "januari februari maart|mrt april mei juni juli augustus september oktober november "
    "december",
}


def _beginnings(*languages: str) -> dict[str, int]:
    """The month of every name and of its beginnings from three letters on, where there is one."""
    found: dict[str, set[int]] = {}
    for language in languages:
        for place, names in enumerate(_MONTHS[language].split(), start=1):
            for name in names.split("|"):
                for length in range(3, len(name) + 1):
                    found.setdefault(name[:length], set()).add(place)
    return {start: min(places) for start, places in found.items() if len(places) == 1}


_ANY_LANGUAGE, _ENGLISH = _beginnings(*_MONTHS), _beginnings("english")
_PARTS = {
    "d": "[0-9]{1,2}", "m": "[0-9]{1,2}", "Y": "[0-9]{4}", "y": "[0-9]{2}", "H": "[0-9]{1,2}",
    "M": "[0-9]{2}", "S": "[0-9]{2}", "b": r"\pL{3,5}\.?", "B": r"\pL{3,10}\.?",
}  # fmt: skip
_DAYS = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d",
    "%d %b %Y", "%d-%b-%Y", "%d%b%Y", "%d %B %Y", "%B %d, %Y", "%b %d, %Y",
)  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", ", %H:%M", ":%H:%M:%S")
FORMS = tuple(day + time for day in _DAYS for time in _TIMES)
# Dates only where that is said.
DECLARED_FORMS = (
    "%Y-%m", "%Y", "%Y%m%d", "%m/%Y", "%m.%Y", "%d. %B %Y", "%d. %b %Y", "%d de %B de %Y",
    "%B %Y", "%b %Y",
)  # fmt: skip
# Dates only where their format is said: what a short year means is not told by the values.
_SHORT_DAYS = (
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y", "%y-%m-%d", "%d %b %y",
    "%d-%b-%y", "%d%b%y", "%d. %b %y", "%d. %B %y", "%d %B %y",
)  # fmt: skip
SHORT_FORMS = tuple(day + time for day in _SHORT_DAYS for time in _TIMES[:4])
EXCEL = "excel"
SERIALS = (366, 73_415)  # days as Excel counts them: of the years 1901 to 2100


def form_fault(form: object) -> str | None:
    """What is wrong with the form in which dates are said to be written; None: nothing."""
    known = ", ".join(f"%{part}" for part in _PARTS)
    if form == EXCEL:
        return None
    if not isinstance(form, str):
        return f'format must be a text such as "%d.%m.%Y", of {known}, or "excel"'
    parts = re.findall("%(.?)", form)
    year = {"Y", "y"} & set(parts)
    if set(parts) - set(_PARTS) or len(set(parts)) < len(parts) or len(year) != 1:
        return f'format must have one year and be made of {known}, such as "%d.%m.%Y"'
    return None


@cache
def _pattern(form: str) -> str:
    """A form of dates as a regular expression."""
    return "".join(
        f"(?P<{piece[1]}>{_PARTS[piece[1]]})" if piece[:1] == "%" else re.escape(piece)
        for piece in re.split("(%.)", form)
    )


def moments_by(texts: pa.Array, form: str, months: Mapping[str, int] = _ANY_LANGUAGE) -> pa.Array:
    """Texts written in ``form`` as dates, or as times where it has hours; null where one is not.

    ``months``: by their names and beginnings of these, in lower case and without accents.
    """
    found = pc.extract_regex(_trim(texts), f"^{_pattern(form)}$")
    fits = np.asarray(pc.fill_null(pc.is_valid(found), fill_value=False))
    parts = {
        name: _month_numbers(found, name, months) if name in "bB" else _part(found, name, fits)
        for name in re.findall("%(.)", form)
    }
    years = parts["Y"] if "Y" in parts else _full_years(parts["y"])
    given = parts.get("m", parts.get("b", parts.get("B", np.ones(len(years), dtype=np.int64))))
    days = parts.get("d", np.ones(len(years), dtype=np.int64))
    fits = fits & (years >= 1) & (given >= 1) & (given <= 12)
    first = ((years - 1970) * 12 + given - 1).astype("datetime64[M]")
    length = ((first + 1).astype("datetime64[D]") - first.astype("datetime64[D]")).astype(np.int64)
    fits = fits & (days >= 1) & (days <= length)
    count = first.astype("datetime64[D]").astype(np.int64) + days - 1
    if "H" not in parts:
        return pa.array(count.astype(np.int32), mask=~fits).cast(pa.date32())
    zero = np.zeros(len(years), dtype=np.int64)
    minutes, seconds = parts.get("M", zero), parts.get("S", zero)
    fits = fits & (parts["H"] < 24) & (minutes < 60) & (seconds < 60)
    count = count * 86_400 + parts["H"] * 3_600 + minutes * 60 + seconds
    return pa.array(count, mask=~fits).cast(pa.timestamp("s"))


def _part(found: pa.Array, name: str, fits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """One part of each text as a number; 0 where the text does not fit."""
    texts = pc.fill_null(pc.struct_field(found, name), "0")
    numbers = np.asarray(texts.cast(pa.int64()), dtype=np.int64)
    return np.where(fits, numbers, 0)


def _month_numbers(found: pa.Array, name: str, months: Mapping[str, int]) -> NDArray[np.int64]:
    """The months of names or of their beginnings; 0 where one is none."""
    named = pc.fill_null(pc.struct_field(found, name), "")
    plain = pc.replace_substring_regex(pc.utf8_normalize(named, form="NFKD"), r"[\pM.]", "")
    known = pc.index_in(pc.utf8_lower(plain), value_set=pa.array(list(months), pa.string()))
    places = pa.array(list(months.values()), pa.int64()).take(known)
    return np.asarray(pc.fill_null(places, 0), dtype=np.int64)


def _full_years(short: NDArray[np.int64]) -> NDArray[np.int64]:
    """Years of two digits, from 1969 to 2068 as in POSIX."""
    return np.where(short < 69, short + 2000, short + 1900)


def _shape(text: str) -> str:
    """A text with one sign for all digits that stand together, and one for all letters."""
    return re.sub(r"[^\W\d_]+\.?", "a", re.sub("[0-9]+", "0", text))


@cache
def _form_shape(form: str) -> str:
    """The shape of every text that is written in ``form``."""
    return _shape(re.sub("%[bB]", "a", re.sub("%[^bB]", "0", form)))


def forms_of(
    values: pa.Array, forms: Sequence[str] = FORMS, months: Mapping[str, int] = _ANY_LANGUAGE
) -> list[str]:
    """The forms in which all texts are dates, those that mean the same dates named once."""
    first = values.slice(0, 1)
    if not _any(pc.match_substring_regex(first, "[0-9]{2}")):  # no year of any form
        return []
    shape = _shape(_trim(first)[0].as_py())
    kept: list[tuple[str, pa.Array]] = []
    for form in forms:
        if _form_shape(form) != shape or moments_by(first, form, months).null_count:
            continue
        moments = moments_by(values, form, months)
        if not moments.null_count and not any(moments.equals(other) for _, other in kept):
            kept.append((form, moments))
    return [form for form, _ in kept]


def form_of(values: pa.Array) -> str | None:
    """The one form in which texts are dates that no schema calls so: month names in English.

    None: there is none, or several that differ.
    """
    if not _any(pc.match_substring_regex(values.slice(0, 1), "[0-9]{4}")):
        return None
    found = forms_of(values, FORMS, _ENGLISH)
    return found[0] if len(found) == 1 else None


def moment_column(column: pa.ChunkedArray, form: str) -> pa.ChunkedArray:
    """A dictionary column of texts that are all written in ``form``, as dates or times."""
    chunks = [moments_by(chunk.dictionary, form).take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(chunks)


def serial_moments(numbers: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Days as Excel counts them, as dates; as times where some have a part of a day."""
    # From 1899-12-30, where Excel counts from, to 1970-01-01 there are 25,569 days.
    seconds = pc.round(pc.multiply(pc.subtract(numbers.cast(pa.float64()), 25_569.0), 86_400.0))
    moments = seconds.cast(pa.int64()).cast(pa.timestamp("s"))
    whole = pc.all(pc.equal(pc.floor(numbers.cast(pa.float64())), numbers.cast(pa.float64())))
    return moments.cast(pa.date32()) if whole.as_py() is not False else moments


def no_dates(values: pa.Array) -> pa.Array:
    """Which texts are no dates: in the form that most of them fit."""
    best = max((moments_by(values, form) for form in (*FORMS, *DECLARED_FORMS)),
               key=lambda found: len(found) - found.null_count)  # fmt: skip
    iso = no_moments(values)
    return pc.is_null(best) if best.null_count < (pc.sum(iso).as_py() or 0) else iso


def format_question(forms: Sequence[str]) -> str:
    """What the controller is asked where dates can be read in several ways, or need to be said."""
    listed = " or ".join(f'format = "{form}"' for form in forms)
    if len(forms) > 1:
        return f" Its dates can be read in several ways: say which, {listed}, in its entry."
    return f" Its dates need their format: say {listed} in the column's entry of the schema."


FORMAT_HINT = (
    " Dates that are written otherwise need their format in the column's entry, such as"
    ' format = "%d.%m.%y", or "excel" for days as Excel counts them.'
)


def formats_to_state(values: pa.Array) -> list[str]:
    """The formats in which all texts are dates once the schema states one of them."""
    forms = forms_of(values, (*FORMS, *DECLARED_FORMS)) or forms_of(values, SHORT_FORMS)
    return forms or ([EXCEL] if are_serials(values) else [])


def are_serials(values: pa.Array) -> bool:
    """Whether all values are, or write, numbers of days as Excel counts them, 1901 to 2100."""
    if pa.types.is_string(values.type):
        texts = _trim(values)
        if not _all(pc.match_substring_regex(texts, r"^[0-9]{3,5}(\.[0-9]+)?$")):
            return False
        values = texts.cast(pa.float64())
    ends = pc.min_max(values.cast(pa.float64(), safe=False))
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return low is not None and SERIALS[0] <= low and high <= SERIALS[1] and not are_years(low, high)


def are_years(low: float, high: float) -> bool:
    """Whether numbers from ``low`` to ``high`` can as well be years."""
    return low >= 1000 and high < 3000


def _trim(values: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(values.cast(pa.string()))


def _all(found: pa.Array) -> bool:
    return pc.all(found).as_py() is not False


def _any(found: pa.Array) -> bool:
    return pc.any(found).as_py() is True
