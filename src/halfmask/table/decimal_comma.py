"""Numbers with a decimal comma, as much of Europe writes them: ``12,5`` and ``1.234,56``.

A comma is part of a number only where the reader of a text file is told so, since ``1,5`` may as
well be two codes; where nobody said it, what looks like it is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import ParameterError
from halfmask.table.hierarchy import canonical

if TYPE_CHECKING:
    from halfmask.table.schema import Schema

MARKS = (",", ".")
HINT = (
    ' They look like numbers with a decimal comma: say decimal = "," under [table], or read the'
    ' file with decimal="," (--decimal ,).'
)
_NUMBER = r"^[+-]?([1-9][0-9]{0,2}(\.[0-9]{3})+|0|[1-9][0-9]*)(,[0-9]+)?$"


def require_mark(decimal: object) -> None:
    """Refuse what is no decimal mark."""
    if decimal is not None and decimal not in MARKS:
        raise ParameterError("decimal", decimal, 'a comma "," or a point "."')


def has_comma(schema: Schema) -> bool:
    """Whether numbers are written with a comma."""
    return schema.decimal == ","


def are_comma_numbers(values: pa.Array) -> bool:
    """Whether all distinct texts are numbers, some of them with a comma."""
    texts = pc.utf8_trim_whitespace(values.cast(pa.string()))
    if len(texts) == 0 or not pc.any(pc.match_substring(texts, ",")).as_py():
        return False
    return bool(pc.all(pc.match_substring_regex(texts, _NUMBER)).as_py())


def comma_hint(values: pa.Array) -> str:
    """What to do about texts that are no numbers, where a comma is why."""
    return HINT if are_comma_numbers(values) else ""


def pointed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A dictionary column whose texts have a point where a comma was, and no points before."""
    chunks = []
    for chunk in column.chunks:
        texts = pc.replace_substring(chunk.dictionary.cast(pa.string()), ".", "")
        texts = pc.replace_substring(texts, ",", ".")
        chunks.append(pa.DictionaryArray.from_arrays(chunk.indices, texts))
    return pa.chunked_array(chunks)


def with_points(rows: pa.Table) -> tuple[pa.Table, list[str]]:
    """The rows with numbers where texts are numbers with a comma, and the names of such columns."""
    found = [
        name
        for name in rows.column_names
        if pa.types.is_dictionary(rows[name].type) and are_comma_numbers(_used(rows[name]))
    ]
    for name in found:
        chunks = [
            chunk.dictionary.cast(pa.float64()).take(chunk.indices)
            for chunk in pointed(rows[name]).chunks
        ]
        place = rows.column_names.index(name)
        rows = rows.set_column(place, name, pa.chunked_array(chunks, pa.float64()))
    return rows, found


def labels_with_points(rows: pa.Table) -> pa.Table:
    """The rows of a release with a point in numbers, also where ``*`` or ranges stand beside."""
    rows, _ = with_points(rows)
    for place, name in enumerate(rows.column_names):
        if pa.types.is_dictionary(rows[name].type):
            rows = rows.set_column(place, name, _pointed_labels(rows[name]))
    return rows


def _used(column: pa.ChunkedArray) -> pa.Array:
    return pc.drop_null(pc.unique(column.cast(pa.string())))


def _pointed_labels(column: pa.ChunkedArray) -> pa.ChunkedArray:
    held = _used(column)
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
