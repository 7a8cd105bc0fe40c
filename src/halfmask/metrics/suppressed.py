"""Suppressed cells of a release that another program wrote in its own way, as ``*``.

A missing cell, or a text such as NA, stands for a suppressed one only where the reader of the
release is told so: it may be a value like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from halfmask.errors import ParameterError
from halfmask.table.hierarchy import TOP, canonical
from halfmask.table.infer import inferred
from halfmask.table.numbers import is_text
from halfmask.table.table import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

MISSING = "missing"


def require_word(suppressed: object) -> None:
    """Refuse what says nothing of how suppressed cells are written."""
    if suppressed is not None and (not isinstance(suppressed, str) or not suppressed):
        allowed = f'"{MISSING}", or the text that suppressed cells hold'
        raise ParameterError("suppressed", suppressed, allowed)


def starred(rows: pa.Table, names: Sequence[str], suppressed: str) -> pa.Table:
    """The rows with ``*`` in the cells of ``names`` that are suppressed.

    Args:
        rows: the rows of a release, or its distinct tuples.
        names: the columns in which cells may be suppressed.
        suppressed: the text of such a cell, or ``"missing"`` where it is missing.
    """
    for place, name in enumerate(rows.column_names):
        if name in names:
            rows = rows.set_column(place, name, _starred(rows[name], suppressed))
    return rows


def _starred(column: pa.ChunkedArray, suppressed: str) -> pa.ChunkedArray:
    own = encode(column)
    held = [None if value is None else canonical(value) for value in own.values.to_pylist()]
    wanted = None if suppressed == MISSING else suppressed
    if wanted not in held:
        return column
    texts = [TOP if text == wanted else text for text in _plain(own.values, held, wanted)]
    values = pa.array(texts, pa.string()).take(pa.array(own.codes))
    return pa.chunked_array([values.dictionary_encode()])


def _plain(
    values: pa.Array, held: Sequence[str | None], wanted: str | None
) -> Sequence[str | None]:
    """What the other cells hold, as text: numbers that one word had made texts are numbers."""
    if wanted is None or not is_text(values.type):
        return held
    others = [text for text in held if text is not None and text != wanted]
    if not others:
        return held
    found = inferred(pa.chunked_array([pa.array(others, pa.string()).dictionary_encode()]))
    plain = dict(zip(others, map(canonical, found.to_pylist()), strict=True))
    return [text if text is None else plain.get(text, text) for text in held]
