"""The answers of several queries over the same groups, put side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.errors import EngineError

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
    for table, own in zip(tables[1:], ids[1:], strict=True):
        at = positions(ids[0], own)
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
        chunks = [comparable(c) for t in tables for c in t[name].chunks]
        whole = pa.concat_arrays(chunks) if chunks else pa.array([], tables[0][name].type)
        codes = whole.dictionary_encode(null_encoding="encode").indices
        flat = codes.to_numpy(zero_copy_only=False).astype(np.int64)
        _, total = np.unique(total * (int(flat.max(initial=0)) + 1) + flat, return_inverse=True)
    return np.split(total, np.cumsum(sizes)[:-1])


def positions(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of ``theirs`` stands among ``ours``, which are all different.

    Raises:
        EngineError: one of them is not there; a count must never go to another group.
    """
    order = np.argsort(ours, kind="stable")
    at: NDArray[np.int64] = order[np.minimum(np.searchsorted(ours[order], theirs), len(ours) - 1)]
    if not np.array_equal(ours[at], theirs):
        raise EngineError(
            "Two queries over the same rows named a group differently, so nothing is answered: "
            "group by an expression with one spelling per value, such as CAST or LOWER."
        )
    return at


def comparable(values: pa.Array) -> pa.Array:
    """Plain values in which what SQL holds equal is the same: one zero, one NaN."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not pa.types.is_floating(values.type):
        return values
    numbers = values.to_numpy(zero_copy_only=False) + 0  # -0.0 + 0 is 0.0
    numbers[np.isnan(numbers)] = np.nan
    return pa.array(numbers, values.type, mask=values.is_null().to_numpy(zero_copy_only=False))
