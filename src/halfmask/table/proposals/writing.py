"""How the values of columns are written: decimal marks, dates, texts and numbers that mean missing.

All values are looked at. What they leave open the controller is asked; nothing here is what a table
is read as unless a schema says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.table.columns import abbreviate_names
from halfmask.table.files.rows import text_column
from halfmask.table.hierarchy import canonical
from halfmask.table.moments import (
    EXCEL,
    FORMS,
    SHORT_FORMS,
    are_serials,
    as_moments,
    format_question,
    forms_of,
    moment_column,
    moments_by,
    serial_moments,
)
from halfmask.table.proposals.shapes import facts_of, is_code, is_padded
from halfmask.table.proposals.vocabulary import (
    FIRST_SERIAL,
    names_a_day,
    names_an_amount,
    words_of,
)
from halfmask.table.read import without_missing
from halfmask.table.values import (
    TWO_MARKS,
    are_comma_numbers,
    cast_dictionary,
    has_two_marks,
    infer_type,
    is_moment,
    is_number,
    mark_of,
    number_column,
    used_values,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    ColumnEntries = Mapping[str, pa.ChunkedArray]


_SENTINEL_WORDS = (
    ".", "-", "--", "refused", "refusal", "unknown", "don't know", "dont know", "dk", "no answer",
    "not applicable", "not available", "prefer not to say", "not answered", "missing", "k.a.",
    "k. a.", "keine angabe", "keine antwort", "verweigert", "unbekannt", "weiß nicht", "inconnu",
    "ne sait pas", "refus", "desconocido", "no sabe", "no contesta", "sconosciuto", "non so",
    "non risponde", "onbekend", "weet niet", "geen antwoord", "#n/a", "n.a.", "na", "n/a", "nan",
    "null", "0000-00-00", "00.00.0000", "00/00/0000", "00-00-0000",
)  # fmt: skip
_SENTINEL_NUMBERS = tuple(
    float(sign + digit * count)
    for sign, digits in (("", "789"), ("-", "1789"))
    for digit in digits
    for count in range(1, 7)
    if (sign, count) != ("", 1) and (digit, count) not in (("1", 2), ("1", 3))
)
_ENOUGH_NUMBERS = 3
_MISSING = ("?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null")


def without_tokens(entries: ColumnEntries, origin: str) -> tuple[ColumnEntries, tuple[str, ...]]:
    """The entries with texts such as ``?`` taken as missing, and which of them occur."""
    known = pa.array(_MISSING)
    tokens: dict[str, None] = {}
    found = dict(entries)
    for name, column in entries.items():
        if not pa.types.is_dictionary(column.type):
            continue
        values = used_values(column)
        seen = values.filter(pc.is_in(values, value_set=known)).to_pylist()
        if not seen or _are_country_codes(values):
            continue
        tokens.update(dict.fromkeys(seen))
        column = text_column(column, seen)
        found[name] = infer_type(column) if origin == "csv" else column
    return found, tuple(sorted(tokens))


@dataclass(slots=True)
class Writing:
    """How the values of a column are written.

    Attributes:
        entry: what the schema has to say about it, by its keys.
        why: the same in words.
        comma: whether its numbers have a decimal comma.
        question: what only the controller can say.
        short: whether its dates have years of two digits.
    """

    entry: dict[str, Any] = field(default_factory=dict)
    why: list[str] = field(default_factory=list)
    comma: bool = False
    question: str = ""
    short: bool = False


def usual_mark(entries: ColumnEntries, stated: str | None, origin: str) -> str | None:
    """The decimal mark of a text file as a whole, where its columns agree on a comma.

    Where other columns have points, each column with commas has to say so.
    """
    if origin != "csv" or stated is not None:
        return stated
    floats = any(pa.types.is_floating(column.type) for column in entries.values())
    texts = [used_values(c) for c in entries.values() if pa.types.is_dictionary(c.type)]
    clear = any(are_comma_numbers(values) and not has_two_marks(values) for values in texts)
    return "," if clear and not floats else None


def understood_entries(
    entries: ColumnEntries, usual: str | None, *, workbook: bool
) -> tuple[ColumnEntries, dict[str, Writing]]:
    """The entries as every verb will read them by the proposed schema, and what it has to say."""
    found, writings = {}, {}
    for name, column in entries.items():
        writing = Writing()
        if pa.types.is_dictionary(column.type):
            column = _understood_texts(name, column, usual, writing)
        if is_number(column.type):
            column = _without_sentinels(column, writing)
            column = _understood_serials(name, column, writing, workbook=workbook)
        if is_moment(column.type):
            column = _without_sentinel_days(column, writing)
        found[name], writings[name] = column, writing
    return found, writings


_LIKE_DATES = (
    r"^\s*([0-9]{1,2}[./-][0-9]{1,2}[./-]([0-9]{4}|[0-9]{2})|[0-9]{4}([./-][0-9]{1,2}){2})\s*$"
)
_NO_ONE_FORM = (
    "but no one format fits all of them: correct those that are written otherwise or are no days, "
    "or leave it as text."
)
_LIKE_NUMBERS = r"^\s*[+-]?[0-9]+([.,][0-9]+)*\s*$"
_NO_ONE_MARK = (
    "but no decimal mark fits all of them, as thousands have three digits: correct them, or leave "
    "it as text."
)


def _are_like_numbers(values: pa.Array) -> bool:
    """Whether all texts are digits with marks, some of them with a point and a comma."""
    like = pc.all(pc.match_substring_regex(values, _LIKE_NUMBERS)).as_py()
    two = pc.and_(pc.match_substring(values, "."), pc.match_substring(values, ","))
    return bool(like and pc.any(two).as_py())


def _understood_texts(
    name: str, column: pa.ChunkedArray, usual: str | None, writing: Writing
) -> pa.ChunkedArray:
    values = used_values(column)
    words = pc.utf8_lower(pc.utf8_trim_whitespace(values))
    odd = pc.is_in(words, value_set=pa.array(_SENTINEL_WORDS))
    absent = values.filter(odd)
    if 0 < len(absent) < len(values):
        writing.entry["missing"] = tuple(absent.to_pylist())
        writing.why.append(f"{len(absent)} of its texts usually mean a missing value")
        column = text_column(column, absent.to_pylist())
    values = used_values(column)
    if len(values) == 0:
        return column
    forms = [] if as_moments(values) is not None else _date_forms(values, writing)
    if len(forms) == 1 and not writing.question:
        writing.entry["format"] = forms[0]
        return moment_column(column, forms[0])
    if forms:
        writing.question = f"Column '{name}':{writing.question or format_question(forms)}"
        return column
    if (moments := as_moments(values)) is not None:
        return cast_dictionary(column, moments.type)
    facts = facts_of(name, column)
    mark = None if is_code(facts) or is_padded(values) else mark_of(values, None, usual)
    if mark is None:
        if has_two_marks(values) and usual is None:
            writing.question = f"Column '{name}':{TWO_MARKS}"
        elif pc.all(pc.match_substring_regex(values, _LIKE_DATES)).as_py():
            writing.question = f"Column '{name}': its texts look like dates, {_NO_ONE_FORM}"
        elif _are_like_numbers(values) and not is_code(facts):
            writing.question = f"Column '{name}': its texts look like numbers, {_NO_ONE_MARK}"
        elif odd_ones := _not_dates(values):
            writing.question = f"Column '{name}': {odd_ones}"
        return column
    writing.comma = mark == ","
    if mark == "," != usual or (mark == "." and usual == ","):
        writing.entry["decimal"] = mark
    return number_column(column, mark)


_NAMED_FORMS = ("%Y-%m", "%m/%Y", "%d. %B %Y", "%d. %b %Y", "%d de %B de %Y", "%B %Y", "%b %Y")
_LATEST = 2050  # a short year that would be later is rather one of the century before


def _date_forms(values: pa.Array, writing: Writing) -> list[str]:
    """The forms in which all texts are dates, also with years of two digits."""
    forms = forms_of(values, (*FORMS, *_NAMED_FORMS))
    if forms:
        return forms
    forms = forms_of(values, SHORT_FORMS)
    if len(forms) == 1:
        writing.short = True
        if pc.max(pc.year(moments_by(values, forms[0]))).as_py() >= _LATEST:
            writing.question = (
                " Some of its years of two digits would be read as 2050 to 2068: write them with "
                f'four digits, or say format = "{forms[0]}" in its entry where they are right.'
            )
    return forms


_MOSTLY = 0.8  # of the texts of a column that holds dates


def _not_dates(values: pa.Array) -> str:
    """What is to be said of texts most of which are dates of one form; empty where few are."""
    like, most = pc.match_substring_regex(values, _LIKE_DATES), (1 - _MOSTLY) * len(values)
    if len(values) < _FEW or len(values) - like.true_count > most:
        return ""
    days = (one for one in FORMS if "%H" not in one)
    least, form = min((moments_by(values, one).null_count, one) for one in days)
    if least > most:
        return ""
    return (
        f'{len(values) - least:,} of its {len(values):,} texts are dates by format = "{form}", '
        f"{least:,} are not: correct these, or list them as missing in its entry; as text it "
        "can only be kept or hidden."
    )


_FEW = 5  # digits that make that many dates do so by no accident
_YEARS = (1850, 2100)


def _understood_serials(
    name: str, column: pa.ChunkedArray, writing: Writing, *, workbook: bool
) -> pa.ChunkedArray:
    """Numbers that are dates: digits such as 20051028, or days as Excel counts them."""
    values = pc.unique(column.drop_null())
    if len(values) == 0:
        return column
    form = "%Y%m%d"
    if pa.types.is_integer(column.type) and len(values) >= _FEW:
        moments = moments_by(values, form)
        if not moments.null_count:
            ends = pc.min_max(pc.year(moments)).as_py()
            if _YEARS[0] <= ends["min"] and ends["max"] < _YEARS[1]:
                writing.entry["format"] = form
                return pa.chunked_array(
                    [moments_by(column.cast(pa.string()).combine_chunks(), form)]
                )
    if not are_serials(values):
        return column
    if names_a_day(words_of(name), pc.min(values).as_py()):
        writing.entry["format"] = EXCEL
        writing.why.append("its numbers are days as Excel counts them")
        return serial_moments(column)
    if workbook and pc.min(values).as_py() >= FIRST_SERIAL and not names_an_amount(words_of(name)):
        writing.question = (
            f"Column '{name}': its numbers may be days as Excel counts them: if so, say "
            'kind = "date" and format = "excel" in its entry.'
        )
    return column


def _without_sentinels(column: pa.ChunkedArray, writing: Writing) -> pa.ChunkedArray:
    """The numbers without those that usually mean a missing value and lie far from all others."""
    numbers = pc.unique(column.drop_null()).cast(pa.float64(), safe=False).to_numpy()
    held = np.sort(numbers[np.isfinite(numbers)])
    far = _far_sentinels(held) | _answer_codes(held)
    if not far.any():
        return column
    texts = [canonical(int(number)) for number in held[far]]
    writing.entry["missing"] = (*writing.entry.get("missing", ()), *texts)
    writing.why.append(f"{len(texts)} of its numbers usually mean a missing value")
    return without_missing(column, texts)


def _far_sentinels(held: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which numbers (ascending) usually mean a missing value and lie far from the others."""
    usual = np.isin(held, _SENTINEL_NUMBERS)
    if not usual.any() or np.count_nonzero(~usual) < _ENOUGH_NUMBERS:
        return np.zeros(len(held), dtype=bool)
    low, high = held[~usual].min(), held[~usual].max()
    room = max(high - low, 1.0)
    found: NDArray[np.bool_] = usual & ((held > high + 2 * room) | ((held < 0) & (low >= 0)))
    return found


