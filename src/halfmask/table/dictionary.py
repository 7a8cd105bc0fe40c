"""One dictionary of distinct values for a whole column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


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


def ascending(column: pa.ChunkedArray, most: int = 1 << 16) -> pa.ChunkedArray:
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
