"""Labels of generalized values as texts, and values as the type they came in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.table.hierarchy import TOP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table

Label = str | None


def label_texts(table: Table, name: str, level: int) -> tuple[NDArray[np.int32], list[Label]]:
    """Per value the code of its label at ``level``, and the labels as text."""
    hierarchy: Hierarchy = table.hierarchy(name)
    if level > hierarchy.height:
        return np.zeros(len(hierarchy.maps[0]), dtype=np.int32), [TOP]
    if level == 0:
        values = table.encode(name).values
        return np.arange(len(values), dtype=np.int32), as_text(values).to_pylist()
    labels: list[Any] = hierarchy.labels[level]
    return hierarchy.maps[level], [None if label is None else str(label) for label in labels]


def as_text(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Values as they are written in text, dictionary-encoded; the missing value stays missing."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(values.indices, values.dictionary.cast(pa.string()))


def as_type(kind: pa.DataType, values: pa.Array, codes: NDArray[np.int32]) -> pa.Array:
    """The values at ``codes`` as ``kind``; a dictionary holds used values only, in order."""
    if not pa.types.is_dictionary(kind):
        return values.take(pa.array(codes))
    gone = values.is_null().to_numpy(zero_copy_only=False)
    missing = gone[codes]
    keep = np.flatnonzero((np.bincount(codes, minlength=len(values)) > 0) & ~gone)
    rank = np.zeros(len(values) + 1, dtype=np.int32)
    rank[keep] = np.arange(len(keep), dtype=np.int32)
    indices = pa.array(rank[codes], mask=missing)
    return pa.DictionaryArray.from_arrays(indices, values.take(pa.array(keep)))
