"""One dictionary of distinct values for a whole column."""

from __future__ import annotations

import pyarrow as pa


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


def _whole(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks else pa.array([], type=column.type)
