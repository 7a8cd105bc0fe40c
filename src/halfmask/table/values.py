"""One dictionary of distinct values for a whole column.

Numbers with a decimal comma, as much of Europe writes them: ``12,5`` and ``1.234,56``.

The mark is found per column, from all its values. Where nothing is declared, ``1,5`` may as well be
two codes and stays text; where two marks fit and mean different numbers, the controller is asked.

The distinct values of a column as numbers.

What a text column holds, decided on its distinct values alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import HierarchyError, ParameterError
from halfmask.table.hierarchy import canonical
from halfmask.table.moments import form_of, moment_column, out_of_calendar

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.schema import Schema


def dictionary_of(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """The column as one dictionary array; distinct values are hashed at most once."""
    if not pa.types.is_dictionary(column.type):
        return _whole(column).dictionary_encode()
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.num_chunks == 0:
        return pa.array([], type=column.type)
    chunks = column.unify_dictionaries().chunks
    codes = pa.chunked_array([chunk.indices for chunk in chunks])
    return pa.DictionaryArray.from_arrays(_whole(codes), chunks[0].dictionary)


def sort_dictionary(column: pa.ChunkedArray, most: int = 1 << 16) -> pa.ChunkedArray:
    """A dictionary column with its values in ascending order, so that its codes can be used as is.

    A column with more than ``most`` values stays as it is: it is hardly ever generalized.
    """
    array = dictionary_of(column)
    if len(array.dictionary) > most:
        return column
    order = pc.sort_indices(array.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    indices = pc.take(pa.array(rank), array.indices)
    return pa.chunked_array(
        [pa.DictionaryArray.from_arrays(indices, array.dictionary.take(pa.array(order)))]
    )


def _whole(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks else pa.array([], type=column.type)


MARKS = (",", ".")
HINT = (
    ' They look like numbers with a decimal comma: say decimal = "," under [table], or read the'
    ' file with decimal="," (--decimal ,).'
)
TWO_MARKS = (
    " Its commas may be decimal marks or stand between thousands: say which is the decimal mark,"
    ' decimal = "," or decimal = ".", in the column\'s entry of the schema.'
)
_NUMBER = r"^[+-]?([1-9][0-9]{0,2}(\.[0-9]{3})+|0|[1-9][0-9]*)(,[0-9]+)?$"


def require_mark(decimal: object) -> None:
    """Refuse what is no decimal mark."""
    if decimal is not None and decimal not in MARKS:
        raise ParameterError("decimal", decimal, 'a comma "," or a point "."')


def has_comma(schema: Schema, name: str) -> bool:
    """Whether the numbers of a column are said to be written with a comma."""
    entry = schema.columns.get(name)
    return (entry.decimal if entry and entry.decimal else schema.decimal) == ","


def _matches(texts: pa.Array, mark: str) -> pa.Array:
    """Which texts are numbers with that decimal mark; the other stands between thousands only."""
    m, other = ("," if mark == "," else r"\."), (r"\." if mark == "," else ",")
    plain = rf"^[+-]?([0-9]+{m}?[0-9]*|{m}[0-9]+)([eE][+-]?[0-9]+)?$"
    grouped = rf"^[+-]?[1-9][0-9]{{0,2}}({other}[0-9]{{3}})+({m}[0-9]+)?$"
    return pc.match_substring_regex(texts, f"(?:{plain})|(?:{grouped})")


def _all(found: pa.Array) -> bool:
    return pc.all(found).as_py() is not False


def _any(found: pa.Array) -> bool:
    return pc.any(found).as_py() is True


def _trim(values: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(values.cast(pa.string()))


def mark_of(values: pa.Array, stated: str | None = None, usual: str | None = None) -> str | None:
    """The decimal mark with which all texts are numbers.

    None: there is none, or both fit and mean different numbers. ``stated`` is the column's own
    mark, ``usual`` that of the file, which decides where both fit.
    """
    texts = _trim(values)
    fits = [mark for mark in MARKS if _all(_matches(texts, mark))]
    if stated is not None:
        return stated if stated in fits else None
    if len(fits) < 2:
        return fits[0] if fits else None
    if usual is not None or not _any(pc.match_substring(texts, ",")):
        return usual or "."
    return None


def has_two_marks(values: pa.Array) -> bool:
    """Whether texts are numbers with either mark, but not the same ones."""
    texts = _trim(values)
    both = all(_all(_matches(texts, mark)) for mark in MARKS)
    return both and len(texts) > 0 and _any(pc.match_substring(texts, ","))


def _with_point(texts: pa.Array, mark: str) -> pa.Array:
    """Texts that are numbers with that mark, as any program reads them."""
    texts = pc.replace_substring(_trim(texts), "," if mark == "." else ".", "")
    texts = texts if mark == "." else pc.replace_substring(texts, ",", ".")
    return pc.replace_substring_regex(texts, r"^\+", "")


def number_column(column: pa.ChunkedArray, mark: str) -> pa.ChunkedArray:
    """A dictionary column of texts as numbers; ``mark_of`` must have found the mark."""
    texts = _with_point(used_values(column), mark)
    # 18 digits fit into 64 bits whatever they are; 19 only some of them.
    whole = _all(pc.match_substring_regex(texts, r"^-?[0-9]{1,18}$"))
    kind = pa.int64() if whole or _round_trip(texts, pa.int64()) else pa.float64()
    chunks = [
        _with_point(chunk.dictionary, mark).cast(kind).take(chunk.indices)
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, type=kind)


def _evident_mark(values: pa.Array, usual: str | None) -> str | None:
    """The mark of a column of which nothing is declared: none where texts may be codes."""
    texts = _trim(values)
    # A plus, a zero in front, or more digits than a double tells apart: codes, not numbers.
    if _any(pc.match_substring_regex(texts, r"^(\+|-?0[0-9]|[+-]?[0-9]{16})")):
        return None
    mark = mark_of(values, None, usual)
    commas, points = (pc.match_substring(texts, sign) for sign in MARKS)
    if mark is None or (usual == "," == mark and _any(points) and not _any(commas)):
        return None
    if _any(commas) and usual != mark and not _any(pc.and_(commas, points)):
        return None  # 1,5 may be two codes, and 100,200,300 three
    plain = _with_point(texts, mark)
    numbers = plain.cast(pa.float64())
    if not _all(pc.is_finite(numbers)):
        return None
    written = plain.filter(pc.invert(pc.match_substring_regex(plain, "[eE]")))
    short = pc.replace_substring_regex(written, r"\.0*$", "")
    same = pc.count_distinct(short).as_py() == pc.count_distinct(written.cast(pa.float64())).as_py()
    return mark if same else None  # 1.1 and 1.10 are two codes


def are_comma_numbers(values: pa.Array) -> bool:
    """Whether all distinct texts are numbers, some of them with a comma."""
    texts = pc.utf8_trim_whitespace(values.cast(pa.string()))
    if len(texts) == 0 or not pc.any(pc.match_substring(texts, ",")).as_py():
        return False
    return bool(pc.all(pc.match_substring_regex(texts, _NUMBER)).as_py())


def comma_hint(values: pa.Array) -> str:
    """What to do about texts that are no numbers, where a comma is why."""
    return HINT if are_comma_numbers(values) else ""


def with_points(rows: pa.Table) -> tuple[pa.Table, list[str]]:
    """The rows with numbers where texts are numbers with a comma, and the names of such columns."""
    found = [
        name
        for name in rows.column_names
        if pa.types.is_dictionary(rows[name].type) and are_comma_numbers(_unique_texts(rows[name]))
    ]
    for name in found:
        place = rows.column_names.index(name)
        numbers = number_column(rows[name].unify_dictionaries(), ",").cast(pa.float64())
        rows = rows.set_column(place, name, numbers)
    return rows, found


def labels_with_points(rows: pa.Table) -> pa.Table:
    """The rows of a release with a point in numbers, also where ``*`` or ranges stand beside."""
    rows, _ = with_points(rows)
    for place, name in enumerate(rows.column_names):
        if pa.types.is_dictionary(rows[name].type):
            rows = rows.set_column(place, name, _labels_with_point(rows[name]))
    return rows


def _unique_texts(column: pa.ChunkedArray) -> pa.Array:
    return pc.drop_null(pc.unique(column.cast(pa.string())))


def _labels_with_point(column: pa.ChunkedArray) -> pa.ChunkedArray:
    held = _unique_texts(column)
    numbers = held.filter(pc.match_substring_regex(held, r"^[+-]?[0-9.]+,[0-9]+$"))
    numbers = [text for text in numbers.to_pylist() if are_comma_numbers(pa.array([text]))]
    if not numbers:
        return column
    plain = {text: canonical(float(text.replace(".", "").replace(",", "."))) for text in numbers}
    chunks = []
    for chunk in column.chunks:
        texts = [plain.get(text, text) for text in chunk.dictionary.to_pylist()]
        chunks.append(pa.array(texts, pa.string()).take(chunk.indices).dictionary_encode())
    return pa.chunked_array(chunks).unify_dictionaries()


def numbers_of(column: str, values: pa.Array) -> NDArray[Any]:
    """``values`` (none missing) as int64 where they are whole numbers, else as float64.

    Raises:
        HierarchyError: some are no finite numbers; says how many.
    """
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        numbers = values.cast(pa.float64(), safe=False)
    elif pa.types.is_integer(values.type):
        numbers = values if len(values) == 0 or pc.max(values).as_py() < 2**63 else None
        numbers = values.cast(pa.float64(), safe=False) if numbers is None else numbers
    elif is_text(values.type):
        numbers = _from_text(column, values.cast(pa.string()))
    else:
        raise HierarchyError(
            f"Column '{column}' holds {values.type}, not numbers; choose another hierarchy."
        )
    out = numbers.to_numpy(zero_copy_only=False)
    if out.dtype.kind in "iu":
        return np.asarray(out, dtype=np.int64)
    infinite = int(np.count_nonzero(~np.isfinite(out)))
    if infinite:
        raise HierarchyError(f"Column '{column}': {infinite} distinct value(s) are not finite.")
    return np.asarray(out, dtype=np.float64)


def are_numbers(values: pa.Array) -> NDArray[np.bool_]:
    """Which of ``values`` are finite numbers, or texts that write one."""
    if is_text(values.type):
        texts = pc.utf8_trim_whitespace(values.cast(pa.string()))
        found = pc.match_substring_regex(texts, NUMBER)
    elif is_number(values.type):
        found = pc.is_finite(values.cast(pa.float64(), safe=False))
    else:
        found = pa.array(np.zeros(len(values), dtype=bool))
    return np.asarray(pc.fill_null(found, fill_value=False))


def is_number(kind: pa.DataType) -> bool:
    """Whether values of this type are numbers."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def is_moment(kind: pa.DataType) -> bool:
    """Whether values of this type are dates or points in time."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_continuous(kind: pa.DataType) -> bool:
    """Whether values of this type are numbers, dates or times, so that others lie between."""
    return is_number(kind) or bool(pa.types.is_temporal(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether a type holds text."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def _from_text(column: str, values: pa.Array) -> pa.Array:
    texts = pc.utf8_trim_whitespace(values)
    bad = len(texts) - (pc.sum(pc.match_substring_regex(texts, NUMBER)).as_py() or 0)
    if bad:
        raise HierarchyError(
            f"Column '{column}': {bad} distinct value(s) are text, not numbers. Correct them, or"
            f" list what means a missing value under [table] missing.{comma_hint(values)}"
        )
    texts = pc.replace_substring_regex(texts, r"^\+", "")
    if pc.all(pc.match_substring_regex(texts, r"^-?[0-9]{1,18}$")).as_py() is not False:
        return texts.cast(pa.int64())
    return texts.cast(pa.float64())


# Seconds before microseconds: the coarsest that writes each text again as it was.
_GUESSES = (pa.int64(), pa.float64(), pa.date32(), pa.timestamp("s"), pa.timestamp("us"))


def infer_type(column: pa.ChunkedArray, usual: str | None = None) -> pa.ChunkedArray:
    """The column as numbers, dates or times where all its texts are such, else as it is.

    So "01234", "+5" and "1,5" stay text: they are codes, or may be. ``usual`` is the decimal mark
    of the file, where it is known.
    """
    values = used_values(column)
    if len(values) == 0:
        return column
    for kind in _GUESSES:
        if pa.types.is_floating(kind) and usual == ",":
            continue
        typed = _round_trip(values, kind)
        if typed is not None:
            return cast_dictionary(column, kind)
    if _evident_mark(values.slice(0, 1), usual) or _any(pc.match_substring(values, ",")):
        mark = _evident_mark(values, usual)
        if mark is not None:
            return number_column(column, mark)
    form = form_of(values)
    return column if form is None else moment_column(column, form)


def used_values(column: pa.ChunkedArray) -> pa.Array:
    """The distinct values of a dictionary column, without the missing one."""
    if column.num_chunks == 0:
        return pa.array([], type=column.type.value_type)
    return pc.drop_null(column.chunk(0).dictionary)


def _round_trip(values: pa.Array, kind: pa.DataType) -> pa.Array | None:
    # The first value alone refuses most kinds, and saves the look at all of them.
    for part in (values.slice(0, 1), values):
        try:
            typed = part.cast(kind)
        except pa.ArrowInvalid:
            return None
        if pa.types.is_floating(kind) and not pc.all(pc.is_finite(typed)).as_py():
            return None
        if out_of_calendar(typed):
            return None
        if not typed.cast(pa.string()).equals(part.cast(pa.string())):
            return None
    return typed


def cast_dictionary(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A dictionary column of text as a plain column of ``kind``; every value must allow it."""
    chunks = []
    for chunk in column.chunks:
        texts = chunk.dictionary
        if pa.types.is_floating(kind) or pa.types.is_integer(kind):
            texts = pc.replace_substring_regex(pc.utf8_trim_whitespace(texts), r"^\+", "")
        chunks.append(texts.cast(kind).take(chunk.indices))
    return pa.chunked_array(chunks, type=kind)


def number_type(values: pa.Array) -> tuple[pa.DataType | None, pa.Array]:
    """The number type that holds all ``values``, and which of them are no numbers."""
    texts = pc.utf8_trim_whitespace(values)
    bad = pc.invert(pc.match_substring_regex(texts, NUMBER))
    if pc.any(bad).as_py():
        return None, bad
    whole = pc.all(pc.match_substring_regex(texts, r"^[+-]?[0-9]{1,18}$")).as_py()
    return (pa.int64() if whole else pa.float64()), bad


def no_numbers(values: pa.Array, stated: str | None, usual: str | None) -> pa.Array:
    """Which texts hinder ``mark_of``: with the mark that most of them fit."""
    texts = _trim(values)
    marks = [stated] if stated else sorted(MARKS, key=lambda mark: mark != (usual or "."))
    return pc.invert(
        max((_matches(texts, mark) for mark in marks), key=lambda found: pc.sum(found).as_py() or 0)
    )