_ANSWERS = 5  # answers of a question with one digit; 7, 8 and 9 then stand for none
_LONG_CODE = 77  # so do 77, 88, 99, 777, ... behind two answers


def _answer_codes(held: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which of 7, 8 and 9 behind the answers 1, 2 ... (or 0 and 1) of a question mean none of them.

    Two of them do, or 9 alone behind three answers at most; counts of something leave no such gap.
    Behind two answers, longer ones (77, 99) do too.
    """
    longer = np.isin(held, _SENTINEL_NUMBERS) & (np.abs(held) >= _LONG_CODE)
    if held[~longer].tolist() in ([1, 2], [0, 1]):
        return longer
    codes = np.isin(held, (7.0, 8.0, 9.0))
    answers = held[~codes]
    most = len(answers)
    counted = np.array_equal(answers, np.arange(1, most + 1)) or answers.tolist() == [0, 1]
    none = codes.sum() >= 2 or (codes.any() and held[-1] == 9 and most <= 3)
    return codes & bool(counted and 2 <= most <= _ANSWERS and none)


_SENTINEL_DAYS = tuple(
    np.datetime64(day)
    for day in (
        "0001-01-01", "1111-11-11", "1800-01-01", "1899-12-30", "1899-12-31", "1900-01-01",
        "1901-01-01", "1970-01-01", "2099-12-31", "2100-01-01", "2999-12-31", "3000-01-01",
        "9999-01-01", "9999-12-31",
    )
)  # fmt: skip
_FAR = np.timedelta64(3653, "D")  # ten years


def _without_sentinel_days(column: pa.ChunkedArray, writing: Writing) -> pa.ChunkedArray:
    """The dates without those that usually mean a missing one and lie ten years from all others."""
    found = pc.unique(column.drop_null()).cast(pa.date32(), safe=False)
    days = found.to_numpy(zero_copy_only=False)
    held = np.unique(days)
    usual = np.isin(held, _SENTINEL_DAYS)
    if not usual.any() or np.count_nonzero(~usual) < _ENOUGH_NUMBERS:
        return column
    low, high = held[~usual].min(), held[~usual].max()
    far = held[usual & ((held < low - _FAR) | (held > high + _FAR))]
    if not len(far):
        return column
    texts = [str(day) for day in far]
    writing.entry["missing"] = (*writing.entry.get("missing", ()), *texts)
    writing.why.append(f"{len(texts)} of its dates usually mean a missing value")
    return without_missing(column, texts)


def writing_notes(writings: Mapping[str, Writing], usual: str | None) -> list[str]:
    """What is asked of the controller, and what was taken as decimal comma, date or missing."""
    notes = [writing.question for writing in writings.values() if writing.question]
    commas = [name for name, writing in writings.items() if writing.comma]
    if commas and usual == ",":
        notes.append(
            f"Numbers with a decimal comma: {abbreviate_names(commas)}. They are read as numbers "
            'with decimal = "," under [table] (or --decimal ,), else as text.'
        )
    elif commas:
        notes.append(
            f"Numbers with a decimal comma: {abbreviate_names(commas)}. Each says so with "
            'decimal = "," in its entry, which counts for that column alone.'
        )
    short = [name for name, one in writings.items() if one.short and not one.question]
    if short:
        notes.append(
            f"Years of two digits: {abbreviate_names(short)}. 69 to 99 are read as 1969 to 1999, "
            "00 to 68 as 2000 to 2068."
        )
    absent = [name for name, writing in writings.items() if "missing" in writing.entry]
    if absent:
        notes.append(
            f"Proposed as missing, in these columns only: values that usually mean it in "
            f"{abbreviate_names(absent)}. Delete the entry missing where they are values."
        )
    return notes


def _are_country_codes(values: pa.Array) -> bool:
    """NA among codes of two letters is Namibia."""
    return bool(pc.all(pc.match_substring_regex(values, "^[A-Z]{2}$")).as_py()) and len(values) > 9
