"""The answers of several queries over the same groups, put side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def joined(tables: Sequence[pa.Table], keys: int) -> pa.Table:
    """Put the queries' columns side by side; null is a key like any other."""
    if len(tables) == 1:
        return tables[0]
    names = ["level", *(f"g{i}" for i in range(keys))]
    ids = row_ids(tables, names)
    main = tables[0]
    order = {int(v): i for i, v in enumerate(ids[0])}
    for table, own in zip(tables[1:], ids[1:], strict=True):
        at = np.array([order[int(v)] for v in own], dtype=np.int64)
        take = np.full(main.num_rows, -1, dtype=np.int64)
        take[at] = np.arange(table.num_rows)
        picked = table.take(pa.array(take, mask=take < 0))
        for name in table.column_names:
            if name in names:
                continue
            column = picked[name]
            main = main.append_column(name, column.fill_null(0) if name.endswith("_n") else column)
    return main


def row_ids(tables: Sequence[pa.Table], names: Sequence[str]) -> list[NDArray[np.int64]]:
    """Number the distinct keys over several tables with the same key columns."""
    sizes = [t.num_rows for t in tables]
    total = np.zeros(sum(sizes), dtype=np.int64)
    for name in names:
        chunks = [c for t in tables for c in _plain(t[name]).chunks]
        whole = pa.concat_arrays(chunks) if chunks else pa.array([], _plain(tables[0][name]).type)
        codes = whole.dictionary_encode(null_encoding="encode").indices
        flat = codes.to_numpy(zero_copy_only=False).astype(np.int64)
        _, total = np.unique(total * (int(flat.max(initial=0)) + 1) + flat, return_inverse=True)
    return np.split(total, np.cumsum(sizes)[:-1])


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column
